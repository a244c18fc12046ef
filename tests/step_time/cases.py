"""Settings and steps that several tests of step times ask for."""

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.inputs.hardware import Parallelism
from planner.step_time.rank_share import RankShare
from planner.step_time.step_table import PrefillChunk, StepWork

VLLM = EngineSettings()
ONE = Parallelism()
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def decode(batch, context):
    """A step of `batch` sequences that hold `context` tokens each."""
    return StepWork(num_decodes=batch, kv_tokens=batch * context, num_logit_rows=batch)


def prefill(tokens, batch=1):
    """A step of `batch` whole prompts."""
    return StepWork(chunks=(PrefillChunk(num_tokens=tokens),) * batch, num_logit_rows=batch)


def replica(model, gpu, engine=VLLM, parallelism=ONE, **settings):
    """One rank's share of a replica of a model and a GPU that are there already."""
    return RankShare(model=model, gpu=gpu, engine=engine, parallelism=parallelism, **settings)


def share(model=LLAMA, gpu="H100 SXM", *, tp=1, weights="auto", cache="auto", kernels_only=False, draft="", **engine):
    """One rank's share of a replica. Sizes other than tensor parallelism stand in `split`."""
    split = engine.pop("split", None) or Parallelism(tensor_parallel_size=tp)
    return RankShare(
        model=get_model(model),
        gpu=get_gpu(gpu),
        engine=EngineSettings(**engine),
        parallelism=split,
        weight_dtype=weights,
        kv_cache_dtype=cache,
        kernels_only=kernels_only,
        draft_model=get_model(draft) if draft else None,
    )
