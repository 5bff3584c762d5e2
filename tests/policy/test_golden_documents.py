"""Golden documents: each slip with the line that is printed for it."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from webhook.policy.policy_documents import parse
from webhook.policy.reader import Documents
from webhook.run.run_documents import read_runs

FOLDER = Path(__file__).parents[1] / "golden" / "documents"
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


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_document_is_reported_as_it_announces(path: Path) -> None:
    """Every slip has its line, column, path, value and cure; and nothing else is reported."""
    content = path.read_bytes()
    announced = expected(content.decode(), path.name)
    read: Callable[[Mapping[str, bytes]], Documents[Any]] = (
        read_runs if path.stem == "runs" else parse
    )

    assert announced
    assert [str(finding) for finding in read({path.name: content}).findings] == announced
