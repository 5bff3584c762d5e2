"""The cluster's policies are compared with what the webhook serves, before anybody relies on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.admission.reviews import POOL, policy_set
from tests.kube.fake_api import answer_of
from tests.wording import Wording
from webhook import names, validating
from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.live.served_policies import differing, not_served
from webhook.errors import ClusterError
from webhook.kube.client import Client
from webhook.metric_names import POLICY_SET

Json = dict[str, Any]
POLICIES = policy_set(POOL)
OWN = POLICIES.hash[:HASH_LENGTH]
PODS = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{ADMISSION}/mutatingwebhookconfigurations/{names.WEBHOOK_CONFIGURATION}"
JUDGING = f"{ADMISSION}/validatingwebhookconfigurations/{names.WEBHOOK_CONFIGURATION}"
POLICIES_SENT = {"webhooks": [{"name": validating.POLICIES}, {"name": validating.WORKLOADS}]}
NO_POLICIES_SENT = {"webhooks": [{"name": validating.WORKLOADS}]}


def replica(name: str) -> Json:
    """A pod of the webhook."""
    port = {"name": "health", "containerPort": 8080}
    return {
        "metadata": {"name": name, "uid": name},
        "spec": {"containers": [{"name": "webhook", "ports": [port]}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }


def metrics(text: str) -> str:
    """What a replica that serves this set says of it."""
    return f'{POLICY_SET}{{hash="{text}"}} 1\n'


def said(folder: Path, cluster: dict[str, object], *stamped: str, ask: Any = None) -> list[str]:
    """What is noted in a cluster that has these paths, and forbids those that are None."""
    forbidden = [path for path, found in cluster.items() if found is None]

    async def question(client: Client) -> list[str]:
        found: list[str] = await (
            ask(client, POLICIES) if ask else not_served(client, POLICIES, stamped)
        )
        return found

    there = {path: found for path, found in cluster.items() if found != 404}
    return answer_of(there, folder, question, forbidden)


def served(*hashes: str) -> dict[str, object]:
    """A cluster with a replica for each hash."""
    found: dict[str, object] = {PODS: [replica(f"w{at}") for at in range(len(hashes))]}
    for at, each in enumerate(hashes):
        found[f"{PODS}/w{at}:8080/proxy/metrics"] = metrics(each)
    return found


def test_nothing_is_reported_where_every_replica_serves_the_clusters_set(tmp_path: Path) -> None:
    """Then what is compared is what decides."""
    assert said(tmp_path, served(POLICIES.hash, POLICIES.hash)) == []


def test_another_set_is_rejected_with_the_right_command(tmp_path: Path, wording: Wording) -> None:
    """That all is well under policies that nobody serves would be no answer."""
    with pytest.raises(ClusterError) as caught:
        said(tmp_path, served("12ab", "12ab"), OWN)
    wording(str(caught.value))


def test_where_the_clusters_are_asked_for_that_others_serve_is_a_note(
    tmp_path: Path, wording: Wording
) -> None:
    """`explain -f --policies cluster`, `diff cluster` and `exceptions` answer all the same."""
    (note,) = said(tmp_path, served("12ab", "12ab"), ask=differing)
    wording(note)


def test_replicas_that_are_behind_are_counted(tmp_path: Path, wording: Wording) -> None:
    """A change takes a second or two to be everywhere."""
    (note,) = said(tmp_path, served(POLICIES.hash, "12ab", POLICIES.hash))
    wording(note)


@pytest.mark.parametrize("judging", [404, NO_POLICIES_SENT], ids=["none", "without policies"])
def test_a_webhook_that_is_sent_no_policies_serves_files(
    tmp_path: Path, judging: object, wording: Wording
) -> None:
    """As in a sandbox, where no replica is a pod."""
    cluster: dict[str, object] = {PODS: [], MUTATING: POLICIES_SENT, JUDGING: judging}
    with pytest.raises(ClusterError) as caught:
        said(tmp_path, cluster, OWN)
    wording(str(caught.value))


def test_a_missing_right_is_reported_unless_a_stamp_has_the_answer(
    tmp_path: Path, wording: Wording
) -> None:
    """Most people may not ask replicas; the stamps of their own pods they may read."""
    cluster: dict[str, object] = {PODS: None, MUTATING: POLICIES_SENT, JUDGING: POLICIES_SENT}
    assert said(tmp_path, cluster, "12ab", OWN) == []
    (note,) = said(tmp_path, cluster, "12ab")
    wording(note)
    assert len(said(tmp_path, {**cluster, JUDGING: None})) == 1
    assert len(said(tmp_path, {PODS: []})) == 1
