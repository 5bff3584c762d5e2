"""The policy report of a namespace: PolicyReport of wgpolicyk8s.io/v1alpha2, bounded and stable."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import CollectionPath

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.controller.policies.pod_results import JudgedPod, PodResult

    Json = dict[str, Any]

GROUP: Final = "wgpolicyk8s.io"
VERSION: Final = f"{GROUP}/v1alpha2"
KIND: Final = "PolicyReport"
RESOURCE: Final = "policyreports"
NAME: Final = "fairlead"
LABELS: Final = {"app.kubernetes.io/managed-by": NAME, "app.kubernetes.io/part-of": NAME}
SELECTOR: Final = f"app.kubernetes.io/managed-by={NAME}"
# The owner of all reports: removing the component removes it, and the garbage collector them.
OWNER: Final = f"{names.CONTROLLER}-policy-reports"
# Results in one report, of at most some 900 bytes each: below the limits of an object in etcd.
RESULTS_PER_REPORT: Final = 200
SHORTENED: Final = f"{names.GROUP}/shortened"
NO_DEFINITION: Final = (
    f"policy reports are not written: the cluster does not serve {RESOURCE} of {VERSION}; "
    "install its definition (Kyverno's chart has it), or remove --policy-reports"
)
# The order of results.
FIRST: Final = {"fail": 0, "error": 1, "warn": 2, "skip": 3}
_CATEGORY: Final = "Placement"


class _Row(NamedTuple):
    pod: JudgedPod
    result: PodResult

    def order(self) -> tuple[object, ...]:
        """Failures first; then by pod, so that an unchanged pod keeps its place."""
        return FIRST[self.result.result], self.pod.name, *self.result


def collection(namespace: str = "") -> CollectionPath:
    """Return the path of all reports, or of those in a namespace."""
    return CollectionPath(VERSION, RESOURCE, namespace or None)


def report(
    namespace: str,
    pods: Iterable[JudgedPod],
    *,
    before: Mapping[str, Any] | None,
    owner: Mapping[str, Any] | None,
    now: int,
) -> Json:
    """Return the report on a namespace's pods of runs.

    `summary` counts all results; `pass` counts pods without any. `results` has the first MOST, and
    one that says how many are left out. A result that the report `before` has keeps its timestamp;
    `now` is in seconds since 1970. `owner` is an ownerReference. There is no scope: Policy Reporter
    takes its kind for that of every result.
    """
    judged_pods = [*pods]
    rows = sorted(
        (_Row(pod, result) for pod in judged_pods for result in pod.results), key=_Row.order
    )
    counts = Counter(row.result.result for row in rows)
    timestamps = {
        _key(result): result["timestamp"] for result in (before or {}).get("results") or ()
    }
    results = [_stamped(_document(row), timestamps, now) for row in rows[:RESULTS_PER_REPORT]]
    if len(rows) > RESULTS_PER_REPORT:
        left = (
            f"{len(rows) - RESULTS_PER_REPORT:,} of {len(rows):,} results are counted in the "
            "summary only"
        )
        results.append(
            _stamped(
                {
                    "source": NAME,
                    "policy": SHORTENED,
                    "category": _CATEGORY,
                    "result": "skip",
                    "severity": "info",
                    "scored": False,
                    "message": left,
                },
                timestamps,
                now,
            )
        )
    summary = {
        "pass": sum(not pod.results for pod in judged_pods),
        **{outcome: counts[outcome] for outcome in ("fail", "warn", "error", "skip")},
    }
    metadata: Json = {"name": NAME, "namespace": namespace, "labels": dict(LABELS)}
    if owner:
        metadata["ownerReferences"] = [dict(owner)]
    return {
        "apiVersion": VERSION,
        "kind": KIND,
        "metadata": metadata,
        "summary": summary,
        "results": results,
    }


def differs(wanted: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Return True if the stored report must be written; what others added to it does not count."""
    metadata, live = wanted["metadata"], stored["metadata"]
    labels = live.get("labels") or {}
    return (
        any(wanted[key] != (stored.get(key) or type(wanted[key])()) for key in _CONTENT)
        or any(labels.get(key) != value for key, value in metadata["labels"].items())
        or metadata.get("ownerReferences", []) != (live.get("ownerReferences") or [])
    )


_CONTENT: Final = ("summary", "results")


def _document(row: _Row) -> Json:
    pod, result = row
    return {
        "source": NAME,
        "policy": result.policy,
        "rule": result.rule,
        "category": _CATEGORY,
        "result": result.result,
        "severity": result.severity,
        "scored": result.result in ("fail", "error"),
        "message": result.message,
        "resources": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            }
        ],
    }


def _stamped(document: Json, timestamps: Mapping[object, Any], now: int) -> Json:
    timestamp = timestamps.get(_key(document)) or {"seconds": now, "nanos": 0}
    return {**document, "timestamp": timestamp}


def _key(document: Mapping[str, Any]) -> object:
    """Return what makes two results the same one; its message may have other counts now."""
    resources: Sequence[Mapping[str, Any]] = document.get("resources") or ()
    uids = tuple(resource.get("uid") for resource in resources)
    return uids, *(document.get(key) for key in ("policy", "rule", "result"))
