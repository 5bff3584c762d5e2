"""The check of Kueue beside Fairlead: whether it leaves the pods of Runs to their controller.

Source: Default of pkg/controller/jobs/pod/pod_webhook.go of kubernetes-sigs/kueue 0.17.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook import names
from webhook.evaluation.sending import takes_new_pods
from webhook.installation.doctor.cluster_state import (
    Finding,
    PodEntry,
    ReadKind,
    check,
    error,
    warning,
)
from webhook.placement.label_values import selects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState

    Json = Mapping[str, Any]

# The LocalQueue that Kueue gives to whatever has none (constants.DefaultLocalQueueName).
DEFAULT_QUEUE: Final = "default"
# Labels that the controller gives to every pod of a Run.
_POD_OF_RUN: Final = {names.MANAGED_BY: names.MANAGER, names.RUN: "r", names.RUN_UID: "u"}
# Where Kueue's installation has its configuration, and the account of its program.
CONFIG_MAP: Final = "kueue-manager-config"
ACCOUNT: Final = "kueue-controller-manager"
_CONFIGURATION: Final = "controller_manager_config.yaml"
# A Run as Kueue's configuration names a kind.
EXTERNAL: Final = f"{names.RUN_KIND}.{names.API_VERSION.partition('/')[2]}.{names.GROUP}"
_NOT_OF_RUNS: Final = {"key": names.RUN_UID, "operator": "DoesNotExist"}


def pod_entries(configurations: Iterable[Json]) -> Iterator[PodEntry]:
    """Yield the entries for new pods of the configurations that have one for Kueue's own kinds."""
    for configuration in configurations:
        entries = configuration.get("webhooks") or ()
        groups = {
            group
            for entry in entries
            for rule in entry.get("rules") or ()
            for group in rule.get("apiGroups") or ()
        }
        if names.KUEUE_PREFIX.rstrip("/") in groups:
            name = configuration["metadata"]["name"]
            yield from (PodEntry(name, entry) for entry in entries if takes_new_pods(entry))


def namespace_of(entries: Iterable[PodEntry]) -> str:
    """Return the namespace of Kueue's webhook; empty if it is not behind a Service."""
    services = (pod_entry.entry.get("clientConfig", {}).get("service") for pod_entry in entries)
    return next((service["namespace"] for service in services if service), "")


def names_runs(config_map: Json | None) -> bool:
    """Return whether Kueue's configuration has Runs among its externalFrameworks."""
    text = ((config_map or {}).get("data") or {}).get(_CONFIGURATION, "")
    try:
        configuration = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    integrations = configuration.get("integrations") if isinstance(configuration, dict) else None
    return EXTERNAL in ((integrations or {}).get("externalFrameworks") or ())


@check("queues", ReadKind.QUEUES, ReadKind.NAMESPACES)
def queues(state: ClusterState) -> Iterator[Finding]:
    """Check that Kueue takes no pod of a Run for a pod without a queue."""
    if state.kueue.external:
        what = f"{EXTERNAL} is among Kueue's externalFrameworks"
        if not state.kueue.reads_runs:
            yield error(
                f"{what}, and Kueue's account may not list Runs: its webhook rejects every pod of "
                "a Run",
                state.reinstall(
                    "--backend kueue", "--set 'backends={OTHERS,kueue}'", "backend-kueue"
                ),
            )
        yield warning(
            f"{what}: delegated Runs with a queue start without quota",
            "take it out of Kueue's configuration, and leave the pods of Runs out of its webhook "
            "(docs/guides/kueue.md)",
        )
    for namespace in sorted(state.kueue.default_queues & state.namespaces.keys()):
        labels = state.namespaces[namespace]
        for configuration, entry in state.kueue.entries:
            if selects(entry, "namespaceSelector", labels) and selects(
                entry, "objectSelector", _POD_OF_RUN
            ):
                starts = namespace in state.kueue.queued
                make = error if starts else warning
                yield make(
                    f"{entry['name']} of Kueue gives pods of Runs in namespace {namespace} to "
                    f"LocalQueue {DEFAULT_QUEUE}, each by itself: Runs with a queue never start "
                    "there, as Kueue holds the pods of a Run that it has admitted",
                    f"`{leave_runs_out(configuration, entry)}`, or give LocalQueue "
                    f"{namespace}/{DEFAULT_QUEUE} another name",
                )


def leave_runs_out(configuration: str, entry: Json) -> str:
    """Return the command that leaves the pods of Runs out of an entry. kubectl merges by name."""
    expressions = (entry.get("objectSelector") or {}).get("matchExpressions") or ()
    selector = {"matchExpressions": [*expressions, _NOT_OF_RUNS]}
    patch = json.dumps(
        {"webhooks": [{"name": entry["name"], "objectSelector": selector}]}, separators=(",", ":")
    )
    return f"kubectl patch mutatingwebhookconfiguration {configuration} -p '{patch}'"
