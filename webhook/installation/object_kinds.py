"""The kinds of an installation's objects: API paths and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import InstallationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.api_paths import ObjectPath


class Kind(NamedTuple):
    """One kind: its API version, its resource in paths, and whether it is namespaced."""

    api_version: str
    name: str
    resource: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Its API group; empty for the core one."""
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""

    @property
    def definition(self) -> str:
        """The name of its CustomResourceDefinition, if it has one."""
        return f"{self.resource}.{self.group}"

    def path(self, namespace: str) -> CollectionPath:
        """Return the collection in a namespace; in all, if none is named. Raises InvalidName."""
        within = (namespace or None) if self.namespaced else None
        return CollectionPath(self.api_version, self.resource, within)

    def path_of(self, namespace: str, name: str) -> ObjectPath:
        """Return the path of one object. Raises InvalidName, also without a namespace."""
        within = namespace if self.namespaced else None
        return CollectionPath(self.api_version, self.resource, within).path_of(name)


_RBAC: Final = "rbac.authorization.k8s.io/v1"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_MONITORING: Final = "monitoring.coreos.com/v1"
_CERT_MANAGER: Final = "cert-manager.io/v1"
_OWN: Final = names.API_VERSION

CRD: Final = "CustomResourceDefinition"
CONFIGURATION: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
GUARD: Final = "ValidatingAdmissionPolicy"
GUARD_BINDING: Final = "ValidatingAdmissionPolicyBinding"
DEPLOYMENT: Final = "Deployment"
CRON_JOB: Final = "CronJob"
# Written by admins. An installation adds some, and removes none.
POLICIES: Final = (names.SOURCE_KIND, names.CLASS_KIND, names.POLICY_KIND, names.EXCEPTION_KIND)

# In the order in which they are applied. Dependencies come first: policies are written before a
# webhook uses them. The webhook configurations come after the webhook, and the guard that denies
# pods without a stamp is last.
KINDS: Final = (
    Kind("apiextensions.k8s.io/v1", CRD, "customresourcedefinitions", namespaced=False),
    Kind("v1", "Namespace", "namespaces", namespaced=False),
    Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False),
    Kind("v1", "ResourceQuota", "resourcequotas"),
    Kind("coordination.k8s.io/v1", "Lease", "leases"),
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind(_RBAC, "ClusterRole", "clusterroles", namespaced=False),
    Kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind(_RBAC, "Role", "roles"),
    Kind(_RBAC, "RoleBinding", "rolebindings"),
    Kind("v1", "Secret", "secrets"),
    Kind("v1", "ConfigMap", "configmaps"),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("v1", "Service", "services"),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Kind(_CERT_MANAGER, "Issuer", "issuers"),
    Kind(_CERT_MANAGER, "Certificate", "certificates"),
    Kind(_OWN, names.SOURCE_KIND, names.RUN_SOURCES, namespaced=False),
    Kind(_OWN, names.CLASS_KIND, names.CAPACITY_CLASSES, namespaced=False),
    Kind(_OWN, names.POLICY_KIND, names.PLACEMENT_POLICIES, namespaced=False),
    Kind(_OWN, names.EXCEPTION_KIND, names.PLACEMENT_EXCEPTIONS, namespaced=False),
    Kind("apps/v1", DEPLOYMENT, "deployments"),
    Kind("batch/v1", CRON_JOB, "cronjobs"),
    Kind(_MONITORING, "ServiceMonitor", "servicemonitors"),
    Kind(_MONITORING, "PodMonitor", "podmonitors"),
    Kind(_MONITORING, "PrometheusRule", "prometheusrules"),
    Kind(_ADMISSION, CONFIGURATION, "mutatingwebhookconfigurations", namespaced=False),
    Kind(_ADMISSION, VALIDATING, "validatingwebhookconfigurations", namespaced=False),
    Kind(_ADMISSION, GUARD, "validatingadmissionpolicies", namespaced=False),
    Kind(_ADMISSION, GUARD_BINDING, "validatingadmissionpolicybindings", namespaced=False),
)
# By API version: how a cluster gets the kinds that not every cluster serves.
NEEDED: Final = {
    _MONITORING: "install the Prometheus operator, or leave out the overlay monitoring",
    _CERT_MANAGER: "install cert-manager, or leave out the overlay cert-manager",
}
_RANKS: Final = {(kind.api_version, kind.name): rank for rank, kind in enumerate(KINDS)}


class Key(NamedTuple):
    """The identity of one object. Keys sort in the order in which objects are applied."""

    rank: int
    namespace: str
    name: str

    def __str__(self) -> str:
        """As people write it: Deployment fairlead-system/fairlead-webhook."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.name} {place}{self.name}"

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return KINDS[self.rank]

    @property
    def collection(self) -> CollectionPath:
        """The path of its collection."""
        return self.kind.path(self.namespace)

    @property
    def path(self) -> ObjectPath:
        """Its own path."""
        return self.kind.path_of(self.namespace, self.name)


def key(document: Mapping[str, Any]) -> Key:
    """Return the key of an object. Raises InstallationError if no installation has its kind."""
    version_kind = (str(document.get("apiVersion")), str(document.get("kind")))
    if version_kind not in _RANKS:
        raise InstallationError(
            f"no installation has a {version_kind[1]} of {version_kind[0]}: this is a bug"
        )
    metadata = document["metadata"]
    rank = _RANKS[version_kind]
    namespace = metadata.get("namespace", "default") if KINDS[rank].namespaced else ""
    return Key(rank, namespace, metadata["name"])


def key_of(kind: str, name: str, namespace: str = "") -> Key:
    """Return the key of the object with this kind and name."""
    (rank,) = (rank for rank, candidate in enumerate(KINDS) if candidate.name == kind)
    return Key(rank, namespace, name)


def containers_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the containers of an installation's program; none of an object that is no program."""
    spec = document.get("spec") or {}
    if document.get("kind") == CRON_JOB:
        spec = spec["jobTemplate"]["spec"]
    elif document.get("kind") != DEPLOYMENT:
        return []
    return list(spec["template"]["spec"]["containers"])


def in_order(objects: Iterable[Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """Return the objects in the order in which they are applied; of two with one key, the later."""
    document_by_key = {key(document): dict(document) for document in objects}
    return dict(sorted(document_by_key.items()))
