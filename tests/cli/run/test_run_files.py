"""Runs are read from files and planned; what is wrong with them is said in its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wording import Wording, mentions
from webhook.cli.run.run_files import Planned, read_plans
from webhook.errors import InvalidDocuments, UnreadableInput

RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: NAME}
spec:
  template:
    spec:
      containers: [{name: main, image: "mnist:1"}]
"""
CLAIM = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}\n"


def read(folder: Path, text: str, namespace: str = "default") -> list[Planned]:
    """The Runs of a file run.yaml."""
    path = folder / "run.yaml"
    path.write_text(text)
    return read_plans([path], namespace, "")


def test_every_run_of_a_file_is_planned_and_other_objects_are_passed_over(tmp_path: Path) -> None:
    """Each with its place."""
    text = f"{RUN}---\n{CLAIM}---\n{RUN}"
    found = read(tmp_path, text.replace("NAME", "a", 1).replace("NAME", "b"))
    assert [each.run.name for each in found] == ["a", "b"]
    assert [each.place for each in found] == [
        f"{tmp_path}/run.yaml:1:1",
        f"{tmp_path}/run.yaml:11:1",
    ]


def test_a_run_that_names_no_namespace_gets_the_one_asked_for(tmp_path: Path) -> None:
    """One that names the default namespace stays there."""
    bare = RUN.replace("NAME", "a")
    own = bare.replace("{name: a}", "{name: a, namespace: default}")
    assert read(tmp_path, bare, "team-a")[0].run.namespace == "team-a"
    assert read(tmp_path, own, "team-a")[0].run.namespace == "default"


def test_documents_that_cannot_have_pods_are_reported_with_their_line(
    tmp_path: Path, wording: Wording
) -> None:
    """Of all Runs at once, in order of place."""
    text = RUN.replace("NAME", "a").replace("spec:\n      c", "spec:\n      hostname: h\n      c")
    with pytest.raises(InvalidDocuments) as caught:
        read(tmp_path, f"{text}---\n{RUN.replace('NAME', 'b').replace('image', 'imag')}")
    first, second, third = str(caught.value).splitlines()
    assert first.startswith(f"{tmp_path}/run.yaml:7:17: spec.template.spec.hostname: ")
    mentions(first, "'h'")
    assert second.startswith(f"{tmp_path}/run.yaml:16:7: spec.template.spec.containers: ")
    mentions(second, "'main'", "no image")
    assert third.startswith(f"{tmp_path}/run.yaml:16:33: spec.template.spec.containers[0].imag: ")
    wording(str(caught.value), {tmp_path: "TMP"})


def test_files_without_a_run_are_an_error(tmp_path: Path, wording: Wording) -> None:
    """What is there instead is counted."""
    for text, there in ((f"{CLAIM}---\n{CLAIM}", "only 2 PersistentVolumeClaims"), ("", "nothing")):
        with pytest.raises(UnreadableInput) as caught:
            read(tmp_path, text)
        mentions(str(caught.value), tmp_path / "run.yaml", "no Run", there)
        wording(str(caught.value), {tmp_path: "TMP"})


def test_a_typo_in_a_template_is_an_error_in_its_line(tmp_path: Path) -> None:
    """Though pods could be made of it."""
    typo = RUN.replace("spec:\n      c", "spec:\n      nodeSelectors: {a: b}\n      c")
    with pytest.raises(InvalidDocuments) as caught:
        read(tmp_path, typo.replace("NAME", "a"))
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path}/run.yaml:7:7: spec.template.spec.nodeSelectors: ")
    mentions(line, "'nodeSelector'")


def test_a_field_that_may_be_newer_is_warned_of(tmp_path: Path) -> None:
    """The Run is planned all the same."""
    newer = RUN.replace("spec:\n      c", "spec:\n      brandNewThing: 1\n      c")
    (planned,) = read(tmp_path, newer.replace("NAME", "a"))
    (warning,) = planned.warnings
    mentions(str(warning), "run.yaml:7:", "warning", "spec.template.spec.brandNewThing")
