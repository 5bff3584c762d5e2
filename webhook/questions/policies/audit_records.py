"""What policies under Audit have done by the replicas' metrics, and would do to live pods."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.audited import Record, records_of_metrics, records_of_pods
from webhook.cluster_objects.webhook_replicas import NoReplica, read_by_replica
from webhook.errors import ClusterError, InvalidDocuments, InvalidPod, PassOver
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.replicas import evaluate_template
from webhook.questions.cluster_surroundings import read_policies, read_world
from webhook.questions.diff.comparison_input import read_pods
from webhook.questions.live.live_answers import node_list
from webhook.questions.live.served_policies import why_unasked
from webhook.questions.offline import with_nodes
from webhook.questions.where import CLUSTER

if TYPE_CHECKING:
    from webhook.kube.client import Client


async def gather_records(
    client: Client, notes: list[str]
) -> tuple[list[Record] | None, list[Record] | None]:
    """Return what was counted, and what is evaluated now; None, with a note, if it is not known."""
    counted: list[Record] | None = None
    try:
        texts = (await read_by_replica(client)).values()
        counted = [record for text in texts for record in records_of_metrics(text)]
    except NoReplica as error:
        why = await why_unasked(client, error)
        notes.append(f"what the webhook has decided so far is unknown: {why}")
    return counted, await records_of_cluster(client, notes)


async def records_of_cluster(client: Client, notes: list[str]) -> list[Record] | None:
    """Return what the cluster's policies would do to the pods of its workloads, and to others.

    None, with a note, if the policies cannot be read. Raises ClusterError.
    """
    try:
        policies = (await read_policies(client)).policies
    except (ClusterError, InvalidDocuments) as error:
        notes.append(f"pods in the cluster are not evaluated: {error}")
        return None
    world = await read_world(client, policies, [], None, notes)
    with PassOver(HTTPStatus.FORBIDDEN) as passed:
        world = with_nodes(world, await node_list(client, CLUSTER))
    if passed.status:
        notes.append("you may not list nodes: which of them requirements exclude is unknown")
    pods = await read_pods(client, "", world.namespaces, policies.sources)
    notes += pods.notes
    records: list[Record] = []
    for maker in pods.makers:
        try:
            with one_pod():
                groups = evaluate_template(world, maker, maker.source.namespace)
        except InvalidPod:
            continue  # no controller can create it
        except Unjudged as error:
            notes.append(f"{maker.source.title} in {maker.source.namespace} is left out: {error}")
            continue
        records += [record for group in groups for record in records_of_pods(group)]
    return records
