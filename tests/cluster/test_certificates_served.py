"""Rotations beside replicas that serve: whoever trusts what is published is never refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from certs.issue import service_names
from certs.rotation import Terms
from tests.cluster.keepers import REPLICAS, Site
from tests.eventually import eventually
from webhook.controller.certificates.certificate_metrics import CertificateMetrics
from webhook.controller.certificates.keeper import Keeper
from webhook.controller.certificates.observe import Address, Observer, serial_number, watch
from webhook.kube.client import Client, connect
from webhook.sandbox.api import wait_until
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.processes import free_ports

# An API server takes up a changed configuration within milliseconds here.
SETTLE = timedelta(seconds=1)
# Seconds for which a client goes by what it has read, though the bundle has changed meanwhile.
USED = 0.7


@dataclass
class Callers:
    """Clients that trust what is published, or was a moment ago, and call every replica."""

    site: Site
    ports: list[int]
    refused: list[str] = field(default_factory=list)
    calls: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Call until it is over."""
        known: dict[bytes, float] = {}
        while not self.over.is_set():
            read = time.monotonic()
            known = {bundle: at for bundle, at in known.items() if read - at < USED}
            known.update(dict.fromkeys(self.site.published().values(), read))
            for bundle, at in known.items():
                for port in self.ports:
                    self._call(bundle, at, port)

    def _call(self, bundle: bytes, read: float, port: int) -> None:
        context = ssl.create_default_context(cadata=bundle.decode())
        self.calls += 1
        name = self.site.installation.server_name
        try:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
                context.wrap_socket(plain, server_hostname=name),
            ):
                pass
        except OSError as error:
            # Not of old, where the machine had no time for the one or for the other.
            if time.monotonic() - read < USED:
                self.refused.append(str(error))


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str) -> Iterator[Site]:
    """An installation with certificates."""
    site = Site.of(control_plane, namespace)
    site.configure()
    site.deploy()
    site.settle()
    yield site
    site.unconfigure()


@pytest.fixture
def ports(site: Site, tmp_path: Path) -> Iterator[list[int]]:
    """Where three webhooks serve from the Secret, once they do."""
    (tmp_path / "policies.yaml").write_text("")
    names = [f"webhook-{each}-of-{site.installation.namespace}" for each in REPLICAS]
    ports, processes = list(free_ports(names).values()), []
    for name, port in zip(names, ports, strict=True):
        secret = f"{site.installation.namespace}/{site.installation.serving}"
        process = site.plane.start_process(
            name,
            [
                *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
                *("--policies", tmp_path, "--kubeconfig", site.plane.kubeconfig),
                *("--tls-secret", secret, "--host", "127.0.0.1"),
                *("--port", str(port), "--health-port", "0"),
            ],
        )
        processes.append(process)
    for process, port in zip(processes, ports, strict=True):
        wait_until(
            "the webhook to serve",
            partial(presents, site, port),
            process.check,
            time.monotonic() + 120,
            process.log_tail,
        )
    yield ports
    for name in names:
        site.plane.stop_component(name)


def presents(site: Site, port: int) -> bool:
    """Whether anything is presented there."""
    address = Address("127.0.0.1", port)
    return asyncio.run(serial_number(address, site.installation.server_name)) is not None


async def ask(ports: list[int], site: Site, address: Address) -> int | None:
    """What the replica of this address presents; each is on a port of loopback."""
    port = ports[REPLICAS.index(address.host)]
    return await serial_number(Address("127.0.0.1", port), site.installation.server_name)


def keeper_of(site: Site, ports: list[int], client: Client) -> Keeper:
    """A keeper that goes by the real time."""
    names = service_names(site.installation.service, site.installation.namespace)
    return Keeper(
        Observer(client, site.installation, ask=partial(ask, ports, site)),
        client,
        site.installation,
        Terms(names, settle=SETTLE),
        CertificateMetrics(CollectorRegistry()),
        watch=partial(watch, client, site.installation),
    )


async def keeps_until(what: str, condition: Callable[[], bool]) -> None:
    """Let the keeper go on until this holds, for which the API server is asked."""
    await asyncio.to_thread(eventually, what, condition, period=0.05)


async def rotations(site: Site, ports: list[int]) -> None:
    """Two of the authority, and after each of them one of the leaf."""
    async with connect(site.plane.kubeconfig) as client:
        keeper = keeper_of(site, ports, client)
        keeping = asyncio.create_task(keeper.lead())
        await keeps_until("nothing is due", lambda: keeper.reason.startswith("steady: nothing"))
        for name in (site.installation.authority, site.installation.serving) * 2:
            before = (site.authority(), site.serving())
            site.ask_to_rotate(name)
            await keeps_until(f"{name} is new", partial(rotated, site, name, before, keeper))
            site.is_sound()
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


def rotated(site: Site, name: str, before: tuple[object, object], keeper: Keeper) -> bool:
    """Whether what was asked for is made, and nothing is left to do."""
    authority, serving = before
    other = name == site.installation.serving or site.authority() != authority
    return other and site.serving() != serving and keeper.reason.startswith("steady: nothing")


def test_no_call_is_refused_while_certificates_rotate(site: Site, ports: list[int]) -> None:
    """By replicas that watch their Secret, and are asked what they present."""
    callers = Callers(site, ports)
    calling = threading.Thread(target=callers.run)
    calling.start()
    try:
        asyncio.run(rotations(site, ports))
    finally:
        callers.over.set()
        calling.join()
    assert callers.refused == []
    assert callers.calls > 100
