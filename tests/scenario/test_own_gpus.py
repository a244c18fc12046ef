import pytest

from planner.errors import InvalidInput
from planner.scenario.own_gpus import own_gpus
from planner.scenario.scenario import Scenario


def test_names_and_numbers_in_either_order():
    assert own_gpus("H100 SXM:8, 4 x L40S, 2×A100-SXM4-80GB, B200") == {
        "H100 SXM": 8,
        "L40S": 4,
        "A100 SXM 80GB": 2,
        "B200": None,
    }


def test_empty_text_names_no_gpu():
    assert own_gpus("") == own_gpus(" , ") == {}


@pytest.mark.parametrize("text", ["H9000:8", "H100 SXM:0"])
def test_what_is_wrong_is_named(text):
    with pytest.raises(InvalidInput) as told:
        Scenario(my_gpus=text)
    assert told.value.field == "my_gpus"
    assert told.value.value == text
    assert "H100 SXM" in told.value.valid
