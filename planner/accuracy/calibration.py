"""Fit the efficiency profile of a GPU to measurements.

Two kinds of file are understood, told apart by their header (a folder of published kernel tables is read
by `planner.accuracy.kernel_tables` into the first):

kernel measurements (`kernel`, `gpu`, `engine`, `dtype`, `latency_us` and the sizes of the call)
    fit every parameter of `planner.step_time.kernels` per GPU, engine and dtype;
step times (`step_ms`, as `planner validate` reads them)
    fit one scale per kernel family on top of the profile in force.

The fit is Gauss-Newton on the logarithm of the time with Huber weights and a weak prior at the
starting values, so that a parameter which the file does not touch stays where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from planner.accuracy import steps
from planner.accuracy.kernel_tables import read_kernel_tables
from planner.arrays import Floats
from planner.catalog import get_gpu
from planner.errors import InvalidInput
from planner.inputs import Gpu
from planner.step_time import ALL_REDUCE_BYTES, Device, device_of, kernels, stored_profile

HUBER = 0.1  # relative error beyond which a measurement counts less
REST_OF_LAYER_US = 100.0  # what a layer takes beside its attention, for weighing attention measurements
WEIGHED = ("decode_attention", "prefill_attention")
MOST_STEPS = 25  # of a fit; it ends earlier once a step gains less than 10⁻⁵ of the cost
PRIOR_SD = 3.0  # of the logarithm of a parameter; there the prior counts as much as 10 % error in every row
#: tighter priors: without them the fit trades the padding of experts for their bandwidth
NARROW_PRIORS = {("experts", "bandwidth"): 1.0, ("experts", "padding"): 0.8, ("gemm", "bandwidth"): 1.0}

WEIGHT_BITS = {"bf16": 16.0, "fp8": 8.0, "fp8_block": 8.0, "nvfp4": 4.5, "mxfp4": 4.25, "int4": 4.156}
KV_BYTES = {"bf16": 2.0, "fp8": 1.0}


def gauss_newton(
    predict: Callable[[Floats], Floats],
    measured: Floats,
    start: Floats,
    *,
    prior_sd: Floats | float = PRIOR_SD,
    shares: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Fit positive parameters to positive measurements by relative error.

    Parameters
    ----------
    predict : callable
        Parameters → predictions.
    measured : array
        What was measured, above zero.
    start : array
        Starting values, above zero; also the centre of the prior.
    prior_sd : array or float
        Standard deviation of the logarithm of each parameter, as one measurement of 10 % error counts.
    shares : array, optional
        How much each measurement counts; by default all the same.

    Returns
    -------
    parameters, residuals : array
        Fitted parameters, and ln(predicted/measured) per measurement.
    """
    target, origin = np.log(measured), np.log(start)
    counts = np.ones_like(target) if shares is None else shares

    def residual(x: Floats) -> Floats:
        return np.log(predict(np.exp(x))) - target

    def cost(x: Floats, r: Floats) -> float:
        size = np.abs(r)
        huber = (counts * np.where(size <= HUBER, 0.5 * r * r, HUBER * (size - 0.5 * HUBER))).sum()
        return float(huber + 0.5 * HUBER**2 * (((x - origin) / prior_sd) ** 2).sum())

    x, damping = origin.copy(), 1e-2
    r = residual(x)
    for _ in range(MOST_STEPS):
        step = 1e-4
        jacobian = np.stack([(residual(x + step * unit) - r) / step for unit in np.eye(len(x))], axis=1)
        weight = counts * np.minimum(1.0, HUBER / np.maximum(np.abs(r), 1e-12))
        prior = HUBER**2 / np.broadcast_to(prior_sd, x.shape) ** 2
        normal = jacobian.T @ (weight[:, None] * jacobian) + np.diag(prior)
        slope = jacobian.T @ (weight * r) + prior * (x - origin)
        before = cost(x, r)
        for _ in range(8):
            move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slope)
            trial = x + np.clip(move, -1.0, 1.0)
            trial_r = residual(trial)
            after = cost(trial, trial_r)
            if after < before:
                break
            damping *= 4
        else:
            break
        x, r, damping = trial, trial_r, max(damping / 5, 1e-6)
        if before - after < 1e-5 * before:
            break
    return np.exp(x), r


def _columns(rows: pd.DataFrame, *names: str) -> list[Floats]:
    return [rows[name].to_numpy(np.float64) for name in names]


def _gemm(rows: pd.DataFrame, device: Device, dtype: str) -> Callable[[Any], Floats]:
    m, n, k = _columns(rows, "m", "n", "k")
    return lambda p: kernels.gemm_parts(p, device, m, n, k, WEIGHT_BITS[dtype]).total


def _experts(rows: pd.DataFrame, device: Device, dtype: str) -> Callable[[Any], Floats]:
    m, hidden, inner, top_k, experts, tp = _columns(
        rows, "m", "hidden", "intermediate", "top_k", "experts", "tensor_parallel"
    )
    return lambda p: (
        kernels.expert_parts(
            p,
            device,
            m,
            hidden=hidden,  # type: ignore[arg-type]
            intermediate=inner / tp,  # type: ignore[arg-type]
            num_experts=experts,  # type: ignore[arg-type]
            top_k=top_k,  # type: ignore[arg-type]
            bits=WEIGHT_BITS[dtype],
        ).total
    )


def _decode(rows: pd.DataFrame, device: Device, dtype: str) -> Callable[[Any], Floats]:
    batch, tokens, heads, kv_heads, head_dim = _columns(rows, "batch", "tokens", "heads", "kv_heads", "head_dim")
    size = batch * tokens * kv_heads * head_dim * 2 * KV_BYTES[dtype]
    return lambda p: kernels.decode_attention_s(p, device, batch, size, heads > kv_heads)


def _prefill(rows: pd.DataFrame, device: Device, dtype: str) -> Callable[[Any], Floats]:
    batch, tokens, heads, kv_heads, head_dim = _columns(rows, "batch", "tokens", "heads", "kv_heads", "head_dim")
    pairs, width = batch * tokens * (tokens + 1) / 2, 2 * (heads + kv_heads) * head_dim
    return lambda p: kernels.prefill_attention_s(
        p, device, pairs, batch * tokens, width, heads * (4 * head_dim + p.softmax)
    )


def _latent_decode(rows: pd.DataFrame, device: Device, dtype: str) -> Callable[[Any], Floats]:
    batch, tokens, heads, latent, rope = _columns(rows, "batch", "tokens", "heads", "latent", "rope")
    return lambda p: kernels.latent_decode_s(
        p, device, batch, batch * tokens, heads=heads, latent=latent, rope=rope, element_bytes=KV_BYTES[dtype]
    )


def _latent_prefill(rows: pd.DataFrame, device: Device, dtype: str) -> Callable[[Any], Floats]:
    batch, tokens, heads, rope, nope, value = _columns(rows, "batch", "tokens", "heads", "rope", "nope", "value")
    pairs, wide = batch * tokens * (tokens + 1) / 2, nope + rope + value
    return lambda p: kernels.prefill_attention_s(p, device, pairs, batch * tokens, 2 * heads * wide, 2 * heads * wide)


_PREDICTORS = {
    "gemm": _gemm,
    "experts": _experts,
    "decode_attention": _decode,
    "prefill_attention": _prefill,
    "latent_decode": _latent_decode,
    "latent_prefill": _latent_prefill,
}


def fit_kernel(kind: str, rows: pd.DataFrame, gpu: Gpu, dtype: str) -> dict[str, float]:
    """Fit one kernel family.

    Parameters
    ----------
    kind : str
        a key of `kernels.PARAMETERS`.
    rows : pandas.DataFrame
        Measurements of one GPU, engine and dtype: the sizes of the call and `latency_us`.
    gpu : Gpu
        Where they were measured.
    dtype : str
        Weights (gemm, experts) or KV cache (attention).

    Returns
    -------
    dict of str to float
        The fields of the family's parameters, `residual` (median absolute error) and `rows`.
    """
    parameters = kernels.PARAMETERS[kind]
    names = [item.name for item in fields(parameters)]
    device = device_of(gpu, dtype if kind in ("gemm", "experts") else "bf16")
    seconds = _PREDICTORS[kind](rows, device, dtype)
    measured = rows["latency_us"].to_numpy(np.float64)
    # Attention that is short beside the rest of a layer matters little to a step.
    shares = measured / (measured + REST_OF_LAYER_US) if kind in WEIGHED else None
    fitted, residual = gauss_newton(
        lambda x: seconds(parameters(**dict(zip(names, x, strict=True)))),
        measured * 1e-6,
        kernels.vector(parameters()),
        shares=shares,
        prior_sd=np.array([NARROW_PRIORS.get((kind, name), PRIOR_SD) for name in names]) / np.sqrt(len(rows)),
    )
    found = {name: float(f"{value:.4g}") for name, value in zip(names, fitted, strict=True)}
    return found | {"residual": round(float(np.median(np.abs(np.expm1(residual)))), 4), "rows": len(rows)}


def fit_all_reduce(rows: pd.DataFrame) -> dict[str, list[float]]:
    """Time of an all-reduce at fixed message sizes, by number of ranks. [us]"""
    table = {}
    for ranks, part in rows.groupby("ranks"):
        shortest = part.groupby("bytes")["latency_us"].min()
        # A larger message cannot be faster: what exceeds it is a hiccup of the measurement.
        smooth = np.minimum.accumulate(shortest.to_numpy(np.float64)[::-1])[::-1]
        known = np.interp(np.log(ALL_REDUCE_BYTES), np.log(shortest.index.to_numpy(np.float64)), np.log(smooth))
        table[str(int(float(str(ranks))))] = [float(f"{value:.4g}") for value in np.exp(known)]
    return table


def fit_kernels(frame: pd.DataFrame, source: str, date: str) -> dict[str, Any]:
    """Fit all kernel families of a file of kernel measurements.

    Parameters
    ----------
    frame : pandas.DataFrame
        `kernel`, `gpu`, `engine`, `dtype`, `latency_us` and the sizes of each call: m, n, k (gemm); m, hidden,
        intermediate, top_k, experts, tensor_parallel (experts); batch, tokens, heads, kv_heads, head_dim
        (attention); batch, tokens, heads, latent, rope, nope, value (latent_decode, latent_prefill); ranks, bytes
        (all_reduce).
    source, date : str
        Kept with every profile.

    Returns
    -------
    dict
        Profiles by GPU and engine, as catalog/efficiency.json holds them.
    """
    profiles: dict[str, Any] = {}
    for (name, engine), rows in frame.groupby(["gpu", "engine"]):
        gpu = get_gpu(str(name))
        profile: dict[str, Any] = {"source": source, "fitted": date}
        for (kind, dtype), part in rows.groupby(["kernel", "dtype"]):
            if kind == "all_reduce":
                profile["all_reduce"] = fit_all_reduce(part)
            elif kind in _PREDICTORS and len(part) >= 20:
                profile.setdefault(str(kind), {})[str(dtype)] = fit_kernel(str(kind), part, gpu, str(dtype))
        profiles.setdefault(gpu.name, {})[str(engine)] = profile
    return profiles


#: terms of a step that each scale of `fit_steps` multiplies, and the kernel families that then inherit it
SCALED_TERMS = {
    "matrices": ("weights_read", "gemm_compute", "expert_compute", "elementwise_and_launch", "lm_head_and_sampling"),
    "decode": ("decode_attention",),
    "prefill": ("prefill_attention", "prompt_launches"),
    "collectives": ("collectives",),
}
SCALED_FAMILIES = {
    "matrices": ("gemm", "experts"),
    "decode": ("decode_attention", "latent_decode"),
    "prefill": ("prefill_attention", "latent_prefill"),
}
SCALE_PRIOR_SD = 0.7


def fit_steps(frame: pd.DataFrame, source: str, date: str) -> dict[str, Any]:
    """Fit four scales per GPU and engine to whole step times, on top of the profile in force.

    Enough to make a profile for a GPU that has none of its own: it starts from the one that its
    architecture inherits.

    Parameters
    ----------
    frame : pandas.DataFrame
        Step times as `planner validate` reads them, with `step_ms`.
    source, date : str
        Kept with every profile.

    Returns
    -------
    dict
        Profiles by GPU and engine, with `scales` and `residual` (median absolute error of the steps).

    Raises
    ------
    InvalidInput
        When a row names a model or GPU that is not known.
    """
    profiles: dict[str, Any] = {}
    for (name, engine), rows in frame.groupby(["gpu", "engine"]):
        records = [{str(key): value for key, value in record.items()} for record in rows.to_dict("records")]
        explained = pd.DataFrame([steps.explain(record) for record in records])
        parts = np.stack([explained[list(terms)].sum(axis=1).to_numpy() for terms in SCALED_TERMS.values()], axis=1)
        rest = explained.sum(axis=1).to_numpy() - parts.sum(axis=1)
        scales, residual = gauss_newton(
            _scaled(parts, rest),
            rows["step_ms"].to_numpy(np.float64),
            np.ones(len(SCALED_TERMS)),
            prior_sd=SCALE_PRIOR_SD / np.sqrt(len(rows)),
        )
        found = dict(zip(SCALED_TERMS, scales, strict=True))
        gpu = get_gpu(str(name))
        profile = _rescaled(stored_profile(gpu, str(engine)), found)
        profile |= {"source": source, "fitted": date, "scales": {key: float(f"{x:.4g}") for key, x in found.items()}}
        profile["residual"] = round(float(np.median(np.abs(np.expm1(residual)))), 4)
        profiles.setdefault(gpu.name, {})[str(engine)] = profile
    return profiles


def _scaled(parts: Floats, rest: Floats) -> Callable[[Floats], Floats]:
    return lambda scales: parts @ scales + rest


def _rescaled(profile: dict[str, Any], scales: dict[str, float]) -> dict[str, Any]:
    scaled = json.loads(json.dumps(profile))
    for scale, families in SCALED_FAMILIES.items():
        for family in families:
            for parameters in scaled.get(family, {}).values():
                for name, value in parameters.items():
                    if name.endswith("_us"):
                        parameters[name] = float(f"{value * scales[scale]:.4g}")
                    elif name in ("bandwidth", "activation") or name.startswith("compute"):
                        parameters[name] = float(f"{value / scales[scale]:.4g}")
    for ranks, seconds in scaled.get("all_reduce", {}).items():
        scaled["all_reduce"][ranks] = [float(f"{x * scales['collectives']:.4g}") for x in seconds]
    return dict(scaled)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, low_memory=False)
    except (OSError, ValueError) as error:
        raise InvalidInput("measurements", str(path), "a readable CSV file") from error


def fit_file(measurements: str, *, out: str = "", source: str = "", date: str = "") -> str:
    """Fit the profiles that a file or folder of measurements allows.

    Parameters
    ----------
    measurements : str
        CSV of kernel measurements or of step times, or the folder of published kernel tables.
    out : str
        File to write the profiles to, besides returning them.
    source, date : str
        Kept with every profile; the source is the file's name when empty.

    Returns
    -------
    str
        The profiles as JSON.

    Raises
    ------
    InvalidInput
        When the measurements cannot be read or fitted, or the file not written.
    """
    path = Path(measurements)
    frame = read_kernel_tables(path) if path.is_dir() else _read(path)
    fit = next((fit for column, fit in (("kernel", fit_kernels), ("step_ms", fit_steps)) if column in frame), None)
    if fit is None:
        raise InvalidInput("measurements", str(path), "a file with a kernel or a step_ms column")
    try:
        text = json.dumps(fit(frame, source or path.name, date), indent=1)
    except InvalidInput:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        why = f"columns and figures that can be fitted ({type(error).__name__}: {error})"
        raise InvalidInput("measurements", str(path), why) from error
    if out:
        try:
            Path(out).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidInput("--out", out, "a file that can be written") from error
    return text
