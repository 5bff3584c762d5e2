"""Golden documents: each slip with the line that is printed for it."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from webhook.judgement.set_judgement import judge_set
from webhook.judgement.together.warnings import UNBOUNDED
from webhook.placement.nodes import Node
from webhook.policy.policy_documents import parse
from webhook.policy_tests import load_tests
from webhook.run.run_documents import read_runs

FOLDER = Path(__file__).parents[1] / "golden" / "documents"


def wrong_tests(files: dict[str, bytes]) -> Sequence[Any]:
    """What is wrong with the tests of policies in a file."""
    ((name, content),) = files.items()
    return load_tests.read(name, content).errors


def judged_sets(files: dict[str, bytes]) -> Sequence[Any]:
    """What is wrong with each set of a file, in which each begins with a comment.

    Further comments have what else is known: `# Nodes:` with name, labels and taints of each,
    `# RuntimeClasses:` by name, and `# Now:`.
    """
    ((name, content),) = files.items()
    found: list[Any] = []
    lines = content.decode().splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("# Set: ")]
    for start, end in pairwise([*starts, len(lines)]):
        text = "\n" * start + "\n".join(lines[start:end])
        known = {
            each[1]: load_yaml(each[2]) for line in lines[start:end] if (each := KNOWN.match(line))
        }
        found += judge_set(
            parse({name: text.encode()}),
            UNBOUNDED,
            nodes=[Node(*each) for each in known["Nodes"]] if "Nodes" in known else None,
            classes={"RuntimeClass": known["RuntimeClasses"]}
            if "RuntimeClasses" in known
            else None,
            now=known.get("Now"),
        ).findings
    return found


READERS: Mapping[str, Callable[[dict[str, bytes]], Sequence[Any]]] = {
    "errors": lambda files: parse(files).findings,
    "warnings": lambda files: parse(files).findings,
    "runs": lambda files: read_runs(files).findings,
    "policy-tests": wrong_tests,
}
KNOWN = re.compile("# (Nodes|RuntimeClasses|Now): (.*)")
EXPECTED = re.compile(r"#! (\d+): (warning: )?(.*)")


def expected(text: str, file: str) -> list[str]:
    """What a file announces: `#! column: finding` above the line that is found fault with."""
    waiting: list[re.Match[str]] = []
    announced = []
    for number, line in enumerate(text.splitlines(), start=1):
        if found := EXPECTED.fullmatch(line):
            waiting.append(found)
            continue
        announced += [f"{file}:{number}:{each[1]}: {each[2] or ''}{each[3]}" for each in waiting]
        waiting = []
    return announced


def announced_in(path: Path) -> str:
    """The text of a file with its findings as they are now, each above its line."""
    above: dict[int, list[str]] = {}
    for each in READERS.get(path.stem, judged_sets)({path.name: path.read_bytes()}):
        mark = "warning: " if each.severity == "warning" else ""
        above.setdefault(each.line, []).append(f"#! {each.column}: {mark}{each.text}")
    lines = enumerate(path.read_text().splitlines(), start=1)
    kept = [(at, line) for at, line in lines if not EXPECTED.fullmatch(line)]
    return "\n".join(text for at, line in kept for text in (*above.get(at, ()), line)) + "\n"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_document_is_reported_as_it_announces(path: Path, request: pytest.FixtureRequest) -> None:
    """Every slip has its line, column, path, value and cure; and nothing else is reported."""
    if request.config.getoption("--update-golden"):
        path.write_text(announced_in(path))
    content = path.read_bytes()
    announced = expected(content.decode(), path.name)
    assert announced
    found = READERS.get(path.stem, judged_sets)({path.name: content})
    assert [str(finding) for finding in found] == announced
