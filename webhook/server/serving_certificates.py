"""The serving certificate: from files, a watched Secret or self-signed, and its verification.

The webhook makes handshakes with itself, and verifies its certificate under the published bundles.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from certs.authority import new_authority
from certs.errors import CertificateError
from certs.issue import Names, issue_server
from certs.kept import BUNDLE, CERTIFICATE, PRIVATE_KEY, Serving
from certs.life import AUTHORITY_LIFETIME
from certs.pair import Pair
from webhook.api_paths import CONFIGURATIONS
from webhook.errors import ServingError
from webhook.kube.named_object import NamedObject
from webhook.kube.secrets import data_of, secrets
from webhook.metric_names import CERTIFICATE_RELOADS, REFUSED
from webhook.server.certificate_sources import (
    CertificateFromSecret,
    authorities_of_file,
    certificate_of_files,
)
from webhook.server.cluster_facts import synced
from webhook.server.handshake import SelfHandshake, reached_by
from webhook.server.readiness import Condition
from webhook.server.webhook_entries import Published, SentPods, Service, published, reach

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webhook.server.drain import Drain
    from webhook.server.readiness import Cluster, Parts
    from webhook.server.settings import ServeSettings
    from webhook.server.tls import ServedCertificate, ServerTls


def self_signed(names: Sequence[str] = (), ca_out: Path | None = None) -> Pair:
    """Create a certificate for localhost, and for `names` (DNS names or IP addresses).

    `ca_out` gets the certificate of the authority that signed it, as PEM. Raises ServingError for
    an invalid name or an unwritable file.
    """
    now = datetime.now(UTC)
    authority = new_authority("fairlead serve --self-signed", now)
    addresses = [name for name in names if _is_address(name)]
    asked = Names(
        dns=("localhost", *(name for name in names if name not in addresses)),
        addresses=("127.0.0.1", "::1", *addresses),
    )
    try:
        # Valid as long as its authority: it is not renewed while the process runs.
        pair = issue_server(authority, "fairlead", asked, now, lifetime=AUTHORITY_LIFETIME)
    except CertificateError as error:
        raise ServingError(f"--name: {error}") from error
    if ca_out:
        _write(ca_out, authority.certificate)
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


def serve_certificate(
    parts: Parts, settings: ServeSettings, tls: ServerTls, changed: Callable[[], None]
) -> Callable[[], bytes] | None:
    """Serve the first certificate, if it exists; `changed` is called for each one.

    Returns what returns the Secret's bundle of authorities for clients; None without a Secret.
    Raises ServingError if a self-signed certificate cannot be created, or if a Secret is named and
    there is no cluster.
    """

    def served(certificate: ServedCertificate) -> None:
        parts.metrics.certificate_served(certificate.not_after)
        changed()

    if settings.tls_secret:
        return _from_secret(parts, *settings.tls_secret, tls, changed)
    if not (settings.cert and settings.key):
        pair = self_signed(settings.extra_names, settings.ca_out)
        served(tls.swap(pair.certificate, pair.private_key))
        parts.metrics.read_gauge(REFUSED, lambda: False, "certificate")
        parts.add("certificate", tls.condition)
        return None
    refused = partial(parts.metrics.count, CERTIFICATE_RELOADS, "refused")
    reloader = certificate_of_files(
        settings.cert, settings.key, tls, on_served=served, on_refused=refused
    )
    parts.metrics.read_gauge(REFUSED, reloader.refused, "certificate")
    reloader.poll()

    def condition() -> Condition:
        served, error = tls.condition(), reloader.state().error
        return Condition(served.ready, f"{served.reason}; refused: {error}") if error else served

    parts.add("certificate", condition, lambda: reloader.run(settings.poll_interval))
    return None


def _from_secret(
    parts: Parts, namespace: str, name: str, tls: ServerTls, changed: Callable[[], None]
) -> Callable[[], bytes]:
    if parts.home is None:
        raise ServingError("--tls-secret: there is no cluster to watch it in; name a kubeconfig")

    def read(secret: dict[str, Any]) -> Serving:
        data = data_of(secret)
        leaf = Pair(data.get(CERTIFICATE, b""), data.get(PRIVATE_KEY, b""))
        return Serving(leaf, data.get(BUNDLE, b""))

    namespace = namespace or parts.home.namespace
    kept = CertificateFromSecret(
        f"{namespace}/{name}",
        tls,
        on_served=lambda served: parts.metrics.certificate_served(served.not_after),
        on_refused=partial(parts.metrics.count, CERTIFICATE_RELOADS, "refused"),
    )
    parts.metrics.read_gauge(REFUSED, kept.refused, "certificate")
    secret = NamedObject(parts.home.watches, secrets(namespace), name, read)
    secret.subscribe(kept.offered)
    secret.subscribe(lambda _kept: changed())

    def condition() -> Condition:
        return kept.condition() if secret.cache.synced else synced(secret.watch)

    parts.add("certificate", condition)
    return lambda: kept.bundle


def trust_clients(parts: Parts, settings: ServeSettings, tls: ServerTls) -> None:
    """Trust the client authorities in a file; without one, clients need no certificate."""
    if settings.client_ca is not None:
        reloader = authorities_of_file(settings.client_ca, tls)
        parts.metrics.read_gauge(REFUSED, reloader.refused, "client authorities")
        reloader.poll()
        parts.add("clients", reloader.condition, lambda: reloader.run(settings.poll_interval))


Reaches: TypeAlias = "Callable[[Mapping[str, str], Mapping[str, str]], bool]"


class _KnownConfiguration(NamedTuple):
    """The parts of the webhook configuration that are kept; as here while none is known."""

    published: tuple[Published, ...] = ()
    reach: SentPods | None = None

    def sends(self, pod: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
        """Return whether the API server sends pods with these labels; True while it is unknown."""
        return self.reach is None or self.reach.selects(pod, namespace)


_NOT_KNOWN: Final = _KnownConfiguration()


def make_handshakes(
    parts: Parts,
    settings: ServeSettings,
    bundle_of: Callable[[], bytes] | None,
    *,
    listening: socket.socket,
    tls: ServerTls,
    drain: Drain,
    due: asyncio.Event,
) -> Reaches:
    """Make handshakes with the socket's port, if there is a bundle to verify with.

    The bundles are those of the watched webhook configuration; while none of its entries calls the
    Service, that of the certificate's Secret, which `bundle_of` returns.

    Returns whether the API server sends such a pod here, by its labels and its namespace's: always,
    while no configuration is known.
    """
    home = parts.home
    if home is None or not (settings.webhook_configuration or bundle_of):
        return _NOT_KNOWN.sends
    service = _service(settings, home)
    watched = _configuration(settings.webhook_configuration, service, home, due)

    def configuration() -> _KnownConfiguration:
        return (watched.value if watched else None) or _NOT_KNOWN

    def trusted() -> Sequence[Published]:
        bundle = bundle_of() if bundle_of else b""
        of_secret = (Published("ca.crt of the Secret", bundle),) if bundle else ()
        return configuration().published or of_secret

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
        on_result=parts.metrics.handshake_made,
    )

    def condition() -> Condition:
        if watched and not watched.cache.synced:
            return synced(watched.watch)
        return handshake.condition()

    parts.add("handshake", condition, handshake.run)
    return lambda pod, namespace: configuration().sends(pod, namespace)


def _service(settings: ServeSettings, home: Cluster) -> Service:
    """Return the webhook's Service; by default it is in the namespace of the certificate."""
    namespace, name = settings.service
    if not namespace and settings.tls_secret:
        namespace, _ = settings.tls_secret
    return Service(namespace or home.namespace, name)


def _configuration(
    name: str, service: Service, home: Cluster, due: asyncio.Event
) -> NamedObject[_KnownConfiguration] | None:
    if not name:
        return None

    def read(configuration: dict[str, Any]) -> _KnownConfiguration:
        return _KnownConfiguration(published(configuration, service), reach(configuration, service))

    watched = NamedObject(home.watches, CONFIGURATIONS, name, read)
    watched.subscribe(lambda _told: due.set())
    return watched
