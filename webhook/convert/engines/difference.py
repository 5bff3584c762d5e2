"""Compare an engine's object with what its Run renders to: each difference is a warning.

So nothing that a conversion loses, adds or changes stays unsaid, whatever the converter reads.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.shortening import cut
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.policy.findings import Path

# Fields of metadata and of the object that the API server or controllers write.
_BY_THE_SERVER: Final = frozenset(
    {
        ("status",),
        *(
            ("metadata", field)
            for field in (
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "managedFields",
                "selfLink",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
            )
        ),
        ("metadata", "annotations", names.LAST_APPLIED),
    }
)
_QUANTITIES: Final = ("limits", "requests")
# Mappings that are compared field by field even if the rendered object has none.
_SECTIONS: Final = ("runPolicy", "metadata", "spec")
# Mappings that switch something on even if they are empty.
_SWITCHES: Final = frozenset({"elasticPolicy"})
_VALUE_MAX_CHARACTERS: Final = 60
# An item, such as a port of a Service, shows its last field, too.
_MOST_OF_ITEM: Final = 160
_IN_RUN: Final = (
    "its image, command, args, env, resources and numbers are in the Run; write others there"
)
# By the end of the path: why there is no counterpart, and what to do instead.
_REASONS: Final[Mapping[tuple[str, ...], str]] = {
    ("runPolicy", "schedulingPolicy"): (
        "gang schedulers read their own labels and annotations; write these and schedulerName into "
        "the template"
    ),
    ("runPolicy", "managedBy"): "other controllers do not manage Runs",
    ("spec", "managedBy"): "other controllers do not manage Runs",
    ("spec", "enableDynamicWorker"): "the number of replicas of a Run is fixed",
    ("spec", "backoffLimitPerIndex"): (
        "a Run counts the failures of all replicas together, and ends after backoffLimit of them "
        "(default 3); a Job with this field has no limit for all by default: set backoffLimit"
    ),
    ("spec", "network"): "a Run has a headless Service of its own name",
    ("spec", "coordinator"): "the framework's leading role is the coordinator",
    ("spec", "startupPolicy"): "the framework sets the order in which roles start",
    ("spec", "restartPolicy"): "pods of a Run never restart in place; a role's restartPolicy does",
    ("restartPolicy",): (
        "a replica that has finished does not run again; without restartPolicy, a failed one does"
    ),
    ("metadata", "generateName"): "the Run has the name of the file; --name sets another name",
    ("workerGroupSpecs",): "the role worker is the first group that has workers",
    ("replicatedJobs",): "it has no pods, or there is no role left for it",
    ("metadata", "finalizers"): "the controller that set or reads it does not know the Run",
    ("metadata", "ownerReferences"): (
        "write the owner into the Run's metadata if the Run is to be deleted with it"
    ),
    ("template", "metadata", "name"): "the replica has its own name",
    ("template", "metadata", "namespace"): "the Run's namespace is that of its pods",
    ("spec", "trainer"): _IN_RUN,
    **{
        ("trainer", key): _IN_RUN
        for key in ("image", "command", "args", "env", "resourcesPerNode", "numNodes")
    },
    **{
        ("driver", key): "it is in the template of the Run, and rendered as the driver's template"
        for key in (
            *("labels", "annotations", "env", "envFrom", "volumeMounts", "securityContext"),
            *("serviceAccount", "nodeSelector", "tolerations", "affinity", "schedulerName"),
            *("priorityClassName", "podSecurityContext", "initContainers", "sidecars", "image"),
        )
    },
    **dict.fromkeys(
        (("spec", "imagePullPolicy"), ("spec", "imagePullSecrets"), ("spec", "volumes")),
        "it is in the template of the Run, and executors have none",
    ),
    ("driver", "memory"): "write the memory of the pod into resources, with Spark's overhead",
    **dict.fromkeys(
        (
            ("elasticPolicy", "metrics"),
            *((at, "enableInTreeAutoscaling") for at in ("spec", "rayClusterSpec")),
            *((at, "autoscalerOptions") for at in ("spec", "rayClusterSpec")),
        ),
        "the number of replicas of a Run is fixed",
    ),
    **dict.fromkeys(
        (("elasticPolicy", "rdzvHost"), ("elasticPolicy", "standalone")),
        "the replicas of a Run meet at its leader, by c10d",
    ),
    ("elasticPolicy", "rdzvPort"): (
        "the replicas of a Run meet at its leader, by c10d; pytorch.port is the port"
    ),
    ("elasticPolicy", "rdzvId"): "it is the name of the Run",
    ("elasticPolicy", "rdzvConf"): "give it to torchrun, as --rdzv-conf",
    ("elasticPolicy", "nProcPerNode"): "nprocPerNode, which is set too, is in the Run",
    **dict.fromkeys(
        (("spec", "rayVersion"), ("rayClusterSpec", "rayVersion")),
        "the image has the version that it has",
    ),
    ("rayStartParams", "address"): "the workers of a Run have the head's address",
    ("rayStartParams", "port"): "spec.ray.port is the head's port",
}


class Difference(NamedTuple):
    """A difference at a path of the object, or of the nearest value above it that exists."""

    path: Path
    message: str


def differences(given: Any, rendered: Any, path: Path = ()) -> Iterator[Difference]:
    """Yield what the object has and the rendered one does not, has otherwise, or has in addition.

    A null and an empty list or mapping equal a field that is left out, as for the API server.
    """
    if path in _BY_THE_SERVER or _equal(given, rendered, path):
        return
    if _empty(rendered) and path[-1:] and path[-1] in _SECTIONS:
        rendered = {}
    if isinstance(given, dict) and isinstance(rendered, dict):
        for key in (*given, *(name for name in rendered if name not in given)):
            here = (*path, key)
            if here in _BY_THE_SERVER or _equal(given.get(key), rendered.get(key), here):
                continue
            if _empty(given.get(key)) and not _empty(rendered.get(key)):
                text = f"{key}: {_short(rendered[key])}"
                yield Difference(path, f"the Run also means {text}")
            else:
                yield from differences(given[key], rendered.get(key), here)
    elif isinstance(given, list) and isinstance(rendered, list):
        for index in range(max(len(given), len(rendered))):
            if index >= len(given):
                text = _short(rendered[index])
                yield Difference(path, f"the Run also means one more item: {text}")
            else:
                other = rendered[index] if index < len(rendered) else None
                yield from differences(given[index], other, (*path, index))
    elif _empty(rendered):
        yield Difference(path, f"is left out: {_reason(path)}")
    else:
        yield Difference(path, f"is {_short(given)}, and becomes {_short(rendered)} in the Run")


def _equal(given: Any, rendered: Any, path: Path) -> bool:
    if _empty(given) and _empty(rendered):
        switched = path[-1:] and path[-1] in _SWITCHES
        return not switched or given == rendered
    if given is None or rendered is None or isinstance(given, bool) or isinstance(rendered, bool):
        return given is rendered
    if len(path) > 1 and path[-2] in _QUANTITIES:
        return str(given) == str(rendered)
    return type(given) is type(rendered) and bool(given == rendered)


def _empty(value: Any) -> bool:
    """Return True for what means the same as a field that is left out."""
    return value is None or value in ("", [], {})


def _reason(path: Path) -> str:
    entry = path[:-1] if isinstance(path[-1], int) else path
    for end, reason in _REASONS.items():
        if entry[-len(end) :] == end:
            return reason
    return "a Run has no counterpart"


def _short(value: Any) -> str:
    """Return the value as the file would have it: text in quotes, all others as JSON."""
    if isinstance(value, str):
        return quoted(cut(value, _VALUE_MAX_CHARACTERS))
    # Dates and others that JSON does not have are text.
    text = json.dumps(value, default=str, ensure_ascii=False)
    return cut(text, _MOST_OF_ITEM if isinstance(value, dict | list) else _VALUE_MAX_CHARACTERS)
