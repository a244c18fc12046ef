"""The step timeline of the batching lab as two SVG pictures, one for a wide and one for a narrow screen.

A slot is a row; prompts and decodes are coloured bars along it; the queue and the KV pool stand below on the same axis.
The pictures are complete by themselves; a page may move the edge of what it shows (class `reveal`) and the line at it
(class `playhead`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from html import escape

import numpy as np

from planner.arrays import Floats, Ints
from planner.charts.style import COLOUR, GRID
from planner.simulation import DECODE, HELD, PAUSED, PREFILL, RECOMPUTE, Span, StepTrace
from planner.units import counted, format_duration, format_number, format_percent

#: What a slot does, in words. A resource and the work that uses it share a colour: KV cache and decodes, prompts.
WORK = {
    PREFILL: ("prompt", COLOUR["activations"]),
    DECODE: ("decodes", COLOUR["kv_used"]),
    RECOMPUTE: ("computed again", "again"),
    HELD: ("answered, but the batch keeps the slot", "held"),
    PAUSED: ("waits for its turn", COLOUR["peer"]),
}
INK = "#14241c"  # on the bars
MOST_ROWS = 40
QUEUE_HEIGHT, POOL_HEIGHT, GAP = 46, 92, 30
WIDE, NARROW = 820, 360


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepPicture:
    """A step timeline with its finding, its axes in words and a text for screen readers.

    `edges` are the ends of the steps as shares of the width, from 0 to 1, one more than steps. `figures` hold the step
    from which they hold, decodes, prompt tokens, requests waiting and KV blocks; a step without a row has those of the
    row before. `durations_ms` is empty where steps have no time.
    """

    title: str
    subtitle: str
    alt: str
    wide: str
    narrow: str
    edges: list[float]
    figures: list[list[int]]
    durations_ms: list[float]
    num_blocks: int
    before: int


def step_timeline(trace: StepTrace, *, by_time: bool = True, axis_steps: int = 0) -> StepPicture:
    """Draw recorded steps.

    Parameters
    ----------
    trace : StepTrace
        At least one step.
    by_time : bool
        A step is as wide as it takes; otherwise all are equally wide.
    axis_steps : int
        Without time: steps on the axis where those are more than were recorded, so that runs can be compared.
    """
    edges = _edges(trace, by_time=by_time, axis_steps=axis_steps)
    shown = _slots_shown(trace)
    pictures = [_Picture(trace, edges, shown, width, by_time=by_time).draw() for width in (WIDE, NARROW)]
    title = step_finding(trace)
    begin = f"steps {trace.before + 1:,} to {trace.before + len(trace):,}"
    took = "" if not by_time else f", {format_duration(float(trace.end_s[-1] - trace.start_s[0]))}"
    cut = f"; the first {len(shown)} of {len(_used(trace))} slots in use" if len(shown) < len(_used(trace)) else ""
    return StepPicture(
        title=title,
        subtitle=f"A row is a slot, a number is a request: {begin}{took}{cut}",
        alt=f"{title}. {_told(trace)}",
        wide=pictures[0],
        narrow=pictures[1],
        edges=[round(float(edge), 5) for edge in edges],
        figures=_figures(trace),
        durations_ms=[] if not by_time else [round(float(v), 3) for v in 1e3 * (trace.end_s - trace.start_s)],
        num_blocks=trace.num_blocks,
        before=trace.before,
    )


def step_finding(trace: StepTrace) -> str:
    """What the recorded steps show, in a sentence."""
    waiting = int(trace.waiting.max())
    shares = slot_shares(trace)
    if trace.preemptions:
        return (
            f"The KV pool is full: {counted(len(trace.preemptions), 'request')} {_lose(len(trace.preemptions))}, and "
            "what they had computed is computed again"
        )
    if shares[HELD] > 0:
        return (
            f"Finished answers hold the slots {format_percent(shares[HELD])} of the time, while "
            f"{counted(waiting, 'request')} {'waits' if waiting == 1 else 'wait'}"
        )
    if trace.num_slots == 1:
        return f"One request is served while {format_number(waiting)} wait: each step makes one token"
    if shares[PAUSED] > 0.02:
        return f"Decodes stand still {format_percent(shares[PAUSED])} of the time while prompts are computed"
    if waiting:
        return f"A slot that becomes free is taken at the next step: up to {int(trace.running.max())} at once"
    return f"Every request starts at the next step, beside those that decode: up to {int(trace.running.max())} at once"


def _lose(count: int) -> str:
    return "loses its slot" if count == 1 else "lose their slots"


def slot_shares(trace: StepTrace) -> dict[int, float]:
    """Of the steps in which slots are taken: the share that each kind has."""
    steps = {kind: 0 for kind in WORK}
    for span in trace.spans:
        steps[span.kind] += span.end - span.first
    total = max(1, sum(steps.values()))
    return {kind: count / total for kind, count in steps.items()}


def _told(trace: StepTrace) -> str:
    shares = slot_shares(trace)
    parts = [f"{WORK[kind][0]} {format_percent(share)}" for kind, share in shares.items() if share]
    return (
        f"Of the slots in use: {', '.join(parts)}. At most {counted(int(trace.waiting.max()), 'request')} waiting and "
        f"{int(trace.kv_blocks_used.max()):,} of {trace.num_blocks:,} KV blocks in use."
    )


def without_prompts(trace: StepTrace) -> StepTrace:
    """The same steps with prompts shown as decodes: the seed article ignores prompts, so each is one token here."""
    joined: dict[tuple[int, int], Span] = {}
    for span in trace.spans:
        kind = DECODE if span.kind == PREFILL else span.kind
        before = joined.get((span.slot, span.request)) if kind == DECODE else None
        merged = span._replace(kind=kind, tokens=0, first=before.first if before else span.first)
        joined[(span.slot, span.request) if kind == DECODE else (span.slot, -1 - len(joined))] = merged
    spans = tuple(sorted(joined.values(), key=lambda span: (span.first, span.slot)))
    zero = np.zeros_like(trace.prefill_tokens)
    return dataclasses.replace(trace, spans=spans, prefill_tokens=zero, decodes=trace.decodes + trace.prefill_tokens)


def _edges(trace: StepTrace, *, by_time: bool, axis_steps: int) -> Floats:
    count = len(trace)
    if not by_time:
        return np.arange(count + 1) / max(count, axis_steps)
    whole = np.append(trace.start_s, trace.end_s[-1])
    return (whole - whole[0]) / (whole[-1] - whole[0])


def _used(trace: StepTrace) -> list[int]:
    return sorted({span.slot for span in trace.spans})


def _slots_shown(trace: StepTrace) -> list[int]:
    used = _used(trace)
    if trace.num_slots <= 16:  # few enough to show those that stay empty
        used = list(range(trace.num_slots))
    return used[:MOST_ROWS]


def _figures(trace: StepTrace) -> list[list[int]]:
    columns = np.stack([trace.decodes, trace.prefill_tokens, trace.waiting, trace.kv_blocks_used], axis=1)
    new = np.ones(len(columns), dtype=bool)
    new[1:] = (columns[1:] != columns[:-1]).any(axis=1)
    return [[int(step), *columns[step].tolist()] for step in np.flatnonzero(new)]


class _Picture:
    """One picture of a given width, built from top to bottom."""

    def __init__(self, trace: StepTrace, edges: Floats, shown: list[int], width: int, *, by_time: bool) -> None:
        self.trace, self.edges, self.by_time = trace, edges, by_time
        self.is_narrow = width <= NARROW
        self.name = "n" if self.is_narrow else "w"  # of the parts that refer to each other, unlike the other picture's
        self.left, self.right = (34 if self.is_narrow else 62), 8
        self.width, self.plot = width, width - (34 if self.is_narrow else 62) - 8
        self.row_of = {slot: row for row, slot in enumerate(shown)}
        count = max(1, len(shown))
        self.pitch = next(pitch for most, pitch in ((8, 28), (16, 19), (24, 14), (MOST_ROWS, 10)) if count <= most)
        self.parts: list[str] = []

    def x(self, share: float) -> float:
        """Where a share of the width lies."""
        return self.left + share * self.plot

    def draw(self) -> str:
        """The whole picture."""
        top = self._key()
        bottom = top + self.pitch * max(1, len(self.row_of))
        self._rows(top)
        self._axis(bottom)
        queue = bottom + GAP + 14
        pool = queue + (QUEUE_HEIGHT if self.trace.waiting.any() else 0) + GAP
        height = pool + POOL_HEIGHT + 10
        self._finish(top, bottom)
        moving = "".join((*self._spans(top), *self._marks(top), self._queue(queue), self._pool(pool)))
        reveal = (
            f'<clipPath id="{self.name}-now"><rect class="reveal" x="0" y="0" width="{self.width}" '
            f'height="{height}"/></clipPath>'
        )
        head = f'<line class="playhead" x1="0" x2="0" y1="{top - 4}" y2="{height - 8}" stroke="{COLOUR["here"]}" '
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height}" width="100%" role="img" '
            f'aria-label="{escape(step_finding(self.trace))}" data-left="{self.left}" data-plot="{self.plot}" '
            'style="font-family:var(--st-font,system-ui,sans-serif);font-size:12px" fill="currentColor">'
            f"<defs>{self._patterns()}{reveal}</defs>{''.join(self.parts)}"
            f'<g class="past" clip-path="url(#{self.name}-now)"><g id="{self.name}-all">{moving}</g></g>'
            f'<use class="future" href="#{self.name}-all" opacity="0.13" visibility="hidden" aria-hidden="true"/>'
            f'{head}stroke-width="2" visibility="hidden"/></svg>'
        )

    def _fill(self, kind: int) -> str:
        colour = WORK[kind][1]
        return colour if colour.startswith("#") else f"url(#{self.name}-{colour})"

    def _patterns(self) -> str:
        """Hatches, each picture with its own: those of a picture that is hidden are not drawn."""
        return "".join(
            f'<pattern id="{self.name}-{name}" width="7" height="7" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="7" height="7" fill="{ground}" fill-opacity="{opacity}"/>'
            f'<rect width="{stripe}" height="7" fill="{colour}"/></pattern>'
            for name, ground, opacity, stripe, colour in (
                ("held", COLOUR["peer"], 0.28, 2, COLOUR["peer"]),
                ("again", COLOUR["activations"], 0.45, 3, COLOUR["activations"]),
                ("reserved", COLOUR["kv_reserved"], 1, 1.6, COLOUR["kv_used"]),
            )
        )

    def _text(self, x: float, y: float, text: str, *, anchor: str = "start", more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'

    def _key(self) -> float:
        """What the colours mean, only those that occur. Returns where it ends."""
        kinds = {span.kind for span in self.trace.spans}
        x, y = float(self.left), 14.0
        words = [(WORK[kind][0], self._fill(kind)) for kind in WORK if kind in kinds]
        for word, colour in words:
            wide = 26 + 6.6 * len(word)
            if x + wide > self.width and x > self.left:
                x, y = float(self.left), y + 20
            self.parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="14" height="12" rx="3" fill="{colour}"/>')
            self.parts.append(self._text(x + 19, y, word))
            x += wide + 12
        if self.trace.preemptions:
            if x + 80 > self.width:
                x, y = float(self.left), y + 20
            self.parts.append(_cross(x + 6, y - 4, 4.5))
            self.parts.append(self._text(x + 19, y, "preempted"))
        return y + 16

    def _rows(self, top: float) -> None:
        every = 1 if self.pitch >= 14 else 5
        for slot, row in self.row_of.items():
            y = top + row * self.pitch
            self.parts.append(
                f'<rect x="{self.left}" y="{y + 1.5:.1f}" width="{self.plot}" height="{self.pitch - 3}" rx="3" '
                'fill="currentColor" fill-opacity="0.05"/>'
            )
            if row % every == 0:
                name = f"{slot + 1}" if self.is_narrow else f"slot {slot + 1}"
                self.parts.append(self._text(self.left - 6, y + self.pitch / 2 + 4, name, anchor="end"))

    def _axis(self, bottom: float) -> None:
        self.parts.append(
            f'<line x1="{self.left}" x2="{self.width - self.right}" y1="{bottom}" y2="{bottom}" stroke="currentColor" '
            'stroke-opacity="0.35"/>'
        )
        for share, text, anchor in self._ticks():
            x = self.x(share)
            self.parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="currentColor" '
                'stroke-opacity="0.5"/>'
            )
            self.parts.append(self._text(x, bottom + 17, text, anchor=anchor))

    def _ticks(self) -> list[tuple[float, str, str]]:
        trace, wanted = self.trace, 3 if self.is_narrow else 6
        whole = float(trace.end_s[-1] - trace.start_s[0]) if self.by_time else len(trace) / float(self.edges[-1])
        step = _round_step(whole / wanted)
        last = int(whole / step + 1e-9)
        found = []
        for k in range(last + 1):
            text = format_duration(k * step) if self.by_time else f"{k * step:,.0f}"
            unit = " steps" if k == last and not self.by_time else ""
            found.append((k * step / whole, "0" if k == 0 else text + unit, _anchor(k * step / whole)))
        return found

    def _finish(self, top: float, bottom: float) -> None:
        """On an axis that goes on: where the last answer was complete."""
        x = self.x(float(self.edges[-1]))
        if self.trace.is_end and self.width - x > 120:
            said = f"all answered after {self.trace.before + len(self.trace):,} steps"
            self.parts.append(self._text(x + 10, (top + bottom) / 2 + 4, said, more='font-weight="600"'))

    def _spans(self, top: float) -> list[str]:
        return [self._span(span, top) for span in self.trace.spans if span.slot in self.row_of]

    def _span(self, span: Span, top: float) -> str:
        x0, x1 = self.x(self.edges[span.first]), self.x(self._end(span))
        y, tall = top + self.row_of[span.slot] * self.pitch + 1.5, self.pitch - 3
        gap = 1.0 if x1 - x0 > 4 else 0.0
        word, colour = WORK[span.kind][0], self._fill(span.kind)
        wide = max(x1 - x0 - gap, 0.8)
        opacity = ' fill-opacity="0.45"' if span.kind == PAUSED else ""
        tokens = f" of {span.tokens:,} tokens" if span.tokens else ""
        steps = (
            f"step {span.first + 1:,}" if span.end == span.first + 1 else f"steps {span.first + 1:,} to {span.end:,}"
        )
        drawn = (
            f'<rect x="{x0:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall}" rx="{min(3.0, wide / 2):.1f}" '
            f'fill="{colour}"{opacity}><title>request {span.request + 1}: {word}{tokens}, {steps}</title></rect>'
        )
        number = f"{span.request + 1}"
        if span.kind in (DECODE, RECOMPUTE) and tall >= 11 and wide > 7 * len(number) + 8:
            more = f'fill="{INK}" font-size="11" pointer-events="none"'
            drawn += self._text(x0 + 5, y + tall / 2 + 4, number, more=more)
        return drawn

    def _end(self, span: Span) -> float:
        """Where the last step of a span ends, which may be before the next begins."""
        trace = self.trace
        if span.end >= len(trace) or not self.by_time:
            return float(self.edges[span.end])
        begin, end = float(self.edges[span.end - 1]), float(self.edges[span.end])
        whole = float(trace.start_s[span.end] - trace.start_s[span.end - 1])
        return begin + (end - begin) * float(trace.end_s[span.end - 1] - trace.start_s[span.end - 1]) / whole

    def _marks(self, top: float) -> list[str]:
        return [
            _cross(
                self.x(float(self.edges[mark.step])),
                top + (self.row_of[mark.slot] + 0.5) * self.pitch,
                4.5,
                f"request {mark.request + 1} is preempted before step {mark.step + 1:,}",
            )
            for mark in self.trace.preemptions
            if mark.slot in self.row_of
        ]

    def _area(self, values: Floats | Ints, top: float, height: float, most: float, fill: str) -> str:
        """A stepped area; where several steps share half a pixel, the highest of them."""
        points, last = [], None
        place = np.round(2 * self.plot * self.edges[:-1]).astype(int)
        firsts = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
        for step, value in zip(firsts.tolist(), np.maximum.reduceat(values, firsts).tolist(), strict=True):
            x = self.x(float(self.edges[step]))
            y = top + height * (1 - value / most)
            if last is None or abs(y - last[1]) > 0.05:
                if last is not None:
                    points.append(f"{x:.1f},{last[1]:.1f}")
                points.append(f"{x:.1f},{y:.1f}")
                last = (x, y)
        end, base = self.x(float(self.edges[-1])), top + height
        points.append(f"{end:.1f},{(last or (0, base))[1]:.1f}")
        return f'<polygon points="{self.left},{base:.1f} {" ".join(points)} {end:.1f},{base:.1f}" {fill}/>'

    def _panel(self, top: float, height: float, title: str) -> None:
        self.parts.append(self._text(self.left, top - 7, title, more='font-weight="600"'))
        self.parts.append(
            f'<line x1="{self.left}" x2="{self.width - self.right}" y1="{top + height}" y2="{top + height}" '
            f'stroke="{GRID}" stroke-width="1.5"/>'
        )

    def _queue(self, top: float) -> str:
        waiting = self.trace.waiting
        if not waiting.any():
            self.parts.append(self._text(self.left, top - 7, "Requests waiting: none", more='font-weight="600"'))
            return ""
        self._panel(top, QUEUE_HEIGHT, f"Requests waiting: at most {int(waiting.max()):,}")
        return self._area(waiting, top, QUEUE_HEIGHT, float(waiting.max()), 'fill="currentColor" fill-opacity="0.4"')

    def _pool(self, top: float) -> str:
        trace = self.trace
        used, written = trace.kv_blocks_used, trace.kv_tokens_written / trace.block_size
        peak = max(1, int(used.max()))
        most = float(trace.num_blocks if peak > 0.35 * trace.num_blocks else 1.15 * peak)
        of_pool = f"{int(used.max()):,} of {trace.num_blocks:,} ({format_percent(peak / max(1, trace.num_blocks))})"
        self._panel(top, POOL_HEIGHT, f"KV blocks in use: at most {of_pool}")
        x1 = self.width - self.right
        if most == trace.num_blocks:
            self.parts.append(
                f'<line x1="{self.left}" x2="{x1}" y1="{top}" y2="{top}" stroke="{COLOUR["neutral"]}" '
                'stroke-dasharray="5 4" stroke-width="1.5"/>'
            )
            if not self.is_narrow:
                self.parts.append(self._text(x1, top - 7, "whole pool", anchor="end"))
        drawn = self._area(used, top, POOL_HEIGHT, most, f'fill="url(#{self.name}-reserved)"')
        return (
            drawn
            + self._area(written, top, POOL_HEIGHT, most, f'fill="{COLOUR["kv_used"]}"')
            + self._named(top, used, written, most)
        )

    def _named(self, top: float, used: Ints, written: Floats, most: float) -> str:
        """Direct labels of the two areas, where they are tall enough for words."""
        told, scale = "", POOL_HEIGHT / most
        inside = self.edges[:-1] * self.plot < 130  # the steps above which the words stand
        low, high = float(written[inside].min()), float(written[inside].max())
        more = f'fill="{INK}" pointer-events="none"'
        if low * scale > 20:
            told += self._text(self.left + 8, top + POOL_HEIGHT - 8, "hold tokens", more=more)
        if (float(used[inside].min()) - high) * scale > 20:
            y = top + POOL_HEIGHT - float(used[inside].min()) * scale + 16
            told += self._text(self.left + 8, y, "reserved, empty", more=more)
        return told


def _cross(x: float, y: float, size: float, title: str = "") -> str:
    said = f"<title>{escape(title)}</title>" if title else ""
    path = f"M{x - size:.1f} {y - size:.1f}l{2 * size} {2 * size}M{x + size:.1f} {y - size:.1f}l{-2 * size} {2 * size}"
    return (
        f'<g fill="none" stroke-linecap="round">{said}<path d="{path}" stroke="#ffffff" stroke-width="5"/>'
        f'<path d="{path}" stroke="#b3261e" stroke-width="2.5"/></g>'
    )


def _round_step(wish: float) -> float:
    """The nearest 1, 2 or 5 times a power of ten that is not smaller."""
    power = 10.0 ** np.floor(np.log10(wish))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wish * (1 - 1e-9)))


def _anchor(share: float) -> str:
    return "start" if share < 0.02 else "end" if share > 0.97 else "middle"
