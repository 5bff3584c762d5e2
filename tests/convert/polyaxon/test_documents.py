"""Whatever is in a file, it is a Polyaxonfile or it is said what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.convert.polyaxon.converting import converted, said
from tests.examples import examples
from tests.fast_yaml import load_all_yaml, load_yaml
from tests.wording import Wording, mentions
from webhook.convert.polyaxon.convert import ConversionOptions, convert

CASES = sorted((Path(__file__).parents[2] / "golden" / "polyaxon").glob("*.yaml"))
WORDS = sorted(
    {
        word
        for path in CASES
        for text in load_yaml(path.read_text())["files"].values()
        for word in text.replace(":", " ").replace("{", " ").replace(",", " ").split()
        if word.isidentifier()
    }
)
LEAVES = st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(WORDS) | st.text()
TREES = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), below, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "place", "facts"),
    [
        ("", "1:1: ", ("no Polyaxonfile",)),
        ("[]", "1:1: ", ("Polyaxonfile", "version and kind")),
        ("a: [", "2:1: ", ("not YAML",)),
        ("kind: job\nkind: job\nversion: 1", "2:1: kind: ", ("line 1 already",)),
        ("kind: Job\nversion: 1", "1:7: kind: ", ("'Job'", "experiment, job, notebook,")),
        ("version: 1.1", "1:1: kind: ", ("required", "experiment, job, notebook,")),
        ("version: 1\nkind: pipeline", "2:7: kind: ", ("pipeline", "one run")),
    ],
)
def test_a_file_that_is_not_a_polyaxonfile_is_reported(
    text: str, place: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """With its place, as everything else."""
    (found, *_) = said(converted(text))
    assert found.startswith(place)
    mentions(found, *facts)
    wording(found)


def test_invalid_bytes_have_a_place_too(wording: Wording) -> None:
    """And a file that nobody wrote by hand is refused as a whole."""
    (found,) = convert({"f.yml": b"a: \xff"}).findings
    mentions(str(found), "f.yml:1:4: ", "0xff is not UTF-8")
    (found,) = convert({"f.yml": b" " * (2**20 + 1)}).findings
    mentions(str(found), "f.yml", str(2**20 + 1), f"limit is {2**20}")
    wording(str(found))


def test_a_missing_kind_is_derived_from_the_fields(wording: Wording) -> None:
    """Polyaxon 2 has it so; the old schema never had."""
    result = converted("run: {kind: job, container: {image: i}}")
    assert result.run is not None
    assert result.run.spec.kind == "job"
    text = "hubRef: a\nrunPatch: {}\n"
    (found,) = said(converted(text))
    mentions(found, "1:1: hubRef: ", "--component FILE")
    wording(found)


@pytest.mark.parametrize(
    ("kind", "policy", "fact"),
    [
        ("job", "Never", "maxRetries"),
        ("job", "OnFailure", "maxRetries"),
        ("job", "ExitCode", "distributed"),
        ("service", "Never", "Deployment"),
        ("service", "Always", ""),
    ],
)
def test_a_restart_policy_that_a_run_of_one_pod_cannot_have_is_reported(
    kind: str, policy: str, fact: str, wording: Wording
) -> None:
    """Nothing is left out without a word: `--strict` refuses it."""
    run = f"kind: {kind}, ports: [80]" if kind == "service" else f"kind: {kind}"
    environment = f"environment: {{restartPolicy: {policy}}}"
    found = said(converted(f"run: {{{run}, {environment}, container: {{image: i}}}}"))
    assert len(found) == bool(fact)
    for each in found:
        mentions(each, "run.environment.restartPolicy: ", fact)
        wording(each)


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(CASES), st.data())
def test_a_file_with_anything_in_any_place_is_converted_or_refused(
    path: Path, data: st.DataObject
) -> None:
    """Never an exception; no Run beside an error, and always a place."""
    files: dict[str, str] = load_yaml(path.read_text())["files"]
    name = data.draw(st.sampled_from(sorted(files)))
    document = next(iter(load_all_yaml(files[name])))
    where: Any = document
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(where[key], dict | list) or data.draw(st.integers(0, 2)) == 0:
            where[key] = data.draw(TREES)
            break
        where = where[key]
    changed = {**files, name: json.dumps(document, default=str)}
    result = convert(
        {key: text.encode() for key, text in changed.items()}, ConversionOptions(image="i")
    )
    assert (result.run is None) == bool(result.errors)
    assert (result.document is None) == bool(result.errors)
    for finding in result.findings:
        assert finding.line >= 1
        assert finding.column >= 1


@settings(max_examples=examples(100), deadline=None)
@given(st.text() | st.binary())
def test_whatever_the_bytes_are_there_is_an_answer(content: str | bytes) -> None:
    """A Run or an error."""
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    result = convert({"f.yml": raw})
    assert (result.run is None) == bool(result.errors)
