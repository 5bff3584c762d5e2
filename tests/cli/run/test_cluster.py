"""Finding one Run, and saying where it may be if it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.run.scripted_cluster import RUNS, Cluster, run_object, served
from tests.kube.fake_api import Answer, Request
from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import FairleadError

EVERYWHERE = f"/apis/{names.API_VERSION}/{names.RUNS}"


async def absent(_: Request, answer: Answer) -> None:
    await answer.status(404, "NotFound", "the server could not find the requested resource")


async def forbidden(_: Request, answer: Answer) -> None:
    await answer.status(403, "Forbidden", "you may not")


def failure(cluster: Cluster, folder: Path, name: str) -> str:
    """What `fairlead run status NAME` says, there being no such Run."""
    with served(cluster, folder) as call:
        done = call("status", name)
    assert done.exit_code == 1
    assert isinstance(done.exception, FairleadError)
    return str(done.exception)


def test_a_misspelt_name_gets_a_suggestion(tmp_path: Path, wording: Wording) -> None:
    """Of the same namespace."""
    cluster = Cluster()
    cluster.add(RUNS, run_object("mnist"), run_object("other"))
    said = failure(cluster, tmp_path, "mnits")
    mentions(said, "run mnits", "not found", "namespace default", "mnist?")
    assert "other" not in said
    wording(said)


def test_a_run_of_another_namespace_is_reported_with_the_namespace(
    tmp_path: Path, wording: Wording
) -> None:
    """So that one need only add -n."""
    cluster = Cluster()
    elsewhere = run_object("mnist")
    elsewhere["metadata"]["namespace"] = "research"
    cluster.add(RUNS.replace("/default/", "/research/"), elsewhere)
    said = failure(cluster, tmp_path, "mnist")
    mentions(said, "run mnist", "not found", "namespace default")
    assert said.endswith(" -n research")
    wording(said)


def test_without_rights_elsewhere_the_local_objects_are_shown(
    tmp_path: Path, wording: Wording
) -> None:
    """And no error hides that the run was not found."""
    cluster = Cluster(answers={EVERYWHERE: forbidden})
    cluster.add(RUNS, run_object("zebra"), run_object("aardvark"))
    said = failure(cluster, tmp_path, "mnist")
    mentions(said, "run mnist", "not found", "aardvark, zebra", "kubectl get runs -A")
    wording(said)


def test_a_cluster_without_the_run_definition_is_reported(tmp_path: Path, wording: Wording) -> None:
    """The definition is not installed, or it is the wrong cluster."""
    said = failure(Cluster(answers={RUNS: absent}), tmp_path, "mnist")
    mentions(said, "runs.fairlead.dev", "not installed")
    wording(said)


@pytest.mark.parametrize("path", [f"{RUNS}/mnist", RUNS])
def test_a_forbidden_request_is_reported_with_the_api_servers_message(
    tmp_path: Path, path: str
) -> None:
    """Whether it is the Run, or the list of Runs that would help to find it."""
    with served(Cluster(answers={path: forbidden}), tmp_path) as call:
        done = call("status", "mnist")
    assert isinstance(done.exception, FairleadError)
    assert "you may not" in str(done.exception)


def test_without_a_kubeconfig_that_of_the_home_directory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kubectl does; $KUBECONFIG goes before it."""
    from webhook.cli.options import Kubeconfig

    (tmp_path / ".kube").mkdir()
    file = tmp_path / ".kube" / "config"
    file.write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert Kubeconfig().file == file
    monkeypatch.setenv("KUBECONFIG", "elsewhere")
    assert Kubeconfig().file is None
