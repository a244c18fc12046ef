"""The papers, re-run here: what scheduling and memory alone explain of two published comparisons.

Every system gets the same step times and the same KV pool, so a ratio here holds no kernel, no
framework and no overhead: the rest of the published ratio is theirs.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from planner.arrays import Floats, Ints
from planner.catalog import get_engine, get_gpu, get_model
from planner.inputs import (
    Batching,
    EngineSettings,
    KvReservation,
    LengthKind,
    Lengths,
    Limits,
    OnMemoryShortage,
    Parallelism,
    StepOrder,
)
from planner.memory import plan_memory
from planner.simulation import FINISHED, simulate
from planner.step_time import RankShare, StepTimeTable, step_time_table
from planner.workload import NO_LIMIT_TOKENS, Requests, draw_lengths

MODEL, GPU, CONTEXT = "facebook/opt-13b", "A100 SXM 40GB", 2048
ANYSCALE = "https://www.anyscale.com/blog/continuous-batching-llm-inference"
PAGED_ATTENTION = "https://arxiv.org/abs/2309.06180"
# Largest response [tokens] → batch of the naive static server that fitted the GPU (Anyscale).
ANYSCALE_BATCHES = {32: 16, 128: 12, 512: 8, 1536: 4}
PATIENCE_S_PER_TOKEN = 0.2  # "the same latency": mean end-to-end time per output token


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRow:
    """One system of one comparison.

    `published` and `simulated` are throughput ratios to `baseline`; `published` None where the
    source gives no figure. `kv_useful_fraction` is the share of held KV memory that holds tokens, of the
    system that is named last.
    """

    paper: str
    workload: str
    system: str
    baseline: str
    published_low: float | None
    published_high: float | None
    simulated: float
    kv_useful_fraction: float
    explained: str
    source: str


def paper_rows(num_requests: int = 1000) -> tuple[PaperRow, ...]:
    """Both comparisons, in the order of the page.

    Parameters
    ----------
    num_requests : int
        Requests per run; Anyscale used 1,000.

    Returns
    -------
    tuple of PaperRow
        Published beside simulated.
    """
    return (*anyscale_rows(num_requests), *paged_attention_rows(num_requests))


def anyscale_rows(num_requests: int = 1000) -> tuple[PaperRow, ...]:
    """Anyscale's throughput test: 1,000 prompts of 512 tokens, all at once, responses exponential with mean 128.

    Of the responses only those up to the cap were drawn. Published for the widest spread (up to 1,536
    tokens), over naive static batches: FasterTransformer 4×, TGI and Ray Serve 8×, vLLM up to 23×
    (the post's summary; read again in November 2026).
    """
    limits, table = _device()
    published = {"FasterTransformer": 4.0, "TGI, Ray Serve": 8.0, "vLLM": 23.0}
    rows = []
    for cap, naive_batch in ANYSCALE_BATCHES.items():
        chance = -np.expm1(-_unit_exponentials(num_requests, 1)) * -np.expm1(-cap / 128)
        output = np.ceil(-128 * np.log1p(-chance)).astype(np.int64)  # the exponential distribution up to the cap
        requests = _requests(np.full(num_requests, 512, dtype=np.int64), output, np.full(num_requests, cap))
        systems = {
            "naive static": (_static(), dataclasses.replace(limits, max_num_seqs=naive_batch)),
            "FasterTransformer": (_static(), limits),
            "TGI, Ray Serve": (_continuous(KvReservation.OUTPUT_LIMIT), limits),
            "vLLM": (_continuous(KvReservation.PAGED), limits),
        }
        base = 0.0
        for system, (engine, capacity) in systems.items():
            result = simulate(requests, engine, capacity, table)
            throughput = num_requests / result.duration_s
            base = base or throughput
            told = published.get(system) if cap == max(ANYSCALE_BATCHES) else None
            rows.append(
                PaperRow(
                    paper="Anyscale 2023",
                    workload=f"512 in, up to {cap:,} out",
                    system=system,
                    baseline="naive static",
                    published_low=told,
                    published_high=told,
                    simulated=throughput / base,
                    kv_useful_fraction=_useful(result.mean_kv_written_fraction, result.mean_kv_used_fraction),
                    explained=_explained(told, throughput / base),
                    source=ANYSCALE,
                )
            )
    return tuple(rows)


def paged_attention_rows(num_requests: int = 1000) -> tuple[PaperRow, ...]:
    """PagedAttention's serving test: the highest Poisson rate at the same latency per output token.

    Published: 2 to 4 times the throughput of earlier systems at the same latency (abstract); on
    ShareGPT 1.7 to 2.7 times the rate of Orca with known outputs, 2.7 to 8 times that of Orca with
    the longest context reserved, up to 22 times FasterTransformer (section 6.2, over three models; its
    lower end here is the abstract's 2). For Orca with the next power of 2 the text gives no ratio. Useful
    KV 20.4 to 38.2 % under reservation, 96.3 % when paged (figure 2). All read again in November 2026.
    """
    limits, table = _device()
    rows = []
    for name, prompt_mean, output_mean in (("ShareGPT", 161.31, 337.99), ("Alpaca", 19.31, 58.45)):
        rng = np.random.default_rng(np.random.SeedSequence([7, int(prompt_mean)]))
        count = num_requests * (1 if name == "ShareGPT" else 6)  # short requests: more of them for the same time
        prompt = draw_lengths(_lognormal(prompt_mean), count, rng)
        output = np.minimum(draw_lengths(_lognormal(output_mean), count, rng), CONTEXT - prompt)
        unlimited = np.full(count, NO_LIMIT_TOKENS, dtype=np.int64)
        power_of_two = np.minimum(2 ** np.ceil(np.log2(output)).astype(np.int64), CONTEXT - prompt)
        systems = {
            "vLLM": (_continuous(KvReservation.PAGED), unlimited),
            "Orca, output known": (_continuous(KvReservation.OUTPUT_LIMIT), output),
            "Orca, next power of 2": (_continuous(KvReservation.OUTPUT_LIMIT), np.maximum(power_of_two, output)),
            "Orca, longest context": (_continuous(KvReservation.MODEL_LIMIT), unlimited),
            "FasterTransformer": (_static(KvReservation.MODEL_LIMIT), unlimited),
        }
        published = {
            "Orca, output known": (1.7, 2.7),
            "Orca, longest context": (2.7, 8.0),
            "FasterTransformer": (2.0, 22.0),
        }
        best = 0.0
        for system, (engine, limit) in systems.items():
            requests = _requests(prompt, output, limit)
            rate, useful = _rate_at_latency(requests, engine, limits, table)
            best = best or rate
            ratio = best / rate if rate else float("inf")
            told = published.get(system) if name == "ShareGPT" else None
            rows.append(
                PaperRow(
                    paper="PagedAttention 2023",
                    workload=f"{name}: {prompt_mean:.0f} in, {output_mean:.0f} out",
                    system=system if system == "vLLM" else f"vLLM over {system}",
                    baseline=system,
                    published_low=told[0] if told else None,
                    published_high=told[1] if told else None,
                    simulated=ratio,
                    kv_useful_fraction=useful,
                    explained=_explained(told[0] if told else None, ratio),
                    source=PAGED_ATTENTION,
                )
            )
    return tuple(rows)


def _device() -> tuple[Limits, StepTimeTable]:
    model, gpu, engine = get_model(MODEL), get_gpu(GPU), get_engine("paged")
    memory = plan_memory(model, gpu, engine, Parallelism(), max_model_len=CONTEXT, explain=False)
    replica = RankShare(model=model, gpu=gpu, engine=engine, parallelism=Parallelism())
    return memory.limits(), step_time_table(replica)


def _static(reservation: KvReservation = KvReservation.OUTPUT_LIMIT) -> EngineSettings:
    return EngineSettings(
        name="static",
        family="generic",
        batching=Batching.STATIC,
        kv_reservation=reservation,
        on_memory_shortage=OnMemoryShortage.NEVER,
        batch_timeout_s=0.0,
        enable_prefix_caching=False,
    )


def _continuous(reservation: KvReservation) -> EngineSettings:
    # The engines of 2023: prompts first, whole.
    return EngineSettings(
        name="continuous",
        family="generic",
        kv_reservation=reservation,
        step_order=StepOrder.PREFILL_FIRST,
        enable_chunked_prefill=False,
        enable_prefix_caching=False,
    )


def _lognormal(mean: float) -> Lengths:
    return Lengths(kind=LengthKind.LOGNORMAL, mean=mean, spread=1.0, minimum=4, maximum=1024)


def _unit_exponentials(count: int, seed: int) -> Floats:
    return np.random.default_rng(np.random.SeedSequence([7, seed])).standard_exponential(count)


def _requests(prompt: Ints, output: Ints, limit: Ints) -> Requests:
    none = np.zeros(len(prompt), dtype=np.int64)
    return Requests(
        arrival_s=np.zeros(len(prompt)),
        prompt_tokens=prompt,
        output_tokens=output,
        output_limit_tokens=limit.astype(np.int64),
        prefix_group=none - 1,
        prefix_tokens=none,
    )


def _rate_at_latency(
    requests: Requests, engine: EngineSettings, limits: Limits, table: StepTimeTable
) -> tuple[float, float]:
    """Bisect the highest rate whose mean time per output token stays within patience; KV use there."""
    unit = np.cumsum(_unit_exponentials(len(requests), 2))
    low, high, useful = 0.0, 256.0, 0.0
    for _ in range(14):
        rate = (low + high) / 2
        offered = dataclasses.replace(requests, arrival_s=unit / rate, rate_rps=rate)
        result = simulate(offered, engine, limits, table)
        done = result.status == FINISHED
        per_token = (result.finish_s - result.arrival_s)[done] / result.output_tokens[done]
        if done.all() and per_token.mean() <= PATIENCE_S_PER_TOKEN:
            low = rate
            useful = _useful(result.mean_kv_written_fraction, result.mean_kv_used_fraction)
        else:
            high = rate
    return low, useful


def _useful(written: float, used: float) -> float:
    return written / used if used > 0 else 0.0


def _explained(published: float | None, simulated: float) -> str:
    if published is None:
        return "no figure published"
    if simulated >= published:
        return "scheduling and memory explain it"
    share = np.log(max(simulated, 1.0)) / np.log(published)
    return f"scheduling and memory explain {simulated:.1f}× ({share:.0%} of it in logarithms); kernels the rest"
