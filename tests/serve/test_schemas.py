import json

import pytest

from planner.__main__ import main
from planner.scenario.link import from_json, to_json
from planner.scenario.scenario import Scenario
from planner.serve.schemas import scenario_fields
from planner.serve.tools import tools


def listed(capsys):
    assert main(["fields", "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def words(schema):
    """What `fields` says is valid, from the schema alone."""
    if "enum" in schema:
        return "one of " + ", ".join(item or "(empty)" for item in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    text = {"string": "text", "boolean": "true or false", "integer": "a whole number", "number": "a number"}[kinds[0]]
    if "minimum" in schema:
        text += f" from {schema['minimum']:,g} to {schema['maximum']:,g}"
    return text + (", or empty" if "null" in kinds else "")


@pytest.mark.parametrize("tool", ["plan", "recommend"])
def test_the_tools_take_the_fields_that_the_command_lists(tool, capsys):
    taken = tools()[tool].arguments["properties"]["scenario"]["properties"]
    rows = listed(capsys)
    assert list(taken) == list(rows)
    for name, row in rows.items():
        assert taken[name]["default"] == row["default"], name
        assert words(taken[name]) == row["valid"], name


def test_a_number_outside_the_schema_is_refused_and_its_bounds_are_not():
    for name, schema in scenario_fields().items():
        if "minimum" in schema:
            for value in (schema["minimum"] - 1, schema["maximum"] + 1):
                errors = from_json(json.dumps({name: value})).errors
                assert [error.field for error in errors] == [name]


def test_schemas_are_sound_and_take_the_default_scenario():
    validation = pytest.importorskip("jsonschema").Draft202012Validator
    for tool in tools().values():
        validation.check_schema(tool.arguments)
    default = {name: value for name, value in json.loads(to_json(Scenario())).items() if name != "version"}
    plan = validation(tools()["plan"].arguments)
    assert plan.is_valid({"scenario": default})
    assert not plan.is_valid({"scenario": default | {"users": "many"}})
    assert not plan.is_valid({"scenario": default | {"nonsense": 1}})
