"""Settings that a log repeats: the command, the arguments that differ from their defaults, the whole configuration."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from planner.reading.text import Line
from planner.tables import read_table

NAMES = "reading/setting_names.csv"
UNSET = ("none", "null", "auto", "[]", "{}", "''", '""', "")
#: how an engine begins the line in which it repeats its settings
_REPEATED = re.compile(
    r"non-default args:|\bNamespace\(|ServerArgs\(|LLM engine \(v|Initializing an LLM engine"
    r"|text_generation_launcher: Args \{|(?:Turbomind|Pytorch)EngineConfig\("
)
_COMMAND = re.compile(
    r"(?:\bvllm serve\b|vllm\.entrypoints\.openai\.api_server|sglang\.launch_server|\bsglang serve\b|trtllm-serve"
    r"|llama-server|llama-cli|text-generation-launcher|ollama_llama_server|ollama runner|lmdeploy serve api_server)"
)
TAKES_A_MODEL = ("vllm serve", "sglang serve", "trtllm-serve", "lmdeploy serve api_server")
#: a quick look before the patterns: each line that they find has one of these
_NEEDS = ("serve", "api_server", "launch", "llama", "ollama", "args", "llm engine", "engineconfig(")
_PAIR = re.compile(
    r"""['"]?(?<![\w.-])(?P<name>[A-Za-z_]\w*)['"]?\s*[=:]\s*"""
    r"""(?P<value>'[^']*'|"[^"]*"|\[[^\]]*\]|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|Some\([^)]*\)|<[^>]*>|[^,\s(){}\[\]]+)"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting as a log states it.

    `said` says how: "command", "arguments" (those that differ from the default) or "configuration" (all of them, with
    defaults filled in). `column` is that of a start-up row, "" for a setting that the plan has no input for.
    """

    name: str
    value: str
    column: str
    said: str
    line: int


def settings_in(lines: tuple[Line, ...], engine: str) -> tuple[Setting, ...]:
    """Settings in a log, each in its first line; a setting at None or "auto" is left out.

    Parameters
    ----------
    lines : tuple of Line
        The log.
    engine : str
        Family of the engine, since llama-server's short flags mean other things elsewhere.

    Returns
    -------
    tuple of Setting
        In the order in which they stand; of several ways to say one, the command first, then the arguments.
    """
    found: list[Setting] = []
    for index, line in enumerate(lines):
        lower = line.text.lower()
        if not any(word in lower for word in _NEEDS):
            continue
        if _COMMAND.search(line.text) and not line.text.lstrip().startswith("#"):
            found += [_setting(name, value, "command", line, engine) for name, value in _flags(lines, index)]
        if _REPEATED.search(line.text):
            said = "arguments" if "non-default args" in line.text else "configuration"
            found += [_setting(name, value, said, line, engine) for name, value in _pairs(line.text)]
    order = {"command": 0, "arguments": 1, "configuration": 2}
    best: dict[str, Setting] = {}
    for item in sorted(found, key=lambda setting: order[setting.said]):
        if item.value.lower() not in UNSET:
            best.setdefault(item.name, item)
    return tuple(sorted(best.values(), key=lambda setting: setting.line))


def _setting(name: str, value: str, said: str, line: Line, engine: str) -> Setting:
    plain = name.replace("-", "_").lower()
    return Setting(name=plain, value=_bare(value), column=column_of(plain, engine), said=said, line=line.number)


def column_of(name: str, engine: str) -> str:
    """Column of a start-up row that a setting fills; "" where the plan has no input for it."""
    family = "llama.cpp" if engine == "ollama" else engine
    fits = [row for row in read_table(NAMES) if row["name"] == name and row["engine"] in (family, "any")]
    own = [row for row in fits if row["engine"] == family]
    return (own or fits or [{"column": ""}])[0]["column"]


def _bare(value: str) -> str:
    value = value.strip().rstrip(",;")
    some = re.fullmatch(r"Some\((.*)\)", value)
    value = some[1] if some else value
    enum = re.fullmatch(r"<\w+\.(\w+): [^>]*>", value)
    value = enum[1] if enum else value
    return value.strip().strip("'\"").removeprefix("torch.")


def _pairs(text: str) -> list[tuple[str, str]]:
    told = _REPEATED.split(text, maxsplit=1)[-1]
    told = told.partition("with config:")[2] or told
    told = told.strip().removeprefix("{")  # of a dictionary, which would read as one value
    return [(match["name"], match["value"]) for match in _PAIR.finditer(told)]


def _flags(lines: tuple[Line, ...], index: int) -> list[tuple[str, str]]:
    """Flags of a command, which may go on over lines that end in a backslash."""
    parts = [lines[index].text]
    while parts[-1].rstrip().endswith("\\") and index + 1 < len(lines):
        index += 1
        parts.append(lines[index].text)
    text = " ".join(part.rstrip().rstrip("\\") for part in parts)
    command = _COMMAND.search(text)
    words = _words(text[command.end() :] if command else "")
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        name, equals, value = words[at].partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        if not _is_flag(name):
            # the one word without a flag is the model that `vllm serve` and `trtllm-serve` take
            if command and command[0] in TAKES_A_MODEL and words[at] != "serve":
                found.append(("model_tag", words[at]))
        elif equals:
            found.append((name.lstrip("-"), value))
        elif not following or _is_flag(following) or _looks_like_a_model(following, name):
            found.append((name.lstrip("-"), "True"))
        else:
            found.append((name.lstrip("-"), following))
            at += 1
        at += 1
    return found


def _is_flag(word: str) -> bool:
    return re.match(r"--?[A-Za-z]", word) is not None


def _looks_like_a_model(word: str, flag: str) -> bool:
    """Whether a word after a switch such as --trust-remote-code is the model and not the switch's value."""
    return "/" in word and re.search(r"trust|enable|disable|no-|eager", flag) is not None


def _words(text: str) -> list[str]:
    text = re.split(r"[\"'`]?\s*(?:2>|>|\||&&|;)\s", text)[0].strip().rstrip('"`')
    try:
        return shlex.split(text)
    except ValueError:  # an open quote: a log cut off in the middle
        return text.split()
