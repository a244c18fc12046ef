"""Quoting, and flags that a release does not have."""

import shlex
import subprocess

from planner.deploy.launch import Launch, Options, comment, shell_command, text_of

HOSTILE = ["$(touch /tmp/owned)", "a'b", 'say "hi"', "x; rm -rf ~", "`id`", "two words", "line\nbreak", "-dash", "é"]


def started(**changes):
    given = {"engine": "vllm", "title": "vLLM", "version": "1", "program": ("show",), "model": "m", "port": 1}
    return Launch(**(given | {"health_path": "/"} | changes))


def test_a_shell_hands_every_word_over_as_it_is():
    launch = started(options=tuple(("--flag", word) for word in HOSTILE), env=(("NAME", "a $b 'c'"),))
    script = 'show() { printf "%s\\0" "$NAME" "$@"; }\n' + launch.shell()
    out = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout.decode().split("\0")[:-1]
    assert out == ["a $b 'c'", *(word for text in HOSTILE for word in ("--flag", text))]
    assert tuple(out[1:]) == launch.words()[1:]


def test_a_file_arrives_whole_even_with_the_mark_of_its_end(tmp_path):
    text = "a: $HOME\nHEADROOM_END\nb: 'x'\n"
    script = started(program=("true",), files=(("it's.yaml", text),)).shell()
    subprocess.run(["bash", "-c", script], check=True, cwd=tmp_path)
    assert (tmp_path / "it's.yaml").read_text() == text


def test_a_comment_stays_a_comment():
    assert comment("one\nrm -rf /\r\ttwo") == "# one rm -rf / two"
    long = comment("rm -rf /\n" * 40).splitlines()
    assert len(long) > 1
    assert all(line.startswith("# ") for line in long)


def test_several_nodes_have_a_command_each():
    nodes = ((("--node-rank", "0"),), (("--node-rank", "1"), ("--headless", None)))
    launch = started(node_options=nodes)
    assert launch.num_nodes == 2
    assert launch.words(1) == ("show", "--node-rank", "1", "--headless")
    commands = [line for line in launch.shell().replace("\\\n", "").splitlines() if not line.startswith("#")]
    assert [tuple(shlex.split(line)) for line in commands] == [launch.words(0), launch.words(1)]


def test_a_flag_that_the_release_lacks_is_an_unmet_setting():
    old, new = Options("vllm serve", "vLLM", "0.10.2"), Options("vllm serve", "vLLM", "0.11.1")
    for options in (old, new):
        options.add("--kv-offloading-size", 4.0)
    assert (old.chosen, new.chosen) == ([], [("--kv-offloading-size", "4")])
    assert old.unmet == ["--kv-offloading-size 4: vLLM 0.10.2 has no flag for it."]


def test_the_first_name_that_the_release_knows_is_taken():
    for version, name in (("0.9.2", "--cuda-graph-sizes"), ("0.13.0", "--max-cudagraph-capture-size")):
        options = Options("vllm serve", "vLLM", version)
        options.add(("--max-cudagraph-capture-size", "--cuda-graph-sizes"), 64)
        assert options.chosen == [(name, "64")]


def test_values_are_written_as_engines_read_them():
    assert [text_of(value) for value in (0.9, 8192, 12.5, "fp8")] == ["0.9", "8192", "12.5", "fp8"]
    assert shell_command(("a",), [("--b", "c d"), ("--e", None)]) == "a \\\n  --b 'c d' \\\n  --e"
