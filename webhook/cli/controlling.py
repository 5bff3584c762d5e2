"""Puts the controller's parts together, and runs them until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import webhook
from webhook import names
from webhook.cli import keeping, policy_status
from webhook.cli.cluster_facts import synced
from webhook.cli.controller_numbers import watch_parts
from webhook.cli.keeping import Certificates, make_keeper
from webhook.cli.policy_status import PolicyStatus, make_reporter
from webhook.controller.controller import Controller
from webhook.controller.metrics import ControllerMetrics
from webhook.controller.resumption import Resumption
from webhook.kube.client import connect
from webhook.kube.config import SERVICE_ACCOUNT
from webhook.kube.election import Election
from webhook.kube.tenure import Terms
from webhook.kube.token_bucket import TokenBucket
from webhook.kube.writer import Writer
from webhook.run.plan import plan
from webhook.server.drain import Drain, drain_on_signals
from webhook.server.exposition import Exposition
from webhook.server.health import health_app
from webhook.server.listener import bind, serve_plain
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from webhook.controller.certificates.keeper import Keeper
    from webhook.controller.informers import Informer
    from webhook.controller.policies.reporter import PolicyReporter
    from webhook.kube.client import Client
    from webhook.run.counting import RestartTerms
    from webhook.server.readiness import Conditions

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """What `fairlead controller` was told; times in seconds. See its help for each."""

    kubeconfig: Path | None
    namespace: str
    cluster_domain: str
    lease_namespace: str
    lease_name: str
    identity: str
    lease_duration: float
    renew_deadline: float
    retry_period: float
    election: bool
    qps: float
    burst: int
    workers: int
    nodes: bool
    terms: RestartTerms
    certificates: Certificates | None
    policy_status: PolicyStatus | None
    webhook_configuration: str
    host: str
    health_port: int


def run(settings: Settings) -> bool:
    """Work until told to stop. False if somebody would not wait for the end.

    Raises a FairleadError if an address or a kubeconfig cannot be had. An API server that does not
    answer is asked again, for as long as it takes.
    """
    return asyncio.run(_run(settings, bind(settings.host, settings.health_port)))


async def _run(settings: Settings, plain: socket.socket) -> bool:
    exposition, drain = Exposition(), Drain(0)
    metrics = ControllerMetrics(exposition.registry)
    async with connect(settings.kubeconfig, on_answer=metrics.answered) as client:
        bucket = TokenBucket(settings.qps, settings.burst)
        election = _election(settings, client)
        writer = Writer(client, bucket, may_write=election.may_write if election else _always)
        controller = Controller(
            client,
            writer,
            partial(plan, cluster_domain=settings.cluster_domain),
            metrics,
            namespace=settings.namespace,
            workers=settings.workers,
            nodes=settings.nodes,
            terms=settings.terms,
        )
        watch_parts(metrics, controller, writer, bucket)
        keeper = None
        if settings.certificates:
            keeper = make_keeper(
                settings.certificates,
                settings.lease_namespace or _own_namespace(),
                settings.webhook_configuration or names.WEBHOOK_CONFIGURATION,
                client,
                writer,
                exposition.registry,
            )
        reporter = None
        if settings.policy_status:
            reporter = make_reporter(
                settings.policy_status,
                settings.lease_namespace or _own_namespace(),
                client,
                writer,
            )
        works: list[Callable[[], Coroutine[Any, Any, None]]] = [controller.lead]
        if keeper:
            works.append(keeper.lead)
        if reporter:
            works.append(reporter.lead)
        if settings.webhook_configuration:
            works.append(Resumption(client, writer, name=settings.webhook_configuration).lead)
        lead = partial(_all, works)
        # What has been made by now stays: no collection has to walk it again.
        gc.collect()
        gc.freeze()
        with drain_on_signals(drain):
            _announce(settings, plain)
            return await serve_plain(
                health_app(_conditions(controller, election, keeper, reporter), exposition),
                plain=plain,
                drain=drain,
                background=(
                    controller.run,
                    partial(election.run, lead) if election else lead,
                ),
            )


def _election(settings: Settings, client: Client) -> Election | None:
    if not settings.election:
        return None
    terms = Terms(settings.lease_duration, settings.renew_deadline, settings.retry_period)
    namespace = settings.lease_namespace or _own_namespace()
    return Election(client, namespace, settings.lease_name, settings.identity, terms)


def _own_namespace() -> str:
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return "default"


def _always() -> bool:
    return True


async def _all(works: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """What is done while this process leads, all at once, until cancelled."""
    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(work())


def _conditions(
    controller: Controller,
    election: Election | None,
    keeper: Keeper | None,
    reporter: PolicyReporter | None,
) -> Conditions:
    def of(informer: Informer) -> Condition:
        return synced(informer.cache, informer.reflector)

    def beside(informer: Informer) -> Condition:
        return replace(of(informer), ready=True)

    def leader() -> Condition:
        # One that follows is as ready as one that leads: it would take over at once.
        if election is None or election.leading:
            return Condition(ready=True, reason="leading")
        error = f"; {election.last_error}" if election.last_error else ""
        return Condition(ready=True, reason=f"{election.holder or 'nobody'} leads{error}")

    found = {informer.resource: partial(of, informer) for informer in controller.informers.all}
    for informer in controller.informers.beside:
        # Runs go on without: it is never a reason to be not ready.
        found[informer.resource] = partial(beside, informer)
    if keeper:
        found["certificates"] = partial(keeping.condition, keeper)
    if reporter:
        found["policy-status"] = partial(policy_status.condition, reporter)
    return {**found, "leader": leader}


def _announce(settings: Settings, plain: socket.socket) -> None:
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
