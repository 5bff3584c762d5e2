"""--dry-run=server: ask the API server about pods as decided."""

from __future__ import annotations

import re
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import NAMESPACES, VERSION, CollectionPath
from webhook.errors import ClusterError
from webhook.placement.plugin_tolerations import OPTIONAL, Facts, added
from webhook.placement.shapes import objects_in
from webhook.placement.tolerations import normal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.evaluation.dry_run import Answer, Server
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.placement.shapes import JsonObject

DRY_RUN_HELP: Final = (
    "Ask the API server of the kubeconfig whether it takes each pod as it would be; nothing is "
    "created. So Pod Security, quotas, ServiceAccounts and other webhooks are known too. Requires "
    "the right to create pods in their namespaces."
)
# An extended resource for the dry run of a pod; no device plugin may have a name of ours.
_PROBED: Final = f"{names.GROUP}/probe"
# Whoever asks so is not decided on again: the webhook leaves the pod as it is.
_AS_DECIDED: Final = {"dryRun": "All", "fieldManager": names.AS_DECIDED}
_DECIDED: Final = (
    "the cluster's webhook is older than this command, and decided on the pod again by its own "
    "policies"
)
_MAYBE_DECIDED: Final = (
    "this may be about another pod: the cluster's webhook did not say that it left this one as it "
    "is, so it is older than this command, or did not answer"
)
# In the API server's words for a denial of one of Fairlead's webhooks, after its name.
_OWN_DENIAL: Final = f'.{names.GROUP}" denied the request'
_REVIEWS: Final = CollectionPath("authorization.k8s.io/v1", "selfsubjectaccessreviews")
# The beginning of the API server's own words for a refusal.
_ABOUT_POD: Final = re.compile(r'^[Pp]ods? "[^"]*" is (?:forbidden|invalid): ')
_EXISTS: Final = "AlreadyExists"
# Anything else, such as 429 or 500, is no answer about the pod.
_REFUSALS: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY}
)


@contextmanager
def api_server(kubeconfig: Kubeconfig) -> Iterator[Server]:
    """Yield how to ask that API server about pods. Raises ClusterError if it does not answer."""
    import asyncio

    from webhook.evaluation.dry_run import Answer

    # Whether the user may create pods, by namespace; why that is unknown.
    permitted: dict[str, str] = {}
    with asyncio.Runner() as runner:
        client = kubeconfig.client()
        runner.run(client.__aenter__())

        def ask(pod: JsonObject, namespace: str) -> Answer:
            if namespace not in permitted:
                permitted[namespace] = runner.run(_obstacle(client, namespace))
            if why := permitted[namespace]:
                return Answer(unknown=why)
            return Answer(*runner.run(_ask(client, pod, namespace)))

        try:
            runner.run(client.get(VERSION))
            yield ask
        finally:
            runner.run(client.__aexit__(None, None, None))


async def read_running_plugins(client: Client, namespace: str) -> Mapping[str, bool]:
    """Return which optional plugins the API server runs, by a dry run of one pod; empty if unknown.

    The pod asks for a resource that no node has, and for memory. Whoever may not create pods in the
    namespace, or whose pod something there refuses, gets no answer.
    """
    resources = {"cpu": "1m", "memory": "1Mi", _PROBED: "1"}
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "main",
        "image": "example.invalid/none",
        "resources": {"limits": resources, "requests": resources},
        "securityContext": security,
    }
    metadata = {"generateName": "fairlead-plugins-", "namespace": namespace}
    spec = {"containers": [container], "automountServiceAccountToken": False}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    try:
        path = CollectionPath("v1", "pods", namespace)
        made = await client.create(path, pod, query=_AS_DECIDED)
    except ClusterError:
        return {}
    tolerations: list[Any] = [*objects_in(made.get("spec", {}).get("tolerations"))]
    normal_tolerations = [normal(toleration) for toleration in tolerations]
    return {
        name: all(
            normal(addition.toleration) in normal_tolerations
            for addition in added(Facts(spec), [name])
        )
        for name in OPTIONAL
    }


async def _obstacle(client: Client, namespace: str) -> str:
    """Return why the API server cannot be asked about pods of the namespace; else no text."""
    asked = {"namespace": namespace, "verb": "create", "resource": "pods"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    try:
        response = await client.create(_REVIEWS, review)
    except ClusterError as error:
        return str(error)
    if response["status"].get("allowed"):
        return ""
    return f"you may not create pods in namespace {namespace}"


async def _ask(client: Client, pod: JsonObject, namespace: str) -> tuple[str, str]:
    try:
        path = CollectionPath("v1", "pods", namespace)
        made = await client.create(path, pod, query=_AS_DECIDED)
    except ClusterError as error:
        name = pod["metadata"].get("name")
        if error.reason == _EXISTS and name:
            # The answer is that to a pod in its place.
            metadata = {**pod["metadata"], "name": "", "generateName": f"{name}-"}
            return await _ask(client, {**pod, "metadata": metadata}, namespace)
        if error.status in _REFUSALS:
            return await _refusal(client, namespace, error)
        if error.status == HTTPStatus.NOT_FOUND:
            return "", f"namespace {namespace} does not exist"
        return "", str(error)
    stamp = (made["metadata"].get("annotations") or {}).get(names.PLACEMENT)
    return "", "" if stamp == names.AS_DECIDED else _DECIDED


async def _refusal(client: Client, namespace: str, error: ClusterError) -> tuple[str, str]:
    """Return the refusal, if it is one of the pod as asked about; else why that is unknown."""
    from webhook.interception import EXCLUDED_NAMESPACES

    # Its name may be one that nobody knows.
    words = _ABOUT_POD.sub("", error.why)
    if any(names.LEFT_AS_DECIDED in warning for warning in error.warnings):
        return words, ""
    if _OWN_DENIAL in error.words:
        return "", f"{words}; {_MAYBE_DECIDED}"
    try:
        space = await client.get(NAMESPACES.path_of(namespace))
    except ClusterError as unread:
        return f"{words}; whether the webhook decided on the pod again is unknown: {unread}", ""
    placed = (space["metadata"].get("labels") or {}).get(names.PLACE) == names.PLACE_ALL
    if not placed or namespace in EXCLUDED_NAMESPACES:
        return words, ""
    return "", f"{words}; {_MAYBE_DECIDED}"
