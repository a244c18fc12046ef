"""What the browser gets of pictures and tables."""

import re

from planner.dashboard.player import BROWSER, file_name


def test_file_names_hold_letters_digits_and_dashes():
    assert file_name("Weights take 19 % of the GPU, café") == "headroom-weights-take-19-of-the-gpu-caf"
    assert len(file_name("x" * 500)) < 80


def test_scripts_find_only_what_the_markup_has():
    for script, markup in (("player.js", "player.html"), ("charts.js", "save.html")):
        text, page = (BROWSER / script).read_text(), (BROWSER / markup).read_text()
        classes = {name for names in re.findall(r'class="([^"]+)"', page) for name in names.split()}
        wanted = set(re.findall(r'find\("([\w-]+)"\)', text))
        wanted |= set(re.findall(r'parentElement\.querySelector\("\.([\w-]+)"\)', text))
        assert wanted and wanted <= classes, script


def test_nothing_is_fetched_from_elsewhere():
    for file in BROWSER.iterdir():
        addresses = re.findall(r"https?://[^\s\"'`)]+", file.read_text())
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, file
