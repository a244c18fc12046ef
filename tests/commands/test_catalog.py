import json

from planner.__main__ import main
from planner.catalog.models import catalog_date, model_names
from planner.commands.catalog import add_to
from tests.commands.running import declared


def test_catalog_says_its_date_and_what_configs_change(tmp_path, capsys):
    assert main(["catalog"]) == 0
    assert capsys.readouterr().out.startswith(f"Catalog of {catalog_date()}: {len(model_names()):,} models")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    assert main(["catalog", "refresh", str(tmp_path), "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["state"] == "unreadable" and "num_hidden_layers" in finding["problem"]
    assert main(["catalog", "refresh"]) == 2


def test_this_is_its_command():
    assert declared(add_to) == {"catalog"}
