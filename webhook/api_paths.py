"""Paths of the API server, made of checked parts only.

A name that a person, a variable or another author gave must not lead to another object, to a whole
collection, or into the query. So a path is a type of its own that checks its parts, and the client
(`webhook.kube.client`) takes nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN, is_label, is_subdomain
from webhook.errors import InvalidName
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

# Kubernetes forbids less (apimachinery, IsValidPathSegmentName: ".", "..", "/" and "%"), but "?",
# "#", spaces and control characters mean something else in an address. No kind that Fairlead reads
# by name has them: they are only in names of RBAC's objects.
_PART: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:]*", re.ASCII)
_LONGEST_PART: Final = MAX_SUBDOMAIN + len(":65535")


def check_name(name: str) -> str:
    """Return the name of an object, a DNS-1123 subdomain. Raises InvalidName."""
    return _check("name", name, is_subdomain, f"1 to {MAX_SUBDOMAIN} of a-z, 0-9, '-' and '.'")


def check_namespace(name: str) -> str:
    """Return the name of a namespace, a DNS-1123 label. Raises InvalidName."""
    return _check("namespace", name, is_label, f"1 to {MAX_LABEL} of a-z, 0-9 and '-'")


class ApiPath(str):
    """A path: `/`, and a part, for each part. Raises InvalidName for a part that can be none.

    >>> ApiPath("apis", "fairlead.dev", "v1alpha1")
    '/apis/fairlead.dev/v1alpha1'
    """

    __slots__ = ()

    def __new__(cls, *parts: str) -> Self:
        for part in parts:
            _check("part of a path", part, _is_part, "letters, digits, '-', '.', '_' or ':'")
        return str.__new__(cls, "".join(f"/{part}" for part in parts))

    @classmethod
    def of_version(cls, api_version: str) -> ApiPath:
        """Return the path of `v1`, or of a group with a version, where its resources are listed."""
        group, slash, version = api_version.partition("/")
        return ApiPath("apis", group, version) if slash else ApiPath("api", api_version)


class CollectionPath(ApiPath):
    """All objects of a resource in a namespace; without one, of the cluster.

    An empty namespace is an invalid one: no variable that was never set means all namespaces.
    """

    __slots__ = ()

    def __new__(cls, api_version: str, resource: str, namespace: str | None = None) -> Self:
        within = "" if namespace is None else f"/namespaces/{check_namespace(namespace)}"
        return str.__new__(cls, f"{ApiPath.of_version(api_version)}{within}{ApiPath(resource)}")

    def path_of(self, name: str) -> ObjectPath:
        """Return the path of one of the objects. Raises InvalidName."""
        return str.__new__(ObjectPath, f"{self}/{check_name(name)}")


class ObjectPath(ApiPath):
    """One object, or a subresource of it."""

    __slots__ = ()

    def __new__(cls) -> Self:
        raise TypeError("only CollectionPath.path_of makes one, so that it always has a name")

    def subresource(self, name: str) -> ObjectPath:
        """Return the path of a subresource, such as status or log. Raises InvalidName."""
        return str.__new__(ObjectPath, f"{self}{ApiPath(name)}")


def _check(what: str, text: object, allows: Callable[[str], bool], allowed: str) -> str:
    # Programs in Python hand over what os.environ.get has: None for a variable that is not set.
    if isinstance(text, str) and allows(text):
        return text
    # The usual cause of an empty name.
    empty = "" if text else "it is empty, as of a variable that is not set; "
    raise InvalidName(f"{what} {cut(repr(text), 100)}: {empty}want {allowed}")


def _is_part(text: str) -> bool:
    return len(text) <= _LONGEST_PART and _PART.fullmatch(text) is not None


def kubectl_name(group: str, kind: str, name: str) -> str:
    """Return an object as kubectl names it: pod/a, job.batch/train; the core group is empty."""
    return f"{kind}.{group}/".lower() + name if group else f"{kind.lower()}/{name}"


VERSION: Final = ApiPath("version")
NAMESPACES: Final = CollectionPath("v1", "namespaces")
NODES: Final = CollectionPath("v1", "nodes")
CONFIGURATIONS: Final = CollectionPath(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"
)
