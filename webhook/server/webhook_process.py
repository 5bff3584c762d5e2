"""Assemble the webhook, and run it until it is drained."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import AsyncExitStack
from ssl import TLSVersion
from typing import TYPE_CHECKING, Final

import webhook
from webhook import names
from webhook.admission.app import admission_app
from webhook.admission.arrival import DecisionInputs
from webhook.admission.handler import Handler
from webhook.admission.workload_handler import WorkloadHandler
from webhook.evaluation.templates import faults_of, queued_templates, refers_to
from webhook.interception import PATH
from webhook.kube.client import connect
from webhook.kube.config import default_namespace
from webhook.server.acceptor import allow_descriptors
from webhook.server.certificate_sources import CertificateFiles
from webhook.server.cluster_facts import ServedNodes, facts_from_cluster, nodes_of
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import ClosingConnections, Drain, drain_on_signals
from webhook.server.health import health_app
from webhook.server.limit import InFlightLimit
from webhook.server.listener import bind, serve
from webhook.server.notices import Notices
from webhook.server.objects import MakingObjects
from webhook.server.serving_certificates import (
    Cluster,
    Reached,
    SecretName,
    SelfSigned,
    Source,
    certificate_of,
    clients_of,
    handshakes_of,
)
from webhook.server.serving_policies import policies_of
from webhook.server.tls import Callers, ServerTls
from webhook.server.webhook_metrics import Metrics
from webhook.validating import POLICIES_PATH, WORKLOADS_PATH

if TYPE_CHECKING:
    import socket

    from webhook.server.cluster_facts import ClusterFacts
    from webhook.server.serving_policies import Policies
    from webhook.server.settings import ServeSettings

_logger = logging.getLogger(__name__)

_VERSIONS: Final = {"1.2": TLSVersion.TLSv1_2, "1.3": TLSVersion.TLSv1_3}


def run(settings: ServeSettings, facts: ClusterFacts | None) -> bool:
    """Serve until drained. False if a second signal ended it early.

    facts: those of a file; None: the cluster's.

    Raises a FairleadError if an address, a kubeconfig or a file cannot be used. Without valid
    policies and certificates the process is not ready, reports the reason, and tries again.
    """
    https = bind(settings.host, settings.port)
    plain = bind(settings.host, settings.health_port)
    return asyncio.run(_run(settings, facts, https, plain))


async def _run(
    settings: ServeSettings,
    facts: ClusterFacts | None,
    https: socket.socket,
    plain: socket.socket,
) -> bool:
    metrics, drain = Metrics(), Drain(settings.grace)
    tls = ServerTls(
        minimum=_VERSIONS[settings.tls_min_version], ask_clients=settings.client_ca is not None
    )
    async with AsyncExitStack() as stack:
        home = None
        if facts is None:
            home = await _home(settings, stack)
            facts = facts_from_cluster(home.client, metrics)
        nodes = nodes_of(home.client, metrics) if home and settings.nodes else ServedNodes()
        policies = policies_of(
            None if settings.policies_from_cluster else settings.policies,
            metrics,
            home.client if home else None,
            settings.poll_interval,
            nodes.known,
        )
        changed = asyncio.Event()
        certificate = certificate_of(
            _source(settings), tls, metrics, home, settings.poll_interval, changed.set
        )
        clients = clients_of(settings.client_ca, tls, settings.poll_interval)
        handshakes = handshakes_of(
            _reached(settings),
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
        inputs = DecisionInputs(
            policies.current,
            facts.namespaces,
            facts.default_priority_class,
            {names.TAINT_NOT_READY: seconds, names.TAINT_UNREACHABLE: seconds},
            nodes.unplaceable,
            node=nodes.node,
            nodes=nodes.known,
            controller=settings.controller_user,
        )
        tell = notices.submit if notices else lambda _notice: None
        objects = MakingObjects(home.client) if home else None
        handler = Handler(inputs, metrics, tell=tell, reaches=handshakes.takes, objects=objects)
        workloads = WorkloadHandler(
            inputs,
            metrics,
            pods_of=queued_templates,
            faults_of=faults_of,
            refers_to=refers_to,
            read=home.client.get if home else None,
            reaches=handshakes.takes,
            plugins=policies.plugins,
        )
        allow_descriptors(settings.max_connections)
        limiter = ConnectionLimiter(settings.max_connections, on_ended=metrics.connection_ended)
        limit = InFlightLimit(
            admission_app(
                {
                    PATH: handler,
                    WORKLOADS_PATH: workloads,
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
        # Objects that exist now stay: collections need not walk them again, for 70 ms each time.
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
                callers=Callers(frozenset(settings.client_names)) if settings.client_ca else None,
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


def _source(settings: ServeSettings) -> Source:
    if settings.cert and settings.key:
        return CertificateFiles(settings.cert, settings.key)
    if settings.tls_secret:
        return SecretName(*settings.tls_secret)
    return SelfSigned(settings.extra_names, settings.ca_out)


def _reached(settings: ServeSettings) -> Reached:
    namespace, service = settings.service
    if not namespace and settings.tls_secret:
        namespace, _ = settings.tls_secret
    return Reached(namespace, service, settings.webhook_configuration)


async def _home(settings: ServeSettings, stack: AsyncExitStack) -> Cluster:
    """Connect to the cluster until `stack` is closed."""
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
