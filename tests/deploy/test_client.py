"""The client is a program, whatever the model is called."""

import ast

from planner.deploy.client import openai_client
from planner.deploy.engines import launch

from .cases import planned


def test_the_program_names_the_planned_model_and_limits():
    name = 'it\'s "$(id)"/Llama-3.1-8B-Instruct-FP8'
    plan = planned(model=name, output_limit_tokens=300, timeout_s=20.0)
    calls = [node for node in ast.walk(ast.parse(openai_client(plan, launch(plan)))) if isinstance(node, ast.Call)]
    said = {word.arg: ast.literal_eval(word.value) for call in calls for word in call.keywords}
    assert (said["model"], said["max_tokens"], said["timeout"]) == (name, 300, 20.0)
    assert said["base_url"] == "http://localhost:8000/v1"
