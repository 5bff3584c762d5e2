"""Test the webhook end to end, with a dry run of a pod."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import NAMESPACES, CollectionPath
from webhook.errors import ClusterError, PassOver, WrongUsage
from webhook.installation.object_kinds import key_of
from webhook.interception import exclusion_reason, read_record
from webhook.placement.label_values import selects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.interception import Record
    from webhook.kube.client import Client

    Json = dict[str, Any]

NAME: Final = "fairlead-probe"
# How many answers in a row are needed: several API servers learn of a change one by one.
ANSWERS: Final = 3
# The API server's message for a pod that our webhook rejects; its own policies have another.
_DENIED: Final = f'.{names.GROUP}" denied the request'
# Of a guard of ours: the pod comes without a stamp.
_GUARDED: Final = f"ValidatingAdmissionPolicy '{names.GUARDS}"
_FAILED: Final = "failed calling webhook"


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of a probe. `words` is the API server's message if the pod has no stamp.

    `invalid`: it refuses the pod for a value, although the probe's own values are valid.
    """

    namespace: str
    stamped: bool
    words: str = ""
    invalid: bool = False

    @property
    def was_answered(self) -> bool:
        """Whether the webhook was called and answered; a policy may reject such a pod."""
        return self.stamped or _DENIED in self.words

    @property
    def was_prevented(self) -> bool:
        """Whether something else refuses such a pod, so that nothing is known of the webhook."""
        ours = self.was_answered or self.failed or _GUARDED in self.words
        return bool(self.words) and not self.invalid and not ours

    @property
    def failed(self) -> bool:
        """Whether the webhook was called and did not answer."""
        return _FAILED in self.words


def pod() -> Json:
    """Return a pod of a run that Pod Security's restricted level and a ResourceQuota admit.

    It names no user: OpenShift gives each namespace users of its own, and refuses others.
    """
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
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def choose_namespace(record: Record, namespaces: Mapping[str, Mapping[str, str]]) -> str:
    """Return where to try a pod: default, or a namespace within the limit that is recorded.

    namespaces: their labels by name; they count for a limit by labels.
    """
    if not record.namespace_labels:
        return record.only_namespaces[0] if record.only_namespaces else "default"
    limit = {"namespaceSelector": {"matchExpressions": record.namespace_labels}}
    within = (
        name
        for name in record.only_namespaces or sorted(namespaces)
        if not exclusion_reason(name)
        and selects(limit, "namespaceSelector", namespaces.get(name, {}))
    )
    return next(within, "default")


async def find_namespace(client: Client, controller: Json, given: str = "") -> str:
    """Return where to try a pod: in the namespace that is given, or as `choose_namespace` does, by
    the record of this Deployment.

    Raises ClusterError, and WrongUsage if there is no such namespace.
    """
    if given:
        with PassOver(HTTPStatus.FORBIDDEN):
            if await client.find(NAMESPACES.path_of(given)) is None:
                raise WrongUsage(
                    f"--namespace {given}: there is no such namespace, so no pod of a run can be "
                    "tried there; name another, or leave it out"
                )
        return given
    record = read_record(controller)
    listed = {}
    if record.namespace_labels:
        listing = await client.list(NAMESPACES, lambda namespace: namespace["metadata"])
        listed = {metadata["name"]: metadata.get("labels") or {} for metadata in listing.items}
    return choose_namespace(record, listed)


def describe_unsent(
    entries: Sequence[Json], namespace: str, namespace_labels: Mapping[str, str]
) -> str:
    """Return why none of these entries sends the pod from the namespace; "" if one does."""
    # The API server sets this label when it creates the namespace.
    labels = {**namespace_labels, names.NAMESPACE_NAME: namespace}
    sent = any(
        selects(entry, "objectSelector", pod()["metadata"]["labels"])
        and selects(entry, "namespaceSelector", labels)
        for entry in entries
    )
    if sent:
        return ""
    why = exclusion_reason(namespace) or (
        f"pods of the namespace {namespace} are not sent to the webhook: the limit of its entries "
        "leaves it out"
    )
    return f"{why}, so that none can be tried there: --namespace NAME tries it elsewhere"


async def probe_policy(client: Client) -> str:
    """Create a capacity class by dry run; return why no webhook validates it, or "".

    A rejection is an answer too. Raises ClusterError if the API server itself does not answer.
    """
    kind = key_of(names.CLASS_KIND, NAME)
    body = {
        "apiVersion": kind.kind.api_version,
        "kind": kind.kind.name,
        "metadata": {"name": NAME},
        "spec": {"nodes": [{"labels": {"probe.invalid/name": NAME}}]},
    }
    _, error = await _try(client, kind.collection, body)
    return error.why if error and _FAILED in str(error) else ""


async def _try(
    client: Client, path: CollectionPath, body: Json
) -> tuple[Json, ClusterError | None]:
    """Create the object by dry run; return the answer and what refused it."""
    try:
        return await client.create(path, body, query={"dryRun": "All"}), None
    except ClusterError as error:
        if error.status is None or error.status == HTTPStatus.UNAUTHORIZED:
            raise
        return {}, error


async def probe(client: Client, namespace: str) -> Probe:
    """Create the pod by dry run. Raises ClusterError if the API server itself does not answer."""
    answer, error = await _try(client, CollectionPath("v1", "pods", namespace), pod())
    if error:
        invalid = error.status == HTTPStatus.UNPROCESSABLE_ENTITY
        return Probe(namespace, stamped=False, words=error.why, invalid=invalid)
    annotations = answer["metadata"].get("annotations") or {}
    return Probe(namespace, stamped=names.PLACEMENT in annotations)
