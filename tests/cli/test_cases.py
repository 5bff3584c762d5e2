"""What commands print about files: each case of golden/commands/ is a rule, with its commands.

files.yaml has the files that every case finds in its working directory; the other documents have
cases by their rules. A case has the commands to `run`, and may have `policies` by name, `stdin` and
more `files`: a text, an object, or a file with replacements. `make golden` writes the exit code and
the whole output of each command.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.fast_yaml import load_yaml
from tests.wording import Wording
from webhook.cli import fairlead
from webhook.errors import FairleadError

FOLDER = Path(__file__).parents[1] / "golden" / "commands"
DOCUMENTS = {path.stem: load_yaml(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}
FILES: dict[str, str] = DOCUMENTS.pop("files")
CASES = [
    pytest.param(case, id=f"{stem}: {rule}")
    for stem, cases in DOCUMENTS.items()
    for rule, case in cases.items()
]


def text_of(content: Any) -> str:
    """The text of a file."""
    if isinstance(content, list):
        name, *replacements = content
        text = FILES[name]
        for old, new in zip(replacements[::2], replacements[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        return text
    return content if isinstance(content, str) else json.dumps(content)


def documents_of(policies: dict[str, Any]) -> str:
    """The documents of policies, by name."""
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PlacementPolicy"}
    found = [{**head, "metadata": {"name": name}, "spec": spec} for name, spec in policies.items()]
    return "\n---\n".join(map(json.dumps, found))


@pytest.mark.parametrize("case", CASES)
def test_commands_answer_as_their_case_shows(
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wording: Wording,
) -> None:
    """To the letter: on stdout and on stderr, with the exit code."""
    monkeypatch.chdir(tmp_path)
    policies = {"policies.yaml": documents_of(case.get("policies", {}))}
    for name, content in {**FILES, **policies, **case.get("files", {})}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text_of(content))
    for line in case["run"]:
        result = CliRunner().invoke(fairlead, shlex.split(line), input=case.get("stdin"))
        shown = [f"{result.stdout}stderr:\n{result.stderr}" if result.stderr else result.stdout]
        if isinstance(result.exception, FairleadError):
            shown.append(f"error: {result.exception}\n")
        else:
            assert result.exception is None or isinstance(result.exception, SystemExit), line
        text = re.sub(r"\b[0-9a-f]{16}\b|\b[0-9a-f]{64}\b", "HASH", "".join(shown))
        wording(f"$ fairlead {line}\n{text}exit code {result.exit_code}\n")
