"""Puts the webhook's parts together, and runs them until drained."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import webhook
from webhook import names
from webhook.admission.app import admission_app
from webhook.admission.foresee import Foresight
from webhook.admission.grounds import Grounds
from webhook.admission.handler import Handler
from webhook.cli.cluster_facts import facts_from_cluster, facts_from_file
from webhook.cli.foreseeing import faults_of, pods_of
from webhook.cli.serving_certificates import Cluster, certificate_of, clients_of
from webhook.cli.serving_handshake import handshakes_of
from webhook.cli.serving_nodes import ServedNodes, nodes_of
from webhook.cli.serving_policies import policies_of
from webhook.interception import PATH
from webhook.server.acceptor import allow_descriptors
from webhook.server.callers import Callers
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import ClosingConnections, Drain, drain_on_signals
from webhook.server.health import health_app
from webhook.server.limit import InFlightLimit
from webhook.server.listener import bind, serve
from webhook.server.metrics import Metrics
from webhook.server.notices import Notices
from webhook.server.tls import ServerTls
from webhook.validating import POLICIES_PATH, WORKLOADS_PATH

if TYPE_CHECKING:
    import socket
    import ssl
    from pathlib import Path

    from webhook.cli.serving_certificates import Source
    from webhook.cli.serving_handshake import Reached
    from webhook.cli.serving_policies import Policies

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What `fairlead serve` was told; times in seconds. See its help for each.

    Without a folder of `policies` they are the cluster's.
    """

    policies: Path | None
    certificate: Source
    reached: Reached
    client_ca: Path | None
    client_names: frozenset[str]
    tls_minimum: ssl.TLSVersion
    kubeconfig: Path | None
    cluster_file: Path | None
    host: str
    port: int
    health_port: int
    grace: float
    max_in_flight: int
    max_connections: int
    poll_interval: float
    default_toleration_seconds: int
    events: bool
    nodes: bool


def run(settings: Settings) -> bool:
    """Serve until drained. False if somebody would not wait for the end.

    Raises a FairleadError if an address, a kubeconfig or a file cannot be had. Policies and
    certificates that are not good yet are no reason to stop: the process is not ready, says why,
    and looks again.
    """
    https = bind(settings.host, settings.port)
    plain = bind(settings.host, settings.health_port)
    return asyncio.run(_run(settings, https, plain))


async def _run(settings: Settings, https: socket.socket, plain: socket.socket) -> bool:
    metrics, drain = Metrics(), Drain(settings.grace)
    tls = ServerTls(minimum=settings.tls_minimum, ask_clients=settings.client_ca is not None)
    async with AsyncExitStack() as stack:
        if settings.cluster_file:
            home, facts = None, facts_from_file(settings.cluster_file)
        else:
            home = await _home(settings, stack)
            facts = facts_from_cluster(home.client, metrics)
        nodes = nodes_of(home.client, metrics) if home and settings.nodes else ServedNodes()
        policies = policies_of(
            settings.policies,
            metrics,
            home.client if home else None,
            settings.poll_interval,
            nodes.known,
        )
        changed = asyncio.Event()
        certificate = certificate_of(
            settings.certificate, tls, metrics, home, settings.poll_interval, changed.set
        )
        clients = clients_of(settings.client_ca, tls, settings.poll_interval)
        handshakes = handshakes_of(
            settings.reached,
            certificate,
            home,
            listening=https,
            tls=tls,
            drain=drain,
            metrics=metrics,
            due=changed,
        )
        seconds = settings.default_toleration_seconds
        notices = Notices(home.client, metrics.event_came_to) if home and settings.events else None
        grounds = Grounds(
            policies.current,
            facts.namespaces,
            facts.default_priority_class,
            {names.TAINT_NOT_READY: seconds, names.TAINT_UNREACHABLE: seconds},
            nodes.unplaceable,
            node=nodes.node,
            nodes=nodes.known,
        )
        tell = notices.tell if notices else lambda _notice: None
        handler = Handler(grounds, metrics, tell=tell, reaches=handshakes.takes)
        foresight = Foresight(
            grounds, metrics, pods_of=pods_of, faults_of=faults_of, reaches=handshakes.takes
        )
        allow_descriptors(settings.max_connections)
        limiter = ConnectionLimiter(settings.max_connections, on_ended=metrics.connection_ended)
        limit = InFlightLimit(
            admission_app(
                {
                    PATH: handler,
                    WORKLOADS_PATH: foresight,
                    **({POLICIES_PATH: policies.written} if policies.written else {}),
                },
                metrics,
            ),
            settings.max_in_flight,
            waiting=lambda: limiter.busy,
            full=limiter.full,
            on_refused=metrics.request_shed,
        )
        metrics.watch_in_flight(lambda: limit.in_flight)
        metrics.watch_connections(lambda: limiter.connections)
        conditions = {
            "policies": policies.condition,
            **certificate.conditions,
            **clients.conditions,
            **handshakes.conditions,
            **facts.conditions,
            **nodes.conditions,
            "drain": drain.condition,
        }
        # What has been made by now stays: no collection has to walk it again, for 70 ms at a time.
        gc.collect()
        gc.freeze()
        with drain_on_signals(drain):
            _announce(policies, https, plain)
            return await serve(
                ClosingConnections(limit, drain),
                health_app(conditions, metrics),
                https=https,
                plain=plain,
                tls=tls,
                drain=drain,
                limiter=limiter,
                callers=Callers(settings.client_names) if settings.client_ca else None,
                background=(
                    *policies.background,
                    *certificate.background,
                    *clients.background,
                    *handshakes.background,
                    *facts.background,
                    *nodes.background,
                    *((notices.run,) if notices else ()),
                ),
            )


async def _home(settings: Settings, stack: AsyncExitStack) -> Cluster:
    """The cluster, connected as long as `stack` lasts."""
    # The client takes its time to be imported, and without a cluster nobody needs it.
    from webhook.kube.client import connect
    from webhook.kube.config import default_namespace

    client = await stack.enter_async_context(connect(settings.kubeconfig))
    return Cluster(client, default_namespace(settings.kubeconfig))


def _announce(policies: Policies, https: socket.socket, plain: socket.socket) -> None:
    served = policies.current()
    _logger.info(
        "serving",
        extra={
            "version": webhook.__version__,
            "policies": len(served.policies) if served else None,
            "set": served.hash if served else None,
            **policies.origin,
            "path": PATH,
            "host": https.getsockname()[0],
            "port": https.getsockname()[1],
            "health_port": plain.getsockname()[1],
        },
    )
