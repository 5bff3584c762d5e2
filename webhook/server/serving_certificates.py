"""The serving certificate: from files, a watched Secret or self-signed, and its verification.

The webhook makes handshakes with itself, and verifies its certificate under the published bundles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from certs.authority import new_authority
from certs.errors import CertificateError
from certs.issue import Names, issue_server
from certs.kept import BUNDLE, CERTIFICATE, PRIVATE_KEY, Serving
from certs.life import AUTHORITY_LIFETIME
from certs.pair import Pair
from webhook.errors import ServingError
from webhook.kube.watched_objects import CONFIGURATIONS, NamedObject, data_of, secrets
from webhook.server.certificate_sources import (
    AuthoritiesFile,
    CertificateFiles,
    CertificateFromSecret,
    reloader_of,
)
from webhook.server.cluster_facts import age, synced
from webhook.server.handshake import SelfHandshake, reached_by
from webhook.server.readiness import Condition
from webhook.server.reload import Reloader
from webhook.server.webhook_entries import Published, SentPods, Service, published, reach

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from webhook.kube.client import Client
    from webhook.server.drain import Drain
    from webhook.server.readiness import Conditions
    from webhook.server.tls import ServedCertificate, ServerTls
    from webhook.server.webhook_metrics import Metrics

Background: TypeAlias = "tuple[Callable[[], Coroutine[Any, Any, object]], ...]"
OnServed: TypeAlias = "Callable[[ServedCertificate], None]"


@dataclass(frozen=True, slots=True)
class SelfSigned:
    """A certificate for localhost, and for `names` (DNS names or IP addresses).

    `ca_out` gets the certificate of the authority that signed it, as PEM.
    """

    names: Sequence[str] = ()
    ca_out: Path | None = None

    def make(self) -> Pair:
        """Create the certificate. Raises ServingError for an invalid name or an unwritable file."""
        now = datetime.now(UTC)
        authority = new_authority("fairlead serve --self-signed", now)
        addresses = [name for name in self.names if _is_address(name)]
        asked = Names(
            dns=("localhost", *(name for name in self.names if name not in addresses)),
            addresses=("127.0.0.1", "::1", *addresses),
        )
        try:
            # Valid as long as its authority: it is not renewed while the process runs.
            pair = issue_server(authority, "fairlead", asked, now, lifetime=AUTHORITY_LIFETIME)
        except CertificateError as error:
            raise ServingError(f"--name: {error}") from error
        if self.ca_out:
            _write(self.ca_out, authority.certificate)
        return pair


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        # In one step, so that no reader gets half of the file.
        part.replace(path)
    except OSError as error:
        raise ServingError(f"--ca-out {path}: {error.strerror}") from error


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class SecretName:
    """A Secret of type kubernetes.io/tls; an empty `namespace` is that of this process."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """The API server's client, and the namespace that this process is in."""

    client: Client
    namespace: str


Source: TypeAlias = CertificateFiles | SelfSigned | SecretName


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate's conditions, and the tasks that keep it current.

    `bundle` returns the Secret's bundle of authorities for clients; None without a Secret.
    """

    conditions: Conditions
    background: Background = ()
    bundle: Callable[[], bytes] | None = None


def certificate_of(
    source: Source,
    tls: ServerTls,
    metrics: Metrics,
    cluster: Cluster | None,
    poll_interval: float,
    changed: Callable[[], None],
) -> Certificate:
    """Serve the first certificate, if it exists; `changed` is called for each one.

    Raises ServingError if a self-signed certificate cannot be created, or if a Secret is named and
    there is no cluster.
    """

    def served(certificate: ServedCertificate) -> None:
        metrics.certificate_served(certificate.not_after)
        changed()

    if isinstance(source, SelfSigned):
        pair = source.make()
        served(tls.swap(pair.certificate, pair.private_key))
        return Certificate({"certificate": tls.condition})
    if isinstance(source, CertificateFiles):
        return _from_files(source, tls, metrics, poll_interval, served)
    if cluster is None:
        raise ServingError("--tls-secret: there is no cluster to watch it in; name a kubeconfig")
    return _from_secret(source, tls, metrics, cluster, changed)


def _from_files(
    source: CertificateFiles,
    tls: ServerTls,
    metrics: Metrics,
    poll_interval: float,
    on_served: OnServed,
) -> Certificate:
    reloader = reloader_of(source, source.swap_into(tls), on_served, metrics.certificate_refused)
    reloader.poll()

    def condition() -> Condition:
        served, error = tls.condition(), reloader.state().error
        return Condition(served.ready, f"{served.reason}; refused: {error}") if error else served

    return Certificate({"certificate": condition}, (lambda: reloader.run(poll_interval),))


def _from_secret(
    source: SecretName,
    tls: ServerTls,
    metrics: Metrics,
    cluster: Cluster,
    changed: Callable[[], None],
) -> Certificate:
    def read(secret: dict[str, Any]) -> Serving:
        data = data_of(secret)
        leaf = Pair(data.get(CERTIFICATE, b""), data.get(PRIVATE_KEY, b""))
        return Serving(leaf, data.get(BUNDLE, b""))

    namespace = source.namespace or cluster.namespace
    kept = CertificateFromSecret(
        f"{namespace}/{source.name}",
        tls,
        on_served=lambda served: metrics.certificate_served(served.not_after),
        on_refused=metrics.certificate_refused,
    )
    secret = NamedObject(cluster.client, secrets(namespace), source.name, read)
    secret.subscribe(kept.offered)
    secret.subscribe(lambda _kept: changed())
    metrics.watch_cache("secrets", lambda: age(secret.cache))

    def condition() -> Condition:
        return kept.condition() if secret.cache.synced else synced(secret)

    return Certificate({"certificate": condition}, (secret.run,), lambda: kept.bundle)


def clients_of(path: Path | None, tls: ServerTls, poll_interval: float) -> Certificate:
    """Trust the client authorities in a file; without one, clients need no certificate."""
    if path is None:
        return Certificate({})
    source = AuthoritiesFile(path)
    reloader: Reloader[int] = Reloader("client authorities", source, source.trust_in(tls))
    reloader.poll()
    return Certificate({"clients": reloader.condition}, (lambda: reloader.run(poll_interval),))


@dataclass(frozen=True, slots=True)
class Reached:
    """The Service and the webhook configuration by which the API server reaches the webhook.

    An empty `namespace` is that of this process; with an empty `configuration`, none is watched.
    """

    namespace: str
    service: str
    configuration: str = ""


@dataclass(frozen=True, slots=True)
class Handshakes:
    """The conditions of the handshakes, and the tasks that make them.

    `takes` gets a pod's labels and its namespace's: whether the API server sends such a pod here.
    Always true while no configuration is known.
    """

    conditions: Conditions = field(default_factory=dict)
    background: Background = ()
    takes: Callable[[Mapping[str, str], Mapping[str, str]], bool] = lambda _pod, _namespace: True


class _KnownConfiguration(NamedTuple):
    """The parts of the webhook configuration that are kept."""

    published: tuple[Published, ...]
    reach: SentPods | None


def handshakes_of(
    reached: Reached,
    certificate: Certificate,
    cluster: Cluster | None,
    *,
    listening: socket.socket,
    tls: ServerTls,
    drain: Drain,
    metrics: Metrics,
    due: asyncio.Event,
) -> Handshakes:
    """Handshakes with the socket's port, if there is a bundle to verify with.

    The bundles are those of the watched webhook configuration; while none of its entries calls the
    Service, that of the certificate's Secret.
    """
    if cluster is None or not (reached.configuration or certificate.bundle):
        return Handshakes()
    service = Service(reached.namespace or cluster.namespace, reached.service)
    watched = _configuration(reached.configuration, service, cluster, metrics, due)

    def trusted() -> Sequence[Published]:
        known = watched.value if watched else None
        entries = known.published if known else None
        if entries or not certificate.bundle:
            return entries or ()
        bundle = certificate.bundle()
        return (Published("ca.crt of the Secret", bundle),) if bundle else ()

    def hindered() -> str:
        if drain.draining:
            return "draining"
        return "" if tls.served else "no certificate to shake hands with yet"

    handshake = SelfHandshake(
        reached_by(listening),
        service.host,
        trusted,
        due=due,
        hindered=hindered,
        on_result=metrics.handshake_made,
    )
    if watched is None:
        return Handshakes({"handshake": handshake.condition}, (handshake.run,))

    def condition() -> Condition:
        return handshake.condition() if watched.cache.synced else synced(watched)

    def takes(pod: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
        known = watched.value
        return known is None or known.reach is None or known.reach.selects(pod, namespace)

    return Handshakes({"handshake": condition}, (handshake.run, watched.run), takes)


def _configuration(
    name: str, service: Service, cluster: Cluster, metrics: Metrics, due: asyncio.Event
) -> NamedObject[_KnownConfiguration] | None:
    if not name:
        return None

    def read(configuration: dict[str, Any]) -> _KnownConfiguration:
        return _KnownConfiguration(published(configuration, service), reach(configuration, service))

    watched = NamedObject(cluster.client, CONFIGURATIONS, name, read)
    watched.subscribe(lambda _told: due.set())
    metrics.watch_cache("mutatingwebhookconfigurations", lambda: age(watched.cache))
    return watched
