"""What starts one replica: program, flags, environment, files; and what of the plan no flag can say."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from planner.catalog import flags_of

COMMENT_WIDTH = 96
HEAD = "HEAD_ADDRESS"  # stands for the first node's address where a replica spans several


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How one replica of a plan is started.

    `options` are (flag, value) in order, value None for a switch; `rank_options` those of each further node.
    `unmet` are settings of the plan that no flag of this release can say; `notes` what the reader has to know or do.
    """

    engine: str  # family, or "ollama"
    title: str
    version: str
    program: tuple[str, ...]
    options: tuple[tuple[str, str | None], ...] = ()
    node_options: tuple[tuple[tuple[str, str | None], ...], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()  # name, text
    after: tuple[tuple[str, ...], ...] = ()  # commands to run once the server is up
    model: str  # what the API calls the model
    port: int
    health_path: str
    in_container: tuple[tuple[str, str | None], ...] = ()  # binds to all addresses, shows metrics
    image_runs: bool = False  # the container image starts the program itself and takes only its arguments
    container_env: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()

    @property
    def num_nodes(self) -> int:
        """Nodes that one replica spans."""
        return max(1, len(self.node_options))

    def words(self, node: int = 0) -> tuple[str, ...]:
        """The command as a list of arguments, unquoted, on one of the nodes."""
        extra = self.node_options[node] if self.node_options else ()
        return (*self.program, *flat((*self.options, *extra)))

    def shell(self) -> str:
        """Everything to type on one machine: files, environment, command; one command for each node."""
        parts = [_heredoc(name, text) for name, text in self.files]
        for node in range(self.num_nodes):
            if self.num_nodes > 1:
                parts.append(f"# on node {node} of {self.num_nodes}; {HEAD} is the address of node 0")
            extra = self.node_options[node] if self.node_options else ()
            parts.append(shell_command(self.program, (*self.options, *extra), self.env))
        if self.after:
            parts.append("# once the server is up, in a second shell")
        parts += [shlex.join(command) for command in self.after]
        return "\n".join(parts)


def flat(options: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    """Flags and values as one list of arguments."""
    return tuple(word for name, value in options for word in ((name,) if value is None else (name, value)))


def shell_command(
    program: Sequence[str], options: Iterable[tuple[str, str | None]], env: Iterable[tuple[str, str]] = ()
) -> str:
    """A command as a shell reads it: one flag a line, every word quoted where it needs to be."""
    lines = [" ".join([*(f"{name}={shlex.quote(value)}" for name, value in env), shlex.join(program)])]
    lines += [shlex.join([name] if value is None else [name, value]) for name, value in options]
    return " \\\n  ".join(lines)


def comment(text: str) -> str:
    """A text as lines of comment, whatever it holds."""
    lines = textwrap.wrap(" ".join(text.split()), COMMENT_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"# {line}" for line in lines)


def _heredoc(name: str, text: str) -> str:
    mark = "HEADROOM_END"
    while mark in text:
        mark += "_"
    return f"cat > {shlex.quote(name)} <<'{mark}'\n{text.rstrip()}\n{mark}"


@dataclass(slots=True)
class Options:
    """Collects the flags of one command; a flag that the release does not have becomes an unmet setting."""

    command: str
    title: str
    version: str
    chosen: list[tuple[str, str | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        """Whether the release has the flag; --no-… is there where the flag itself is."""
        known = flags_of(self.command, self.version)
        return name in known or name.replace("--no-", "--", 1) in known

    def takes(self, name: str, value: str) -> bool:
        """Whether the flag is there and takes the value."""
        flag = flags_of(self.command, self.version).get(name)
        return flag is not None and (not flag.choices or value in flag.choices)

    def add(self, names: str | Sequence[str], value: object = None, *, what: str = "") -> None:
        """The first of the flags that the release has, with its value; else the setting is unmet.

        Parameters
        ----------
        names : str or sequence of str
            The flag, or the names that it had in one release or another, newest first.
        value : object, optional
            Written as text; None for a switch.
        what : str, optional
            The setting in words, for the reader of an unmet one.
        """
        candidates = [names] if isinstance(names, str) else list(names)
        for name in candidates:
            if self.has(name):
                self.chosen.append((name, None if value is None else text_of(value)))
                return
        shown = what or f"{candidates[0]}{'' if value is None else ' ' + text_of(value)}"
        self.unmet.append(f"{shown}: {self.title} {self.version} has no flag for it.")


def text_of(value: object) -> str:
    """A setting as engines read it: 0.9, not 0.900000; 8192, not 8,192."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
