"""The input of all checks, the state of a cluster, and their output, findings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from webhook import names, validating
from webhook.applied_by import applied_by
from webhook.errors import InstallationError, InvalidDocuments
from webhook.installation.manifests import DEFAULT
from webhook.installation.object_kinds import GUARD_BINDING
from webhook.installation.policy_files import FROM_CLUSTER, has_argument
from webhook.installation.rollout import NO_REASONS, Reasons
from webhook.installation.stored_options import read_options
from webhook.interception import installed_since, placed_whole, read_record
from webhook.judgement.set_judgement import Objects, load_objects
from webhook.policy import policy_documents
from webhook.policy.added_sources import table_of
from webhook.policy.load import load
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from webhook.applied_by import Applier
    from webhook.cluster_objects.unplaced_pods import Unplaced
    from webhook.installation.object_kinds import Key
    from webhook.installation.probe import Probe
    from webhook.installation.rights import Right
    from webhook.installation.stored_options import StoredOptions
    from webhook.interception import Record
    from webhook.kube.failing_writes import Write
    from webhook.kube.watches import WatchState
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_documents import Document
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable

    Json = Mapping[str, Any]

Judge: TypeAlias = "Callable[[ClusterState], Iterable[Finding]]"
Severity = Literal["error", "warning", "note"]


class ReadKind(StrEnum):
    """What is read from a cluster, as named in the message that it could not be read."""

    POD_RULES = "the webhook configuration"
    JUDGING = "the validating configuration"
    PODS_OF_RUNS = "pods of runs"
    METRICS = "the metrics of Fairlead's replicas"
    DEFINITIONS = "the definitions"
    PODS = "Fairlead's pods"
    DEPLOYMENTS = "deployments"
    ENDPOINTS = "endpoints"
    GUARDS = "the guards"
    SERVING = "the serving Secret"
    LEASE = "the Lease"
    NAMESPACES = "namespaces"
    DAEMON_SETS = "DaemonSets in namespaces that are placed as a whole"
    NODES = "the cluster's nodes"
    CLASSES = "PriorityClasses and RuntimeClasses"
    POLICIES = "the policies"
    SERVED = "the policies of a webhook outside of the cluster"
    JUDGED = "whether policies are judged"
    PROBE = "whether a pod of a run is placed"
    OWN_RIGHTS = "your own rights"
    PROGRAMS_RIGHTS = "the programs' rights"
    OBJECTS = "the other objects of the installation"
    QUEUES = "Kueue's webhook and its queues"


class Unread(NamedTuple):
    """Why something could not be read, and what to do about it."""

    why: str
    cure: str


class PodEntry(NamedTuple):
    """An entry of Kueue's webhook that gets new pods, and the configuration that has it."""

    configuration: str
    entry: Json


class Kueue(NamedTuple):
    """Kueue in a cluster.

    entries: those that get new pods. default_queues: namespaces with a LocalQueue `default`.
    queued: namespaces with Runs that have a queue. external: whether Runs are among its
    externalFrameworks. reads_runs: whether its account may list Runs.
    """

    entries: Sequence[PodEntry] = ()
    default_queues: frozenset[str] = frozenset()
    queued: frozenset[str] = frozenset()
    external: bool = False
    reads_runs: bool = True


NO_KUEUE: Final = Kueue()


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The state of a cluster. None means absent, unless `unread` has the field's ReadKind.

    version: of this program; server: the API server's gitVersion.
    definitions: those of the cluster, by name.
    expected: the objects that this version installs, with the options of what is installed.
    wanted: the objects as this version has installed them; empty if that is not known.
    stored: those of them that exist, as far as they are compared.
    deployments, by name, and pods, in Fairlead's namespace.
    endpoints: of the webhook's Service, each with whether it is ready.
    configuration: the MutatingWebhookConfiguration.
    guard_objects: our admission policies and their bindings.
    judging: the ValidatingWebhookConfiguration.
    refused_policies: the API server's message, if a policy by dry run should have been validated
        and was not.
    serving: certificate and bundle (PEM) of the serving Secret; never its key.
    watches: how the watches of a resource are, by the replica's name and the resource.
    failing_writes: the seconds for which writes have failed, by the replica's name and the write.
    leader: the leading controller by the Lease; empty if there is none.
    leads: whether a controller says that it leads; None if not all were asked.
    namespaces: labels by name.
    daemon_sets: DaemonSets in namespaces that are placed as a whole.
    nodes: the cluster's nodes.
    classes: objects by kind and name without which the API server rejects pods that name them.
    reasons: why pods are not ready, as far as their status does not have it.
    unplaced: pods of runs without a stamp that have not finished.
    policies: what the webhook reads: the ConfigMap's files, or objects by resource and name.
    missing_rights: each with the ServiceAccount that lacks it; empty: the caller.
    kueue: Kueue beside Fairlead; without it, nothing is in it.
    unread: what could not be read, and why.
    """

    now: datetime
    version: str
    server: str = ""
    definitions: Mapping[str, Json] = field(default_factory=dict)
    expected: Mapping[Key, Json] = field(default_factory=dict)
    wanted: Mapping[Key, Json] = field(default_factory=dict)
    stored: Mapping[Key, Json] = field(default_factory=dict)
    deployments: Mapping[str, Json] = field(default_factory=dict)
    pods: Sequence[Json] = ()
    endpoints: Sequence[bool] = ()
    configuration: Json | None = None
    guard_objects: Mapping[Key, Json] = field(default_factory=dict)
    judging: Json | None = None
    refused_policies: str = ""
    serving: Mapping[str, bytes] | None = None
    watches: Mapping[tuple[str, str], WatchState] = field(default_factory=dict)
    failing_writes: Mapping[tuple[str, Write], float] = field(default_factory=dict)
    leader: str = ""
    leads: bool | None = None
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    daemon_sets: Sequence[Json] = ()
    nodes: Sequence[Node] = ()
    classes: Mapping[str, Mapping[str, JsonObject]] = field(default_factory=dict)
    reasons: Reasons = NO_REASONS
    unplaced: Sequence[Unplaced] = ()
    policies: Mapping[str, bytes] | None = None
    missing_rights: Sequence[tuple[str, Right]] = ()
    probe: Probe | None = None
    kueue: Kueue = NO_KUEUE
    unread: Mapping[ReadKind, Unread] = field(default_factory=dict)

    @property
    def entries(self) -> Sequence[Json]:
        """The entries of the webhook configuration."""
        return (self.configuration or {}).get("webhooks") or ()

    @property
    def judging_entries(self) -> Sequence[Json]:
        """The entries of the validating configuration."""
        return (self.judging or {}).get("webhooks") or ()

    @property
    def record(self) -> Record:
        """What is recorded to be intercepted, on the controller's Deployment."""
        return read_record(self.deployments.get(names.CONTROLLER))

    @property
    def installed(self) -> str:
        """When Fairlead was installed, as the API server writes it; empty if nothing shows it."""
        runs = self.definitions.get(f"{names.RUNS}.{names.GROUP}")
        return installed_since(self.deployments.get(names.CONTROLLER), self.configuration, runs)

    def unguarded(
        self, entries: Sequence[Json], guards: Collection[str], actions: Collection[str]
    ) -> Sequence[str]:
        """Return the names of the entries whose pods no binding of these guards selects with one of
        the actions."""
        bound = [
            selectors_of(spec.get("matchResources") or {})
            for key, guard in self.guard_objects.items()
            if key.kind.name == GUARD_BINDING
            and (spec := guard["spec"]).get("policyName") in guards
            and not {*actions}.isdisjoint(spec.get("validationActions") or ())
        ]
        return [
            entry["name"]
            for entry in entries
            if selectors_of(entry) not in bound and ({}, {}) not in bound
        ]

    @property
    def compiled(self) -> PolicySet | None:
        """The policy set; None if it is unknown or does not compile, which a check reports."""
        try:
            read = load_objects if self.policies_from_cluster else load
            return None if self.policies is None else read(self.policies).policies
        except InvalidDocuments:
            return None

    @property
    def whole(self) -> Mapping[str, Mapping[str, str]]:
        """The namespaces that are placed as a whole, with their labels."""
        return placed_whole(self.namespaces)

    @property
    def in_cluster(self) -> bool:
        """Whether the configuration calls the webhook in the cluster, behind its Service."""
        return not self.url

    @property
    def url(self) -> str:
        """The webhook's address if it runs outside the cluster; else empty."""
        urls = [str(entry["clientConfig"].get("url") or "") for entry in self.entries]
        return urls[0] if urls and all(urls) else ""

    @property
    def elsewhere(self) -> bool:
        """Whether the webhook runs outside the cluster, and nothing is installed in the cluster."""
        installed = names.NAMESPACE in self.namespaces or self.deployments or self.leader
        return not self.in_cluster and not installed

    @property
    def absent(self) -> Mapping[ReadKind, str]:
        """What is not in the cluster, each with the reason that a check gives if it reads it."""
        controller, webhook = (
            "" if name in self.deployments else f"there is no Deployment {names.NAMESPACE}/{name}"
            for name in (names.CONTROLLER, names.WEBHOOK)
        )
        outside = f"the webhook runs outside of the cluster, at {self.url}" if self.url else ""
        # Nothing of Fairlead is in the cluster: the controller runs beside the webhook.
        both = outside if self.elsewhere else ""
        served_reason = "" if self.policies_from_cluster else outside
        reason_by_kind = {
            ReadKind.POD_RULES: self.configuration is None and "there is no webhook configuration",
            ReadKind.METRICS: both or (controller and webhook),
            ReadKind.ENDPOINTS: outside,
            ReadKind.SERVING: outside or (self.serving is None and "there is no serving Secret"),
            # The webhook's arguments show where it reads them.
            ReadKind.POLICIES: self.policies is None and (served_reason or webhook),
            ReadKind.SERVED: served_reason,
            ReadKind.LEASE: both,
            ReadKind.PROGRAMS_RIGHTS: both or controller,
        }
        return {kind: reason for kind, reason in reason_by_kind.items() if reason}

    @property
    def by_cert_manager(self) -> bool:
        """Whether cert-manager, and not our controller, manages the certificates."""
        metadata = (self.configuration or {}).get("metadata") or {}
        return names.INJECTED_BY_CERT_MANAGER in (metadata.get("annotations") or {})

    @property
    def sources(self) -> SourceTable:
        """The table of systems, with those of the webhook's policies."""
        if self.policies is None:
            return SHIPPED
        return sources_of(self.policies, from_cluster=self.policies_from_cluster)

    @property
    def applied_by(self) -> Applier:
        """The tool that applies this installation; definitions may be applied by another."""
        guards = self.guard_objects.values()
        return applied_by((self.configuration, self.judging, *self.deployments.values(), *guards))

    def reinstall(self, options: str = "", values: str = "", component: str = "") -> str:
        """Return the command that applies this installation again, as `Applier.command` does."""
        return self.applied_by.command(options, values, component)

    @property
    def options(self) -> StoredOptions | None:
        """The options of the last `fairlead install`; None if they cannot be read."""
        with suppress(InstallationError):
            return read_options(self.deployments.get(names.CONTROLLER))
        return None

    @property
    def overlays(self) -> Sequence[str]:
        """The overlays of the last `fairlead install`, beside the default."""
        options = self.options
        return [overlay for overlay in (options.overlays if options else ()) if overlay != DEFAULT]

    @property
    def policies_from_cluster(self) -> bool:
        """Whether the webhook reads its policies from the cluster's objects."""
        return takes_policies_from_cluster(self.deployments, self.judging)


def selectors_of(entry: Json) -> tuple[Json, Json]:
    """Return the selectors of namespaces and objects of a webhook's entry or of a binding."""
    return entry.get("namespaceSelector") or {}, entry.get("objectSelector") or {}


def sources_of(policies: Mapping[str, bytes], *, from_cluster: bool) -> SourceTable:
    """Return the table of systems, with those of the policies."""
    return table_of(documents_of(policies, from_cluster=from_cluster))


def documents_of(policies: Mapping[str, bytes], *, from_cluster: bool) -> Sequence[Document]:
    """Return the documents of the policies that can be read."""
    read = Objects().documents if from_cluster else policy_documents.parse
    return read(policies).documents


def takes_policies_from_cluster(deployments: Mapping[str, Json], judging: Json | None) -> bool:
    """Return True if the webhook takes policies from the cluster: by its Deployment's arguments.

    Of a webhook without a Deployment, the validating configuration says so: it gets the writes of
    policies.
    """
    if names.WEBHOOK in deployments:
        return has_argument(deployments[names.WEBHOOK], FROM_CLUSTER)
    entries = (judging or {}).get("webhooks") or ()
    return any(entry.get("name") == validating.POLICIES and entry.get("rules") for entry in entries)


class Finding(NamedTuple):
    """One result of a check: what was found, and what to do about it.

    A command in backticks ends what was found; tests/cluster/cures.py plays each.
    """

    severity: Severity
    what: str
    cure: str = ""

    def document(self) -> dict[str, str]:
        """Return it as a member of a report's `findings`."""
        return {"severity": self.severity, "message": self.what, "cure": self.cure}


# Pods are rejected or not placed, now or soon.
error: Final = partial(Finding, "error")
# Pods may be rejected or not placed later.
warning: Final = partial(Finding, "warning")
note: Final = partial(Finding, "note")


_NOT_CHECKED: Final = "not checked: "


def not_checked(reason: str) -> Finding:
    """Return the finding of a check that does not apply to this cluster."""
    return note(f"{_NOT_CHECKED}{reason}")


def does_not_apply(findings: Sequence[Finding]) -> bool:
    """Return whether a check with these findings did not apply to the cluster."""
    return bool(findings) and all(finding.what.startswith(_NOT_CHECKED) for finding in findings)


class Check(NamedTuple):
    """One check: its name, what it reads, and its function.

    needs: without this it has no findings.
    """

    name: str
    reads: tuple[ReadKind, ...]
    needs: ReadKind | None
    judge: Judge

    def __call__(self, state: ClusterState) -> Sequence[Finding]:
        """Return the findings about the state of a cluster; without any, that nothing was there to
        check, if so.
        """
        findings = () if self.needs in state.unread else tuple(self.judge(state))
        if findings or state.unread.keys() & {*self.reads}:
            return findings
        reasons = dict.fromkeys(state.absent[kind] for kind in self.reads if kind in state.absent)
        return tuple(map(not_checked, reasons))


def check(name: str, *reads: ReadKind, needs: ReadKind | None = None) -> Callable[[Judge], Check]:
    """Make a check of a function."""
    kinds = (*reads, needs) if needs else reads
    return lambda judge: Check(name, kinds, needs, judge)
