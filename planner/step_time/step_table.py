"""How long one engine step takes, and the terms of that time.

`StepWork` describes a step, `StepTimeTable` says how long it takes: small arrays and scalars, which the simulator's
compiled loop can read. `planner.step_time.step_time_table` builds one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.arrays import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillChunk:
    """`num_tokens` new prompt tokens of one sequence that already holds `context_tokens`."""

    num_tokens: int
    context_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """What one step computes.

    `num_decodes` sequences compute `tokens_per_decode` tokens each (1 without speculation). Together they read
    `kv_tokens` cached tokens in full-attention layers, and `window_kv_tokens`, the sum of min(length, window), in
    windowed layers. `chunks` are the chunks of prompts, `num_logit_rows` the sequences that sample a token.
    """

    num_decodes: int = 0
    tokens_per_decode: int = 1
    kv_tokens: int = 0
    window_kv_tokens: int = 0
    chunks: tuple[PrefillChunk, ...] = ()
    num_logit_rows: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens that pass through the linear layers."""
        return self.num_decodes * self.tokens_per_decode + sum(chunk.num_tokens for chunk in self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeTable:
    """Step times of one replica, as arrays and scalars for the compiled loop. All times in seconds.

    Parameters
    ----------
    decode_s : array, index = decode tokens in a step that only decodes
        The part that depends on the token count alone: linear layers, experts, head and sampling, elementwise,
        collectives, state layers; padded to CUDA-graph sizes where the engine does so.
    mixed_s : array, index = tokens in a step with at least one prompt token
        The same for a step that holds prompt tokens (no graph, other collectives), head excluded.
    head_s : array, index = sequences that sample
        lm_head and sampling of a mixed step.
    attention_base_s, attention_per_sequence_s, attention_per_kv_token_s, attention_floor_s
        Decode attention of all full-attention layers:
        max(floor, base + per_sequence · num_decodes + per_kv_token · kv_tokens), zero without decodes.
    window_* : the same for windowed layers, with window_kv_tokens.
    prefill_pair_s, prefill_token_s : float
        Prefill attention of full layers: for each chunk of q tokens behind c,
        pair_s · q · (c + (q + 1)/2) + token_s · q.
    window_prefill_pair_s, window_tokens : the same for windowed layers, each query sees at most
        window_tokens keys (0 = no windowed layers).
    host_s, host_per_sequence_s : float
        Scheduler and input preparation on the CPU; overlapped with the GPU when `host_overlaps`.
    launch_s : float
        Time for which launching the kernels of a step with prompt tokens holds the scheduler; 0 where other processes
        launch them. Part of the step: with async scheduling the next one is filled after it.
    pipeline_stages : int
        Micro-batches in flight; the step time is that of the slowest stage, and a token passes all stages.
    request_overhead_s : float
        Fixed latency per request in front of the engine (HTTP, between processes): adds to TTFT, not to step times.
    server_per_request_s, server_per_prompt_token_s, server_per_token_s : float
        Serial work of the API server per request, per token of the prompt that it tokenises and per streamed token: a
        station of its own beside the engine (planner.simulation.kernel.server).
    """

    decode_s: Floats
    mixed_s: Floats
    head_s: Floats
    attention_base_s: float = 0.0
    attention_per_sequence_s: float = 0.0
    attention_per_kv_token_s: float = 0.0
    attention_floor_s: float = 0.0
    window_base_s: float = 0.0
    window_per_sequence_s: float = 0.0
    window_per_kv_token_s: float = 0.0
    window_floor_s: float = 0.0
    window_tokens: int = 0
    prefill_pair_s: float = 0.0
    prefill_token_s: float = 0.0
    window_prefill_pair_s: float = 0.0
    host_s: float = 0.0
    host_per_sequence_s: float = 0.0
    host_overlaps: bool = True
    launch_s: float = 0.0
    pipeline_stages: int = 1
    request_overhead_s: float = 0.0
    server_per_request_s: float = 0.0
    server_per_prompt_token_s: float = 0.0
    server_per_token_s: float = 0.0
    relative_error: float = 0.0  # median absolute error of step times of this class, for bands
    notes: tuple[str, ...] = field(default_factory=tuple)

    @staticmethod
    def unit(max_tokens: int = 4096) -> StepTimeTable:
        """Every step costs 1 whatever it holds: the seed article's toy."""
        ones = np.ones(max_tokens + 1)
        return StepTimeTable(decode_s=ones, mixed_s=ones, head_s=np.zeros(max_tokens + 1))

    def decode_work(self, running: int, context_tokens: int) -> StepWork:
        """A step that makes a token for each of so many sequences, which all have the same context."""
        window = min(context_tokens, self.window_tokens or context_tokens)
        return StepWork(
            num_decodes=running,
            kv_tokens=running * context_tokens,
            window_kv_tokens=running * window,
            num_logit_rows=running,
        )

    def terms_s(self, work: StepWork) -> dict[str, float]:
        """Split the time of one step into its terms.

        Parameters
        ----------
        work : StepWork
            What the step computes.

        Returns
        -------
        dict of str to float
            Seconds of linear, head, decode_attention, prefill_attention and host (the part that is not hidden). Their
            sum is `step_s(work)`.
        """
        tokens = work.num_tokens
        mixed = bool(work.chunks)
        linear = _at(self.mixed_s if mixed else self.decode_s, tokens) if tokens else 0.0
        head = _at(self.head_s, work.num_logit_rows) if mixed else 0.0
        decode = 0.0
        if work.num_decodes:
            decode = max(
                self.attention_floor_s,
                self.attention_base_s
                + self.attention_per_sequence_s * work.num_decodes
                + self.attention_per_kv_token_s * work.kv_tokens,
            )
            if self.window_tokens:
                decode += max(
                    self.window_floor_s,
                    self.window_base_s
                    + self.window_per_sequence_s * work.num_decodes
                    + self.window_per_kv_token_s * work.window_kv_tokens,
                )
        prefill = sum(self.prefill_attention_s(c.num_tokens, c.context_tokens) for c in work.chunks)
        device = linear + head + decode + prefill
        host = self.host_s + self.host_per_sequence_s * (work.num_decodes + len(work.chunks))
        exposed = max(0.0, host - device) if self.host_overlaps else host
        return {
            "linear": linear,
            "head": head,
            "decode_attention": decode,
            "prefill_attention": prefill,
            "host": exposed,
        }

    def step_s(self, work: StepWork) -> float:
        """Time of one step. [s]"""
        return sum(self.terms_s(work).values())

    def prefill_attention_s(self, num_tokens: int, context_tokens: int) -> float:
        """Attention of one prompt chunk over its context and itself. [s]"""
        pairs = num_tokens * (context_tokens + (num_tokens + 1) / 2)
        seconds = self.prefill_pair_s * pairs + self.prefill_token_s * num_tokens
        if self.window_tokens:
            seconds += self.window_prefill_pair_s * windowed_pairs(num_tokens, context_tokens, self.window_tokens)
        return seconds


def windowed_pairs(num_tokens: int, context_tokens: int, window: int) -> float:
    """Count query-key pairs where each query sees at most `window` keys, including its own."""
    growing = min(max(0, window - context_tokens), num_tokens)
    return growing * context_tokens + growing * (growing + 1) / 2 + (num_tokens - growing) * window


def _at(table: Floats, index: int) -> float:
    """Read a table; beyond its end, extend its last slope."""
    last = len(table) - 1
    if index <= last:
        return float(table[index])
    slope = float(table[last] - table[last - 1]) if last else 0.0
    half = last // 2
    if last > half:
        slope = float(table[last] - table[half]) / (last - half)
    return float(table[last]) + slope * (index - last)
