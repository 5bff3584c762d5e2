"""Dask: a DaskJob (kubernetes.dask.org/v1) of Dask's own operator.

Source: dask_kubernetes/operator of dask/dask-kubernetes 2026.3: the definition of the DaskJob, and
controller.py for the names of its objects and the labels of its pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.dns_names import MAX_LABEL
from webhook.frameworks.dask import PORT
from webhook.run.backends.backend import (
    Backend,
    FieldMapping,
    ObjectKind,
    make_object,
    render_template,
)
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run

DASHBOARD: Final = 8787
# The longest names that the operator makes: a worker's Deployment with a hash of ten characters,
# whose pods have two more parts, of ten and five.
SUFFIX: Final = len("-default-worker-0123456789")
# The restartPolicy of a driver without one, by the definition.
DRIVER_DEFAULT: Final = "OnFailure"
KIND: Final = ObjectKind(
    api_version="kubernetes.dask.org/v1",
    kind="DaskJob",
    framework="dask",
    roles={
        "scheduler": "cluster.spec.scheduler",
        "worker": "cluster.spec.worker",
        "driver": "job",
    },
    fields=(
        FieldMapping("restartScope", "", only=("Replica",)),
        FieldMapping(
            "replicas.*.restartPolicy",
            "",
            only=("Never", "OnFailure"),
            unset="the driver's: Never",
            # The definition's default, which the extracted driver has; others always restart.
            absent={"driver": DRIVER_DEFAULT},
            place="the driver's: job.spec.restartPolicy; others: OnFailure only",
        ),
        FieldMapping("dask.port", "", only=(PORT,)),
    ),
)
SECTIONS: Final = {
    "scheduler": ("cluster", "spec", "scheduler"),
    "worker": ("cluster", "spec", "worker"),
    "driver": ("job",),
}


class DaskBackend(Backend):
    """Dask's operator."""

    name = "dask"
    only = KIND

    def own_problems(self, run: Run) -> Iterable[Problem]:
        """Yield what a DaskJob cannot do."""
        return _own_problems(run)

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the DaskJob."""
        run = drafts.run
        spec: JsonObject = {}
        for role, draft in drafts.roles.items():
            section = spec
            for step in SECTIONS[role]:
                section = section.setdefault(step, {})
            replica = run.spec.roles[role]
            if role == "worker" and "count" in replica.model_fields_set:
                section["replicas"] = replica.count
            section |= _with_text_quantities(render_template(draft, first=True))
            if role == "driver":
                # The definition's default would start the program again and again.
                policy = (
                    replica.restart_policy
                    if "restart_policy" in replica.model_fields_set
                    else "Never"
                )
                section["spec"] = {**section["spec"], "restartPolicy": policy}
        scheduler = spec["cluster"]["spec"]["scheduler"]
        scheduler["service"] = _service(run.name, scheduler["spec"]["containers"])
        return [make_object(run, KIND, spec)]


def leave_out_default(manifest: Manifest) -> None:
    """Remove the driver's restartPolicy from a DaskJob if it is the definition's default."""
    pod = manifest["spec"]["job"]["spec"]
    if pod["restartPolicy"] == DRIVER_DEFAULT:
        del pod["restartPolicy"]


def _with_text_quantities(template: JsonObject) -> JsonObject:
    """Return the template with text for whole numbers, as the definition wants quantities."""
    spec = dict(template["spec"])
    for key in ("containers", "initContainers"):
        if key in spec:
            spec[key] = [_with_text(container) for container in spec[key]]
    return {**template, "spec": spec}


def _with_text(container: JsonObject) -> JsonObject:
    resources = container.get("resources")
    if not isinstance(resources, dict):
        return container
    texts = {
        part: {name: str(quantity) for name, quantity in listed.items()}
        for part, listed in resources.items()
        if part in ("limits", "requests") and isinstance(listed, dict)
    }
    return {**container, "resources": {**resources, **texts}}


def _service(name: str, containers: Sequence[JsonObject]) -> JsonObject:
    """Return the scheduler's Service, which the definition requires.

    A port of a container is targeted by its name. Without one of that name there is no target, so
    that the Service has Dask's number: the definition has texts only, and a Service no text "8786".
    """
    named = {port.get("name") for container in containers for port in container.get("ports") or ()}
    return {
        "type": "ClusterIP",
        "selector": {"dask.org/cluster-name": name, "dask.org/component": "scheduler"},
        "ports": [
            {
                "name": port,
                "protocol": "TCP",
                "port": number,
                **({"targetPort": port} if port in named else {}),
            }
            for port, number in (("tcp-comm", PORT), ("http-dashboard", DASHBOARD))
        ],
    }


def _own_problems(run: Run) -> Iterator[Problem]:
    for role in ("scheduler", "worker", "driver"):
        if role not in run.spec.roles:
            what = f"a DaskJob needs a {role}; add it, or use backend native"
            yield Problem(("spec", "replicas"), what)
    for role in ("scheduler", "worker"):
        replica = run.spec.roles.get(role)
        if replica and replica.restart_policy != "OnFailure":
            what = f"Dask's operator always restarts the {role}; remove it"
            yield Problem(("spec", "replicas", role, "restartPolicy"), what)
    room = MAX_LABEL - SUFFIX
    if len(run.name) > room:
        what = (
            f"is too long: Dask's operator appends up to {SUFFIX} characters; want {room} at most"
        )
        yield Problem(("metadata", "name"), what)
