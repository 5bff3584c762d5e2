"""Spark: a SparkApplication (sparkoperator.k8s.io/v1beta2) of the Spark operator 2.3.

Source: api/v1beta2 and internal/controller/sparkapplication of kubeflow/spark-operator, and
BasicDriverFeatureStep.scala of Spark 4.0. The operator starts spark-submit, which makes the
driver's pod of a template, in cluster mode. Spark overwrites its image, CPU and memory by settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.placement.quantity import InvalidQuantity, amount
from webhook.run.backends.backend import (
    NATIVE_CURE,
    Backend,
    FieldMapping,
    ObjectKind,
    container_problems,
    make_object,
    render_fields,
    render_template,
)
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run

CONTAINER: Final = "spark-kubernetes-driver"
# Spark's defaults: the least memory beside the JVM's own, in MiB, and its share of the latter.
_LEAST_OVERHEAD: Final = 384
_SHARES: Final = {"Python": 0.4, "R": 0.4}
_SHARE: Final = 0.1
# MiB below which a JVM with Spark does not start (UnifiedMemoryManager.scala).
_LEAST_MEMORY: Final = 450
_MIB: Final = 1 << 20
# Fields that the operator cannot do without: what they are, for the cure.
_REQUIRED: Final = {
    "type": "Java, Python, Scala or R",
    "sparkVersion": "the version in the image, as 4.0.0",
    "mainApplicationFile": "the program, as local:///opt/etl.py",
}
KIND: Final = ObjectKind(
    api_version="sparkoperator.k8s.io/v1beta2",
    kind="SparkApplication",
    framework="spark",
    roles={"driver": "driver; the executors have its image, labels and service account"},
    fields=(
        FieldMapping("restartScope", "", only=("Replica",)),
        FieldMapping(
            "backoffLimit",
            "",
            place="restartPolicy.onFailureRetries, with type OnFailure",
            unset="3 with restartPolicy OnFailure, else 0",
            absent={"": "0"},
            note="the operator counts drivers that failed, each with new executors",
        ),
        FieldMapping(
            "replicas.*.restartPolicy",
            "",
            only=("Never", "OnFailure"),
            place="restartPolicy.type",
            unset="Never, or OnFailure with backoffLimit",
            absent={"driver": "Never"},
        ),
        FieldMapping("ttlSecondsAfterFinished", "timeToLiveSeconds"),
        FieldMapping("cleanPodPolicy", "", only=("Running",)),
        FieldMapping("spark.executors", "executor.instances", unset="1"),
        FieldMapping("spark.type", "type"),
        FieldMapping("spark.sparkVersion", "sparkVersion"),
        FieldMapping("spark.mainApplicationFile", "mainApplicationFile"),
        FieldMapping("spark.mainClass", "mainClass"),
        FieldMapping("spark.arguments", "arguments"),
        FieldMapping("spark.conf", "sparkConf"),
    ),
)


class SparkBackend(Backend):
    """The Spark operator."""

    name = "spark"
    only = KIND

    def own_problems(self, run: Run) -> Iterable[Problem]:
        """Yield what a SparkApplication needs and the Run lacks."""
        return _missing(run)

    def draft_problems(self, drafts: Drafts) -> Iterator[Problem]:
        """Yield problems with the driver's merged template."""
        yield from container_problems(drafts, CONTAINER)
        draft = drafts.roles["driver"]
        at = ("spec", "replicas", "driver")
        for key in ("command", "args"):
            if draft.container.get(key):
                what = (
                    f"its main container has {key}, and the Spark operator runs spark-submit with "
                    f"spec.spark.mainApplicationFile and arguments; remove {key}, or {NATIVE_CURE}"
                )
                yield Problem(at, what)
        resources = draft.resources or draft.container.get("resources") or {}
        limit, request = (_memory(resources.get(part)) for part in ("limits", "requests"))
        if limit is not None and request is not None and limit != request:
            what = (
                f"it requests {request} MiB of memory with a limit of {limit} MiB, and Spark sets "
                "both to one value; make them equal"
            )
            yield Problem(at, what)
        total = limit or request
        if total is not None and total - _overhead(run_type(drafts.run), total) < _LEAST_MEMORY:
            what = (
                f"its memory is {total} MiB, and Spark needs {_LEAST_MEMORY} MiB and an overhead "
                f"of {_LEAST_OVERHEAD} MiB or more; raise it"
            )
            yield Problem(at, what)

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the SparkApplication."""
        run = drafts.run
        spec = run.spec
        rendered = render_fields(run, KIND)
        template = render_template(drafts.roles["driver"], container=CONTAINER)
        containers = template["spec"]["containers"]
        main = next(container for container in containers if container["name"] == CONTAINER)
        replica = spec.roles["driver"]
        written = "restart_policy" in replica.model_fields_set
        if "backoff_limit" in spec.model_fields_set or written:
            policy: JsonObject = {"type": replica.restart_policy}
            if replica.restart_policy == "OnFailure":
                policy["onFailureRetries"] = spec.backoff_limit
            rendered["restartPolicy"] = policy
        executor = rendered.pop("executor", {})
        if labels := template.get("metadata", {}).get("labels"):
            executor["labels"] = dict(labels)
        if account := template["spec"].get("serviceAccountName"):
            executor["serviceAccount"] = account
        sizes = driver_sizes(run_type(run), main.get("resources") or {})
        rendered["mode"] = "cluster"
        if "image" in main:
            rendered["image"] = main["image"]
        rendered |= {"driver": {**sizes, "template": template}, "executor": executor}
        return [make_object(run, KIND, rendered)]


def run_type(run: Run) -> str:
    """Return the type of the program, or "" if the Run does not set it."""
    return getattr(run.spec.settings, "type", None) or ""


def driver_sizes(program_type: str, resources: Mapping[str, Any]) -> JsonObject:
    """Return the settings by which Spark gives the driver's pod these resources.

    of: the type of the program. Sizes that are not set, or are not quantities, are left out.
    """
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    sizes: JsonObject = {}
    limit, request = limits.get("cpu"), requests.get("cpu", limits.get("cpu"))
    if (milli := _counted("cpu", request)) is not None:
        sizes |= {"cores": max(1, milli // 1000), "coreRequest": str(request)}
        if _counted("cpu", limit) is not None:
            sizes["coreLimit"] = str(limit)
    total = _memory(limits) or _memory(requests)
    if total is not None:
        overhead = _overhead(program_type, total)
        sizes |= {"memory": f"{total - overhead}m", "memoryOverhead": f"{overhead}m"}
    return sizes


def _overhead(program_type: str, total: int) -> int:
    share = _SHARES.get(program_type, _SHARE)
    return max(_LEAST_OVERHEAD, round(total * share / (1 + share)))


def _memory(listed: Any) -> int | None:
    """Return the memory of limits or requests in whole MiB; None if there is none."""
    size = _counted("memory", listed.get("memory") if isinstance(listed, dict) else None)
    return size // _MIB if size is not None else None


def _counted(resource: str, quantity: Any) -> int | None:
    try:
        return amount(resource, quantity) if isinstance(quantity, str | int) else None
    except InvalidQuantity:
        return None


def _missing(run: Run) -> Iterator[Problem]:
    written = run.spec.settings.model_fields_set if run.spec.settings else frozenset()
    fields = type(run.spec.settings).model_fields if run.spec.settings else {}
    outer = {field.serialization_alias or name: name for name, field in fields.items()}
    for name, what in _REQUIRED.items():
        if outer[name] not in written:
            message = f"a SparkApplication needs it: {what}; add it, or {NATIVE_CURE}"
            yield Problem(("spec", "spark", name), message)
    if getattr(run.spec.settings, "executors", None) == 0:
        what = "is 0, and a SparkApplication has 1 at least; raise it, or remove it"
        yield Problem(("spec", "spark", "executors"), what)
