"""What was read of a cluster, for all checks at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.installation.arguments import has_argument
from webhook.installation.from_files import FROM_CLUSTER
from webhook.installation.kinds import GUARD_BINDING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from webhook.installation.probe import Probe
    from webhook.placement.nodes import Node

    Json = Mapping[str, Any]


class Read(StrEnum):
    """What is read of a cluster, in the words in which it is told that it could not be."""

    POD_RULES = "the webhook configuration"
    JUDGING = "the validating configuration"
    PODS_OF_RUNS = "pods of runs"
    METRICS = "the metrics of the webhook's replicas"
    DEFINITION = "the definition of Runs"
    PODS = "Fairlead's pods"
    DEPLOYMENTS = "deployments"
    ENDPOINTS = "endpoints"
    GUARDS = "the guards"
    SERVING = "the serving Secret"
    LEASE = "the Lease"
    NAMESPACES = "namespaces"
    DAEMON_SETS = "DaemonSets in namespaces that are placed as a whole"
    NODES = "the cluster's nodes"
    POLICIES = "the policies"
    SERVED = "the policies of a webhook outside of the cluster"
    LEFT_FILES = "the ConfigMap of before"
    JUDGED = "whether policies are judged"
    OWN_RIGHTS = "your own rights"
    PROGRAMS_RIGHTS = "the programs' rights"


class Right(NamedTuple):
    """One thing that somebody may want to do. Empty fields mean all, or none."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """As `kubectl auth can-i` would have it."""
        whole = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {whole}{name}{place}"


class Asked(NamedTuple):
    """Whether somebody has a right. `account` is a ServiceAccount's name; empty: who asks."""

    account: str
    right: Right
    allowed: bool


class Unplaced(NamedTuple):
    """A pod of a run without a stamp; `older`: than the webhook configuration."""

    namespace: str
    name: str
    older: bool = False


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What there is. None where it is absent; `unread` says of what that cannot be told.

    version: of this program; server: the API server's gitVersion.
    definition: of Runs in the cluster; shipped: as this version has it.
    deployments, by name, and pods, in Fairlead's namespace.
    endpoints: of the webhook's Service, each with whether it is ready.
    configuration: the MutatingWebhookConfiguration.
    guard_objects: our admission policies and their bindings, by kind and name; shipped_guards:
    those that every installation has, as this version has them.
    judging: the ValidatingWebhookConfiguration; refused_policies: why a policy by dry run was not
    judged, in the API server's words, though it should have been.
    serving: certificate and bundle (PEM) of the serving Secret; never its key.
    silences: seconds since a replica heard of a resource, by the replica's name and the resource.
    leader: who leads the controllers; empty if nobody does.
    namespaces: labels by name. daemon_sets: those in namespaces that are placed as a whole.
    nodes: the cluster's, if there is such a DaemonSet.
    unplaced: pods of runs without a stamp, finished ones left out.
    policies: the ConfigMap's files; or the cluster's objects, by resource and name, if the webhook
    has its policies from there.
    left_files: of the ConfigMap, where the webhook does not have its policies from there.
    unread: what could not be read, and why.
    """

    now: datetime
    version: str
    server: str = ""
    definition: Json | None = None
    shipped: Json | None = None
    deployments: Mapping[str, Json] = field(default_factory=dict)
    pods: Sequence[Json] = ()
    endpoints: Sequence[bool] = ()
    configuration: Json | None = None
    guard_objects: Mapping[str, Json] = field(default_factory=dict)
    shipped_guards: Mapping[str, Json] = field(default_factory=dict)
    judging: Json | None = None
    refused_policies: str = ""
    serving: Mapping[str, bytes] | None = None
    silences: Mapping[tuple[str, str], float] = field(default_factory=dict)
    leader: str = ""
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    daemon_sets: Sequence[Json] = ()
    nodes: Sequence[Node] = ()
    unplaced: Sequence[Unplaced] = ()
    policies: Mapping[str, bytes] | None = None
    left_files: Mapping[str, bytes] = field(default_factory=dict)
    rights: Sequence[Asked] = ()
    probe: Probe | None = None
    unread: Mapping[Read, str] = field(default_factory=dict)

    @property
    def entries(self) -> Sequence[Json]:
        """The entries of the webhook configuration."""
        return (self.configuration or {}).get("webhooks") or ()

    @property
    def judging_entries(self) -> Sequence[Json]:
        """The entries of the validating configuration."""
        return (self.judging or {}).get("webhooks") or ()

    @property
    def guards(self) -> Sequence[Json]:
        """The bindings of the stamp's guard."""
        begin = f"{GUARD_BINDING} {names.STAMP_GUARD}"
        return [each for title, each in self.guard_objects.items() if title.startswith(begin)]

    @property
    def in_cluster(self) -> bool:
        """Whether the webhook is meant to run in the cluster, behind its Service."""
        return not self.url

    @property
    def url(self) -> str:
        """Where the webhook is, if it runs outside of the cluster; else empty."""
        urls = [str(each["clientConfig"].get("url") or "") for each in self.entries]
        return urls[0] if urls and all(urls) else ""

    @property
    def elsewhere(self) -> bool:
        """Whether the webhook runs outside of the cluster, and nothing was installed in it."""
        installed = names.NAMESPACE in self.namespaces or self.deployments or self.leader
        return not self.in_cluster and not installed

    @property
    def beyond(self) -> Sequence[Read]:
        """What of the cluster's tells nothing of programs that run outside of it."""
        if self.in_cluster:
            return ()
        if not self.elsewhere:
            return (Read.SERVED,)
        return Read.METRICS, Read.ENDPOINTS, Read.SERVING, Read.POLICIES, Read.LEASE

    @property
    def by_cert_manager(self) -> bool:
        """Whether cert-manager, and not our controller, keeps the certificates."""
        metadata = (self.configuration or {}).get("metadata") or {}
        return names.INJECTED_BY_CERT_MANAGER in (metadata.get("annotations") or {})

    @property
    def policies_from_cluster(self) -> bool:
        """Whether the webhook has its policies from the cluster's objects."""
        return takes_policies_from_cluster(self.deployments)


def takes_policies_from_cluster(deployments: Mapping[str, Json]) -> bool:
    """Whether the webhook's Deployment, if it is among these, says so."""
    return names.WEBHOOK in deployments and has_argument(deployments[names.WEBHOOK], FROM_CLUSTER)
