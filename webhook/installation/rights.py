"""Permissions of the caller and of ServiceAccounts, as the API server judges them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.api_paths import CollectionPath

if TYPE_CHECKING:
    from webhook.kube.client import Client


class Right(NamedTuple):
    """One permission. An empty field means all, or none."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """In the form of `kubectl auth can-i`."""
        whole = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {whole}{name}{place}"


async def is_allowed(
    client: Client, right: Right, account: str = "", namespace: str = names.NAMESPACE
) -> bool:
    """Return whether a ServiceAccount, of Fairlead's namespace or another, has the right; without
    one, the caller.

    Raises ClusterError.
    """
    # How the API server authenticates its tokens (k8s.io/apiserver, serviceaccount.UserInfo).
    prefix = "system:serviceaccounts"
    user = {
        "user": f"system:serviceaccount:{namespace}:{account}",
        "groups": [prefix, f"{prefix}:{namespace}", "system:authenticated"],
    }
    resource, _, subresource = right.resource.partition("/")
    asked = {**right._asdict(), "resource": resource, "subresource": subresource}
    body = {"spec": {**(user if account else {}), "resourceAttributes": asked}}
    kind = "subjectaccessreviews" if account else "selfsubjectaccessreviews"
    answer = await client.create(CollectionPath("authorization.k8s.io/v1", kind), body)
    return bool(answer["status"].get("allowed"))
