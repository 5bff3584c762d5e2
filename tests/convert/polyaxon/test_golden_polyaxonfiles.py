"""Golden cases: what becomes of Polyaxonfiles, one file a case; those in `short` are lists of them.

A case gives `rule`, the sentence that it shows; `files` by name, each as text; perhaps `image`,
`name` and `params`, as the command's options; `findings`, all errors and warnings as they are
printed; the `note`; and `run`, the whole Run, unless there are errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from webhook.convert.polyaxon.complete import Converted
from webhook.convert.polyaxon.convert import ConversionOptions, convert
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.plan import plan
from webhook.text.yaml_out import yaml_text

Json = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "golden" / "polyaxon"
PARTS = {"rule", "files", "image", "name", "params", "findings", "note", "run"}
CASES: list[Json] = [
    *(load_yaml(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))),
    *(case for path in sorted(FOLDER.glob("short/*.yaml")) for case in load_yaml(path.read_text())),
]
each_case = pytest.mark.parametrize("case", CASES, ids=[case["rule"] for case in CASES])


def outcome(case: Json, *, backwards: bool = False) -> Converted:
    """What becomes of the case's files, in either order."""
    files = {name: text.encode() for name, text in case["files"].items()}
    if backwards:
        files = dict(reversed(files.items()))
    wanted = ConversionOptions(case.get("name", ""), case.get("image", ""), case.get("params", {}))
    return convert(files, wanted)


@each_case
def test_a_golden_polyaxonfile_comes_out_as_written(case: Json) -> None:
    """Findings and Run; pods can be made of it, and its YAML reads back as it is."""
    result = outcome(case)
    assert [str(finding) for finding in result.findings] == case.get("findings", [])
    assert result.note == case.get("note", "")
    assert result.document == case.get("run")
    assert (result.run is None) == bool(result.errors)
    if result.run is not None and result.document is not None:
        assert load_yaml(yaml_text(result.document)) == result.document
        if result.run.spec.delegated:
            assert render_run(result.run, BACKENDS[result.run.spec.backend])
        else:
            assert plan(result.run).run == result.run


@each_case
def test_the_order_of_files_does_not_matter_for_what_can_be_converted(case: Json) -> None:
    """An operation may come before its component or after it."""
    if "run" in case:
        assert outcome(case, backwards=True) == outcome(case)


def test_every_golden_polyaxonfile_has_a_rule_of_its_own() -> None:
    """Two files that show the same are one too many."""
    rules = [case["rule"] for case in CASES]
    assert len(set(rules)) == len(rules)
    assert all(rule.endswith(".") for rule in rules)
    assert all(set(case) <= PARTS for case in CASES)
