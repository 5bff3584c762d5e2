"""`fairlead audit`: from files and from the replicas, for people and for programs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from tests.test_audited import exposed
from tests.wording import mentions
from webhook.cli.audit import command, read_metrics
from webhook.errors import ClusterError
from webhook.server.webhook_metrics import Metrics


def metrics_of(outcome: str) -> str:
    """What a replica tells that has seen one pod."""
    metrics = Metrics()
    metrics.audited("strict", "research", outcome)
    return exposed(metrics)


def test_a_missing_answer_is_not_a_rejection(tmp_path: Path) -> None:
    """A job that goes by the exit code can tell one from the other."""
    nowhere = tmp_path / "kubeconfig"
    result = CliRunner().invoke(command, ["--kubeconfig", str(nowhere)])
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True), result.output


def test_metrics_of_all_replicas_are_one_sum(tmp_path: Path) -> None:
    """As JSON, for a job that goes by it; nobody would have been rejected."""
    files = []
    for number, outcome in enumerate(["changes", "changes", "same"]):
        file = tmp_path / str(number)
        file.write_text(metrics_of(outcome))
        files += ["--metrics", str(file)]
    result = CliRunner().invoke(command, [*files, "-o", "json"])
    assert result.exit_code == 0
    (row,) = json.loads(result.output)["rows"]
    assert (row["namespace"], row["policy"]) == ("research", "strict")
    assert (row["rejects"], row["changes"], row["same"]) == (0, 2, 1)
    assert row["now"] == {"rejects": 0, "changes": 0, "same": 0}


def test_a_file_that_is_given_twice_would_count_twice(tmp_path: Path) -> None:
    """So it is wrong usage."""
    file = tmp_path / "f"
    file.write_text("")
    result = CliRunner().invoke(command, ["--metrics", str(file), "--metrics", str(file)])
    assert result.exit_code == 2
    mentions(result.output, str(file), "given twice")


def test_a_file_of_another_kind_is_an_error(tmp_path: Path) -> None:
    """Named, and with exit code 2: nobody was asked what policies would do."""
    readme = tmp_path / "README.md"
    readme.write_text("# Fairlead\n\nPlaces runs.\n")
    for file, text in ((readme, readme.read_text()), (tmp_path / "empty", "")):
        file.write_text(text)
        result = CliRunner().invoke(command, ["--metrics", str(file)])
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert str(file) in result.stderr


def replica(name: str, phase: str = "Running") -> dict[str, object]:
    """A pod of the webhook, as far as it matters."""
    ports = [{"name": "https", "containerPort": 8443}, {"name": "health", "containerPort": 8081}]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"phase": phase, "podIP": "10.0.0.1"},
    }


def test_every_replica_that_runs_is_asked_through_the_api_server(tmp_path: Path) -> None:
    """At the number of its health port: the API server knows no names of ports of pods."""

    async def handle(request: Request, answer: Answer) -> None:
        if "proxy" in request.path:
            await answer.raw(request.path.encode())
        else:
            items = [replica("a"), replica("b", "Pending"), replica("c")]
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async def run() -> None:
        async with fake_api(handle) as api, client_of(api, tmp_path) as client:
            pods = "/api/v1/namespaces/fairlead-system/pods"
            assert list(await read_metrics(client)) == [
                f"{pods}/{name}:8081/proxy/metrics" for name in ("a", "c")
            ]

    asyncio.run(run())


@pytest.mark.parametrize("refused", [True, False])
def test_a_replica_that_cannot_be_asked_is_an_error(tmp_path: Path, refused: bool) -> None:
    """A sum that leaves one out would be wrong; so would none, where none runs."""

    async def handle(request: Request, answer: Answer) -> None:
        if "proxy" in request.path:
            await answer.status(403, "Forbidden", "no pods/proxy for you")
        else:
            items = [replica("a")] if refused else []
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async def run() -> None:
        async with fake_api(handle) as api, client_of(api, tmp_path) as client:
            with pytest.raises(ClusterError, match="no pods/proxy" if refused else "no replica"):
                await read_metrics(client)

    asyncio.run(run())
