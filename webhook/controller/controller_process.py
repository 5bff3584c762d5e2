"""Assemble the controller, and run it until it is stopped."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import ipaddress
import logging
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import webhook
from certs.issue import Names, service_names
from certs.rotation import Terms as CertificateTerms
from webhook import metric_names, names
from webhook.backoff import Delays
from webhook.cluster_objects.webhook_replicas import Replica, running
from webhook.controller.certificates.certificate_metrics import CertificateMetrics
from webhook.controller.certificates.certificate_objects import Installation, both
from webhook.controller.certificates.keeper import Keeper
from webhook.controller.certificates.observe import Observer, watch
from webhook.controller.controller import Controller
from webhook.controller.controller_metrics import ControllerMetrics
from webhook.controller.definition_checks import DefinitionChecks
from webhook.controller.interception import Interception
from webhook.controller.policies.reporter import PolicyReporter
from webhook.controller.resumption import Resumption
from webhook.controller.rollout_checks import RolloutChecks
from webhook.kube.client import connect
from webhook.kube.config import SERVICE_ACCOUNT
from webhook.kube.election import Election
from webhook.kube.lease import Terms
from webhook.kube.rate_limit import TokenBucket
from webhook.kube.watches import Watches
from webhook.kube.writer import Writer
from webhook.lenient import Reported
from webhook.policy.policy_documents import KNOWN
from webhook.run.plan import plan
from webhook.run.restarts import RestartTerms
from webhook.server.cluster_facts import synced, watches_condition
from webhook.server.drain import Drain, drain_on_signals
from webhook.server.health import Exposition, health_app
from webhook.server.listener import bind, serve_plain
from webhook.server.readiness import Condition
from webhook.server.watch_metrics import WatchMetrics
from webhook.strict import Strict, build_models

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Sequence

    from prometheus_client import CollectorRegistry, Gauge

    from webhook.controller.settings import ControllerSettings
    from webhook.kube.client import Client
    from webhook.server.readiness import Conditions

_logger = logging.getLogger(__name__)

# A parameter of mallopt, in malloc.h of glibc.
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK: Final = 64 * 1024


def run(settings: ControllerSettings) -> bool:
    """Run until stopped. False if a second signal ended it early.

    Raises a FairleadError if an address or a kubeconfig cannot be used. An API server that does not
    answer is asked again without end.
    """
    return_freed_memory()
    return asyncio.run(_run(settings, bind(settings.host, settings.health_port)))


def return_freed_memory() -> None:
    """Have the C library return blocks of 64 KiB and more to the system when they are freed.

    Without it, glibc raises this threshold with the blocks that are freed, up to 32 MiB, and keeps
    the texts of Runs that are gone (M_MMAP_THRESHOLD of mallopt(3)). Other libraries lack the call.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)


async def _run(settings: ControllerSettings, plain: socket.socket) -> bool:
    exposition, drain = Exposition(), Drain(0)
    metrics = ControllerMetrics(exposition.registry)
    async with (
        connect(settings.kubeconfig, on_answer=metrics.count_request) as client,
        Watches(client) as watches,
    ):
        WatchMetrics(exposition.registry, watches)
        bucket = TokenBucket(settings.qps, settings.burst)
        election = _election(settings, client)
        writer = Writer(client, bucket, may_write=election.may_write if election else _always)
        controller = Controller(
            watches,
            writer,
            partial(plan, cluster_domain=settings.cluster_domain),
            metrics,
            namespace=settings.namespace,
            workers=settings.workers,
            nodes=settings.watches_nodes,
            terms=_restart_terms(settings),
        )
        controller.known.nodes.leaving = names.TAINTS_LEAVING.union(settings.leaving_taints)
        watch_parts(metrics, controller, writer, bucket)
        keeper = None
        if settings.certificates:
            keeper = make_keeper(settings, watches, writer, exposition.registry)
        reporter = None
        if settings.writes_policy_status:
            reporter = _make_reporter(settings, watches, writer, metrics.policies)
            controller.queues.served = reporter.served_hashes
        works: list[Callable[[], Coroutine[Any, Any, None]]] = [controller.lead]
        if keeper:
            works.append(keeper.lead)
        if reporter:
            works.append(reporter.lead)
        if settings.webhook_configuration:
            works.append(Resumption(client, writer, name=settings.webhook_configuration).lead)
            interception = Interception(
                client,
                writer,
                exposition.registry,
                namespace=_home(settings),
                name=settings.webhook_configuration,
            )
            works.append(interception.lead)
            if reporter:
                reporter.follow(interception)
        definitions = DefinitionChecks(client, metrics.definition)
        rollouts = RolloutChecks(client, _home(settings), metrics.rollouts)
        lead = partial(_all, works)
        build_models(*KNOWN.values(), Strict, Reported)
        # Objects that exist now stay: collections need not walk them again.
        gc.collect()
        gc.freeze()
        with drain_on_signals(drain):
            _announce(settings, plain)
            return await serve_plain(
                health_app(
                    {
                        **_conditions(watches, controller, election, keeper, reporter),
                        # Runs go on; what needs the definitions asks itself.
                        "definitions": lambda: Condition(ready=True, reason=definitions.reason),
                        "rollouts": lambda: Condition(ready=True, reason=rollouts.reason),
                    },
                    exposition,
                ),
                plain=plain,
                drain=drain,
                background=(
                    controller.run,
                    definitions.run,
                    rollouts.run,
                    partial(election.run, lead) if election else lead,
                ),
            )


def _election(settings: ControllerSettings, client: Client) -> Election | None:
    if settings.no_leader_election:
        return None
    terms = Terms(settings.lease_duration, settings.renew_deadline, settings.retry_period)
    return Election(client, _home(settings), settings.lease_name, settings.identity, terms)


def _home(settings: ControllerSettings) -> str:
    """Return the namespace of the Lease, which is also the webhook's."""
    if settings.leases:
        return settings.leases
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return "default"


def _restart_terms(settings: ControllerSettings) -> RestartTerms:
    delays = Delays(settings.restart_backoff_first, settings.restart_backoff_longest)
    return RestartTerms(delays, settings.incident_window, settings.gone_after)


def make_keeper(
    settings: ControllerSettings, watches: Watches, writer: Writer, registry: CollectorRegistry
) -> Keeper:
    """Return the keeper of the webhook's certificates, in the Lease's namespace."""
    configuration = settings.webhook_configuration or names.WEBHOOK_CONFIGURATION
    installation = Installation(_home(settings), places=both(configuration))
    extra = _extra_names(settings.certificate_names)
    return Keeper(
        Observer(watches.client, installation),
        writer,
        installation,
        CertificateTerms(
            service_names(installation.service, installation.namespace, extra),
            settle=timedelta(seconds=settings.certificate_settle),
        ),
        CertificateMetrics(registry),
        watch=partial(watch, watches, installation),
    )


def _extra_names(given: tuple[str, ...]) -> Names:
    dns: list[str] = []
    addresses: list[str] = []
    for name in given:
        try:
            # In the form of certificates, for the comparison with the leaf.
            addresses.append(str(ipaddress.ip_address(name)))
        except ValueError:
            dns.append(name)
    return Names(tuple(dns), tuple(addresses))


def _make_reporter(
    settings: ControllerSettings, watches: Watches, writer: Writer, counts: Gauge
) -> PolicyReporter:
    """Return the reporter that writes the statuses of policies."""
    namespace = _home(settings)

    async def replicas() -> Sequence[Replica]:
        if not settings.webhook_replicas:
            return await running(watches.client, namespace)
        named = [(f"{host}:{port}", host, port) for host, port in settings.webhook_replicas]
        return [Replica(name, name, host, port, leaving=False) for name, host, port in named]

    return PolicyReporter(
        watches,
        writer,
        replicas,
        counts,
        interval=settings.policy_status_interval,
        reports=settings.policy_reports_interval if settings.policy_reports else None,
    )


def watch_parts(
    metrics: ControllerMetrics, controller: Controller, writer: Writer, bucket: TokenBucket
) -> None:
    """Add the gauges of queue and writer to the metrics."""
    metrics.watch(
        controller.known,
        (
            (
                metric_names.PODS_LEAVING,
                "Pods of runs on nodes that are cordoned, or announced to be taken away.",
                controller.known.pods_on_leaving_nodes,
            ),
            (
                metric_names.GANGS_WAITING,
                "Runs that start all at once, and whose pods are not created yet.",
                lambda: controller.starts.count("Waiting"),
            ),
            (
                metric_names.GANGS_STARTING,
                "Runs that start all at once, and some of whose replicas have no node yet.",
                lambda: controller.starts.count("Starting"),
            ),
            (
                metric_names.GANG_LONGEST_WAIT,
                "Seconds for which such a run has lacked a node, as this process has seen it.",
                controller.starts.longest_wait,
            ),
            (metric_names.QUEUE_DEPTH, "Runs that wait to be reconciled.", controller.queue_depth),
            (
                metric_names.QUEUE_OLDEST,
                "Seconds for which the first of them has waited.",
                controller.queue_age,
            ),
            (
                metric_names.RECONCILE_FAILING,
                "Seconds for which reconciles of a run have failed, the longest of all; 0 if none.",
                controller.failing_age,
            ),
            (
                metric_names.API_THROTTLED,
                "Answers of 429 from the API server.",
                lambda: writer.throttled,
            ),
            (
                metric_names.API_RATE,
                "Current limit of writes per second to the API server.",
                lambda: bucket.pace.rate,
            ),
            (
                metric_names.EVENTS_DROPPED,
                "Events that were not written.",
                lambda: controller.announcer.dropped,
            ),
        ),
    )


def _always() -> bool:
    return True


async def _all(works: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Run the work of the leader concurrently, until cancelled."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work())


def _conditions(
    watches: Watches,
    controller: Controller,
    election: Election | None,
    keeper: Keeper | None,
    reporter: PolicyReporter | None,
) -> Conditions:
    def leader() -> Condition:
        # A follower is as ready as the leader: it can take over immediately.
        if election is None or election.leading:
            return Condition(ready=True, reason="leading")
        error = f"; {election.last_error}" if election.last_error else ""
        return Condition(ready=True, reason=f"leader: {election.holder or 'none'}{error}")

    informers = (*controller.informers.all, *controller.informers.beside)
    conditions = {informer.resource: partial(synced, informer) for informer in informers}
    conditions["watches"] = partial(watches_condition, watches)
    if keeper:
        conditions["certificates"] = partial(certificate_condition, keeper)
    if reporter:
        conditions["policy-status"] = partial(_policy_status, reporter)
    return {**conditions, "leader": leader}


def _policy_status(reporter: PolicyReporter) -> Condition:
    # Runs do not need it, so it is always ready.
    return Condition(ready=True, reason=reporter.reason)


def certificate_condition(keeper: Keeper) -> Condition:
    """Return the condition of the certificates, for /readyz."""
    return Condition(keeper.ready, keeper.reason)


def _announce(settings: ControllerSettings, plain: socket.socket) -> None:
    _logger.info(
        "controlling",
        extra={
            "version": webhook.__version__,
            "namespace": settings.namespace,
            "identity": settings.identity,
            "host": plain.getsockname()[0],
            "health_port": plain.getsockname()[1],
        },
    )
