"""Whether the webhook answers, end to end: a pod of a run that is never stored."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.kinds import key_of

if TYPE_CHECKING:
    from webhook.kube.client import Client

NAME: Final = "fairlead-probe"
# How many answers in a row count: several API servers hear of a change one by one.
ANSWERS: Final = 3
# What the API server says of a pod that our webhook turned down; its own policies deny otherwise.
_DENIED: Final = f'.{names.GROUP}" denied the request'
_FAILED: Final = "failed calling webhook"


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of it. `words` are the API server's, where it was not stamped."""

    namespace: str
    stamped: bool
    words: str = ""

    @property
    def answered(self) -> bool:
        """Whether the webhook was asked, and answered: a policy may well refuse such a pod."""
        return self.stamped or _DENIED in self.words

    @property
    def failed(self) -> bool:
        """Whether the webhook was asked in vain."""
        return _FAILED in self.words


def pod() -> dict[str, Any]:
    """A pod of a run that Pod Security's restricted level admits, and a ResourceQuota too."""
    resources = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": "main",
        "image": "example.invalid/none",
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "labels": {names.RUN: NAME}},
        "spec": {
            "containers": [container],
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


async def probe_policy(client: Client) -> str:
    """Create a capacity class by dry run: why nobody judges such writes; "" if somebody does.

    That it is refused, for a reason, is an answer too. Raises ClusterError if the API server itself
    did not answer.
    """
    kind = key_of(names.CLASS_KIND, NAME)
    body = {
        "apiVersion": kind.kind.api_version,
        "kind": kind.kind.name,
        "metadata": {"name": NAME},
        "spec": {"nodes": [{"labels": {"probe.invalid/name": NAME}}]},
    }
    try:
        await client.create(kind.collection, body, query={"dryRun": "All"})
    except ClusterError as error:
        if error.status is None or error.status == HTTPStatus.UNAUTHORIZED:
            raise
        return (error.words or str(error)) if _FAILED in str(error) else ""
    return ""


async def probe(client: Client, namespace: str) -> Probe:
    """Create it there by dry run. Raises ClusterError if the API server itself did not answer."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        answer = await client.create(path, pod(), query={"dryRun": "All"})
    except ClusterError as error:
        if error.status is None or error.status == HTTPStatus.UNAUTHORIZED:
            raise
        return Probe(namespace, stamped=False, words=error.words or str(error))
    annotations = answer["metadata"].get("annotations") or {}
    return Probe(namespace, stamped=names.PLACEMENT in annotations)
