"""The section with the commands."""

from planner.dashboard import commands

from .conftest import clean


def shown(app):
    return [block.value for block in app.code if "\n" in block.value]


def test_the_plan_page_shows_the_command_of_its_engine(open_app):
    app = clean(open_app({"v": "1", "tp": "2"}))
    assert any("vllm serve" in text and "--tensor-parallel-size 2" in text for text in shown(app))
    labels = list(app.button_group(key="commands_form").options)
    assert labels[0] == "vllm serve"
    assert {"Docker Compose", "Kubernetes", "KServe", "OpenAI client"} <= set(labels)


def test_only_the_chosen_form_is_worked_out(open_app):
    app = clean(open_app())
    assert not any("kind: Deployment" in text for text in shown(app))


def test_an_engine_without_a_server_or_a_start_says_so(open_app):
    for query in ({"v": "1", "e": "orca"}, {"v": "1", "m": "deepseek-ai/DeepSeek-V3"}):
        app = clean(open_app(query))
        said = " ".join(box.value for box in app.info)
        assert "an engine with a server" in said or "weights" in said
        assert not shown(app)


def test_a_download_has_a_type_for_every_language():
    assert {"bash", "yaml", "python"} == set(commands.MIME)
