"""What strangers may do to a host: links that are text, tables without formulas, no request that nobody asked for."""

import http.server
import json
import re
import socket
import threading
import tomllib
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from planner.answer.planning import plan
from planner.catalog.hub import MAX_HUB_BYTES, fetch_from_hub, hub_tensors
from planner.dashboard import config_text
from planner.dashboard.config_text import pruned
from planner.dashboard.frames import sheet
from planner.dashboard.widgets import prose
from planner.errors import InvalidInput
from planner.jobs.office import OFFICE
from planner.model.config.build import model_from_config
from planner.scenario.fields import fields_by_name
from planner.scenario.link import from_params
from planner.scenario.scenario import Scenario
from planner.tables import cell_of_text
from tests.answer.cases import all_changes

from .conftest import PAGES, clean
from .published_config import LLAMA_3_8B

# mdast-util-gfm-autolink-literal makes links of these, after escapes are resolved.
AUTOLINK = re.compile(r"(https?://|www(?=\.))[-.\w]+|[-.\w+]+@[-\w]+(\.[-\w]+)+", re.IGNORECASE)
BAIT = "https://evil.example/x www.evil.example a@evil.example [l](https://evil.example)"


def markdown_of(app):
    """All text of a page that the browser reads as markdown."""
    said = [
        item.value
        for kind in ("markdown", "caption", "subheader", "warning", "error", "info")
        for item in app.get(kind)
    ]
    said += [getattr(item, name, "") for item in app.metric for name in ("label", "value", "delta")]
    said += [cell for table in app.table for cell in np.ravel(table.value.to_numpy()) if isinstance(cell, str)]
    return [text for text in (*said, *(item.label for item in app.expander)) if text]


def links_in(app):
    found = [text for text in markdown_of(app) if "evil" in text]
    assert found, "the bait is not shown at all: this test sees nothing"
    return [text for text in found if AUTOLINK.search(text.replace("\\", "")) or "[l](" in text]


@pytest.mark.parametrize("page", PAGES)
def test_no_text_of_a_link_can_be_clicked(open_app, page):
    config = LLAMA_3_8B | {"_name_or_path": BAIT}
    app = clean(open_app({"v": "2", "n": BAIT, "m": "config", "mc": json.dumps(config)}, page))
    assert not app.warning
    assert not links_in(app)
    assert not any("<a " in chart.proto.spec for chart in app.get("plotly_chart"))


def test_no_refused_value_can_be_clicked(open_app):
    fields = {item.metadata["key"]: name for name, item in fields_by_name().items()}
    query = {key: BAIT for key, name in fields.items() if name not in ("title", "model_config")}
    refused = from_params({"v": "2", **query, BAIT: BAIT}).problems
    assert len(refused) >= len(query)
    assert all("evil" in text for text in refused)
    assert not [text for text in refused if AUTOLINK.search(prose(text).replace("\\", "")) or "[l](" in prose(text)]
    app = clean(open_app({"v": "2", **query, BAIT: BAIT}))  # the page shows the first of them
    assert app.warning
    assert not links_in(app)


@pytest.mark.parametrize("text", ["=1+1", "+cmd|'/C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=1"])
def test_no_cell_is_a_formula(text):
    # OWASP, CSV Injection: a spreadsheet takes what begins so for a formula; an apostrophe in front makes it text.
    assert cell_of_text(text) == "'" + text
    frame = sheet(pd.DataFrame({text: [text, "fine"], "x": [-1.5, 2.0]}))
    assert list(frame.columns) == ["'" + text, "x"]
    assert frame.iloc[:, 0].tolist() == ["'" + text, "fine"]
    assert frame["x"].tolist() == [-1.5, 2.0]


@pytest.mark.parametrize("value", ["-1.5", "+2", "1e-3", "Qwen/Qwen3-8B", "", "a=b", -1.5, None])
def test_figures_and_names_stay_as_they_are(value):
    assert cell_of_text(value) == value


@pytest.mark.parametrize("page", ["accuracy", "method", "fits"])
def test_tables_to_download_hold_no_formula(open_app, page):
    tables = open_app(page=page).dataframe
    assert tables
    for table in tables:
        cells = [*table.value.columns, *np.ravel(table.value.to_numpy(dtype=object))]
        assert [cell for cell in cells if cell_of_text(cell) is not cell] == []


def test_nothing_is_asked_of_the_network(open_app, monkeypatch):
    def refuse(*arguments, **_more):
        pytest.fail(f"a connection to {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for page in PAGES:
        clean(open_app({"v": "2", "n": BAIT}, page))
    scenario = Scenario(num_requests=100)  # what the pages have computed in another process
    assert plan(scenario).fits
    assert all_changes(scenario)


def test_two_sessions_compute_one_plan(open_app):
    query = {"v": "2", "u": "611"}
    clean(open_app(query))
    before = OFFICE.num_computed
    clean(open_app(query))
    assert OFFICE.num_computed == before


def test_the_page_says_that_it_simulated_fewer_requests(open_app):
    app = clean(open_app({"v": "2", "nr": "2000000"}))
    said = [info.value for info in app.info if "instead of 2,000,000" in info.value]
    assert len(said) == 1
    assert app.query_params["nr"] in ("2000000", ["2000000"])  # the link keeps what was asked for
    assert not [info for info in open_app().info if "instead of" in info.value]


def work_of(monkeypatch, config):
    """Characters that pruning has read as a model."""
    read = []

    def counted(given, *more):
        read.append(len(json.dumps(given)))
        return model_from_config(given, *more)

    monkeypatch.setattr(config_text, "model_from_config", counted)
    short = pruned(json.dumps(config))
    assert model_from_config(json.loads(short)) == model_from_config(config)
    return sum(read)


@pytest.mark.parametrize(
    "grown",
    [
        lambda n: {f"key{i}": "x" * 20 for i in range(n)},
        lambda n: {"quantization_config": {"quant_method": "fp8"} | {f"key{i}": {"a": i} for i in range(n)}},
        lambda n: {
            "quantization_config": {
                "quant_method": "fp8",
                "modules_to_not_convert": [f"model.layers.{i}.self_attn.{p}_proj" for i in range(n) for p in "qkvo"],
            }
        },
    ],
)
def test_pruning_takes_work_as_its_config_is_long(monkeypatch, grown):
    small, large = (work_of(monkeypatch, LLAMA_3_8B | grown(count)) for count in (500, 5000))
    assert large < 2 * 10 * small  # quadratic: 100 times


@pytest.mark.parametrize("deep", ['{"a":' * 900 + "1" + "}" * 900, "[" * 900 + "]" * 900, "[" * 100_000])
def test_deep_nesting_is_refused_in_words(deep):
    with pytest.raises(InvalidInput, match=r"nested|JSON"):
        pruned(json.dumps(LLAMA_3_8B)[:-1] + ', "deep": ' + deep + "}")


class _Hub(http.server.BaseHTTPRequestHandler):
    """A hub that states a size and then sends what it likes."""

    protocol_version = "HTTP/1.1"
    stated: int | None = 0
    body = b""
    times = 1
    seen: ClassVar[list] = []
    sent = 0

    def _head(self):
        type(self).seen.append((self.command, self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("ETag", '"x"')
        self.send_header("X-Repo-Commit", "0" * 40)
        if self.stated is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(self.stated))
        self.end_headers()

    def do_HEAD(self):
        self._head()

    def do_GET(self):
        self._head()
        try:
            for _ in range(self.times):
                self.wfile.write(self.body)
                type(self).sent += len(self.body)
        except OSError:  # the reader has had enough
            self.close_connection = True

    def log_message(self, *_arguments):
        pass


def asked_for_the_config(hub):
    """Methods of the requests for the file; once a day the client also reads a public list of the hub."""
    return [method for method, path, _ in hub.seen if path != "/api/agent-harnesses"]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    if constants.HF_HUB_OFFLINE:
        pytest.skip("the hub client is told to stay offline")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    path = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_host")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    _Hub.seen, _Hub.sent, _Hub.times = [], 0, 1
    yield _Hub
    server.shutdown()
    server.server_close()
    assert not (tmp_path / "cache").exists()


def test_the_hub_never_sees_the_hosts_token(hub):
    hub.body = json.dumps(LLAMA_3_8B).encode()
    hub.stated = len(hub.body)
    assert json.loads(fetch_from_hub("owner/name")) == LLAMA_3_8B
    assert asked_for_the_config(hub) == ["HEAD", "GET"]
    for _, _, headers in hub.seen:
        assert "authorization" not in {name.lower() for name in headers}
        assert "hf_of_the_host" not in str(headers)


def test_headers_of_weights_are_asked_for_without_the_hosts_token(hub):
    assert hub_tensors("owner/name") is None  # this hub sends no weights
    assert asked_for_the_config(hub)
    for _, _, headers in hub.seen:
        assert "authorization" not in {name.lower() for name in headers}


def test_a_large_file_of_the_hub_is_not_even_begun(hub):
    hub.stated = 300_000_000
    with pytest.raises(InvalidInput, match="at most 2 MB"):
        fetch_from_hub("owner/name")
    assert asked_for_the_config(hub) == ["HEAD"]


def test_a_hub_that_states_no_size_is_read_up_to_the_limit(hub):
    hub.stated, hub.body, hub.times = None, b"x" * 100_000, 1000
    with pytest.raises(InvalidInput, match="at most 2 MB"):
        fetch_from_hub("owner/name")
    assert hub.sent < 20 * MAX_HUB_BYTES  # of 100 MB; what the sockets hold is sent, too


def test_the_server_asks_no_service_for_its_own_address():
    settings = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())
    assert settings["browser"]["serverAddress"] == "localhost"
    assert settings["browser"]["gatherUsageStats"] is False
