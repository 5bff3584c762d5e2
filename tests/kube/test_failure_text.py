"""A refusal of the API server is one sentence, with the cure."""

from __future__ import annotations

import pytest

from tests.wording import Wording, mentions
from webhook.kube.failure_text import Call, describe_refusal

RUNS = "/apis/fairlead.dev/v1alpha1/namespaces/lab/runs"
PODS = "/api/v1/namespaces/lab/pods"
FLAVORS = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
RIGHT = (
    'runs.fairlead.dev "mnist" is forbidden: User "jane" cannot get resource "runs" in API group '
    '"fairlead.dev" in the namespace "lab"'
)
OF_A_LOG = (
    'pods "a" is forbidden: User "system:serviceaccount:ci:bot" cannot get resource "pods/log" in '
    'API group "" in the namespace "lab"'
)
OF_THE_CLUSTER = (
    'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster '
    'scope: RBAC: clusterrole.rbac.authorization.k8s.io "viewer" not found'
)
CHANGED = (
    'Operation cannot be fulfilled on runs.fairlead.dev "mnist": the object has been modified; '
    "please apply your changes to the latest version and try again"
)
ENDING = 'object is being deleted: runs.fairlead.dev "mnist" already exists'
QUOTA = 'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: 4'
NOT_SERVED = "the server could not find the requested resource"
# The words are those of Kubernetes 1.36, and tests/cluster/test_failure_text.py asks a real one.
CASES = {
    "no right": (("GET", f"{RUNS}/mnist"), 403, RIGHT),
    "no right to a log": (("GET", f"{PODS}/a/log"), 403, OF_A_LOG),
    "no right in the cluster": (("GET", "/api/v1/nodes"), 403, OF_THE_CLUSTER),
    "a quota": (("POST", PODS), 403, QUOTA),
    "other credentials": (("GET", RUNS), 401, "Unauthorized"),
    "no such object": (("GET", f"{RUNS}/mnist"), 404, 'runs.fairlead.dev "mnist" not found'),
    "no such namespace": (("POST", RUNS), 404, 'namespaces "lab" not found'),
    "no definition": (("GET", RUNS), 404, ""),
    "no definition, as a Status": (("GET", RUNS), 404, NOT_SERVED),
    "no definition of another system": (("GET", FLAVORS), 404, NOT_SERVED),
    "no such path": (("GET", "/version"), 404, ""),
    "a name that is taken": (("POST", RUNS), 409, 'runs.fairlead.dev "mnist" already exists'),
    "a name that is not free yet": (("POST", RUNS), 409, ENDING),
    "a change meanwhile": (("PUT", f"{RUNS}/mnist"), 409, CHANGED),
    "an old version": (("WATCH", RUNS), 410, "too old resource version: 1 (9)"),
    "what is not valid": (
        ("PATCH", f"{RUNS}/mnist"),
        422,
        'Run.fairlead.dev "mnist" is invalid: x',
    ),
    "a busy server": (("DELETE", f"{RUNS}/mnist"), 429, "too many requests"),
    "a webhook that fails": (("POST", PODS), 500, 'failed calling webhook "a.dev": refused'),
    "a proxy": (("GET", RUNS), 502, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_is_a_sentence(case: str, wording: Wording) -> None:
    call, status, words = CASES[case]
    text = describe_refusal(Call(*call), status, words).text
    assert "/apis/" not in text
    assert f"{status} " not in text or status >= 500
    wording(text)


def test_who_may_not_do_what_is_checked_by_a_command() -> None:
    """Of a subresource, in all namespaces, and as another user, as kubectl takes it."""
    texts = [describe_refusal(Call(*CASES[case][0]), 403, CASES[case][2]).text for case in CASES]
    mentions(texts[0], "jane may not get", "kubectl auth can-i get runs.fairlead.dev -n lab")
    mentions(texts[1], "--subresource=log -n lab --as=system:serviceaccount:ci:bot")
    mentions(texts[2], "nodes", "viewer", "can-i list nodes -A")
