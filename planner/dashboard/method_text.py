"""Texts of the Method page and the batching lab."""

# ruff: noqa: E501 - markdown tables do not wrap

from collections.abc import Mapping

WHAT_IT_DOES_NOT_KNOW = """
**What Headroom does not know.** Answer quality after quantisation. Networks between nodes. Power and cooling limits,
noisy neighbours. The acceptance rate of speculation on your text (you enter one). Routing
skew between experts. Prices newer than its tables. Traffic that you did not describe: a plan is as good as its lengths
and its peak. Every figure is an estimate; the Accuracy page says how far such estimates were from published
measurements, and where there are none.
"""

VOCABULARY = """
| word | meaning |
|---|---|
| TTFT | time to first token: arrival → first output token, queueing included |
| TPOT | time per output token: (E2E − TTFT) ÷ (output tokens − 1), one figure per request |
| ITL | inter-token latency: each gap between two tokens, or two messages of several, pooled over all of them |
| E2E | arrival → last token |
| goodput | requests per second that meet every target |
| p50, p95, p99 | linear interpolation over the requests finished in the steady state, after warm-up and before the drain; rejected and unfinished requests count as missed targets |
| replica | one copy of the model: one engine on tensor × pipeline parallel GPUs |
| KV pool | memory for keys and values of all running sequences, in bytes, blocks and tokens |
| concurrency | sequences running at once |
| reserved | KV cache set aside for a request; used: the part that holds tokens |
| saturated | the queue never empties: the replica finishes as many requests as it can |
| busy at peak | peak rate as a share of the rate at which the fleet saturates |
| preemption | the KV cache is full, so a sequence gives up its blocks and is recomputed later |
| GiB, GB | 2³⁰ and 10⁹ bytes: memory in GiB, bandwidth in GB/s |
"""

FORMULAS = """
| figure | formula |
|---|---|
| weights | Σ over tensor groups: parameters × bits ÷ 8 ÷ share per GPU |
| KV bytes per token | Σ over layers: 2 × KV heads per GPU × head size × bytes; windows and states as the engine lays them out |
| KV pool | utilisation × GPU memory − weights − activations − runtime (− CUDA graphs, by version) |
| concurrency | blocks ÷ blocks per sequence |
| step time | linear layers (reading the weights or computing, whichever takes longer) + attention (bytes of KV cache ÷ bandwidth, pairs ÷ arithmetic) + collectives + launch and host cost |
| latency | discrete-event simulation of the engine's step loop on the drawn requests |
| throughput | requests finished per second by a saturated replica, without the first and last tenth |
| replicas | ⌈peak rate ÷ highest rate that meets the targets⌉ + spare, confirmed by simulating the fleet |
| USD per million tokens | GPUs × price × hours ÷ (requests finished in these hours × tokens per request) × 10⁶ |
| break-even | bill ÷ API price of one request |
"""

SOURCES = """
- Models: the published config.json of each, exact parameter totals from the hub where known.
- GPUs: vendor data sheets and driver-reported memory; prices from public price lists, with date.
- Engine arithmetic: source and start-up logs of vLLM, SGLang, TensorRT-LLM, TGI, llama.cpp, by version.
- Step times: parameters fitted to published kernel measurements; residuals are on the Accuracy page.
- Paged KV cache: Kwon et al., SOSP 2023. Iteration-level scheduling: Yu et al. (Orca), OSDI 2022. Chunked prefill:
  Agrawal et al. (Sarathi-Serve), OSDI 2024.
- Lengths: Azure LLM inference traces 2023, Mooncake traces, arXiv summarisation.
- Hosted prices: the genai-prices package.
"""

POLICIES = """
- **One at a time** serves one request until its last token: every step reads all the weights for one token.
- **Static batches** start together and end with the longest answer; finished requests keep their slots until then.
- **Continuous, reserve-max KV** (Orca) fills free slots at every step, but reserves max_model_len for each request.
- **Continuous, paged KV** (vLLM) allocates KV cache block by block as sequences grow, and preempts the newest when it runs out.
"""


def catalog_line(day: str, models: int, hub_ids: int) -> str:
    """How old the list of models is and how it is brought up to date, in markdown; `day` is "2026-11-30"."""
    return (
        f"**Models:** the catalog of {day} has {models:,} models with their configs and {hub_ids:,} further ids of the "
        "hub. `python -m planner catalog refresh FOLDER_OR_ID` compares newer configs with it; a model that it lacks "
        "can be pasted as config.json."
    )


def fitted(counts: Mapping[str, int]) -> str:
    """How many numbers of the speed model were fitted, and where they are, in markdown."""
    what = {
        "kernels": "shares of bandwidth and peak, fixed times: of each kernel and type on six GPUs with three engines",
        "overheads": "what engines add around their kernels, by release",
        "served kernels": "where serving runs other kernels than the tables measured",
        "GPU classes": "what published runs and benchmarks reach on GPUs without kernel tables",
        "links": "latency and bandwidth of all-reduces over PCIe",
    }
    lines = "\n".join(f"- {counts[name]:,} {text}." for name, text in what.items())
    return (
        f"**{sum(counts.values()):,} numbers of the speed model were fitted**; each has its source beside it in "
        f"`planner/catalog/`. Times of all-reduces over NVLink are measured tables and not counted.\n\n{lines}\n\n"
        "B300, GB200 and GB300 take the kernels of B200, which predict their published runs no worse than kernels "
        "fitted to each of them (870 numbers fewer)."
    )
