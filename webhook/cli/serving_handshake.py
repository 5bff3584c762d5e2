"""The handshake of the webhook with itself, under what is published of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cli.cluster_facts import age, synced
from webhook.server.handshake import SelfHandshake, reached_by
from webhook.server.published import Published, Service, published
from webhook.server.reach import Reach, reach

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from webhook.cli.serving_certificates import Background, Certificate, Cluster
    from webhook.kube.named import Named
    from webhook.server.drain import Drain
    from webhook.server.metrics import Metrics
    from webhook.server.readiness import Condition, Conditions
    from webhook.server.tls import ServerTls


@dataclass(frozen=True, slots=True)
class Reached:
    """How the API server reaches the webhook: by which Service, and by whose configuration.

    An empty `namespace` is that of this process; an empty `configuration` is none to look into.
    """

    namespace: str
    service: str
    configuration: str = ""


def _any_pod(_pod: Mapping[str, str], _namespace: Mapping[str, str]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Handshakes:
    """Whether the handshakes verify, and what has to run.

    `takes`, of a pod's labels and its namespace's: whether the API server would send such a pod
    here. Any, as long as no configuration is known.
    """

    conditions: Conditions = field(default_factory=dict)
    background: Background = ()
    takes: Callable[[Mapping[str, str], Mapping[str, str]], bool] = _any_pod


class _Told(NamedTuple):
    """What is remembered of the webhook configuration."""

    published: tuple[Published, ...]
    reach: Reach | None


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
    """Handshakes with the socket's port, if there is anything to verify under, else nothing.

    That is the webhook configuration, watched; as long as none of its entries goes to the Service,
    what the certificate's own Secret says.
    """
    if cluster is None or not (reached.configuration or certificate.bundle):
        return Handshakes()
    service = Service(reached.namespace or cluster.namespace, reached.service)
    watched = _configuration(reached.configuration, service, cluster, metrics, due)

    def trusted() -> Sequence[Published]:
        told = watched.value if watched else None
        entries = told.published if told else None
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
        watch = synced(watched.cache, watched.reflector)
        return handshake.condition() if watched.cache.synced else watch

    def takes(pod: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
        told = watched.value
        return told is None or told.reach is None or told.reach.takes(pod, namespace)

    return Handshakes({"handshake": condition}, (handshake.run, watched.run), takes)


def _configuration(
    name: str, service: Service, cluster: Cluster, metrics: Metrics, due: asyncio.Event
) -> Named[_Told] | None:
    if not name:
        return None
    from webhook.kube.named import CONFIGURATIONS, Named

    def read(configuration: dict[str, Any]) -> _Told:
        return _Told(published(configuration, service), reach(configuration, service))

    watched = Named(cluster.client, CONFIGURATIONS, name, read)
    watched.subscribe(lambda _told: due.set())
    metrics.watch_cache("mutatingwebhookconfigurations", lambda: age(watched.cache))
    return watched
