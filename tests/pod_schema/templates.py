"""Pod templates for tests: right ones, and those of golden cases that are wrong in one field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fast_yaml import load_yaml

Json = dict[str, Any]
_FOLDER = Path(__file__).parents[1] / "golden" / "pod_schema"


def template(*, labels: Json | None = None, **spec: Any) -> Json:
    """A template whose container is `main`, with more fields of its spec."""
    found: Json = {"spec": {"containers": [{"name": "main", "image": "i"}], **spec}}
    return found if labels is None else {"metadata": {"labels": labels}, **found}


def in_main(**fields: Any) -> Json:
    """A template whose only container has these fields."""
    return template(containers=[{"name": "main", "image": "i", **fields}])


def asking(requests: Json, limits: Json | None = None) -> Json:
    """A template whose container asks for this."""
    sides = {"requests": requests} if limits is None else {"requests": requests, "limits": limits}
    return in_main(resources=sides)


def mounting(*names: str, volumes: tuple[str, ...] = ()) -> Json:
    """A template whose container mounts volumes of these names."""
    mounts = [{"name": name, "mountPath": f"/{number}"} for number, name in enumerate(names)]
    given = [{"name": name, "emptyDir": {}} for name in volumes]
    return template(
        containers=[{"name": "main", "image": "i", "volumeMounts": mounts}], volumes=given
    )


def profiled(field: str, profile: str) -> Json:
    return {"securityContext": {field: {"type": "Localhost", "localhostProfile": profile}}}


def annotated(key: str, value: str) -> Json:
    return {"metadata": {"annotations": {key: value}}, **template()}


def _read(name: str) -> list[Json]:
    cases: list[Json] = load_yaml((_FOLDER / f"{name}.yaml").read_text())
    return cases


def _of_case(case: Json) -> Json:
    """The template of a case, which has fields of its container, its spec, or all of it."""
    found: Json = case.get("template") or in_main(**case.get("main", {}))
    found = {**found, "spec": {**found["spec"], **case.get("spec", {})}}
    return found | ({"metadata": case["metadata"]} if "metadata" in case else {})


# Each was seen to be refused by the API server, for the fault in its text.
WRONG = [(_of_case(case), str(case["fault"])) for case in _read("wrong")]
# An object's own metadata.
NAMES = [(case["metadata"], str(case["fault"])) for case in _read("names")]
# Without a fault; the first has nearly every field.
RIGHT = [_of_case(case) for case in _read("right")]
# Taken, and hardly meant.
NEGATIVE = template(terminationGracePeriodSeconds=-1)
PREFERRED = template(
    affinity={
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]
                    },
                }
            ]
        }
    }
)
