"""What fits on my GPU: every model of the catalog that starts there."""

import streamlit as st

from planner.catalog import gpu_names
from planner.dashboard import frames, headlines, inputs, results, sharing, widgets
from planner.errors import PlannerError
from planner.scenario import CUSTOM, message
from planner.units import counted

ORDERS = {
    "Largest first": lambda item: (-item.num_parameters, item.model),
    "Newest first": lambda item: (item.created == "", [-ord(letter) for letter in item.created], item.model),
    "Fastest first": lambda item: (-item.tokens_per_s_alone, item.model),
}

ENGINES = {
    "vLLM, llama-server": "",
    "vLLM": "vllm",
    "SGLang": "sglang",
    "llama-server": "llama-server",
    "Ollama": "ollama",
}

if st.session_state.pop("_fits_adopted", False):
    st.switch_page(headlines.PAGES / "plan.py", query_params=st.query_params.to_dict())
scenario = st.session_state["_scenario"]
sharing.answer("What fits on my GPU?")
st.caption(
    "Every model of the catalog that starts, in the widest weights that leave room for one session of the context. "
    "Speeds are those of decoding, without prompts; open a row's plan for the latency of your traffic."
)
names = gpu_names()
first = scenario.gpu if scenario.gpu != CUSTOM else names[0]
with st.container(horizontal=True, vertical_alignment="bottom"):
    gpu = st.selectbox("GPU", names, names.index(first), key="fits_gpu", persist_state="session")
    count = st.number_input("GPUs", 1, 64, 1, key="fits_count", persist_state="session")
    context = st.number_input(
        "Context (tokens)", 256, 1_000_000, 8192, step=1024, key="fits_context", persist_state="session"
    )
    engine = st.selectbox("Engine", list(ENGINES), key="fits_engine", persist_state="session", width=200)
    order = st.selectbox("Order", list(ORDERS), key="fits_order", persist_state="session")
    wanted = st.text_input("Only names with", key="fits_name", persist_state="session", placeholder="qwen")

try:
    found = results.fits_on(gpu, int(count), int(context), ENGINES[engine])
except PlannerError as error:
    st.error(widgets.prose(message(error)))
    st.stop()
shown = tuple(sorted((item for item in found if wanted.strip().lower() in item.model.lower()), key=ORDERS[order]))
models = len({item.model for item in shown})
verb = "starts" if models == 1 else "start"
st.markdown(f"**{counted(models, 'model')} {verb} on {int(count)} × {widgets.plain(gpu)}**")
if not shown:
    st.info("No model of the catalog starts with these inputs. A shorter context or more GPUs hold more.")
    st.stop()
picked = st.dataframe(
    frames.fit_frame(shown),
    hide_index=True,
    width="stretch",
    height=560,
    on_select="rerun",
    selection_mode="single-row",
    key="fits_table",
    column_config=frames.FIT_COLUMNS,
    alt=f"Models that start on {gpu}",
)
rows = picked["selection"]["rows"]


def adopt(index: int) -> None:
    inputs.adopt(shown[index].scenario)
    st.session_state["_fits_adopted"] = True


if rows and rows[0] < len(shown):
    item = shown[rows[0]]
    st.button(f"Plan with {widgets.plain(item.model)}", on_click=adopt, args=(rows[0],), type="primary")
else:
    st.caption("Select a row to plan with it.")
