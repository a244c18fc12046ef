import sys

import pytest

from planner.answer.search.cluster import dask_executor
from planner.answer.search.recommend import recommend
from planner.errors import InvalidInput, PlannerError
from planner.scenario.scenario import Scenario


def opened(address, **more):
    with dask_executor(address, **more) as executor:
        return executor


@pytest.mark.parametrize("address", ["", "nowhere", "tcp://", "tcp://host", "http://host:1"])
def test_an_address_without_a_port_is_told(address):
    with pytest.raises(InvalidInput, match="--dask"):
        opened(address)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PlannerError, match="pip install distributed"):
        opened("tcp://127.0.0.1:8786")


def test_an_address_that_does_not_answer_is_told():
    pytest.importorskip("distributed")
    with pytest.raises(InvalidInput, match="answers within"):
        opened("tcp://127.0.0.1:1", answers_within_s=1)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_finds_what_this_thread_finds():
    distributed = pytest.importorskip("distributed")
    small = Scenario(num_requests=200)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False) as cluster,
        dask_executor(cluster.scheduler_address) as executor,
    ):
        there = recommend(small, gpus=("L40S",), weight_dtypes=("auto",), executor=executor)
    here = recommend(small, gpus=("L40S",), weight_dtypes=("auto",))
    assert there.candidates == here.candidates
