"""One line says what the API server was not asked, with each answer about pods, in every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.objects import an_object
from tests.policy_tests.writing import policy
from webhook import names
from webhook.cli import fairlead
from webhook.cli.diff import command as diff
from webhook.cli.explain import command as explain
from webhook.cli.preview import command as preview
from webhook.cli.preview_runs import FORMS
from webhook.questions.decisions import NOT_ASKED, PODS

POD = {"containers": [{"name": "main", "image": "i"}]}
LABELLED = {"labels": {"a": "b", names.RUN: "r"}}
OBJECTS = {
    "pod": an_object("v1", "Pod", {"name": "p", **LABELLED}, POD),
    "deployment": an_object(
        "apps/v1",
        "Deployment",
        "d",
        {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": LABELLED, "spec": POD},
        },
    ),
    "run": an_object(names.API_VERSION, names.RUN_KIND, "r", {"template": {"spec": POD}}),
}
ASKED = {
    preview: ("preview", "-f", "{file}", "--policies", "p.yaml"),
    explain: ("explain", "-f", "{file}", "--policies", "p.yaml"),
    diff: ("diff", "p.yaml", "p.yaml", "--pods", "{file}"),
}


def formats(command: click.Command) -> list[str]:
    """What its option -o takes."""
    (kind,) = (each.type for each in command.params if each.name == "output")
    assert isinstance(kind, click.Choice)
    return [str(each) for each in kind.choices]


CASES = [
    (words, kind, output)
    for command, words in ASKED.items()
    for kind in OBJECTS
    for output in formats(command)
    if kind == "run" or output not in FORMS
]


@pytest.mark.parametrize(("words", "kind", "output"), CASES)
def test_what_the_api_server_was_not_asked_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    kind: str,
    output: str,
) -> None:
    """Of a workload, and of a Run, also whether it takes the object itself."""
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(policy("pool", "defaults: {nodeSelector: {pool: a}}"))
    Path("o.json").write_text(json.dumps(OBJECTS[kind]))
    done: Any = CliRunner().invoke(
        fairlead, [*(each.format(file="o.json") for each in words), "-o", output]
    )
    assert done.exit_code == 0, done.output
    (line,) = [each for each in done.stderr.splitlines() if NOT_ASKED in each]
    assert PODS in line
    assert ("objects as written" in line) == (kind != "pod" and words[0] != "diff")
