"""`fairlead controller` where there is no cluster; with one it is in tests/cluster."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.eventually import eventually
from tests.kube.fake_api import write_kubeconfig
from tests.server.serving import get, readiness
from tests.wording import Wording, mentions
from webhook.cli.controller import command
from webhook.controller import controller_process
from webhook.controller.settings import ControllerSettings

COMMAND = [sys.executable, "-c", "from webhook.cli import main; main()", "controller"]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of a cluster whose API server is not there: the port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield write_kubeconfig(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}")


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


def test_without_an_api_server_it_waits_reports_it_and_stops_on_request(
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
    others = {"watches", "leader", "policy-status", "definitions", "rollouts"}
    assert set(conditions) == {*caches, *beside, *others}
    assert all(conditions[each]["ready"] for each in beside)
    assert all("not listed yet" in conditions[each]["reason"] for each in beside)
    assert "not listed yet" in conditions["pods"]["reason"]

    def failing() -> Any:
        found = readiness(port)[1]["conditions"]["watches"]
        return found if "pods: " in found["reason"] else None

    watches = eventually("the watch of pods has failed once", failing)
    assert watches["ready"]
    mentions(watches["reason"], "7 watches", "cannot connect")
    assert conditions["leader"]["ready"]
    assert conditions["policy-status"]["ready"]
    mentions(conditions["policy-status"]["reason"], "leader")
    mentions(conditions["leader"]["reason"], "leader: none")
    wording(conditions["policy-status"]["reason"])
    metrics = get(port, "/metrics")[1]
    assert b"fairlead_leader 0.0" in metrics
    assert b'fairlead_watch_failing_seconds{resource="pods"}' in metrics
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


def settings_of(monkeypatch: pytest.MonkeyPatch, *options: str) -> ControllerSettings:
    """What the command hands over to be run."""
    handed: list[ControllerSettings] = []

    def run(settings: ControllerSettings) -> bool:
        handed.append(settings)
        return True

    monkeypatch.setattr(controller_process, "run", run)
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 0, result.output
    return handed[0]


def test_every_option_reaches_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one, and none in the place of another."""
    numbers = ("--lease-duration=30", "--renew-deadline=20", "--retry-period=5", "--qps=50")
    waits = ("--restart-backoff-first=0.1", "--restart-backoff-longest=40", "--incident-window=7")
    certificates = ("--certificates", "--certificate-settle=3", "--certificate-name=n")
    status = ("--policy-status", "--policy-status-interval=9", "--webhook-replica=h:81")
    reports = ("--policy-reports", "--policy-reports-interval=8")
    names = ("--lease-namespace=l", "--lease-name=m", "--identity=i", "--cluster-domain=d")
    rest = ("--burst=60", "--workers=2", "--nodes", "--webhook-configuration=w", "--host=::1")
    more = ("--kubeconfig=k", "--namespace=lab", "--no-leader-election", "--health-port=80")
    options = (
        *numbers,
        *waits,
        "--node-gone-after=30",
        "--leaving-taint=example.com/t",
        *certificates,
        *status,
        *reports,
        *names,
        *rest,
        *more,
    )
    assert settings_of(monkeypatch, *options) == ControllerSettings(
        kubeconfig=Path("k"),
        namespace="lab",
        cluster_domain="d",
        lease_namespace="l",
        lease_name="m",
        identity="i",
        lease_duration=30,
        renew_deadline=20,
        retry_period=5,
        no_leader_election=True,
        qps=50,
        burst=60,
        workers=2,
        nodes=True,
        restart_backoff_first=0.1,
        restart_backoff_longest=40,
        incident_window=7,
        leaving_taints=("example.com/t",),
        gone_after=30,
        certificates=True,
        certificate_settle=3,
        certificate_names=("n",),
        policy_status=True,
        policy_status_interval=9,
        policy_reports=True,
        policy_reports_interval=8,
        webhook_replicas=(("h", 81),),
        webhook_configuration="w",
        host="::1",
        health_port=80,
        log_level="info",
    )


def test_two_processes_of_one_host_are_two_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one identity both would hold the Lease."""
    one, other = settings_of(monkeypatch), settings_of(monkeypatch)
    assert one.identity != other.identity
    assert one.identity.startswith(socket.gethostname())


def test_a_kubeconfig_that_is_not_there_ends_it(tmp_path: Path, wording: Wording) -> None:
    """With one line that says so, and exit code 2."""
    options = ["--kubeconfig", str(tmp_path / "none"), "--health-port", "0"]
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    mentions(done.stderr, tmp_path / "none", "no such kubeconfig")
    assert "Traceback" not in done.stderr
    wording(done.stderr.splitlines()[-1], {tmp_path: "TMP"})
