"""The step timeline of the batching lab with its choices, and the article that it starts from."""

from __future__ import annotations

import streamlit as st

from planner.answer import BURST_FITS, BURST_REQUESTS, OWN_ENGINE
from planner.charts import StepPicture
from planner.dashboard import frames, player, results, widgets
from planner.service import LAB_POLICIES, POLICY_TITLES
from planner.simulation import SEED_SCHEDULING

ARTICLE, YOURS, TIGHT = "200 requests, 8 slots", "Your requests", "Yours, all at once"
ABOUT = {
    ARTICLE: "The seed article's example: all requests arrive together, every step takes 1 unit of time.",
    YOURS: "One replica of your plan at its share of the peak.",
    TIGHT: f"{BURST_REQUESTS} of your requests arrive together at a KV pool that holds about {BURST_FITS} of them.",
}
SEED_TITLES = {name: name[:1].upper() + name[1:] for name in SEED_SCHEDULING}
SEED_STEPS = {"first 600 steps": 600, "whole run": 8_020}  # static batches, the longer of the two that one compares
STARTS = {"while it runs": "middle", "from the first request": "first"}
OWN_STEPS = 300


@st.fragment
def step_by_step() -> None:
    """The card with the step timeline."""
    plan = results.current_plan()
    presets = [ARTICLE, YOURS, TIGHT] if plan.policies else [ARTICLE]
    with st.container(border=True):
        st.markdown("**Step by step**")
        preset = _choice("Example", presets, "lab_preset")
        st.caption(ABOUT[preset])
        picture = _article_steps() if preset == ARTICLE else _own_steps(tight=preset == TIGHT)
        if picture is None:
            st.info("This policy can serve none of these requests: each would need more KV cache than there is.")
            return
        st.markdown(f"**{widgets.prose(picture.title)}**")
        st.caption(widgets.prose(picture.subtitle))
        player.play(picture, "lab_steps")
        with st.expander("In words"):
            st.markdown(widgets.prose(picture.alt))


def _choice(label: str, options: list[str], key: str, default: int = 0) -> str:
    """One of a few, shown side by side; the default where nothing is chosen."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[default]
    found = st.segmented_control(label, options, key=key, required=True, wrap=True, persist_state="session")
    return str(found or options[default])


def _article_steps() -> StepPicture:
    titles = list(SEED_TITLES.values())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = _choice("Scheduling", titles, "lab_seed", 1)
        window = _choice("Show", list(SEED_STEPS), "lab_seed_steps")
    scheduling = next(name for name, title in SEED_TITLES.items() if title == chosen)
    return results.seed_picture(scheduling, SEED_STEPS[window])


def _own_steps(*, tight: bool) -> StepPicture | None:
    plan = results.current_plan()
    titles = {POLICY_TITLES[name]: name for name in LAB_POLICIES}
    titles["Your engine"] = OWN_ENGINE
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = titles[_choice("Policy", list(titles), "lab_policy", len(LAB_POLICIES) - 1)]
        start = "preemption" if tight else STARTS[_choice("Show", list(STARTS), "lab_start")]
        by_time = _choice("Axis", ["time", "steps"], "lab_axis") == "time"
    return results.steps_picture(plan, chosen, start, OWN_STEPS, by_time=by_time, tight=tight)


def article() -> None:
    """The seed article's table, its memory, its mistakes and the papers, each closed at first but the table."""
    st.markdown("**The article's example, reproduced by the general simulator**")
    st.caption(
        "200 requests at once, 8 slots, every step takes 1 unit of time, prompts are ignored. Only the scheduler "
        "differs. The ratio is the lesson, not the absolute numbers."
    )
    widgets.table(frames.seed_rows(), "seed")
    with st.expander("The memory that limits the batch"):
        widgets.table(frames.seed_cache_rows(), "seed_cache")
    plan = results.current_plan()
    with st.expander("Its five common mistakes, checked against your scenario"):
        present = {finding.kind: finding for finding in plan.findings}
        for kind, text in results.MISTAKES.items():
            found = present.get(kind)
            icon = ":material/warning:" if found else ":material/check:"
            st.markdown(f"{icon} {text}" + (f": {widgets.prose(found.text)}" if found else ""))
    with st.expander("The papers, re-run here", key="lab_papers", on_change="rerun") as papers:
        if papers.open:
            _papers()


def _papers() -> None:
    st.caption(
        "How much scheduling and memory alone explain: every system gets the same step times and the same KV pool. The "
        "rest of a published ratio comes from kernels and frameworks."
    )
    st.dataframe(
        frames.paper_results(),
        hide_index=True,
        width="stretch",
        column_config={"source": st.column_config.LinkColumn("source")},
        alt="Published claims beside the simulated ratios",
    )
