"""Unset fields mean the native defaults, and a Run that stored them means the same."""

from __future__ import annotations

from tests.run.whole_runs import OTHERS, TENSORFLOW, a_run
from tests.run.written_defaults import AS_WRITTEN, STORED
from webhook.run.effective_settings import effective_settings, setting_rows, settings_document
from webhook.run.model import Run
from webhook.run.plan import plan


def model(document: dict[str, object]) -> Run:
    """The Run as the controller has it."""
    return Run.model_validate(document, by_alias=True, by_name=False)


def test_a_run_that_sets_nothing_has_the_defaults() -> None:
    """Roles with the same value share one word."""
    run = model(a_run(framework="pytorch", replicas={"master": {}, "worker": {"count": 2}}))

    assert [*setting_rows(effective_settings(run))] == [
        [
            "defaults",
            "restartScope Replica, backoffLimit 3, cleanPodPolicy Running, restartPolicy OnFailure",
        ]
    ]


def test_a_written_value_is_a_setting_even_if_it_equals_the_default() -> None:
    """Only written fields can be rejected by an engine."""
    run = model(a_run(backoffLimit=3))

    found = settings_document(effective_settings(run))

    assert found["spec.backoffLimit"] == {"value": 3, "default": False}
    assert found["spec.cleanPodPolicy"] == {"value": "Running", "default": True}


def test_roles_that_differ_are_named() -> None:
    """The worker's own policy beside the default of the others."""
    rows = dict(setting_rows(effective_settings(model(TENSORFLOW))))

    assert "restartPolicy ExitCode (worker)" in rows["settings"]
    assert rows["defaults"] == "restartPolicy OnFailure (master, ps)"


def test_the_settings_of_a_framework_are_listed_without_its_section() -> None:
    """MPI's implementation holds, although the Run has no section mpi."""
    run = model(a_run(framework="mpi", replicas={"launcher": {}}))

    found = settings_document(effective_settings(run))

    assert found["spec.mpi.implementation"] == {"value": "OpenMPI", "default": True}
    assert found["spec.mpi.launcherAsWorker"] == {"value": False, "default": True}


def test_a_setting_in_a_section_of_a_framework_is_listed() -> None:
    """As deep as it is."""
    elastic = {"elastic": {"minReplicas": 1}}
    run = model(a_run(framework="pytorch", replicas={"worker": {"count": 2}}, pytorch=elastic))

    found = settings_document(effective_settings(run))

    assert found["spec.pytorch.elastic.maxRestarts"] == {"value": 3, "default": True}


def test_a_notebook_uses_none_of_them() -> None:
    """It runs until it is stopped, as a Deployment."""
    notebook = next(run for run in OTHERS if run["spec"].get("kind") == "notebook")

    assert effective_settings(model(notebook)) == []


def test_a_run_stored_with_the_defaults_means_what_was_written() -> None:
    """The API server of earlier versions wrote the defaults into each Run."""
    stored, written = model(STORED), model(AS_WRITTEN)

    assert {each.path: each.value for each in effective_settings(stored)} == {
        each.path: each.value for each in effective_settings(written)
    }
    assert stored.spec == written.spec


def test_pods_of_a_run_stored_with_the_defaults_are_the_same() -> None:
    """So the controller replaces none after an upgrade."""
    stored, written = plan(model(STORED)), plan(model(AS_WRITTEN))

    for role, count in stored.gang.counts.items():
        for index in range(count):
            assert stored.pod(role, index, 0) == written.pod(role, index, 0)
