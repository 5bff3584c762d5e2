"""The pod that conditions are evaluated on."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.placement.pod_requests import in_nanos, requests
from webhook.placement.quantity import NANOS, counted, format_quantity
from webhook.placement.shapes import objects_in

# The API server's default for a pod that names none.
DEFAULT_SERVICE_ACCOUNT: Final = "default"
# The type of the volume with a token that its plugin ServiceAccount adds to nearly every pod.
ADDED_VOLUME: Final = "projected"
# The field of a pod that decides whether it gets one; else that of its ServiceAccount.
AUTOMOUNT: Final = "automountServiceAccountToken"
# Its default for a volume without a source.
_DEFAULT_VOLUME: Final = "emptyDir"
# A quantity above zero has some digit but 0 before any exponent or unit (the grammar of
# resource.Quantity).
_MORE_THAN_NOTHING = re.compile(r"\+?[0.]*[1-9]", re.ASCII)

_NOTHING: Final = MappingProxyType[str, Any]({})

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from webhook.identity import Identity
    from webhook.placement.shapes import JsonObject


class Subject(NamedTuple):
    """A pod of a run. A tuple, because it is made at every admission.

    `resources` are those of which it, or a container, requests more than zero; `requests` are its
    amounts in nanos, as the scheduler counts them.
    """

    namespace: str
    namespace_labels: Mapping[str, str]
    labels: Mapping[str, str]
    identity: Identity
    resources: frozenset[str] = frozenset()
    volumes: frozenset[str] = frozenset()
    service_account: str = DEFAULT_SERVICE_ACCOUNT
    annotations: Mapping[str, str] = _NOTHING
    requests: Mapping[str, int] = _NOTHING
    resource_claims: bool = False


def subject_of(
    namespace: str,
    namespace_labels: Mapping[str, str],
    labels: Mapping[str, str],
    identity: Identity,
    spec: JsonObject,
    asked: Container[str],
    annotations: Mapping[str, str],
) -> Subject:
    """Return the subject of a v1.PodSpec.

    `asked` has the names of the match fields that a policy gives: reading resources or volumes
    visits all of the pod's containers or volumes.
    """
    return Subject(
        namespace,
        namespace_labels,
        labels,
        identity,
        resources(spec) if "resources" in asked else frozenset(),
        volumes(spec) if "volumes" in asked else frozenset(),
        service_account(spec) if "service_accounts" in asked else DEFAULT_SERVICE_ACCOUNT,
        annotations,
        in_nanos(requests(spec)) if "requests" in asked else _NOTHING,
        bool(spec.get("resourceClaims")),
    )


def spec_of(subject: Subject) -> JsonObject:
    """Return a v1.PodSpec with all that the subject has of one."""
    requested = {name: quantity_of(subject, name) for name in sorted(subject.resources)}
    claims = [{"name": "claim", "resourceClaimName": "claim"}] if subject.resource_claims else []
    return {
        "containers": [{"name": "main", "image": "i", "resources": {"requests": requested}}],
        "volumes": [{"name": f"v-{kind.lower()}", kind: {}} for kind in sorted(subject.volumes)],
        "serviceAccountName": subject.service_account,
        **({"resourceClaims": claims} if claims else {}),
    }


def quantity_of(subject: Subject, resource: str) -> str:
    """Return how much of a resource the subject requests, or "1" without an amount."""
    amount = subject.requests.get(resource, NANOS)
    return format_quantity(resource, counted(resource, amount))


def resources(spec: JsonObject) -> frozenset[str]:
    """Return the resources that a v1.PodSpec or its containers request; a limit requests as much
    where no request is given.

    Claims of dynamic resource allocation are not among them.

    Source: the API server's defaulting of requests from limits, k8s.io/kubernetes/pkg/apis/core/v1.
    """
    resource_names: set[str] = set()
    holders = [
        spec,
        *objects_in(spec.get("initContainers")),
        *objects_in(spec.get("containers")),
    ]
    for holder in holders:
        asked = holder.get("resources")
        if not isinstance(asked, dict):
            continue
        parts = (asked.get(part) for part in ("limits", "requests"))
        limits, requests = (part if isinstance(part, dict) else {} for part in parts)
        for name, amount in {**limits, **requests}.items():
            if name not in resource_names and _MORE_THAN_NOTHING.match(str(amount)):
                resource_names.add(name)
    return frozenset(resource_names)


def volumes(spec: JsonObject) -> frozenset[str]:
    """Return the types of a pod's volumes: the member of each v1.Volume that is not its name.

    A volume without one is an emptyDir. One with a token is added to a pod that asks for it.

    Sources: the API server's defaulting of volumes, k8s.io/kubernetes/pkg/apis/core/v1, and its
    plugin ServiceAccount, which runs before webhooks.
    """
    volume_types = {ADDED_VOLUME} if spec.get(AUTOMOUNT) is True else set()
    for volume in objects_in(spec.get("volumes")):
        given = [key for key, value in volume.items() if key != "name" and value is not None]
        volume_types.update(given or (_DEFAULT_VOLUME,))
    return frozenset(volume_types)


def service_account(spec: JsonObject) -> str:
    """Return the service account of a v1.PodSpec, also where only the deprecated field names it.

    Source: the admission plugin ServiceAccount, which runs before webhooks, and
    Convert_v1_PodSpec_To_core_PodSpec, k8s.io/kubernetes/pkg/apis/core/v1.
    """
    for field in ("serviceAccountName", "serviceAccount"):
        name = spec.get(field)
        if name and isinstance(name, str):
            return name
    return DEFAULT_SERVICE_ACCOUNT
