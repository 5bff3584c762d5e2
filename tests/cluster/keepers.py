"""An installation's certificates in the real API server, and keepers that a test drives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.exceptions import InvalidSignature
from prometheus_client import CollectorRegistry

from certs.bundle import certificates
from certs.issue import service_names
from certs.kept import Authority, Serving
from certs.rotation import Terms
from tests.cluster.spaces import Json
from tests.eventually import eventually_async
from tests.objects import an_object
from webhook import names
from webhook.controller.certificates.certificate_metrics import CertificateMetrics
from webhook.controller.certificates.certificate_objects import (
    Installation,
    Place,
    both,
    bundles,
)
from webhook.controller.certificates.keeper import Keeper
from webhook.controller.certificates.observe import Address, Observer
from webhook.kube.client import Client, connect
from webhook.kube.secrets import data_of
from webhook.kube.writer import Writes
from webhook.sandbox.control_plane import ControlPlane

ENTRIES = ("one.fairlead.dev", "two.fairlead.dev")
# Nobody connects to them: a test answers for them. (Loopback is refused in an EndpointSlice.)
REPLICAS = ("198.18.0.1", "198.18.0.2", "198.18.0.3")
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


@dataclass
class Site:
    """One installation in a namespace of the test's own. Time goes on when a keeper rests."""

    plane: ControlPlane
    installation: Installation
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    # The leaf that each replica serves; without an entry it cannot be asked.
    served: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, plane: ControlPlane, namespace: str) -> Site:
        """The site of a namespace; its configurations are named after it."""
        return cls(plane, Installation(namespace, places=both(f"fairlead-{namespace}")))

    @property
    def place(self) -> Place:
        """Where the bundle is published, and there alone unless a test configures another."""
        return self.installation.places[0]

    @property
    def terms(self) -> Terms:
        """As they are by default."""
        return Terms(service_names(self.installation.service, self.installation.namespace))

    # What is there.

    def authority(self) -> Authority | None:
        """As it is kept."""
        return Authority.read(data_of(self.secret(self.installation.authority)))

    def serving(self) -> Serving | None:
        """As it is kept."""
        return Serving.read(data_of(self.secret(self.installation.serving)))

    def secret(self, name: str) -> Json | None:
        found: Json | None = self.plane.api.get(self.installation.secret(name))
        return found

    def configuration(self) -> Json:
        found: Json = self.plane.api.get(self.place.path)
        return found

    def published(self) -> dict[str, bytes]:
        """The bundle of each entry that is ours."""
        return bundles(self.configuration(), self.installation)

    # What others do to it.

    def configure(self, *entries: str) -> Json:
        """Create the configuration as the manifests have it: without a bundle."""
        created: Json = self.plane.api.create(self.place.collection, self.manifest(*entries))
        return created

    def manifest(self, *entries: str) -> Json:
        """That configuration. No pod ever matches it."""
        service = {
            "namespace": self.installation.namespace,
            "name": self.installation.service,
            "path": "/mutate",
        }
        return an_object(
            "admissionregistration.k8s.io/v1",
            self.place.kind,
            self.place.name,
            webhooks=[entry(name, {"service": service}) for name in entries or ENTRIES],
        )

    def unconfigure(self) -> None:
        self.plane.api.call("DELETE", self.place.path)

    def write(self, name: str, data: Mapping[str, str], kind: str = "Opaque", **more: Any) -> None:
        """Create a Secret as it should not be; `data` is base64."""
        body = {"metadata": {"name": name}, "type": kind, "data": dict(data), **more}
        self.plane.api.create(self.installation.secrets, body)

    def garble(self, name: str, **data: str | None) -> None:
        """Put something else into the keys of a Secret, dots for underscores."""
        secret = self.secret(name)
        assert secret
        for key, text in data.items():
            secret["data"][key.replace("_", ".")] = text
        self._replace(self.installation.secret(name), secret)

    def delete(self, name: str) -> None:
        self.plane.api.call("DELETE", self.installation.secret(name))

    def ask_to_rotate(self, name: str) -> None:
        """As `fairlead webhook rotate` does."""
        self.annotate(name, names.ROTATE, self.now.isoformat())

    def annotate(self, name: str, key: str, value: str) -> None:
        """Set an annotation of a Secret."""
        secret = self.secret(name)
        assert secret
        secret["metadata"].setdefault("annotations", {})[key] = value
        self._replace(self.installation.secret(name), secret)

    def wipe(self) -> None:
        """Take the bundle away, as `kubectl replace` does."""
        found = self.configuration()
        for each in found["webhooks"]:
            each["clientConfig"].pop("caBundle", None)
        self._replace(self.place.path, found)

    def deploy(self) -> None:
        """Let there be three replicas in service, that serve what is kept."""
        self.plane.api.create(
            SLICES.format(self.installation.namespace),
            {
                "metadata": {
                    "name": "replicas",
                    "labels": {"kubernetes.io/service-name": self.installation.service},
                },
                "addressType": "IPv4",
                "endpoints": [{"addresses": [each]} for each in REPLICAS],
                "ports": [{"name": "https", "port": 8443, "protocol": "TCP"}],
            },
        )
        self.catch_up()

    def catch_up(self) -> None:
        """All replicas serve the leaf that is kept."""
        if serving := self.serving():
            self.served = dict.fromkeys(REPLICAS, serving.leaf.certificate)

    def _replace(self, path: str, body: Json) -> None:
        status, answer = self.plane.api.call("PUT", path, body)
        assert status == 200, answer

    # Keepers.

    @asynccontextmanager
    async def keeper(self) -> AsyncIterator[Keeper]:
        """A keeper that looks when it is told to."""
        async with connect(self.plane.kubeconfig) as client:
            yield self.keeper_of(client, client)

    def keeper_of(self, client: Client, writes: Writes) -> Keeper:
        return Keeper(
            Observer(client, self.installation, ask=self._ask),
            writes,
            self.installation,
            self.terms,
            CertificateMetrics(CollectorRegistry()),
            clock=lambda: self.now,
            steady_clock=lambda: self.now.timestamp(),
        )

    async def _ask(self, address: Address) -> int | None:
        leaf = self.served.get(address.host)
        return certificates(leaf)[0].serial_number if leaf else None

    async def until_steady(
        self, keeper: Keeper, each: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Have it look until nothing is due; replicas catch up whenever it waits."""
        for _ in range(300):
            rest = await keeper.take_step()
            if each:
                await each()
            if rest.wakes and keeper.reason.startswith("steady: nothing is due"):
                return
            self.now += timedelta(seconds=rest.seconds)
            if rest.wakes:
                await asyncio.to_thread(self.catch_up)
        raise AssertionError(f"it does not come to rest: {keeper.reason}")

    def settle(self) -> None:
        """A keeper of its own brings everything in order."""

        async def work() -> None:
            async with self.keeper() as keeper:
                await self.until_steady(keeper)

        asyncio.run(work())

    # What has to hold.

    def is_sound(self) -> None:
        """One authority, a leaf by it, and its bundle wherever it is read."""
        authority, serving = self.authority(), self.serving()
        assert authority
        assert authority.signing
        assert serving
        assert (authority.staged, authority.retiring) == (None, ())
        serving.leaf.check().verify_directly_issued_by(authority.signing.check())
        assert serving.bundle == authority.bundle
        assert set(self.published().values()) <= {authority.bundle}

    async def nobody_is_refused(self, client: Client) -> None:
        """Every bundle that is published vouches for what every replica serves, and will serve."""

        async def together() -> tuple[Json, set[bytes], list[Json]] | None:
            before = await client.get(self.place.path)
            served = set(self.served.values())
            secrets = await client.list(self.installation.secrets, lambda each: each)
            # Else another keeper wrote meanwhile, and these were not there together.
            same = await client.get(self.place.path) == before
            return (before, served, list(secrets.items)) if same else None

        what = "nobody writes meanwhile"
        before, served, secrets = await eventually_async(what, together, period=0)
        for each in secrets:
            serving = Serving.read(data_of(each))
            if each["metadata"]["name"] == self.installation.serving and serving:
                served.add(serving.leaf.certificate)
        for name, bundle in bundles(before, self.installation).items():
            for leaf in served:
                assert vouched(leaf, bundle), name


def vouched(leaf: bytes, bundle: bytes) -> bool:
    """Whether one of the bundle has signed the leaf."""
    for each in certificates(bundle):
        try:
            certificates(leaf)[0].verify_directly_issued_by(each)
        except (ValueError, InvalidSignature):
            continue
        return True
    return False


def entry(name: str, client: Json) -> Json:
    """A webhook that matches no pod at all."""
    return {
        "name": name,
        "clientConfig": client,
        "objectSelector": {"matchLabels": {"fairlead.dev/no-such": "label"}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
            }
        ],
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
    }
