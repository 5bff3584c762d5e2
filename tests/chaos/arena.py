"""An API server that calls three webhook replicas through their Service, at their addresses."""

from __future__ import annotations

import http.client
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from certs.authority import new_authority
from certs.issue import issue_server, service_names
from tests.bench import reviews
from tests.bench.arena import administrator
from tests.bench.policies import files
from tests.chaos import replica
from tests.chaos.endpoints import Endpoints
from tests.chaos.isolation import ADDRESSES
from tests.chaos.ledger import Ledger, loaded
from tests.chaos.load import manifest
from tests.chaos.replica import Replica
from tests.chaos.stage import Stage
from tests.chaos.wire import Wire
from tests.eventually import eventually
from webhook import names
from webhook.errors import SandboxError
from webhook.interception import webhooks
from webhook.sandbox.control_plane import ControlPlane, Settings

NAMESPACE: Final = reviews.NAMESPACE
REPLICAS: Final = 3
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

_COMPONENTS: Final = ("etcd", "kube-apiserver")
_FLAGS: Final = {"kube-apiserver": ("--enable-aggregator-routing=true",)}


@dataclass(frozen=True)
class Probe:
    """What the API server answered to a dry run."""

    status: int
    body: dict[str, Any]
    warnings: Sequence[str]

    @property
    def placed(self) -> bool:
        """Whether the pod would be there, with the stamp."""
        found = self.body.get("metadata", {}).get("annotations", {})
        return self.status == 201 and names.PLACEMENT in found


@dataclass
class Arena:
    """What a scenario plays in. `replicas` are those that are in service, the oldest first.

    New ones are of the version that is installed for `python`.
    """

    stage: Stage
    plane: ControlPlane
    endpoints: Endpoints
    wire: Wire
    options: Sequence[str | Path]
    authority: bytes = b""
    python: str | Path = sys.executable
    replicas: list[Replica] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _loads: Iterator[int] = field(default_factory=itertools.count)

    def launch(self) -> Replica:
        """Start one more replica, on the next address, in nobody's service yet."""
        number = next(self._numbers)
        address = ADDRESSES[number % len(ADDRESSES)]
        return replica.start(self.plane, f"webhook-{number}", address, self.options, self.python)

    def admit(self, each: Replica) -> float:
        """Once it is ready, put it into service; when it was ready."""
        ready = each.wait_ready()
        self.endpoints.add(each.address)
        self.replicas.append(each)
        return ready

    def staff(self, count: int = REPLICAS) -> None:
        """Put as many replicas into service as there should be, all started at once."""
        for each in [self.launch() for _ in range(count - len(self.replicas))]:
            self.admit(each)

    def lag(self) -> float:
        """How late an endpoint is removed this time."""
        return self.stage.chance.uniform(0, self.stage.terms.lag)

    @contextmanager
    def loaded(self, *, sweeping: bool = True) -> Iterator[Ledger]:
        """Creations at the stage's rate meanwhile."""
        rate = self.stage.terms.rate
        # So that no name is given twice in one arena.
        first = next(self._loads) * 1_000_000
        with loaded(self.plane, NAMESPACE, rate, first=first, sweeping=sweeping) as ledger:
            yield ledger

    def configure(self, **settings: Any) -> None:
        """Write the webhook configuration, and wait until pods of runs are placed.

        `settings` are those of webhook.interception.webhooks.
        """
        self.write_configuration(**settings)
        self.wait("pods to be placed", self.places)

    def write_configuration(self, **settings: Any) -> None:
        """The same without waiting."""
        api = self.plane.api
        path = f"{CONFIGURATIONS}/{names.WEBHOOK_CONFIGURATION}"
        timeout = self.stage.terms.timeout
        entries = webhooks(ca_bundle=self.authority, timeout_seconds=timeout, **settings)
        if found := api.get(path):
            status, answer = api.call("PUT", path, {**found, "webhooks": entries})
            if status != 200:
                raise SandboxError(f"the webhook configuration cannot be changed: {answer}")
            return
        metadata = {"name": names.WEBHOOK_CONFIGURATION}
        api.create(CONFIGURATIONS, {"metadata": metadata, "webhooks": entries})

    def places(self) -> bool:
        """Whether a pod of a run is placed now. Nothing is stored."""
        return self.dry_run().placed

    def dry_run(self) -> Probe:
        """What becomes of a pod of a run, by a dry run that no ledger counts."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1",
            self.plane.layout.ports["kube-apiserver"],
            timeout=60,
            context=administrator(self.plane),
        )
        try:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
            body = manifest("probe", matched=True)
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            warnings = answer.headers.get_all("Warning", [])
            return Probe(answer.status, json.loads(answer.read()), warnings)
        finally:
            connection.close()

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until it holds. Raises AssertionError if it never does."""

        def explain() -> str:
            return str(self.dry_run()) + "".join(
                f"\n{each.name}: {each.process.log_tail()}" for each in self.replicas
            )

        eventually(what, holds, explain=explain)


@contextmanager
def arena(stage: Stage, *, settings: Settings | None = None) -> Iterator[Arena]:
    """The API server and the Service; replicas, with a certificate, are the scenario's to staff.

    They serve 20 policies, three of which match the pods of the load.
    """
    policies = stage.directory / "policies"
    policies.mkdir(parents=True)
    for name, content in files(20, 3).items():
        (policies / name).write_bytes(content)
    settings = settings or Settings(components=_COMPONENTS, audit=True, extra_arguments=_FLAGS)
    plane = ControlPlane(stage.directory / "state", stage.binaries, settings)
    with ExitStack() as stack:
        stack.enter_context(plane)
        for namespace, labels in ((names.NAMESPACE, {}), (NAMESPACE, reviews.NAMESPACE_LABELS)):
            plane.create_namespace(namespace, labels)
        wire = stack.enter_context(Wire())
        endpoints = stack.enter_context(Endpoints(plane.api))
        options = ("--policies", policies, "--grace", str(stage.terms.grace))
        yield Arena(stage, plane, endpoints, wire, options)


@contextmanager
def served(
    stage: Stage,
    count: int = REPLICAS,
    options: Sequence[str] = (),
    prepare: Callable[[Arena], None] = lambda _arena: None,
) -> Iterator[Arena]:
    """The arena with so many replicas in service, whose certificate never changes.

    `prepare` is called before the first of them starts.
    """
    tls = stage.directory / "tls"
    tls.mkdir(parents=True)
    now = datetime.now(UTC)
    authority = new_authority("fairlead-chaos", now)
    wanted = service_names(names.WEBHOOK, names.NAMESPACE)
    leaf = issue_server(authority, names.WEBHOOK, wanted, now)
    (tls / "ca.crt").write_bytes(authority.certificate)
    (tls / "tls.crt").write_bytes(leaf.certificate)
    (tls / "tls.key").write_bytes(leaf.private_key)
    with arena(stage) as place:
        prepare(place)
        certificate = ("--cert", tls / "tls.crt", "--key", tls / "tls.key")
        place.options = (*place.options, *certificate, *options)
        place.authority = authority.certificate
        place.staff(count)
        place.configure()
        yield place
