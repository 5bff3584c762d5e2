"""The backend of a Polyaxonfile: Kubeflow stays where its operator can run the Run."""

from __future__ import annotations

import pytest

from tests.convert.polyaxon.converting import converted, said
from tests.wording import mentions

EXPERIMENT = """\
version: 1
kind: experiment
name: mnist
backend: kubeflow
framework: {framework}
environment:
  replicas: {{n_workers: 2, {more}}}
build: {{image: i}}
run: {{cmd: python train.py}}
"""


def test_backend_kubeflow_stays() -> None:
    """The engine of the Run is Kubeflow's operator, without a warning."""
    result = converted(EXPERIMENT.format(framework="tensorflow", more="n_ps: 1"))

    assert said(result) == []
    assert result.run is not None
    assert result.run.spec.backend == "kubeflow"
    assert result.document is not None
    assert [*result.document["spec"]][:2] == ["kind", "backend"]


@pytest.mark.parametrize(
    ("framework", "more", "words"),
    [
        ("mxnet", "n_ps: 1", ["spec.framework", "MXJob was removed"]),
        ("tensorflow", "worker: [{index: 1, resources: {gpu: {limits: 1}}}]", ["byIndex"]),
    ],
)
def test_what_kubeflow_cannot_run_is_fairleads_own(
    framework: str, more: str, words: list[str]
) -> None:
    """With a warning at the backend, which says why."""
    result = converted(EXPERIMENT.format(framework=framework, more=more))

    (warning,) = said(result)
    assert warning.startswith("4:1: warning: backend: is left out, and Fairlead runs the replicas")
    mentions(warning, *words)
    assert result.run is not None
    assert result.run.spec.backend == "native"


@pytest.mark.parametrize(
    ("kind", "replicas", "job"),
    [
        ("tfjob", "chief", "TFJob"),
        ("pytorchjob", "master", "PyTorchJob"),
        ("mpijob", "launcher", "MPIJob"),
        ("xgbjob", "master", "XGBoostJob"),
    ],
)
def test_a_note_tells_how_kubeflows_operator_keeps_a_component(
    kind: str, replicas: str, job: str
) -> None:
    """Polyaxon gives these kinds to it; a Run says so itself."""
    result = converted(
        f"""\
        version: 1.1
        kind: component
        name: train
        run:
          kind: {kind}
          {replicas}: {{container: {{image: i, command: [run]}}}}
          worker: {{replicas: 2, container: {{image: i, command: [run]}}}}
        """
    )

    assert result.errors == ()
    assert result.run is not None
    assert result.run.spec.backend == "native"
    mentions(result.note, kind, job, "`backend: kubeflow`")


def test_a_component_without_replicas_has_no_note() -> None:
    """Polyaxon runs a job itself."""
    result = converted(
        """\
        version: 1.1
        kind: component
        run: {kind: job, container: {image: i, command: [run]}}
        """
    )

    assert (result.run is not None, result.note) == (True, "")
