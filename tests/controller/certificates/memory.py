"""An API server in memory, for what the real one cannot be made to do: fail when told, and wait.

(What it is meant to do is held beside the real one: tests/cluster/test_certificates*.py.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, cast

from prometheus_client import CollectorRegistry

from certs.issue import service_names
from certs.rotation import Terms
from webhook.controller.certificates.certificate_metrics import CertificateMetrics
from webhook.controller.certificates.certificate_objects import Installation
from webhook.controller.certificates.keeper import Keeper
from webhook.controller.certificates.observe import Address, Observer
from webhook.errors import ClusterError
from webhook.kube.client import Client, Listing

Json = dict[str, Any]

INSTALLATION = Installation()
CONFIGURATION = INSTALLATION.places[0].path
AUTHORITY = INSTALLATION.secret(INSTALLATION.authority)
SERVING = INSTALLATION.secret(INSTALLATION.serving)
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{INSTALLATION.namespace}/endpointslices"
TERMS = Terms(service_names(INSTALLATION.service, INSTALLATION.namespace))
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(called: str, bundle: str = "", **service: str) -> Json:
    """A webhook that calls our Service, or another."""
    ours = {"namespace": INSTALLATION.namespace, "name": INSTALLATION.service, **service}
    return {"name": called, "clientConfig": {"service": ours, "caBundle": bundle}}


@dataclass
class Memory:
    """Objects by path. `calls` are the verbs and paths; `before` may raise, or change something."""

    objects: dict[str, Json] = field(default_factory=dict)
    slices: list[Json] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[str, str], None] = lambda _verb, _path: None
    versions: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def client(self) -> Client:
        return cast("Client", self)

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] not in ("get", "list")]

    def put(self, path: str, **content: Any) -> Json:
        stored = deepcopy(content)
        metadata = stored.setdefault("metadata", {})
        metadata |= {"resourceVersion": str(next(self.versions)), "uid": f"uid-of-{path}"}
        self.objects[path] = stored
        return stored

    async def find(self, path: str) -> Json | None:
        self._called("get", path)
        return deepcopy(self.objects.get(path))

    async def list(self, path: str, keep: Callable[[Json], Any], **_: Any) -> Listing[Any]:
        self._called("list", path)
        return Listing([keep(each) for each in self.slices], "1")

    async def create(self, path: str, body: Mapping[str, Any]) -> Json:
        name = f"{path}/{body['metadata']['name']}"
        self._called("create", name)
        if name in self.objects:
            raise ClusterError(f"POST {path}: 409", status=409, reason="AlreadyExists")
        return self.put(name, **body)

    async def replace(self, path: str, body: Mapping[str, Any]) -> Json:
        self._called("replace", path)
        self._same_version(path, body)
        return self.put(path, **body)

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any],
        patch_type: str,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        assert patch_type == "apply"
        assert query == {"fieldManager": "fairlead-certificates", "force": "true"}
        self._called("patch", path)
        self._same_version(path, body)
        applied = deepcopy(self.objects[path])
        bundles = {each["name"]: each["clientConfig"]["caBundle"] for each in body["webhooks"]}
        for each in applied["webhooks"]:
            if each["name"] in bundles:
                each["clientConfig"]["caBundle"] = bundles[each["name"]]
        return self.put(path, **applied)

    def _called(self, verb: str, path: str) -> None:
        self.calls.append((verb, path))
        self.before(verb, path)

    def _same_version(self, path: str, body: Mapping[str, Any]) -> None:
        stored = self.objects.get(path, {}).get("metadata", {})
        if stored.get("resourceVersion") != body["metadata"]["resourceVersion"]:
            raise ClusterError(f"{path}: 409", status=409, reason="Conflict")


async def nobody(_address: Address) -> int | None:
    """No replica can be asked."""
    return None


@dataclass
class Stage:
    """A keeper over a memory, and the time that it goes by."""

    memory: Memory = field(default_factory=Memory)
    now: datetime = START
    seconds: float = 1000.0
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self._metrics = CertificateMetrics(self.registry)

    def passes(self, seconds: float) -> None:
        """Time passes, by the wall clock and by the steady one."""
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds

    def keeper(self, **changes: Any) -> Keeper:
        return Keeper(
            Observer(self.memory.client, INSTALLATION, ask=nobody),
            changes.pop("writes", self.memory.client),
            INSTALLATION,
            TERMS,
            self._metrics,
            clock=lambda: self.now,
            steady_clock=lambda: self.seconds,
            random=Random(1),
            **changes,
        )

    def count(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"fairlead_certificate_{name}", labels)


async def until_waiting(keeper: Keeper) -> None:
    for _ in range(30):
        if (await keeper.take_step()).wakes:
            return
    raise AssertionError(keeper.reason)


def stage(*entries: str) -> Stage:
    """Nothing but a configuration."""
    begun = Stage()
    begun.memory.put(CONFIGURATION, webhooks=[entry(each) for each in entries or ("one", "two")])
    return begun


def failing(memory: Memory, verb: str, path: str, error: BaseException | None) -> None:
    """Have this call fail, until it is told otherwise."""

    def before(called: str, at: str) -> None:
        if error and (called, at) == (verb, path):
            raise error

    memory.before = before


def refused(status: int | None, words: str = "no") -> ClusterError:
    return ClusterError(words, status=status)
