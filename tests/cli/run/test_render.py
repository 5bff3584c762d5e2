"""`fairlead run render` prints what kubectl applies, or what the engine cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.files import Files
from tests.wording import Wording, mentions
from webhook.cli.run.render import command
from webhook.errors import InvalidDocuments

RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: resnet}
spec:
  framework: pytorch
  backoffLimit: 5
  template:
    spec:
      containers: [{name: main, image: example.invalid/resnet}]
  replicas: {master: {}, worker: {count: 3}}
"""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder for Runs."""
    return Files(tmp_path, command)


def test_the_object_is_printed_without_a_namespace(files: Files, wording: Wording) -> None:
    """A field that the engine treats differently is noted, with its place."""
    result = files.run("-f", files.write("run.yaml", RUN), "--backend", "kubeflow")

    assert result.exit_code == 0
    found = yaml.safe_load(result.stdout)
    assert (found["kind"], found["metadata"]) == ("PyTorchJob", {"name": "resnet"})
    note = result.stderr.replace(f"{files.folder}/", "")
    mentions(note, "run.yaml:6:17:", "spec.backoffLimit")
    wording(note)


def test_the_namespace_is_written_if_it_is_given(files: Files) -> None:
    """As JSON a list, because there may be several Runs."""
    run = files.write("run.yaml", RUN)
    result = files.run("-f", run, "--backend", "jobset", "-n", "research", "-o", "json")

    (found,) = json.loads(result.stdout)
    assert found["kind"] == "JobSet"
    assert found["metadata"]["namespace"] == "research"


def test_the_older_mpijob_is_an_option_of_kubeflow(files: Files) -> None:
    """With another backend the option is an error."""
    roles = RUN.replace("framework: pytorch", "framework: mpi").replace("master", "launcher")
    run = files.write("run.yaml", roles)
    found = yaml.safe_load(files.run("-f", run, "--backend", "kubeflow", "--mpijob", "v1").stdout)
    wrong = files.run("-f", run, "--backend", "jobset", "--mpijob", "v1")

    assert found["apiVersion"] == "kubeflow.org/v1"
    assert wrong.exit_code == 2
    mentions(wrong.output, "--mpijob v1", "--backend kubeflow")


def test_what_the_engine_cannot_do_is_an_error_at_its_line(files: Files, wording: Wording) -> None:
    """All of it at once, and nothing is printed."""
    text = RUN.replace("backoffLimit: 5", "restartScope: Role\n  disruptionLimit: 3")
    result = files.run("-f", files.write("run.yaml", text), "--backend", "kubeflow")

    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, InvalidDocuments)
    said = str(result.exception).replace(f"{files.folder}/", "")
    mentions(said, "run.yaml:6:17:", "spec.restartScope", "run.yaml:7:20:", "backend native")
    wording(said)


@pytest.mark.parametrize(
    ("name", "words"),
    [("native", "fairlead run preview"), ("jobst", "did you mean 'jobset'?")],
)
def test_a_wrong_backend_is_wrong_usage(
    files: Files, wording: Wording, name: str, words: str
) -> None:
    """native has no object, but a preview."""
    result = files.run("-f", files.write("run.yaml", RUN), "--backend", name)

    assert result.exit_code == 2
    mentions(result.stderr, words)
    wording(result.stderr)
