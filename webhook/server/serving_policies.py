"""The served policies: from a folder that is polled, or from a cluster that is watched."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from webhook.admission.policy_handler import PolicyHandler
from webhook.errors import InvalidDocuments, ServingError
from webhook.evaluation.plugins import UNREAD, PluginInputs, inputs_of
from webhook.judgement.cluster_objects import Objects
from webhook.judgement.set_judgement import Served, load_served
from webhook.judgement.write_judge import Judge
from webhook.kube.cluster_classes import ClusterClasses
from webhook.kube.policy_objects import KINDS, PolicyObjects, text_of
from webhook.policy import policy_documents
from webhook.server.cluster_facts import age
from webhook.server.folder import Folder
from webhook.server.policies_from_cluster import PoliciesFromCluster, Snapshot
from webhook.server.reload import Reloader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from webhook.kube.client import Client
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet
    from webhook.server.readiness import Condition
    from webhook.server.reload import ReloadState, Source
    from webhook.server.serving_certificates import Background
    from webhook.server.webhook_metrics import Metrics

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Policies:
    """The current set, if there is one, its condition, and the tasks that keep it current.

    `origin` is for the log: the folder, or the resources. `written` answers reviews of writes of
    policies; None for files. `plugins`: what the API server's plugins read, which only a webhook
    with policies from the cluster may read.
    """

    current: Callable[[], PolicySet | None]
    condition: Callable[[], Condition]
    background: Background
    origin: Mapping[str, str]
    written: PolicyHandler | None = None
    plugins: Callable[[], PluginInputs] = lambda: UNREAD


def policies_of(
    folder: Path | None,
    metrics: Metrics,
    client: Client | None,
    poll_interval: float,
    nodes: Callable[[], Sequence[Node] | None] = lambda: None,
) -> Policies:
    """Return the policies of a folder, which is read immediately; without one, those of the
    cluster.

    A set with faults, which `fairlead check` rejects, serves only if no set without them did:
    a version before may have taken it, and pods need some policies.

    `nodes` returns the cluster's nodes, None if unknown, for reviews of policies. Raises
    ServingError if there is no cluster.
    """
    if folder is not None:

        def load(files: Mapping[str, bytes]) -> Served:
            found, current = load_served(policy_documents.parse(files)), reloader.current
            if found.faults and current is not None and not current.faults:
                raise InvalidDocuments(found.faults)
            return found

        reloader = _reloader(Folder(folder), load, str(folder), metrics)
        reloader.poll()
        return Policies(
            lambda: _set_of(reloader),
            reloader.condition,
            (lambda: reloader.run(poll_interval),),
            {"folder": str(folder)},
        )
    if client is None:
        raise ServingError("--policies-from-cluster: there is no cluster; name a kubeconfig")
    return _from_cluster(client, metrics, nodes)


def _from_cluster(
    client: Client, metrics: Metrics, nodes: Callable[[], Sequence[Node] | None]
) -> Policies:
    watched, snapshot = PolicyObjects(client, text_of), Snapshot()
    for resource, cache in watched.caches.items():
        metrics.watch_cache(resource, partial(age, cache))
    reader, classes = Objects(), ClusterClasses(client)
    reloader = _reloader(snapshot, reader.served, "the cluster", metrics)
    kept = PoliciesFromCluster(watched, snapshot, reloader)
    return Policies(
        lambda: _set_of(reloader),
        kept.condition,
        (watched.run, kept.run, classes.run),
        {"resources": ", ".join(watched.caches)},
        PolicyHandler(
            resources=tuple(KINDS),
            objects=watched,
            # Of a thousand objects, both read only the changed one.
            judge=Judge(reader),
            observer=metrics,
            nodes=nodes,
            classes=classes.by_kind,
        ),
        lambda: inputs_of(classes.by_kind()),
    )


def _set_of(reloader: Reloader[Served]) -> PolicySet | None:
    return reloader.current.policies if reloader.current else None


def _reloader(
    source: Source,
    compile_all: Callable[[Mapping[str, bytes]], Served],
    where: str,
    metrics: Metrics,
) -> Reloader[Served]:
    def loaded(value: Served, state: ReloadState) -> None:
        policies = value.policies.policies
        now = state.loaded_at or state.since
        metrics.policies_loaded(
            value.policies.hash,
            [policy.name for policy in policies],
            now,
            [each.name for each in value.policies.exceptions],
            faults=len(value.faults),
        )
        for fault in value.faults:
            _logger.error("policies serve with an error: %s", fault)
        for warning in value.warnings:
            _logger.warning("policies: %s", warning)
        if not policies:
            _logger.warning("no policies in %s: pods are stamped and left as they are", where)

    return Reloader(
        "policies",
        source,
        compile_all,
        digest_of=lambda value: value.policies.hash,
        on_loaded=loaded,
        on_refused=lambda _state: metrics.policies_refused(),
    )
