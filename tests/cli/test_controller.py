"""`fairlead controller` where there is no cluster; with one it is in tests/cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.kube.fake_api import write_kubeconfig
from tests.server.serving import get, readiness
from tests.wording import Wording, mentions
from webhook.cli.controller import command
from webhook.sandbox.ports import free_ports

COMMAND = [sys.executable, "-c", "from webhook.cli import main; main()", "controller"]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """Of a cluster whose API server is not there."""
    port = free_ports(["api"])["api"]
    return write_kubeconfig(tmp_path, f"http://127.0.0.1:{port}")


@pytest.fixture
def process(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    """A controller that looks for its API server."""
    options = ["--kubeconfig", str(kubeconfig), "--host", "127.0.0.1", "--health-port", "0"]
    with subprocess.Popen([*COMMAND, *options], stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def started(process: subprocess.Popen[str]) -> dict[str, object]:
    """The line that says where it listens."""
    assert process.stderr is not None
    for line in process.stderr:
        document: dict[str, object] = json.loads(line)
        if document["message"] == "controlling":
            return document
    raise AssertionError("it ended")


def test_without_an_api_server_it_waits_says_so_and_stops_when_told(
    process: subprocess.Popen[str], wording: Wording
) -> None:
    """Alive, not ready, with the reason for each cache; and no lease keeps it from leaving."""
    line = started(process)
    port = int(str(line["health_port"]))
    assert get(port, "/livez")[0] == 200
    status, document = readiness(port)
    assert status == 503
    conditions = document["conditions"]
    caches = {"runs", "pods", "services", "configmaps", "deployments"}
    # Runs go on without these: they are never a reason to be not ready.
    beside = {"nodes", "capacityclasses"}
    assert set(conditions) == {*caches, *beside, "leader", "policy-status"}
    assert all(conditions[each]["ready"] for each in beside)
    assert all("not listed yet" in conditions[each]["reason"] for each in beside)
    assert "not listed yet" in conditions["pods"]["reason"]
    assert conditions["leader"]["ready"]
    assert conditions["policy-status"]["ready"]
    mentions(conditions["policy-status"]["reason"], "leads")
    mentions(conditions["leader"]["reason"], "nobody leads")
    wording(conditions["policy-status"]["reason"])
    assert b"fairlead_leader 0.0" in get(port, "/metrics")[1]
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    process.stderr.read()
    assert process.wait() == 0


def test_a_controller_of_one_namespace_sees_nothing_of_the_cluster(kubeconfig: Path) -> None:
    """Two that count what policies match would count twice, and a Role allows no look at nodes."""
    options = ["--kubeconfig", str(kubeconfig), "--host", "127.0.0.1", "--health-port", "0"]
    more = ["--namespace", "lab", "--no-leader-election"]
    with subprocess.Popen([*COMMAND, *options, *more], stderr=subprocess.PIPE, text=True) as one:
        conditions = readiness(int(str(started(one)["health_port"])))[1]["conditions"]
        one.kill()
    assert not {"policy-status", "nodes", "capacityclasses"} & set(conditions)


def test_a_holder_must_give_up_before_another_may_begin() -> None:
    """Times that would let two lead are refused before anything is done."""
    options = ["--lease-duration", "5", "--renew-deadline", "5"]
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2
    assert "--retry-period < --renew-deadline < --lease-duration" in result.output


def test_the_first_restart_backoff_may_not_exceed_the_longest() -> None:
    """Both values are named, and the order that is wanted."""
    options = ["--restart-backoff-first", "20", "--restart-backoff-longest", "5"]
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 2
    for fact in ("--restart-backoff-first 20", "--restart-backoff-longest 5", "first <= longest"):
        assert fact in " ".join(result.output.split())


def test_an_address_of_a_replica_has_a_host_and_a_port(wording: Wording) -> None:
    """Anything else is refused before anything is done."""
    result = CliRunner().invoke(command, ["--webhook-replica", "8081"])
    assert result.exit_code == 2
    error = result.output.partition("Error: ")[2]
    mentions(error, "--webhook-replica", "'8081'", "host", "port")
    wording(error)


def test_a_kubeconfig_that_is_not_there_ends_it(tmp_path: Path, wording: Wording) -> None:
    """With one line that says so, and exit code 1."""
    options = ["--kubeconfig", str(tmp_path / "none"), "--health-port", "0"]
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    mentions(done.stderr, tmp_path / "none", "no such kubeconfig")
    assert "Traceback" not in done.stderr
    wording(done.stderr.splitlines()[-1], {tmp_path: "TMP"})
