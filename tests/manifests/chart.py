"""The Helm chart's generated parts, from the same kustomizations as `fairlead install`.

The chart's one template reads these objects and applies the values to them (docs/decisions/0076).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.manifests.chart_values import chart_values
from tests.manifests.generated import MANIFESTS, OTHERS, ROOT, written
from tests.manifests.kustomize import Json, kustomized, of_kind
from tests.manifests.value_rows import places, values_schema, values_text
from webhook import __version__
from webhook.guards import keeps_mark
from webhook.installation.manifests import backends
from webhook.interception import absent, entry_name, present, select_sources

CHART: Final = ROOT / "charts" / "fairlead"
DEFINITION: Final = "CustomResourceDefinition"
# The component by the name of the chart's file with its objects.
COMPONENTS: Final = {
    "certificates": "certificates",
    "monitoring": "monitoring",
    "nodes": "nodes",
    "policy-reports": "policy-reports",
    "ui": "ui",
    "doctor": "doctor",
    "guard-stamp-warn": "guard-stamp-warn",
    "guard-stamp-deny": "guard-stamp-deny",
    "guard-node-names": "guard-node-names",
    "guard-tolerations": "guard-tolerations",
    **{f"backend-{name}": f"backend-{name}" for name in backends()},
}


def chart_files(kubectl: Path) -> Mapping[str, str]:
    """Every generated file's text, by its path below charts/fairlead."""
    base = kustomized(kubectl, MANIFESTS / "base")
    parts = {
        "crds": of_kind(base, DEFINITION),
        "base": [each for each in base if each["kind"] != DEFINITION],
        "cert-manager": _added(kustomized(kubectl, MANIFESTS / "cert-manager"), base),
        **{
            part: _added(with_components(kubectl, "base", component), base)
            for part, component in COMPONENTS.items()
        },
    }
    files = with_components(kubectl, "base", "policies-from-files")
    parts["policy-files"] = [
        {**each, "data": {}} for each in _added(files, base) if each["kind"] == "ConfigMap"
    ]
    values = chart_values(base)
    return {
        **{f"files/{name}.yaml": written("manifests", objects) for name, objects in parts.items()},
        "files/places.yaml": written("tests/manifests/chart_values.py", places(values)),
        "files/sources.yaml": written("webhook/sources", _sources()),
        "Chart.yaml": written("pyproject.toml", _metadata()),
        "values.yaml": values_text(values),
        "values.schema.json": json.dumps(values_schema(values), indent=1) + "\n",
    }


def with_components(kubectl: Path, overlay: str, *components: str) -> tuple[Json, ...]:
    """The objects of an overlay with these components, in this order."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        paths = [MANIFESTS / "components" / name for name in components]
        document = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [os.path.relpath(MANIFESTS / overlay, folder)],
            "components": [os.path.relpath(path, folder) for path in paths],
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))
        return kustomized(kubectl, folder)


def _added(objects: Sequence[Json], base: Sequence[Json]) -> list[Json]:
    known = {(each["kind"], each["metadata"]["name"]) for each in base}
    return [each for each in objects if (each["kind"], each["metadata"]["name"]) not in known]


def _sources() -> list[Json]:
    """Every added source with its entries' names and expressions, in the order of the entries.

    kept: the CEL by which the guard of tolerations has a pod keep the mark.
    """
    return [
        {
            "name": source.name,
            "entries": [
                {
                    "name": entry_name(source.name, number),
                    "present": present(mark),
                    "absent": absent(mark),
                    "mark": str(mark),
                    "kept": keeps_mark(mark),
                }
                for number, mark in enumerate(source.marks)
            ],
        }
        for source in select_sources([each.name for each in OTHERS])
    ]


def _metadata() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "fairlead",
        "description": "Places machine-learning runs on Kubernetes by policies.",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.30.0-0",
        "keywords": ["scheduling", "machine-learning", "admission-webhook", "spot"],
    }


def write_chart(kubectl: Path) -> None:
    """Write the generated files, and delete generated ones that are no longer made."""
    found = chart_files(kubectl)
    (CHART / "files").mkdir(parents=True, exist_ok=True)
    for stale in (CHART / "files").iterdir():
        if f"files/{stale.name}" not in found:
            stale.unlink()
    for name, text in found.items():
        (CHART / name).write_text(text)
