"""--dry-run=server: ask the API server about pods as decided."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.exit_codes import UNKNOWN, errors_exit
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from webhook.cli.options import Kubeconfig
    from webhook.evaluation.dry_run import Answer, Server
    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject

HELP: Final = (
    "Ask the API server of the kubeconfig whether it takes each pod as it would be; nothing is "
    "created. So Pod Security, quotas, ServiceAccounts and other webhooks are known too. Requires "
    "the right to create pods in their namespaces."
)
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# Anything else, such as 429 or 500, is no answer about the pod.
_REFUSALS: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY}
)


def server_of(kubeconfig: Kubeconfig) -> Server:
    """Return how to ask that API server, until the command ends.

    If it does not answer at all, the command exits with UNKNOWN.
    """
    import asyncio

    from webhook.evaluation.dry_run import Answer

    ctx = click.get_current_context()
    runner = ctx.with_resource(asyncio.Runner())
    client = kubeconfig.client()
    with errors_exit(UNKNOWN):
        runner.run(client.__aenter__())
        ctx.call_on_close(lambda: runner.run(client.__aexit__(None, None, None)))
        runner.run(client.get("/version"))
    # Whether the user may create pods, by namespace; why that is unknown.
    permitted: dict[str, str] = {}

    def ask(pod: JsonObject, namespace: str) -> Answer:
        if namespace not in permitted:
            permitted[namespace] = runner.run(_obstacle(client, namespace))
        if why := permitted[namespace]:
            return Answer(unknown=why)
        return Answer(*runner.run(_ask(client, pod, namespace)))

    return ask


async def _obstacle(client: Client, namespace: str) -> str:
    """Return why the API server cannot be asked about pods of the namespace; else no text."""
    asked = {"namespace": namespace, "verb": "create", "resource": "pods"}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    try:
        found = await client.create(_REVIEWS, review)
    except ClusterError as error:
        return str(error)
    if found["status"].get("allowed"):
        return ""
    return f"you may not create pods in namespace {namespace}"


async def _ask(client: Client, pod: JsonObject, namespace: str) -> tuple[str, str]:
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        await client.create(path, pod, query={"dryRun": "All"})
    except ClusterError as error:
        if error.status in _REFUSALS:
            return error.words or str(error), ""
        if error.status == HTTPStatus.NOT_FOUND:
            return "", f"namespace {namespace} does not exist"
        return "", str(error)
    return "", ""
