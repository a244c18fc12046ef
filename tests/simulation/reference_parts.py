"""Parts of the plain scheduler: one object per sequence and per block."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from planner.step_time.step_table import StepTimeTable, StepWork


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
    adapter: int = -1
    table: list[Block] = field(default_factory=list)  # its blocks, in the order of its tokens
    fixed: list[Block] = field(default_factory=list)  # of window and state layers
    shared: int = 0  # leading blocks that anyone of its group can find
    own_from: int = 0  # place of the first block of its own that it left in the cache
    decoding: bool = False
    fresh: bool = False  # no decode step since its prompt was completed
    queued_at: float = 0.0
    preempted: int = 0
    token_times: list[float] = field(default_factory=list)
    max_gap: float = 0.0
    told: int = 0  # tokens that its client has seen
    told_at: float = math.nan  # when it saw the last of them
    admitted: float = math.nan
    finish: float = math.nan
    status: str = "unfinished"

    @property
    def known(self) -> int:
        return self.prompt + self.made


Key = tuple[object, int]


@dataclass(slots=True, eq=False)
class Block:
    key: Key | None = None  # what it can be found by
    users: int = 0


class Pool:
    """Every block on its own: free ones in a queue, least recently used first; a hit takes one out again."""

    def __init__(self, count: int) -> None:
        self.count = self.unused = count  # blocks never used stand first in the queue
        self.queue: OrderedDict[Block, None] = OrderedDict()
        self.cached: dict[Key, Block] = {}
        self.text_in_use = 0  # blocks of groups that somebody holds

    @property
    def free(self) -> int:
        return self.unused + len(self.queue)

    def take(self, count: int) -> list[Block]:
        assert count <= self.free
        taken = []
        for _ in range(count):
            if self.unused:
                self.unused -= 1
                block = Block()
            else:
                block, _ = self.queue.popitem(last=False)
                self.forget(block)
            block.users = 1
            taken.append(block)
        return taken

    def forget(self, block: Block) -> None:
        if block.key is not None:
            del self.cached[block.key]
            block.key = None

    def name(self, key: Key, block: Block) -> None:
        assert key not in self.cached
        assert block.key is None
        self.cached[key] = block
        block.key = key

    def hit(self, block: Block) -> None:
        if block.users == 0:
            del self.queue[block]
        block.users += 1

    def give_back(self, blocks: list[Block]) -> None:
        for block in blocks:
            block.users -= 1
            if block.users == 0:
                self.queue[block] = None


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
