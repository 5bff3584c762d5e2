"""Assemble the webhook, and run it until it is drained."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import AsyncExitStack
from functools import partial
from ssl import TLSVersion
from typing import TYPE_CHECKING, Final

import webhook
from webhook import metric_names, names
from webhook.admission.app import admission_app
from webhook.admission.handler import Handler
from webhook.admission.workload_handler import WorkloadHandler
from webhook.decision.arrival import DecisionInputs
from webhook.evaluation.plugins import inputs_of
from webhook.evaluation.templates import faults_of, queued_templates, refers_to
from webhook.interception import PATH
from webhook.kube.client import connect
from webhook.kube.config import default_namespace
from webhook.kube.watches import Watches
from webhook.lenient import Reported
from webhook.policy.policy_documents import KNOWN
from webhook.server.acceptor import allow_descriptors
from webhook.server.cluster_facts import ServedNodes, facts_from_cluster, nodes_of
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import ClosingConnections, Drain, drain_on_signals
from webhook.server.health import health_app
from webhook.server.limit import InFlightLimit
from webhook.server.listener import bind, serve
from webhook.server.notices import Notices
from webhook.server.objects import MakingObjects
from webhook.server.readiness import Cluster, Condition, Parts
from webhook.server.serving_certificates import make_handshakes, serve_certificate, trust_clients
from webhook.server.serving_policies import policies_of
from webhook.server.tls import ServerTls
from webhook.server.watch_metrics import WatchMetrics
from webhook.server.webhook_metrics import Metrics
from webhook.strict import Strict, build_models
from webhook.validating import POLICIES_PATH, WORKLOADS_PATH

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from webhook.placement.shapes import JsonObject
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
    parts = Parts(metrics)
    tls = ServerTls(
        minimum=_VERSIONS[settings.tls_min_version], ask_clients=settings.client_ca is not None
    )
    async with AsyncExitStack() as stack:
        if facts is None:
            opened = await stack.enter_async_context(connect(settings.kubeconfig))
            watches = await stack.enter_async_context(Watches(opened))
            WatchMetrics(metrics.registry, watches)
            parts.home = Cluster(watches, default_namespace(settings.kubeconfig))
            facts = facts_from_cluster(watches, parts)
        else:
            condition = Condition(ready=True, reason=facts.reason)
            parts.add("namespaces", lambda: condition)
        client = parts.home.client if parts.home else None
        nodes = ServedNodes()
        if parts.home and settings.nodes:
            # The classes are watched with the policies, below.
            nodes = nodes_of(parts.home.watches, parts, lambda: inputs_of(classes()).devices)
        policies = policies_of(parts, settings, nodes.nodes)
        classes: Callable[[], Mapping[str, Mapping[str, JsonObject]]] = policies.classes
        changed = asyncio.Event()
        bundle_of = serve_certificate(parts, settings, tls, changed.set)
        trust_clients(parts, settings, tls)
        reaches = make_handshakes(
            parts, settings, bundle_of, listening=https, tls=tls, drain=drain, due=changed
        )
        seconds = settings.default_toleration_seconds
        inputs = DecisionInputs(
            policies.current,
            facts.namespaces,
            facts.default_priority_class,
            {names.TAINT_NOT_READY: seconds, names.TAINT_UNREACHABLE: seconds},
            nodes.unplaceable,
            node=nodes.node,
            nodes=nodes.nodes,
            controller=settings.controller_user,
            classes=classes,
        )
        count = metrics.count
        notices = None
        if client and settings.events:
            notices = Notices(client, partial(count, metric_names.EVENTS))
        if notices:
            parts.background.append(notices.run)
        tell = notices.submit if notices else lambda _notice: None
        objects = MakingObjects(client) if client else None
        handler = Handler(inputs, metrics, tell=tell, reaches=reaches, objects=objects)
        workloads = WorkloadHandler(
            inputs,
            metrics,
            pods_of=queued_templates,
            faults_of=faults_of,
            refers_to=refers_to,
            read=client.get if client else None,
            reaches=reaches,
            plugins=lambda: inputs_of(classes()),
        )
        allow_descriptors(settings.max_connections)
        limiter = ConnectionLimiter(
            settings.max_connections, on_ended=partial(count, metric_names.CONNECTIONS_ENDED)
        )
        overloaded = partial(count, metric_names.ADMISSION_REQUESTS, "overloaded", "503")
        # A counter that appears with its first event hides that event from rate().
        overloaded(by=0)
        limit = InFlightLimit(
            admission_app(
                {
                    PATH: handler.handle,
                    WORKLOADS_PATH: workloads.handle,
                    **({POLICIES_PATH: policies.written.handle} if policies.written else {}),
                },
                metrics,
            ),
            settings.max_in_flight,
            waiting=lambda: limiter.busy,
            full=limiter.full,
            on_refused=overloaded,
        )
        metrics.read_gauge(metric_names.ADMISSION_IN_FLIGHT, lambda: limit.in_flight)
        metrics.read_gauge(metric_names.CONNECTIONS, lambda: limiter.connections)
        parts.add("drain", drain.condition)
        build_models(*KNOWN.values(), Strict, Reported)
        # Objects that exist now stay: collections need not walk them again, for 70 ms each time.
        gc.collect()
        gc.freeze()
        with drain_on_signals(drain):
            _announce(policies, https, plain)
            return await serve(
                ClosingConnections(limit, drain),
                health_app(parts.conditions, metrics),
                https=https,
                plain=plain,
                tls=tls,
                drain=drain,
                limiter=limiter,
                callers=frozenset(settings.client_names if settings.client_ca else ()),
                background=parts.background,
            )


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
