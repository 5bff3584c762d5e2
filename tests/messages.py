"""Every message with a golden text, by what prints it, and its cure; of the others, their words."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from tests.fast_yaml import load_all_yaml, load_yaml
from webhook.cli import fairlead

GOLDEN: Final = Path(__file__).parent / "golden"
CURES: Final = Path(__file__).parent / "message_cures.yaml"
PACKAGE: Final = Path(__file__).parents[1] / "webhook"
# What prints them -> where their golden texts are.
GROUPS: Final = {
    "Pods and workloads: rejections and warnings": (
        "*.yaml",
        "merging/*.yaml",
        "wording/admission/*.yaml",
        "wording/decision/*.yaml",
        "wording/placement/*.yaml",
        "wording/identity.yaml",
        "wording/evaluation/*.yaml",
        "wording/foreign_text.yaml",
    ),
    "Pod templates: wrong fields": ("pod_schema/*.yaml", "workloads/*.yaml"),
    "Policies, classes, exceptions and sources": (
        "documents/errors.yaml",
        "documents/sets*.yaml",
        "documents/warnings.yaml",
        "wording/exported/*.yaml",
        "wording/guards.yaml",
        "wording/judgement/**/*.yaml",
        "wording/policy/*.yaml",
    ),
    "Policy tests": ("documents/policy-tests.yaml",),
    "Runs": (
        "documents/runs.yaml",
        "runs/*.yaml",
        "wording/controller/*.yaml",
        "wording/frameworks/*.yaml",
        "wording/run/*.yaml",
    ),
    "Objects of other engines": ("engines/*.yaml",),
    "Polyaxonfiles": ("polyaxon/**/*.yaml", "wording/convert/**/*.yaml"),
    "Installation: fairlead doctor and install": (
        "wording/applied_by.yaml",
        "wording/installation/**/*.yaml",
    ),
    "Certificates": (
        "wording/certs/*.yaml",
        "wording/questions/certificates/*.yaml",
        "wording/controller/certificates/*.yaml",
    ),
    "Connections": (
        "wording/cluster_objects/*.yaml",
        "wording/kube/*.yaml",
        "wording/server/*.yaml",
    ),
    "Commands": (
        "wording/cli/*.yaml",
        "wording/cli/run/*.yaml",
        "wording/run_client/*.yaml",
        "wording/questions/*.yaml",
        "wording/questions/diff/sets.yaml",
        "wording/questions/live/*.yaml",
    ),
}
# Where golden cases, but for those of wordings, have messages.
_KEYS: Final = frozenset(
    {"fault", "faults", "findings", "note", "problems", "rejected", "rejections", "unread"}
    | {"warnings"}
)
_PLACE: Final = re.compile(r"^(?:[\w./-]+:)?\d+(?::\d+)?: ")
_SHOWN: Final = re.compile(
    r"^ *(?:2> )?((?:[Ee]rror|warning|note|wrong): .+|[\w./-]+:\d+:\d+: .+)$", re.MULTILINE
)
# A message's own cure: what it says to do is its last clause.
_CURE: Final = re.compile(
    r"(?:[;:.] |, or |\()((?:add|allow|apply|ask|call|change|check|choose|compare|correct|create|"
    r"define|delete|drop|end|exclude|fill|fix|free|give|grant|install|keep|leave|let|list|lower|make|"
    r"match|move|name|narrow|open|pass|point|publish|put|quote|raise|read|remove|rename|render|"
    r"replace|restart|rotate|run(?= `| fairlead| kubectl)|say|see|select|send|set|shorten|split|"
    r"start|stop|take|try|turn|uninstall|upgrade|use|wait|want|write) .*?)\)?$",
    re.IGNORECASE,
)
# CEL, HTML, and other f-strings that are no message.
_NO_TEXT: Final = re.compile(r"orValue|==|self\.|\.map\(|=\"|<!--|/apis/|\n|--\w+=…")
_REPORTERS: Final = frozenset(
    {"Fault", "Finding", "Problem", "echo", "critical", "error", "exception", "warning"}
)


class Message(NamedTuple):
    """A message, with the command that printed it where one did."""

    text: str
    command: str = ""

    @property
    def anchor(self) -> str:
        """A name that stays as long as the wording does."""
        return f"m{hashlib.sha256(_shape(self.text).encode()).hexdigest()[:8]}"

    @property
    def explanation(self) -> tuple[str, str]:
        """The cause and the cure, in Markdown: of CURES, else of the message. Each may be empty."""
        text = " ".join(self.text.split())
        _, newline, below = self.text.partition("\n  ")
        written = " ".join(below.split()) if newline else ""
        if written or (named := re.search(r"Cure: (.*)$", text)):
            return "", code(written or (named[1] if named else ""))
        own = _CURE.search(text)
        for words, cause, cure in _cures():
            if words.search(text):
                return cause, cure or code(own[1] if own else "")
        return "", code(own[1] if own else "")


def code(text: str) -> str:
    """Return a text as Markdown shows code; an empty one as it is."""
    text = " ".join(text.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`" if text else ""


def golden_messages() -> dict[str, list[Message]]:
    """Return the messages of each group, in order; of several that differ in values, the first."""
    found: dict[str, list[Message]] = {}
    seen: set[str] = set()
    for group, messages in _golden_messages().items():
        found[group] = []
        for message in messages:
            if (shape := _shape(message.text)) not in seen:
                seen.add(shape)
                found[group].append(message)
        found[group].sort(key=lambda message: (message.command, message.text.casefold()))
    return found


def scheduler_messages() -> list[Message]:
    """Return the texts of the scheduler that have a cure."""
    return [Message(row["says"]) for row in load_yaml(CURES.read_text()) if "says" in row]


@functools.cache
def _cures() -> list[tuple[re.Pattern[str], str, str]]:
    """The words of messages with their cause and cure, the most special first."""
    rows = load_yaml(CURES.read_text())
    return [(re.compile(row["words"]), row["cause"], row["cure"]) for row in rows]


def other_messages() -> list[Message]:
    """Return the words of the messages in the code without a golden text, `…` for what varies."""
    messages = [message for group in _golden_messages().values() for message in group]
    golden = [" ".join(message.text.split()) for message in messages]
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name == "demo":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            for parts, least in _texts_of(node):
                text = "…".join(parts)
                if len(re.findall("[A-Za-z]{2,}", text)) < least or _NO_TEXT.search(text):
                    continue
                if not any(_holds(each, parts) for each in golden):
                    found.add(" ".join(text.split()))
    return [*map(Message, sorted(found, key=str.casefold))]


@functools.cache
def _golden_messages() -> dict[str, list[Message]]:
    return {
        group: [
            message
            for pattern in patterns
            for path in sorted(GOLDEN.glob(pattern))
            for message in _messages_of(path)
        ]
        for group, patterns in GROUPS.items()
    }


def _messages_of(path: Path) -> Iterator[Message]:
    text = path.read_text()
    if path.parent.name == "documents":
        shown = re.findall(r"^#! (.*)$", text, re.MULTILINE)
        yield from (Message(_PLACE.sub("", each)) for each in shown)
        return
    wording = "wording" in path.parts
    for each in _strings(list(load_all_yaml(text)), taken=wording):
        for part in re.split(r"^ *(?=\$ )", each, flags=re.MULTILINE):
            command = _command_of(part)
            if re.match(r"\$ |\{|Fairlead VERSION|authority: ", each):
                shown = _SHOWN.findall(re.sub(r"\n {9}(?=\S)", " ", _joined(part)))
            else:
                shown = re.split(r"\n(?=(?:error|warning|note): )", part)
            for message in shown:
                if " " in message and "xxxxxx" not in message:
                    yield Message(_PLACE.sub("", message.strip()), command)


def _joined(session: str) -> str:
    """Return a session with what is wrong with certificates on one line, as a message."""
    return re.sub(
        r"^ *wrong: .*(?:\n {7}\S.*)+",
        lambda lines: " ".join(lines[0].split()),
        session,
        flags=re.MULTILINE,
    )


def _command_of(session: str) -> str:
    """Return the name of the command at the beginning of a session, as its help has it."""
    prompt = re.match(r"\$ (?:kubectl )?fairlead (.*)", session)
    command: click.Command | None = fairlead
    names = ["fairlead"] if prompt else []
    for word in prompt[1].split() if prompt else ():
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word)
        names += [word] if command else []
    return " ".join(names)


def _strings(value: Any, *, taken: bool) -> Iterator[str]:
    """The strings below a value; those under the keys of messages, unless all are taken."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each, taken=taken or key in _KEYS)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, taken=taken)
    elif isinstance(value, str) and taken:
        yield value


def _shape(text: str) -> str:
    """What two messages have in common that differ in values alone."""
    text = re.sub(r"^[\w.\[\]/-]+: ", "", text.removeprefix("fairlead: "))
    return re.sub(r"'[^']*'|\S*[.\[/\d]\S*", "…", text)


def _texts_of(node: ast.AST) -> Iterator[tuple[list[str], int]]:
    """The parts of a text, and how many words make it a message.

    What is raised or handed to a reporter is one sooner than an f-string anywhere.
    """
    reported: Iterable[ast.expr] = ()
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        if getattr(node.exc.func, "id", "") not in ("RuntimeError", "AssertionError"):
            reported = node.exc.args
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in _REPORTERS and (name != "echo" or any(k.arg == "err" for k in node.keywords)):
            reported = node.args
    yield from ((_literals(each), 3) for each in reported)
    if isinstance(node, ast.JoinedStr):
        yield _literals(node), 6


def _literals(node: ast.expr) -> list[str]:
    """The constant parts of a text, between those that vary."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    parts = [""]
    for each in node.values if isinstance(node, ast.JoinedStr) else ():
        if isinstance(each, ast.Constant):
            parts[-1] += str(each.value)
        else:
            parts.append("")
    return parts


def _holds(text: str, parts: Iterable[str]) -> bool:
    """Whether a text has these parts, in order."""
    at = 0
    for part in parts:
        at = text.find(" ".join(part.split()), at)
        if at < 0:
            return False
    return True
