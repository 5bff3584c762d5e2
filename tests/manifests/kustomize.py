"""What `kubectl kustomize` makes of manifests/, and pods and nodes to try it with."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.fast_yaml import load_all_yaml
from webhook.installation.manifests import overlays, render

Json = dict[str, Any]
OVERLAYS = tuple(sorted(overlays()))


@cache
def overlay(name: str) -> tuple[Json, ...]:
    """The objects of manifests/NAME, as `fairlead install` renders them.

    test_generated.py compares them with those of kustomize.
    """
    return tuple(render((name,)).values())


def kustomized(kubectl: Path, folder: Path) -> tuple[Json, ...]:
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return tuple(load_all_yaml(done.stdout))


def of_kind(objects: Sequence[Json], kind: str, name: str = "") -> list[Json]:
    """Those of a kind, and of a name if one is given."""
    return [
        each
        for each in objects
        if each["kind"] == kind and (not name or each["metadata"]["name"] == name)
    ]


def one(objects: Sequence[Json], kind: str, name: str = "") -> Json:
    """The only one of them."""
    (found,) = of_kind(objects, kind, name)
    return found


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects an object of these labels."""
    return all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
    raise AssertionError(expression)
