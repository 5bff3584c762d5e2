"""An arena whose certificates the controller keeps, and what they are at a moment."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from certs.bundle import same
from certs.kept import Authority, Serving
from certs.rotation import phase
from tests.chaos.arena import CONFIGURATIONS, Arena, arena
from tests.chaos.stage import Stage
from tests.chaos.wire import PORT
from tests.cluster import etcd
from webhook import names
from webhook.controller.certificates.observe import Address, serial_number
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions
from webhook.sandbox.fairlead import CONTROLLER_NAME, start_controller

SERVER_NAME: Final = f"{names.WEBHOOK}.{names.NAMESPACE}.svc"
# How long an API server is given to take up a bundle. This one needs milliseconds.
SETTLE: Final = 3.0

_SECRETS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/secrets"
_KEYS: Final = "/registry"
# Of each object its path at the API server and its key in etcd.
_OBJECTS: Final = {
    "authority": (
        f"{_SECRETS}/{names.AUTHORITY_SECRET}",
        f"{_KEYS}/secrets/{names.NAMESPACE}/{names.AUTHORITY_SECRET}",
    ),
    "leaf": (
        f"{_SECRETS}/{names.SERVING_SECRET}",
        f"{_KEYS}/secrets/{names.NAMESPACE}/{names.SERVING_SECRET}",
    ),
    "bundle": (
        f"{CONFIGURATIONS}/{names.WEBHOOK_CONFIGURATION}",
        f"{_KEYS}/mutatingwebhookconfigurations/{names.WEBHOOK_CONFIGURATION}",
    ),
}


@dataclass(frozen=True)
class Moment:
    """What is kept and published."""

    authority: Authority | None
    serving: Serving | None
    published: tuple[bytes, ...]

    @property
    def steady(self) -> bool:
        """Whether no rotation is under way."""
        authority, serving = self.authority, self.serving
        if authority is None or serving is None or phase(authority) != "steady":
            return False
        bundles = (*self.published, serving.bundle)
        return bool(self.published) and all(same(each, authority.bundle) for each in bundles)

    @property
    def serial(self) -> int:
        """Of the leaf that is kept; 0 without one."""
        return self.serving.leaf.check().serial_number if self.serving else 0

    @property
    def signer(self) -> int:
        """The serial number of the authority that signs; 0 without one."""
        signing = self.authority.signing if self.authority else None
        return signing.check().serial_number if signing else 0

    def named(self, written: list[str]) -> str:
        """What these writes were the end of."""
        return f"{' and '.join(written)} ({phase(self.authority)})"


@dataclass
class Keeping:
    """The controller beside the arena."""

    place: Arena

    def moment(self) -> Moment:
        """What there is now."""
        found = {what: self._get(path) for what, (path, _) in _OBJECTS.items()}
        clients = [each["clientConfig"] for each in found["bundle"].get("webhooks", ())]
        return Moment(
            Authority.read(_data(found["authority"])),
            Serving.read(_data(found["leaf"])),
            tuple(base64.b64decode(each.get("caBundle", "")) for each in clients),
        )

    def versions(self) -> dict[str, int]:
        """The version of each object, asked of etcd: many times a second, it would cost the API
        server more than the load does."""
        found = {}
        for what, (_, key) in _OBJECTS.items():
            entries = etcd.read(self.place.plane, key, f"{key}\0", limit=1)
            found[what] = int(entries[0]["mod_revision"]) if entries else 0
        return found

    def ask(self, secret: str) -> None:
        """Ask for a rotation, as `fairlead webhook rotate` does."""
        path = f"{_SECRETS}/{secret}"
        status = 0
        while status != 200:
            found = self._get(path)
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            found["metadata"].setdefault("annotations", {})[names.ROTATE] = now
            # 409: somebody wrote it meanwhile.
            status, _ = self.place.plane.api.call("PUT", path, found)

    def served(self, serial: int) -> bool:
        """Whether every replica presents this leaf."""
        addresses = [Address(each.address, PORT) for each in self.place.replicas]
        return all(asyncio.run(serial_number(each, SERVER_NAME)) == serial for each in addresses)

    def start(self) -> None:
        """Start the controller; does not wait for it."""
        options = ("--certificates", "--certificate-settle", str(SETTLE), "--no-leader-election")
        where = ("--lease-namespace", names.NAMESPACE)
        start_controller(self.place.plane, options=(*options, *where), wait=False)

    def crash(self) -> None:
        """Kill it, and start the next one."""
        self.place.plane.stop_component(CONTROLLER_NAME)
        self.start()

    def _get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.place.plane.api.get(path)
        return found or {}


def _data(secret: dict[str, Any]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret.get("data", {}).items()}


@contextmanager
def kept(stage: Stage) -> Iterator[Keeping]:
    """Everything as the manifests have it: the controller makes what the replicas serve with."""
    with arena(stage) as place:
        secret = f"{names.NAMESPACE}/{names.SERVING_SECRET}"
        place.options = (*place.options, "--tls-secret", secret)
        install_definitions(place.plane.api, [custom_resource_definition()])
        keeping = Keeping(place)
        keeping.start()
        place.staff()
        place.configure()
        place.wait("the certificates", lambda: keeping.moment().steady)
        yield keeping
        with suppress(KeyError):
            place.plane.stop_component(CONTROLLER_NAME)
