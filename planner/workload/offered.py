"""The requests that a scenario sends to its service, and their mean lengths."""

from __future__ import annotations

import dataclasses

import numpy as np

from planner.scenario import Scenario
from planner.workload.drawing import draw_requests
from planner.workload.requests import Requests


def mean_lengths(requests: Requests, max_model_len: int) -> tuple[float, float]:
    """Mean prompt and output tokens of the requests that fit in the context; of all if none fits. [tokens]"""
    fits = requests.prompt_tokens < max_model_len
    kept = fits if fits.any() else ~fits
    return float(requests.prompt_tokens[kept].mean()), float(requests.output_tokens[kept].mean())


def shared_tokens(requests: Requests, max_model_len: int) -> int:
    """Mean number of tokens that a request shares with its group, stored once where prefixes are cached. [tokens]

    A prompt shorter than the shared prefix shares its own length.
    """
    fits = requests.prompt_tokens < max_model_len
    shared = np.where(requests.prefix_group >= 0, requests.prefix_tokens, 0)
    return round(float(shared[fits if fits.any() else ~fits].mean()))


def draw(scenario: Scenario) -> Requests:
    """The scenario's requests: the same scenario and seed give the same requests."""
    return draw_requests(scenario.traffic, scenario.num_requests, scenario.seed, max_model_len=scenario.max_model_len)


def as_open_loop(requests: Requests) -> Requests:
    """The same requests as an open loop, whose rate can be set."""
    if requests.closed_loop_users == 0 and len(requests) > 1 and requests.arrival_s[-1] > 0:
        return requests
    gaps = np.random.default_rng(0).exponential(size=len(requests))
    return dataclasses.replace(requests, arrival_s=np.cumsum(gaps), closed_loop_users=0)
