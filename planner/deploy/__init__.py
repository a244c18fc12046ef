"""What carries a plan out: commands, manifests, a client and the load test that verifies it.

In: a `Plan`. Out: texts to copy, equal to the plan. Flags come from each engine release's own list; a setting that no
flag can say is named beside the command.
"""

from planner.deploy.artifacts import Artifact, artifact, artifacts, formats, formats_of
from planner.deploy.launch import Launch
from planner.deploy.load_test import LoadTest, predicted

__all__ = [
    "Artifact",
    "Launch",
    "LoadTest",
    "artifact",
    "artifacts",
    "formats",
    "formats_of",
    "predicted",
]
