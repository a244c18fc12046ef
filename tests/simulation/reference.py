"""The scheduler once more, plainly: one step after another, one Python object per sequence.

Kept to check the compiled loop, which must give the same floats bit for bit. Nothing here is shared with
it but the settings. Sums are added in the order of time, sequences in the order of admission.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from planner.engine import Batching, EngineSettings, KvReservation, OnMemoryShortage, StepOrder
from planner.simulation.records import Limits, Requests
from planner.step_time import PrefillChunk, StepTimeTable, StepWork

INF = math.inf


@dataclass(slots=True, eq=False)
class Sequence:
    index: int
    arrival: float
    prompt: int
    output: int
    limit: int
    group: int
    prefix: int
    priority: int = 0
    given: int = 0  # tokens whose KV comes with it
    made: int = 0  # output tokens so far
    computed: int = 0  # tokens in the KV cache
    blocks: int = 0  # of its own
    shared: int = 0  # leading blocks of its prefix group
    decoding: bool = False
    fresh: bool = False  # no decode step since its prompt was completed
    queued_at: float = 0.0
    preempted: int = 0
    token_times: list[float] = field(default_factory=list)
    max_gap: float = 0.0
    admitted: float = math.nan
    finish: float = math.nan
    status: str = "unfinished"

    @property
    def known(self) -> int:
        return self.prompt + self.made


@dataclass(slots=True, eq=False)
class Group:
    cached: int = 0
    users: int = 0
    held: int = 0
    expiry: int = 0


def step_terms(table: StepTimeTable, work: StepWork) -> list[float]:
    """linear, head, decode attention, prefill attention, exposed host of a step."""
    terms = table.terms_s(work)
    prefill = 0.0
    for chunk in work.chunks:
        prefill += table.prefill_attention_s(chunk.num_tokens, chunk.context_tokens)
    device = terms["linear"] + terms["head"] + terms["decode_attention"] + prefill
    host = table.host_s + table.host_per_sequence_s * (work.num_decodes + len(work.chunks))
    exposed = max(0.0, host - device) if table.host_overlaps else host
    return [terms["linear"], terms["head"], terms["decode_attention"], prefill, exposed]


class Reference:
    def __init__(self, requests: Requests, engine: EngineSettings, limits: Limits, table: StepTimeTable) -> None:
        self.e, self.limits, self.table = engine, limits, table
        self.static = engine.batching is Batching.STATIC
        self.paged = engine.kv_reservation is KvReservation.PAGED and not self.static
        self.prefill_first = engine.step_order is StepOrder.PREFILL_FIRST
        self.sglang = engine.on_memory_shortage is OnMemoryShortage.RETRACT_SHORTEST
        self.caching = engine.enable_prefix_caching and not self.static
        self.per_decode = 1 + engine.num_speculative_tokens
        self.budget = limits.max_num_batched_tokens
        if not engine.enable_chunked_prefill and engine.family == "vllm":
            self.budget = max(self.budget, limits.max_model_len)
        slots = min(limits.max_num_seqs, engine.max_num_seqs or limits.max_num_seqs)
        if engine.batching is Batching.SINGLE:
            slots = 1
        if not self.static:
            slots = min(slots, self.budget // self.per_decode)
        self.slots = max(1, min(slots, len(requests)))
        k, a = engine.num_speculative_tokens, engine.speculative_acceptance
        self.gain_mean = 1.0 if k == 0 else float(k + 1) if a == 1 else (1 - a ** (k + 1)) / (1 - a)
        self.sequences = []
        for i in range(len(requests)):
            prompt, output = max(1, int(requests.prompt_tokens[i])), int(requests.output_tokens[i])
            limit = min(int(requests.output_limit_tokens[i]), max(1, limits.max_model_len - prompt))
            self.sequences.append(
                Sequence(
                    index=i,
                    arrival=float(requests.arrival_s[i]),
                    prompt=prompt,
                    output=output,
                    limit=max(limit, output),
                    group=int(requests.prefix_group[i]),
                    prefix=int(requests.prefix_tokens[i]),
                    priority=0 if requests.priority is None else int(requests.priority[i]),
                    given=0 if requests.kv_ready_tokens is None else min(int(requests.kv_ready_tokens[i]), prompt - 1),
                )
            )
        self.groups = {s.group: Group() for s in self.sequences if s.group >= 0}
        self.classes = requests.priority is not None and len(set(requests.priority.tolist())) > 1
        self.users = min(requests.closed_loop_users, len(requests))
        self.think = requests.think_time_s
        self.ready = deque([0.0] * self.users)
        self.coming = deque(self.sequences)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.batch: list[Sequence] = []  # static: all members until the last has ended
        self.batch_steps = 0
        self.free = limits.num_kv_blocks
        self.allocated = 0
        self.clock = 0.0
        self.ratio = engine.new_token_ratio
        self.is_full = False  # admission failed, and nothing has been freed since
        self.decode_steps = self.since_prefill = self.steps = 0
        self.last_decode_emission = 0.0
        self.reason = "none"
        self.blocked = dict.fromkeys(("none", "max_num_seqs", "kv cache", "token budget"), 0.0)
        self.busy = self.running_area = self.waiting_area = self.used_area = self.written_area = 0.0
        self.terms = [0.0] * 5
        self.peak = self.prefill_tokens = self.hit_tokens = self.decode_tokens = 0
        self.gaps: list[float] = []

    # -- arrivals

    def next_arrival(self) -> float:
        if not self.coming:
            return INF
        if self.users:
            return self.ready[0] if self.ready else INF
        return self.coming[0].arrival

    def ask_again(self) -> None:
        if self.users:
            self.ready.append(self.clock + self.think)

    def take_arrivals(self) -> None:
        patience = INF if self.e.patience_s is None else self.e.patience_s
        while True:
            head = self.waiting[0] if self.waiting else None
            if head and not head.preempted and self.clock - head.arrival > patience:
                self.waiting.popleft().status = "abandoned"
                self.waiting_area += patience
                self.is_full = False
                self.ask_again()
                continue
            if not self.next_arrival() <= self.clock:
                return
            time = self.next_arrival()
            sequence = self.coming.popleft()
            if self.users:
                self.ready.popleft()
                sequence.arrival = time
            queue, running = len(self.waiting), len(self.running)
            max_queued, most = self.e.max_queued_requests, self.e.max_concurrent_requests
            full = max_queued is not None and queue - max(0, self.slots - running) >= max_queued
            full = full or (most is not None and queue + running >= most)
            if full or self.never_fits(sequence):
                sequence.status = "rejected"
                self.ask_again()
            else:
                sequence.queued_at = sequence.arrival
                self.enqueue(sequence, in_front=False)

    def never_fits(self, s: Sequence) -> bool:
        if s.prompt + s.output > self.limits.max_model_len:
            return True
        tokens = s.prompt + s.output - 1 + self.per_decode - 1 if self.paged else self.reserved_tokens(s)
        return self.blocks(tokens) + self.limits.fixed_blocks_per_sequence > self.limits.num_kv_blocks

    def reserved_tokens(self, s: Sequence) -> int:
        limited = self.e.kv_reservation is KvReservation.OUTPUT_LIMIT
        if limited or (self.static and self.e.kv_reservation is KvReservation.PAGED):
            return s.prompt + s.limit
        return self.limits.max_model_len

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.limits.block_size)

    # -- memory

    def extend(self, s: Sequence, tokens: int) -> bool:
        """Let `s` hold `tokens` tokens; False if the blocks are missing."""
        if not self.paged:
            return True
        need = self.blocks(tokens) - s.shared + self.limits.fixed_blocks_per_sequence - s.blocks
        if need > self.free:
            return False
        if need > 0:
            s.blocks += need
            self.free -= need
            self.allocated += need
        return True

    def release(self, s: Sequence, free_before: int) -> None:
        if self.static:
            return
        self.free += s.blocks
        s.blocks = 0
        if not self.caching or s.group < 0:
            return
        group = self.groups[s.group]
        if s.shared:
            group.users -= 1
            s.shared = 0
            if group.users == 0:
                self.free += group.held
                group.held = 0
        if group.users == 0:
            group.expiry = self.allocated + free_before

    def cached(self, group: Group) -> int:
        if group.users == 0 and self.allocated > group.expiry:
            group.cached = 0
        return group.cached

    def preempt(self, s: Sequence, *, to_tail: bool = False) -> None:
        free_before = self.free
        self.release(s, free_before)
        s.computed, s.decoding, s.fresh = 0, False, False
        s.preempted += 1
        s.queued_at = self.clock
        self.running.remove(s)
        self.is_full = False
        self.enqueue(s, in_front=not to_tail)

    def enqueue(self, s: Sequence, *, in_front: bool) -> None:
        """Into the queue, before or behind those of the same class."""
        ahead = [w for w in self.waiting if w.priority < s.priority or (w.priority == s.priority and not in_front)]
        if not ahead:
            self.is_full = False
        self.waiting.insert(len(ahead), s)

    def victim(self, asking: Sequence | None) -> Sequence:
        if not self.classes:
            return self.running[-1]
        able = [s for s in self.running if s.decoding or s is asking or asking is None]
        return max(able, key=lambda s: (s.priority, s.arrival, self.running.index(s)))

    def gain(self) -> int:
        return math.floor((self.decode_steps + 1) * self.gain_mean) - math.floor(self.decode_steps * self.gain_mean)

    def need(self, gain: int) -> int:
        total = 0
        for s in self.running:
            if s.decoding:
                total += self.blocks(s.computed + gain) - self.blocks(s.computed)
        return total if self.paged else 0

    def grow(self, gain: int) -> bool:
        """Blocks for the next tokens of all decoding sequences; True if somebody had to go."""
        preempted = False
        if self.need(gain) > self.free and self.sglang:
            preempted = True
            self.retract(gain)
        while self.need(gain) > self.free:
            preempted = True
            self.preempt(self.victim(None))
        for s in self.running:
            if s.decoding:
                assert self.extend(s, s.computed + gain)
        return preempted

    def retract(self, gain: int) -> None:
        first = True
        while sum(s.decoding for s in self.running) > 1 and (first or self.free < self.need(gain * 20)):
            first = False
            order = [(s.made, -s.prompt, -place) for place, s in enumerate(self.running) if s.decoding]
            self.preempt(self.running[-min(order)[2]], to_tail=True)
        made = sum(s.made + 20 for s in self.running)
        self.ratio = min(1.0, made / max(1, sum(s.limit for s in self.running)))

    # -- one step

    def chunk_tokens(self, left: int, budget: int) -> int:
        return min(left, self.e.long_prefill_token_threshold or left, budget)

    def continue_partials(self, budget: int, chunks: list[tuple[Sequence, int]]) -> tuple[int, bool]:
        preempted = False
        for s in [s for s in self.running if not s.decoding]:
            if budget <= 0:
                break
            if s not in self.running:
                continue
            tokens = self.chunk_tokens(s.known - s.computed, budget)
            evicted = False
            while not self.prefill_first and not evicted and not self.extend(s, s.computed + tokens):
                victim = self.victim(s)
                evicted = victim is s
                budget += self.per_decode if victim.decoding else 0
                self.preempt(victim)
                preempted = True
            if evicted:
                continue
            chunks.append((s, tokens))
            budget -= tokens
        return budget, preempted

    def admit(self, budget: int, chunks: list[tuple[Sequence, int]], reserved: list[float]) -> int:
        s = self.waiting[0]
        if len(self.running) >= self.slots:
            self.reason, self.is_full = "max_num_seqs", True
            return 0
        size, shared, pinned = self.limits.block_size, 0, 0
        group = self.groups.get(s.group)
        if self.caching and group is not None:
            shared = min(s.prefix, self.cached(group), s.known - 1) // size
            pinned = max(0, shared - group.held)
        start = max(shared * size, 0 if s.preempted else s.given)
        todo = s.known - start
        decoding = any(r.decoding for r in self.running)
        if self.e.enable_chunked_prefill:
            tokens = self.chunk_tokens(todo, budget)
        else:
            tokens = todo
            if todo > budget and (chunks or (decoding and not self.prefill_first)):
                self.reason, self.is_full = "token budget", not chunks
                return 0
        fixed = self.limits.fixed_blocks_per_sequence
        whole = self.blocks(s.known if self.paged else self.reserved_tokens(s)) - shared + fixed
        if whole + pinned > self.free:
            self.reason, self.is_full = "kv cache", True
            return 0
        if self.sglang:
            future = min(s.limit - s.made, 4096)
            if self.running and todo + pinned * size + future >= self.free * size - reserved[0]:
                self.reason, self.is_full = "kv cache", True
                return 0
            reserved[0] += future
        self.waiting.popleft()
        self.waiting_area += self.clock - s.queued_at
        if math.isnan(s.admitted):
            s.admitted = self.clock
        s.shared, s.computed = shared, start
        if shared:
            assert group is not None
            group.users += 1
            group.held += pinned
            self.free -= pinned
            self.hit_tokens += shared * size
        take = whole
        if self.paged and not self.prefill_first:
            take = self.blocks(s.computed + tokens) - shared + fixed
        s.blocks = take
        self.free -= take
        self.allocated += take
        self.running.append(s)
        chunks.append((s, tokens))
        return tokens

    def admit_all(self, budget: int, chunks: list[tuple[Sequence, int]], reserved: list[float]) -> None:
        # What held the head back first counts until something is freed.
        held = self.reason if self.is_full else ""
        self.reason = "none"
        while self.waiting:
            if budget <= 0 and len(self.running) < self.slots:
                self.reason = held or "token budget"
                return
            tokens = self.admit(budget, chunks, reserved)
            if tokens == 0:
                self.reason = held or self.reason
                return
            assert not held, "the head was said to be held back"
            budget -= tokens

    def prompts_may_start(self) -> bool:
        if not self.waiting or (self.sglang and self.is_full):
            return False
        ratio, steps = self.e.waiting_served_ratio, self.e.max_waiting_steps
        if not any(s.decoding for s in self.running) or (steps == 0 and ratio == 0):
            return True
        if steps and self.since_prefill >= steps:
            return True
        return ratio > 0 and len(self.waiting) >= ratio * len(self.running)

    def step(self) -> None:
        chunks: list[tuple[Sequence, int]] = []
        gain = self.gain()
        prompts_only = False
        if not self.is_full:
            self.reason = "none"
        if self.prefill_first:
            partial = any(not s.decoding for s in self.running)
            if partial or self.prompts_may_start():
                left = sum(min(s.limit - s.made, 4096) for s in self.running)
                reserved = [left * self.ratio]
                budget, _ = self.continue_partials(self.budget, chunks)
                if not (self.sglang and self.is_full):
                    self.admit_all(budget, chunks, reserved)
                prompts_only = bool(chunks)
            if not prompts_only and self.grow(gain):
                self.reason = "kv cache"
        else:
            preempted = self.grow(gain)
            budget = self.budget - sum(s.decoding for s in self.running) * self.per_decode
            budget, also = self.continue_partials(budget, chunks)
            if preempted or also:
                self.reason = "kv cache"
            else:
                self.admit_all(budget, chunks, [0.0])
        decodes = [] if prompts_only else [s for s in self.running if s.decoding]
        assert decodes or chunks, "a step with nothing to do"
        work_chunks = []
        rows = len(decodes) * self.per_decode
        for s, tokens in chunks:
            work_chunks.append(PrefillChunk(num_tokens=tokens, context_tokens=s.computed))
            s.computed += tokens
            self.prefill_tokens += tokens
            rows += s.computed == s.known
        for s in decodes:
            s.computed += gain
            self.decode_tokens += gain
        window = self.table.window_tokens
        work = StepWork(
            num_decodes=len(decodes),
            tokens_per_decode=self.per_decode,
            kv_tokens=sum(s.computed for s in decodes),
            window_kv_tokens=sum(min(s.computed, window) for s in decodes),
            chunks=tuple(work_chunks),
            num_logit_rows=rows,
        )
        self.pass_time(work)
        self.emit(decodes, gain)
        free_before = self.free
        for s, _ in chunks:
            if s.computed == s.known:
                self.complete(s, free_before)
        if chunks:
            self.since_prefill = 0

    def pass_time(self, work: StepWork) -> None:
        terms = step_terms(self.table, work)
        seconds = terms[0] + terms[1] + terms[2] + terms[3] + terms[4]
        for k in range(5):
            self.terms[k] += terms[k]
        self.clock += seconds
        self.busy += seconds
        self.running_area += seconds * len(self.running)
        self.used_area += seconds * (self.limits.num_kv_blocks - self.free)
        written = sum(s.computed - s.shared * self.limits.block_size for s in self.running)
        written += sum(group.held for group in self.groups.values()) * self.limits.block_size
        self.written_area += seconds * written
        if self.waiting:
            self.blocked[self.reason] += seconds
        self.peak = max(self.peak, len(self.running))
        self.steps += 1
        self.check()

    def check(self) -> None:
        assert 0 <= self.free <= self.limits.num_kv_blocks
        assert len(self.running) <= self.slots
        held = sum(s.blocks for s in (self.batch or self.running)) + sum(g.held for g in self.groups.values())
        assert self.free + held == self.limits.num_kv_blocks

    def emit(self, decodes: list[Sequence], gain: int) -> None:
        """Every decoding sequence gets `gain` tokens, or as many as it lacks."""
        if not decodes:
            return
        for s in decodes:
            gap = self.clock - s.token_times[-1]
            s.max_gap = max(s.max_gap, gap)
            self.gaps.append(gap)
            s.fresh = False
            made = min(gain, s.output - s.made)
            s.made += made
            s.token_times += [self.clock] * made
        free_before = self.free
        for s in [s for s in decodes if s.made == s.output]:
            self.finish(s, free_before)
        self.decode_steps += 1
        self.since_prefill += 1
        if self.sglang:
            start = self.e.new_token_ratio
            low = min(self.e.min_new_token_ratio, start)
            self.ratio = max(low, self.ratio - (start - low) / 600)

    def finish(self, s: Sequence, free_before: int) -> None:
        s.finish, s.status = self.clock, "finished"
        if self.caching and s.group >= 0:
            group = self.groups[s.group]
            size = self.limits.block_size
            group.cached = max(self.cached(group), (s.prompt + s.output - 1) // size * size)
        self.release(s, free_before)
        self.running.remove(s)
        self.is_full = False
        self.ask_again()

    def complete(self, s: Sequence, free_before: int) -> None:
        """The last prompt token was computed: a token comes out."""
        if s.token_times:
            gap = self.clock - s.token_times[-1]
            s.max_gap = max(s.max_gap, gap)
            self.gaps.append(gap)
        if self.caching and s.group >= 0:
            group, size = self.groups[s.group], self.limits.block_size
            whole = min(s.prefix, s.known - 1) // size
            group.cached = max(self.cached(group), whole * size)
            if whole and not s.shared and group.users == 0:
                s.shared, s.blocks = whole, s.blocks - whole
                group.users, group.held = 1, whole
            self.is_full = False
        s.made += 1
        s.token_times.append(self.clock)
        if s.made == s.output:
            self.finish(s, free_before)
        else:
            s.decoding = s.fresh = True

    # -- static batches

    def static_move(self) -> None:
        if self.batch:
            self.static_decode()
        else:
            self.static_start()
        if self.batch and not self.running:
            self.free += sum(s.blocks for s in self.batch)
            self.batch = []

    def static_start(self) -> None:
        members: list[Sequence] = []
        need = 0
        for s in self.waiting:
            more = self.blocks(self.reserved_tokens(s)) + self.limits.fixed_blocks_per_sequence
            if len(members) == self.slots or need + more > self.free:
                break
            need += more
            members.append(s)
        full = len(members) == self.slots or len(members) < len(self.waiting)
        timeout = INF if self.e.batch_timeout_s is None else self.e.batch_timeout_s
        deadline = self.waiting[0].arrival + timeout
        if not full and self.next_arrival() < INF and self.clock < deadline:
            self.clock = min(self.next_arrival(), deadline)
            return
        self.reason = "max_num_seqs" if len(members) == self.slots else "kv cache"
        pad = max(s.prompt for s in members)
        for s in members:
            self.waiting.popleft()
            self.waiting_area += self.clock - s.arrival
            s.admitted = self.clock
            s.blocks = self.blocks(self.reserved_tokens(s)) + self.limits.fixed_blocks_per_sequence
            self.free -= s.blocks
            s.computed = s.prompt
        self.batch, self.running, self.batch_steps = members, list(members), pad
        self.prefill_tokens += pad * len(members)
        chunks = tuple(PrefillChunk(num_tokens=pad) for _ in members)
        self.pass_time(StepWork(chunks=chunks, num_logit_rows=len(members)))
        for s in members:
            self.complete(s, 0)

    def static_decode(self) -> None:
        gain = self.gain()
        decodes = list(self.running)
        self.batch_steps += gain
        for s in decodes:
            s.computed += gain
            self.decode_tokens += gain
        size = len(self.batch)
        self.pass_time(
            StepWork(
                num_decodes=size,
                tokens_per_decode=self.per_decode,
                kv_tokens=size * self.batch_steps,
                window_kv_tokens=size * min(self.batch_steps, self.table.window_tokens),
            )
        )
        self.emit(decodes, gain)

    # -- the loop

    def run(self) -> Reference:
        while True:
            self.take_arrivals()
            if not self.running and not self.waiting:
                if self.next_arrival() == INF:
                    return self
                self.clock = self.next_arrival()
            elif self.static:
                self.static_move()
            else:
                self.step()
