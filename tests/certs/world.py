"""A small cluster for certificates: what is kept, who publishes, who serves, and who asks."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509

from certs.bundle import certificates, signer
from certs.issue import service_names
from certs.kept import Authority, Serving
from certs.rotation import (
    KeepAuthority,
    KeepServing,
    Observed,
    Publish,
    Step,
    Terms,
    Wait,
    step,
)

SETTLE = timedelta(seconds=30)
# The clocks of two controllers differ by so much at most; an API server, or a replica, has the rest
# of the settling time to see what was written.
SKEW = timedelta(seconds=10)
LAG = SETTLE - SKEW
TERMS = Terms(service_names("fairlead-webhook", "fairlead-system"), settle=SETTLE)
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Stored:
    """An object of the API server: its data, or None while it is absent, and its version."""

    data: Mapping[str, bytes] | None = None
    version: int = 0
    asked: bool = False

    @property
    def remembers(self) -> bool:
        """Whether it can be read, and so tells of authorities."""
        data = self.data or {}
        return bool(Authority.read(data) or data.get("ca.crt"))

    def write(self, data: Mapping[str, bytes] | None, *, asked: bool = False) -> None:
        self.data, self.asked = data, asked
        self.version += 1


@dataclass
class Configuration:
    """Where clients read the bundle. It is there from the first, with no bundle."""

    bundles: list[bytes] = field(default_factory=lambda: [b"", b""])
    version: int = 0

    def write(self, bundles: list[bytes]) -> None:
        self.bundles = bundles
        self.version += 1


@dataclass
class ApiServer:
    """Calls webhooks by the bundle that it has seen, which may be as old as the lag."""

    bundle: bytes = b""


@dataclass
class Replica:
    """Serves by the leaf that it has read last. Down, starting or in service."""

    leaf: x509.Certificate | None = None
    read: datetime = BEGIN
    state: str = "down"


class Cluster:
    """Everything at one time. Certificates are checked by signature, as their clients do."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.authority = Stored()
        self.serving = Stored()
        self.configuration = Configuration()
        self.written = BEGIN
        self.api_servers = [ApiServer(), ApiServer()]
        self.replicas = [Replica(), Replica(), Replica()]
        self.writes: list[str] = []

    def controller(self, skew: timedelta = timedelta(0)) -> Generator[str, None, Wait]:
        """One controller's way to its next Wait: it stops after each call to the API server.

        Its clock is ahead by `skew`.
        """
        while True:
            configuration = self.configuration
            bundles, known = list(configuration.bundles), configuration.version
            yield "configuration"
            replicas = tuple(
                replica.leaf.serial_number if replica.leaf else None
                for replica in self.replicas
                if replica.state == "serving"
            )
            yield "replicas"
            serving, leaf_asked, serving_version = self._read(self.serving)
            yield "serving"
            authority, authority_asked, authority_version = self._read(self.authority)
            yield "authority"
            observed = Observed(
                Authority.read(authority),
                Serving.read(serving),
                tuple(bundles),
                replicas,
                renew_authority=authority_asked,
                renew_leaf=leaf_asked,
            )
            decided = step(observed, self.now + skew, TERMS)
            if isinstance(decided, Wait):
                return decided
            self._write(decided, known, serving_version, authority_version)
            yield "written"

    def _read(self, stored: Stored) -> tuple[Mapping[str, bytes], bool, int]:
        return stored.data or {}, stored.asked, stored.version

    def _write(self, decided: Step, configuration: int, serving: int, authority: int) -> None:
        """Carry out one write, if what it was decided by is what is there."""
        if isinstance(decided, KeepAuthority) and authority == self.authority.version:
            self.authority.write(decided.authority.data())
        elif isinstance(decided, KeepServing) and serving == self.serving.version:
            self.serving.write(decided.serving.data())
        elif isinstance(decided, Publish) and configuration == self.configuration.version:
            self.publish([decided.bundle, decided.bundle])
        else:
            return
        self.writes.append(type(decided).__name__)

    def publish(self, bundles: list[bytes]) -> None:
        """Write the configuration; clients see it at once, or within the lag."""
        self.configuration.write(bundles)
        self.written = self.now

    def api_server_sees(self, number: int) -> None:
        self.api_servers[number].bundle = self.configuration.bundles[0]

    def replica_starts(self, number: int) -> None:
        self.replicas[number].state = "starting"
        self.replica_reads(number)

    def replica_reads(self, number: int) -> None:
        """It takes the leaf that is kept, unless that cannot be served with."""
        replica = self.replicas[number]
        kept = Serving.read(self.serving.data or {})
        replica.read = self.now
        if kept:
            replica.leaf = kept.leaf.check()

    def replica_is_ready(self, number: int) -> None:
        """In service, if its leaf is vouched for by what is published: that is its readiness."""
        replica = self.replicas[number]
        if replica.leaf and vouched(replica.leaf, self.configuration.bundles[0]):
            replica.state = "serving"

    def replica_ends(self, number: int) -> None:
        self.replicas[number] = Replica()

    def passes(self, time: timedelta) -> None:
        """Time passes: what has to have been seen by then is seen."""
        self.now += time
        if self.now >= self.written + LAG:
            for number in range(len(self.api_servers)):
                self.api_server_sees(number)
        for number, replica in enumerate(self.replicas):
            if replica.state == "starting" and self.now >= replica.read + LAG:
                self.replica_reads(number)

    def refused(self) -> list[str]:
        """Each call that would fail now, but for bundles that somebody wiped."""
        return [
            f"API server {client} does not trust replica {server}"
            for client, api_server in enumerate(self.api_servers)
            for server, replica in enumerate(self.replicas)
            if replica.state == "serving"
            and replica.leaf
            and replica.leaf.not_valid_after_utc > self.now
            and api_server.bundle
            and not vouched(replica.leaf, api_server.bundle)
        ]


@cache
def vouched(leaf: x509.Certificate, bundle: bytes) -> bool:
    """Whether one of the bundle's authorities has signed the leaf: by key, not by name alone."""
    return signer(leaf, certificates(bundle)) is not None
