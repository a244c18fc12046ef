"""The scheduler once more, plainly: one step after another, one Python object per sequence.

Kept to check the compiled loop, which must give the same floats bit for bit. Nothing here is shared with
it but the settings. Sums are added in the order of time, sequences in the order of admission.
"""

from __future__ import annotations

import math
from collections import deque

from planner.inputs.engine import Batching, EngineSettings, KvReservation, OnMemoryShortage, StepOrder
from planner.inputs.limits import Limits
from planner.step_time.step_table import PrefillChunk, StepTimeTable, StepWork
from planner.workload.requests import Requests
from tests.simulation.reference_parts import Block, Pool, Sequence, step_terms

INF = math.inf


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
                    adapter=-1 if requests.adapter is None else int(requests.adapter[i]),
                    given=0 if requests.kv_ready_tokens is None else min(int(requests.kv_ready_tokens[i]), prompt - 1),
                )
            )
        self.limit: dict[tuple[int, int], int] = {}  # blocks of a group that anyone will ask for
        for s in self.sequences:
            whole = s.prefix // limits.block_size
            self.limit[s.group, s.adapter] = max(whole, self.limit.get((s.group, s.adapter), 0)) if s.group >= 0 else 0
        self.at_once = engine.family in ("vllm", "generic")  # blocks can be found as soon as they are scheduled
        self.lora = any(s.adapter >= 0 for s in self.sequences)
        self.classes = requests.priority is not None and len(set(requests.priority.tolist())) > 1
        self.users = min(requests.closed_loop_users, len(requests))
        self.think = requests.think_time_s
        self.ready = deque([0.0] * self.users)
        self.coming = deque(self.sequences)  # not read by the API server
        self.inbox: deque[tuple[float, Sequence]] = deque()  # when read, and whose
        self.server_free = 0.0
        self.per_request, self.per_prompt_token = table.server_per_request_s, table.server_per_prompt_token_s
        self.per_token = table.server_per_token_s / engine.stream_interval_tokens
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.batch: list[Sequence] = []  # static: all members until the last has ended
        self.batch_steps = 0
        self.pool = Pool(limits.num_kv_blocks)
        self.clock = self.filled = 0.0  # `filled`: the next step, with async scheduling
        self.ratio = engine.new_token_ratio
        self.is_full = False  # admission failed, and nothing has been freed since
        self.decode_steps = self.since_prefill = self.steps = 0
        self.last_decode_emission = 0.0
        self.reason = "none"
        self.blocked = dict.fromkeys(("none", "max_num_seqs", "kv cache", "token budget", "lora slots"), 0.0)
        self.busy = self.running_area = self.waiting_area = self.used_area = self.written_area = 0.0
        self.terms = [0.0] * 5
        self.peak = self.prefill_tokens = self.hit_tokens = self.decode_tokens = 0
        self.part = 0  # twentieth of the requests that has begun to arrive
        self.gaps: list[tuple[int, float]] = []

    # -- arrivals

    def next_sending(self) -> float:
        if not self.coming:
            return INF
        if self.users:
            return self.ready[0] if self.ready else INF
        return self.coming[0].arrival

    def next_arrival(self) -> float:
        if self.inbox:
            return self.inbox[0][0]
        reading = self.reading(self.coming[0]) if self.coming else 0.0
        return max(self.server_free, self.next_sending()) + reading

    def ask_again(self) -> None:
        if self.users:
            self.ready.append(max(self.clock, self.server_free) + self.think)

    # -- the API server

    def reading(self, sequence: Sequence) -> float:
        return self.per_request + self.per_prompt_token * sequence.prompt

    def read(self, *, and_now: bool) -> None:
        """Read requests sent before the clock's time, or up to it."""
        while self.next_sending() < self.clock or (and_now and self.next_sending() == self.clock):
            time = self.next_sending()
            sequence = self.coming.popleft()
            if self.users:
                self.ready.popleft()
                sequence.arrival = time
            self.server_free = max(self.server_free, time) + self.reading(sequence)
            self.inbox.append((self.server_free, sequence))

    def send(self, tokens: int) -> None:
        """A step has ended: what was sent to the server before comes first."""
        self.read(and_now=False)
        self.server_free = max(self.server_free, self.clock) + tokens * self.per_token

    def take_arrivals(self) -> None:
        looks = not self.running or self.since_prefill % self.e.receive_interval_steps == 0
        until = self.filled if self.e.schedules_ahead and (self.running or self.waiting) else self.clock
        while True:
            self.leave()
            self.read(and_now=True)
            if not looks or not self.inbox or self.inbox[0][0] > until:
                return
            _, sequence = self.inbox.popleft()
            self.part = max(self.part, sequence.index * 20 // len(self.sequences))
            queue, running = len(self.waiting), len(self.running)
            max_queued, most = self.e.max_queued_requests, self.e.max_concurrent_requests
            full = max_queued is not None and queue - max(0, self.slots - running) >= max_queued
            full = full or (most is not None and queue + running >= most)
            if full or self.never_fits(sequence) or (sequence.adapter >= 0 and self.e.max_loras == 0):
                sequence.status = "rejected"
                self.ask_again()
            else:
                sequence.queued_at = sequence.arrival
                self.enqueue(sequence, in_front=False)
                if self.lora and self.adapter_fits(sequence):
                    self.is_full = False

    def leave(self) -> None:
        """Clients whose first token or whole answer takes too long are gone; their blocks are freed."""
        limits = ((self.e.patience_s, True), (self.e.timeout_s, False))
        for limit, silent in limits:
            if limit is None:
                continue
            here = [s for s in (*self.waiting, *self.running) if s.status == "unfinished"]
            for s in sorted(here, key=lambda s: s.index):
                if self.clock - s.arrival > limit and not (silent and s.token_times):
                    self.abandon(s, limit)

    def leave_unseen(self, completed: list[Sequence]) -> None:
        """Who leaves before the server comes to send its first token."""
        patience = INF if self.e.patience_s is None else self.e.patience_s
        for s in completed:
            here = s in self.running and s.status == "unfinished"
            if here and not s.made and self.server_free - s.arrival > patience:
                self.abandon(s, patience)

    def abandon(self, s: Sequence, limit: float) -> None:
        s.status = "abandoned"
        if s in self.waiting:
            self.waiting.remove(s)
            self.waiting_area += self.clock - s.queued_at if s.preempted else limit
            self.forget_own(s)
        elif not self.static:
            self.release(s, keep=False)
            self.running.remove(s)
        self.is_full = False
        self.ask_again()

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

    @property
    def free(self) -> int:
        return self.pool.free

    def extend(self, s: Sequence, tokens: int) -> bool:
        """Let `s` hold `tokens` tokens; False if the blocks are missing."""
        if not self.paged:
            return True
        need = max(0, self.blocks(tokens) - len(s.table))
        if need > self.free:
            return False
        s.table += self.pool.take(need)
        return True

    def find(self, s: Sequence) -> tuple[list[Block], list[Block]]:
        """Leading blocks of a waiting sequence that are in the cache: its group's, then its own of before."""
        if not self.caching:
            return [], []
        size, cached = self.limits.block_size, self.pool.cached
        text: list[Block] = []
        while (block := cached.get(((s.group, s.adapter), len(text)))) and s.group >= 0:
            if len(text) >= min(s.prefix, s.known - 1) // size:
                break
            text.append(block)
        kept = self.own(s)
        if kept and s.own_from <= len(text) < s.own_from + len(kept):
            return text[: s.own_from], kept
        return text, []

    def own(self, s: Sequence) -> list[Block]:
        kept: list[Block] = []
        while block := self.pool.cached.get((s, s.own_from + len(kept))):
            kept.append(block)
        return kept

    def forget_own(self, s: Sequence) -> None:
        for block in self.own(s):
            self.pool.forget(block)

    def publish(self, s: Sequence, tokens: int) -> None:
        """Full blocks go on where the text of the group ends, if the sequence holds all of that text."""
        group = (s.group, s.adapter)
        if not self.caching or s.group < 0:
            return
        full = min(tokens // self.limits.block_size, self.limit[group])
        while s.shared < full and (group, s.shared) not in self.pool.cached:
            self.pool.name((group, s.shared), s.table[s.shared])
            self.pool.text_in_use += 1
            s.shared += 1
            self.is_full = False

    def release(self, s: Sequence, *, keep: bool) -> None:
        """Give the blocks back, the last first; a preempted sequence may find its own again."""
        if self.static:
            return
        written = min(s.computed, s.prompt + s.output - 1)
        self.publish(s, written)
        if keep and self.caching and self.paged:
            s.own_from = s.shared
            s.prefix = max(s.prefix, s.shared * self.limits.block_size)
            for place in range(
                s.shared, (min(written, s.prompt) if self.sglang else written) // self.limits.block_size
            ):
                self.pool.name((s, place), s.table[place])
        self.pool.give_back(s.fixed)
        self.pool.give_back(s.table[::-1])
        self.pool.text_in_use -= sum(block.users == 0 for block in s.table[: s.shared])
        s.fixed, s.table, s.shared = [], [], 0

    def preempt(self, s: Sequence, *, to_tail: bool = False) -> None:
        self.release(s, keep=True)
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
            if self.at_once:
                self.publish(s, s.computed + tokens)
            budget -= tokens
        return budget, preempted

    def admit(self, budget: int, chunks: list[tuple[Sequence, int]], reserved: list[float]) -> int:
        if len(self.running) >= self.slots:
            self.reason, self.is_full = "max_num_seqs", True
            return 0
        s = self.first_with_adapter()
        if s is None:
            self.reason, self.is_full = "lora slots", True
            return 0
        size = self.limits.block_size
        text, kept = self.find(s)
        pinned = sum(block.users == 0 for block in text + kept)
        shared = len(text)
        start = max((shared + len(kept)) * size, 0 if s.preempted else s.given)
        todo = s.known - start
        decoding = any(r.decoding for r in self.running)
        if self.e.enable_chunked_prefill:
            tokens = self.chunk_tokens(todo, budget)
        else:
            tokens = todo if self.e.is_v0 else self.chunk_tokens(todo, todo)
            if tokens > budget and (chunks or (decoding and not self.prefill_first)):
                self.reason, self.is_full = "token budget", not chunks
                return 0
        fixed = self.limits.fixed_blocks_per_sequence
        whole = self.blocks(s.known if self.paged else self.reserved_tokens(s)) - shared - len(kept) + fixed
        if whole + pinned > self.free:
            self.reason, self.is_full = "kv cache", True
            return 0
        if self.sglang:
            future = min(s.limit - s.made, 4096)
            if self.running and todo + pinned * size + future >= self.free * size - reserved[0]:
                self.reason, self.is_full = "kv cache", True
                return 0
            reserved[0] += future
        self.waiting.remove(s)
        self.is_full = False
        self.waiting_area += self.clock - s.queued_at
        if math.isnan(s.admitted):
            s.admitted = self.clock
        self.pool.text_in_use += sum(block.users == 0 for block in text)
        for block in text + kept:
            self.pool.hit(block)
        for block in kept:
            self.pool.forget(block)
        self.forget_own(s)
        s.shared, s.computed = shared, start
        self.hit_tokens += (shared + len(kept)) * size
        most = whole
        if self.paged and not self.prefill_first:
            most = self.blocks(s.computed + tokens) - shared - len(kept) + fixed
        s.fixed = self.pool.take(fixed)
        s.table = text + kept + self.pool.take(most - fixed)
        if self.at_once:
            self.publish(s, s.computed + tokens)
        self.running.append(s)
        chunks.append((s, tokens))
        return tokens

    def first_with_adapter(self) -> Sequence | None:
        """The first in the queue whose adapter runs already or may be added; those before it are passed over."""
        return next(filter(self.adapter_fits, self.waiting), None)

    def adapter_fits(self, s: Sequence) -> bool:
        active = {s.adapter for s in self.running if s.adapter >= 0}
        return s.adapter < 0 or s.adapter in active or len(active) < self.e.max_loras

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
        as_decodes = []
        rows = len(decodes) * self.per_decode
        for s, tokens in chunks:
            if tokens == self.per_decode == 1 and self.e.family == "vllm" and not self.e.is_v0:
                as_decodes.append(s)
            else:
                work_chunks.append(PrefillChunk(num_tokens=tokens, context_tokens=s.computed))
            s.computed += tokens
            self.prefill_tokens += tokens
            rows += s.computed == s.known
        for s in decodes:
            s.computed += gain
            self.decode_tokens += gain
        window = self.table.window_tokens
        attending = decodes + as_decodes
        work = StepWork(
            num_decodes=len(attending),
            tokens_per_decode=self.per_decode,
            kv_tokens=sum(s.computed for s in attending),
            window_kv_tokens=sum(min(s.computed, window) for s in attending),
            chunks=tuple(work_chunks),
            num_logit_rows=rows,
        )
        self.pass_time(work)
        completed = [s for s, _ in chunks if s.computed == s.known]
        self.send(sum(min(gain, s.output - s.made) for s in decodes) + len(completed))
        self.emit(decodes, gain, completed)
        for s, _ in chunks:
            if s.computed == s.known and s in self.running:
                self.complete(s)
        if chunks:
            self.since_prefill = 0

    def pass_time(self, work: StepWork) -> None:
        terms = step_terms(self.table, work)
        seconds = terms[0] + terms[1] + terms[2] + terms[3] + terms[4]
        for k in range(5):
            self.terms[k] += terms[k]
        self.filled = self.clock + min(seconds, self.table.launch_s if work.chunks else 0.0)
        self.clock += seconds
        self.busy += seconds
        self.running_area += seconds * len(self.running)
        self.used_area += seconds * (self.limits.num_kv_blocks - self.free)
        written = sum(s.computed - s.shared * self.limits.block_size for s in self.running)
        written += self.pool.text_in_use * self.limits.block_size
        self.written_area += seconds * written
        if self.waiting:
            self.blocked[self.reason] += seconds
        self.peak = max(self.peak, len(self.running))
        self.steps += 1
        self.check()

    def check(self) -> None:
        assert 0 <= self.free <= self.limits.num_kv_blocks
        assert len(self.running) <= self.slots
        held = sum(len(s.table) - s.shared + len(s.fixed) for s in (self.batch or self.running))
        assert self.free + held + self.pool.text_in_use == self.limits.num_kv_blocks

    def emit(self, decodes: list[Sequence], gain: int, completed: list[Sequence]) -> None:
        """Every decoding sequence gets `gain` tokens, or as many as it lacks."""
        for s in decodes:
            self.tell(s, gain)
            s.fresh = False
        self.leave()
        self.leave_unseen(completed)
        if not decodes:
            return
        for s in [s for s in decodes if s in self.running]:
            made = min(gain, s.output - s.made)
            s.made += made
            s.token_times += [self.server_free] * made
            if s.made == s.output:
                self.finish(s)
        self.decode_steps += 1
        self.since_prefill += 1
        if self.sglang:
            start = self.e.new_token_ratio
            low = min(self.e.min_new_token_ratio, start)
            self.ratio = max(low, self.ratio - (start - low) / 600)

    def tell(self, s: Sequence, made: int) -> None:
        """The client gets a message with the first token, every so many tokens, and with the last."""
        tokens = s.made + made
        is_first = s.told == 0
        if not is_first and tokens - s.told < self.e.stream_interval_tokens and tokens < s.output:
            return
        if not is_first:
            gap = self.server_free - s.told_at
            s.max_gap = max(s.max_gap, gap)
            self.gaps.append((self.part, gap))
        s.told, s.told_at = tokens, self.server_free

    def finish(self, s: Sequence) -> None:
        self.release(s, keep=False)
        self.running.remove(s)
        self.is_full = False
        if s.status == "unfinished":
            if self.e.timeout_s is not None and self.server_free - s.arrival > self.e.timeout_s:
                s.status = "abandoned"
            else:
                s.finish, s.status = self.server_free, "finished"
            self.ask_again()

    def complete(self, s: Sequence) -> None:
        """The last prompt token was computed: a token comes out."""
        self.tell(s, 1)
        if not self.at_once:
            self.publish(s, s.computed)
        s.made += 1
        s.token_times.append(self.server_free)
        if s.made == s.output:
            self.finish(s)
        else:
            s.decoding = s.fresh = True

    # -- static batches

    def static_move(self) -> None:
        if self.batch:
            self.static_decode()
        else:
            self.static_start()
        if self.batch and not self.running:
            for s in self.batch:
                self.pool.give_back(s.table)
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
            s.table = self.pool.take(self.blocks(self.reserved_tokens(s)) + self.limits.fixed_blocks_per_sequence)
            s.computed = s.prompt
        self.batch, self.running, self.batch_steps = members, list(members), pad
        self.prefill_tokens += pad * len(members)
        chunks = tuple(PrefillChunk(num_tokens=pad) for _ in members)
        self.pass_time(StepWork(chunks=chunks, num_logit_rows=len(members)))
        self.send(len(members))
        self.leave()
        self.leave_unseen(members)
        for s in members:
            self.complete(s)
        self.since_prefill = 0

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
        self.send(sum(min(gain, s.output - s.made) for s in decodes))
        self.emit(decodes, gain, [])

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
