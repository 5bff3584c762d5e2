"""Where the serving certificate comes from: files, a watched Secret, or made for this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from webhook.cli.cluster_facts import age, synced
from webhook.cli.self_signed import SelfSigned
from webhook.errors import ServingError
from webhook.server.files import AuthoritiesFile, CertificateFiles
from webhook.server.readiness import Condition
from webhook.server.reload import Reloader

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from certs.kept import Serving
    from webhook.kube.client import Client
    from webhook.server.metrics import Metrics
    from webhook.server.readiness import Conditions
    from webhook.server.tls import ServedCertificate, ServerTls

Background: TypeAlias = "tuple[Callable[[], Coroutine[Any, Any, object]], ...]"
OnServed: TypeAlias = "Callable[[ServedCertificate], None]"


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
    """How the certificate fares, and what has to run to keep it current.

    `bundle` tells what the Secret says that clients shall trust; None where there is no Secret.
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
    """Have the first certificate served, if it is there already; `changed` is called for each.

    Raises ServingError if one that is made here cannot be, or a Secret is named and no cluster is
    there to watch it in.
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
    reloader: Reloader[ServedCertificate] = Reloader(
        "certificate",
        source,
        source.swap_into(tls),
        digest_of=lambda served: f"{served.serial_number:x}",
        on_loaded=lambda served, _state: on_served(served),
        on_refused=lambda _state: metrics.certificate_refused(),
    )
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
    from certs.kept import BUNDLE, CERTIFICATE, PRIVATE_KEY, Serving
    from certs.pair import Pair
    from webhook.kube.named import Named, data_of, secrets
    from webhook.server.kept_certificate import KeptCertificate

    def read(secret: dict[str, Any]) -> Serving:
        data = data_of(secret)
        leaf = Pair(data.get(CERTIFICATE, b""), data.get(PRIVATE_KEY, b""))
        return Serving(leaf, data.get(BUNDLE, b""))

    namespace = source.namespace or cluster.namespace
    kept = KeptCertificate(
        f"{namespace}/{source.name}",
        tls,
        on_served=lambda served: metrics.certificate_served(served.not_after),
        on_refused=metrics.certificate_refused,
    )
    secret = Named(cluster.client, secrets(namespace), source.name, read)
    secret.subscribe(kept.offered)
    secret.subscribe(lambda _kept: changed())
    metrics.watch_cache("secrets", lambda: age(secret.cache))

    def condition() -> Condition:
        watch = synced(secret.cache, secret.reflector)
        return kept.condition() if secret.cache.synced else watch

    return Certificate({"certificate": condition}, (secret.run,), lambda: kept.bundle)


def clients_of(path: Path | None, tls: ServerTls, poll_interval: float) -> Certificate:
    """Have the authorities in a file trusted whose clients are let in; no file: nobody is asked."""
    if path is None:
        return Certificate({})
    source = AuthoritiesFile(path)
    reloader: Reloader[int] = Reloader("client authorities", source, source.trust_in(tls))
    reloader.poll()
    return Certificate({"clients": reloader.condition}, (lambda: reloader.run(poll_interval),))
