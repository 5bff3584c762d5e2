"""`fairlead install` in a cluster whose API server reaches each pod of the Service.

The pods are kwok's, which run nothing. Whatever address one gets, this machine gets too, and the
pod's program is started there with the arguments and the account of its Deployment.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

from tests.chaos.stage import Scenario, Stage, Tally
from tests.chaos.wire import PORT
from tests.cluster.cures import commands_of
from tests.cluster.installed import Installed
from tests.eventually import eventually
from tests.objects import an_object
from webhook import names
from webhook.progress import Lines
from webhook.sandbox.binaries import obtain_kubectl
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import Process
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools
from webhook.times import to_microsecond

INSTALLATIONS: Final = "installations"
REPLICAS: Final = "replicas that the Service leads to"
PLACED: Final = "pods that were placed through the Service"
REJECTED: Final = "policies that were rejected through the Service"
FAULTS: Final = "errors of the doctor"
FREED: Final = "Leases of a stranger that the doctor's cure has freed"

_HEALTH_PORTS: Final = {"webhook": 8081, "controller": 8082}
# So that the Service is reached at its endpoints' addresses: there is no kube-proxy.
_FLAGS: Final = {"kube-apiserver": ("--enable-aggregator-routing=true",)}
_PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
_SLICES: Final = f"/apis/discovery.k8s.io/v1/namespaces/{names.NAMESPACE}/endpointslices"
_LEASE: Final = (
    f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases/{names.CONTROLLER}"
)
_POLICIES: Final = f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[names.POLICY_KIND]}"
_UNKNOWN_CLASS: Final = an_object(
    names.API_VERSION,
    names.POLICY_KIND,
    "wrong",
    {"defaults": {"capacity": [{"class": "no-such-class", "mode": "Constrain"}]}},
)
_POD: Final = an_object(
    "v1",
    "Pod",
    {"generateName": "run-", "labels": {names.RUN: "one"}},
    {"containers": [{"name": "main", "image": "example.invalid/none"}]},
)


class Kubelet:
    """Runs the program of each of Fairlead's pods at that pod's address, until the pod is gone.

    kwok gives the address of a pod that is gone to another one.
    """

    def __init__(self, installed: Installed) -> None:
        self._installed = installed
        self._over = threading.Event()
        self._started: dict[str, tuple[str, Process]] = {}
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._error: Exception | None = None

    def __enter__(self) -> Kubelet:
        self._thread.start()
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._error and not failed:
            raise self._error

    def log(self) -> str:
        """What went wrong here, and the ends of the programs' logs."""
        logs = [f"{name}: {program.log_tail()}" for name, (_, program) in self._started.items()]
        return "\n".join([repr(self._error), *logs])

    def listens(self) -> bool:
        """Whether every pod's program accepts calls; kwok says at once that a pod is ready."""
        pods = (self._installed.plane.api.get(_PODS) or {}).get("items", ())
        return bool(pods) and all(self._accepts(pod) for pod in pods)

    def _accepts(self, pod: dict[str, Any]) -> bool:
        (container,) = pod["spec"]["containers"]
        port = PORT if container["name"] == "webhook" else _HEALTH_PORTS[container["name"]]
        if pod["metadata"]["name"] not in self._started:
            return False
        with suppress(OSError), socket.create_connection((pod["status"]["podIP"], port), 1):
            return True
        return False

    def _main(self) -> None:
        try:
            while not self._over.wait(0.2):
                pods = (self._installed.plane.api.get(_PODS) or {}).get("items", ())
                for name in self._started.keys() - {pod["metadata"]["name"] for pod in pods}:
                    address, program = self._started.pop(name)
                    program.stop()
                    _addresses_of_this_machine("del", address)
                for pod in pods:
                    self._attend(pod)
        except Exception as error:
            self._error = error

    def _attend(self, pod: dict[str, Any]) -> None:
        name, address = pod["metadata"]["name"], pod.get("status", {}).get("podIP")
        if not address or name in self._started:
            return
        _addresses_of_this_machine("add", address)
        (container,) = pod["spec"]["containers"]
        program = container["name"]
        more = ["--host", address, "--health-port", str(_HEALTH_PORTS[program])]
        if program == "webhook":
            more += ["--port", str(PORT)]
        else:
            # As the pod's own namespace would say.
            more += ["--lease-namespace", names.NAMESPACE]
        account = self._installed.account(pod["spec"]["serviceAccountName"])
        started = self._installed.plane.start_process(
            name,
            [
                *(sys.executable, "-c", "from webhook.cli import main; main()"),
                *container["args"],
                *("--kubeconfig", account, *more),
            ],
        )
        self._started[name] = address, started


def _addresses_of_this_machine(change: str, address: str) -> None:
    command = ["ip", "address", change, f"{address}/32", "dev", "lo"]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def _cluster(stage: Stage) -> Iterator[Installed]:
    settings = Settings(pools=read_pools(SHIPPED_NODES), extra_arguments=_FLAGS)
    with ControlPlane(stage.directory / "state", stage.binaries, settings) as plane:
        kubectl = Kubectl(obtain_kubectl(Lines(sys.stderr)), plane.kubeconfig, names.NAMESPACE)
        yield Installed(plane, stage.directory, kubectl, {})


def play(stage: Stage) -> Tally:
    """Install, place a pod, reject a policy, ask the doctor; then the same once more as upgrade."""
    tally = Tally()
    with _cluster(stage) as installed, Kubelet(installed) as kubelet:
        for options in ((), ("--nodes",)):
            done = _fairlead(installed, "install", "--timeout", "100s", *options)
            if done.returncode:
                raise AssertionError(f"{done.stdout}{done.stderr}{kubelet.log()}")
            tally.count(INSTALLATIONS)
            eventually("every program to accept calls", kubelet.listens, period=0.5)
            _use(installed, tally)
        tally.count(REPLICAS, len(_addresses(installed)))
        tally.count(FREED, _free_the_lease(installed))
    return tally


def _free_the_lease(installed: Installed) -> int:
    """A stranger takes the Lease for an hour; the doctor says so, and its cure ends it."""
    now = to_microsecond(datetime.now(UTC))
    held = {"holderIdentity": "stranger", "leaseDurationSeconds": 3600, "renewTime": now}
    status, answer = installed.plane.api.call(
        "PATCH", _LEASE, {"spec": held}, content_type="application/merge-patch+json"
    )
    assert status < 400, answer

    def cure() -> str:
        done = _fairlead(installed, "doctor", "--check", "leader", "-o", "json")
        found = json.loads(done.stdout)["findings"]
        return next((each["cure"] for each in found if "stranger" in each["message"]), "")

    eventually("the doctor to name the stranger", cure, period=2)
    (command,) = commands_of(cure())
    installed.kubectl(*shlex.split(command)[1:])
    return int(not _errors(installed))


def _use(installed: Installed, tally: Tally) -> None:
    api = installed.plane.api
    pod = api.create("/api/v1/namespaces/default/pods", _POD)
    tally.count(PLACED, int(names.PLACEMENT in pod["metadata"].get("annotations", {})))
    status, answer = api.call("POST", _POLICIES, _UNKNOWN_CLASS)
    tally.count(REJECTED, int(status >= 400 and "no-such-class" in answer["message"]))
    report = _errors(installed)
    tally.count(FAULTS, len(report))
    for each in report:
        tally.example(each)


def _errors(installed: Installed) -> Sequence[str]:
    """What the doctor reports as an error, once replicas of the former version have drained."""
    found: list[str] = []

    def none() -> bool:
        done = _fairlead(installed, "doctor", "-o", "json")
        found[:] = [done.stdout + done.stderr] if done.returncode else []
        return not found

    try:
        eventually("the doctor to find no error", none, period=2)
    except AssertionError:
        return found
    return []


def _fairlead(installed: Installed, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from webhook.cli import main; main()", *arguments],
        env={**os.environ, "KUBECONFIG": str(installed.plane.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _addresses(installed: Installed) -> set[str]:
    found = installed.plane.api.get(_SLICES)["items"]
    return {
        address
        for each in found
        if each["metadata"]["labels"].get("kubernetes.io/service-name") == names.WEBHOOK
        for endpoint in each["endpoints"] or ()
        if endpoint["conditions"].get("ready")
        for address in endpoint["addresses"]
    }


def _more(tally: Tally) -> list[str]:
    """Every installation places and rejects; else what the doctor says."""
    found = [
        f"{what}: {tally[what]} of {tally[INSTALLATIONS]}"
        for what in (PLACED, REJECTED)
        if tally[what] != tally[INSTALLATIONS]
    ]
    if not tally[FREED]:
        found.append(f"{FREED}: 0 of 1")
    return [*found, *(tally.examples if found or tally[FAULTS] else ())]


SCENARIO: Final = Scenario(
    name="install",
    does="`fairlead install` and an upgrade, with the webhook behind its Service",
    unit=INSTALLATIONS,
    long=(),
    short=2,
    play=play,
    none=(FAULTS,),
    more=_more,
)
