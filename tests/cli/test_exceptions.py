"""`fairlead policy exceptions` of a cluster; golden/sessions/ has those of files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import Answer, Request, answer_of, client_of, fake_api
from tests.wording import line_with
from webhook import names
from webhook.errors import ClusterError
from webhook.policy.match_model import Match
from webhook.questions.policies.exceptions_report import describe_match, of_cluster


def pod_that_passed(phase: str, stamp: str) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "n", "annotations": {names.PLACEMENT: stamp}}
    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(("code", "pods"), [(200, {"a": 2, "b": 1}), (403, None)])
def test_live_pods_are_counted_by_their_stamps(
    tmp_path: Path, code: int, pods: dict[str, int] | None
) -> None:
    """What is over does not count, nor what cannot be read; who may not list pods is told so."""
    both, one = '{"exceptions":{"a":["p"],"b":["p"]}}', '{"exceptions":{"a":["p"]}}'
    listed = [pod_that_passed("Running", text) for text in (both, one, "", "[", '{"set":"x"}')]
    listed += [pod_that_passed("Succeeded", both), {"metadata": {"name": "bare"}}]

    group = "/apis/fairlead.dev/v1alpha1"
    admission = "/apis/admissionregistration.k8s.io/v1"
    there: dict[str, Any] = {f"{group}/{each}": () for each in names.POLICY_RESOURCES.values()}
    there |= {"/api/v1/pods": listed, f"/api/v1/namespaces/{names.NAMESPACE}/pods": ()}
    for kind in ("mutating", "validating"):
        there[f"{admission}/{kind}webhookconfigurations/fairlead"] = {"webhooks": []}
    found = answer_of(there, tmp_path, of_cluster, ["/api/v1/pods"] if code == 403 else ())
    assert found.pods == pods
    assert any("may not list pods" in each for each in found.notes) == (pods is None)
    # This cluster sends pods to a webhook, and no policies.
    line_with(found.notes, "the webhook serves policies from files", "in the cluster")


def test_a_cluster_in_trouble_is_not_taken_for_a_missing_right(tmp_path: Path) -> None:
    """Who asked for pods that could not be listed is not told that they may not be."""

    async def answer(request: Request, to: Answer) -> None:
        if request.path == "/api/v1/pods":
            await to.status(500, "InternalError", "etcd is gone")
        elif "/customresourcedefinitions/" in request.path:
            await to.status(403, "Forbidden", "no right")
        else:
            await to.json({"metadata": {"resourceVersion": "1"}, "items": []})

    async def main() -> None:
        async with fake_api(answer) as api, client_of(api, tmp_path) as client:
            await of_cluster(client)

    with pytest.raises(ClusterError, match="etcd is gone"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("match", "words"),
    [
        (
            {"namespaces": ["a", "b-*"], "coordinator": False},
            "namespaces a, b-*; coordinator false",
        ),
        (
            {
                "podSelector": {
                    "matchLabels": {"b": "c"},
                    "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x", "y"]}],
                }
            },
            "podSelector b=c, a NotIn [x, y]",
        ),
        ({"roles": ["ps"], "namespaceSelector": {}}, "namespaceSelector any; roles ps"),
        ({"replicaIndexes": [0, 1]}, "replicaIndexes 0, 1"),
        ({"serviceAccounts": ["trainer", "b-*"]}, "serviceAccounts trainer, b-*"),
    ],
)
def test_a_match_is_described_in_text(match: dict[str, object], words: str) -> None:
    """Every condition that is given, by its name."""
    assert describe_match(Match.model_validate(match, by_alias=True)) == words
