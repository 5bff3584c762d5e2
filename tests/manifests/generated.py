"""What of manifests/ is made from the code: the webhook's entries, a component for each source, and
the guard of doctor's account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from webhook import names, validating
from webhook.guards import doctor_guard, stamp_guard
from webhook.interception import (
    DEFAULT_SOURCES,
    absent,
    entry_name,
    present,
    record_annotations,
    webhooks,
)
from webhook.sources import SOURCES
from webhook.sources.marks import Source

Json = dict[str, Any]
ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "manifests"
CONFIGURATION: Final = {"kind": "MutatingWebhookConfiguration", "name": names.WEBHOOK_CONFIGURATION}
OTHERS: Final = tuple(source for source in SOURCES if source.name not in DEFAULT_SOURCES)
_MADE: Final = "# Made by `make manifests` from {}; do not edit.\n"
_OURS: Final = webhooks()[0]
_CONTROLLER: Final = {"kind": "Deployment", "name": names.CONTROLLER}
_SELECTION: Final = "objectSelector.matchExpressions."
_BINDING: Final = {"kind": "ValidatingAdmissionPolicyBinding"}
# By their label: not every kubectl takes a name there for a pattern.
_GUARDS: Final = {**_BINDING, "labelSelector": "app.kubernetes.io/component=guard-stamp"}


def files() -> Mapping[str, str]:
    """Every generated file's text, by its path below manifests/."""
    found = {
        "base/interception.yaml": written(
            "webhook/interception.py", _configuration(CONFIGURATION["kind"], webhooks())
        ),
        "base/validation.yaml": written(
            "webhook/validating.py",
            _configuration("ValidatingWebhookConfiguration", validating.webhooks()),
        ),
        "components/doctor/guard.yaml": written("webhook/guards.py", *doctor_guard()),
    }
    for source in OTHERS:
        for name, text in _component(source).items():
            found[f"components/source-{source.name}/{name}"] = text
    return found


def written(source: str, *documents: Json | Sequence[Json]) -> str:
    """YAML documents as a file that is made of `source`."""
    return _MADE.format(source) + "---\n".join(map(_dumped, documents))


def _configuration(kind: str, entries: Sequence[Json]) -> Json:
    """Without caBundle: that field is the certificates' keeper's, who applies it alone."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": names.WEBHOOK_CONFIGURATION},
        "webhooks": list(entries),
    }


def _component(source: Source) -> Mapping[str, str]:
    """The files of a source's component.

    Whatever components were there before it: first every entry that there is excludes the
    source's marks, then the source's own entries are added, each of which excludes the marks of
    its own that come after it. So the entries exclude each other in every set and every order.
    """
    file = f"webhook/sources/{source.name}.yaml"
    return {
        "kustomization.yaml": _about(source) + written(file, _entries(source)),
        "marks/kustomization.yaml": written(file, _exclusions(source)),
        "marks/marks.yaml": written(file, *map(_mark, _slots(source), source.marks)),
        "guard-stamp/kustomization.yaml": written(file, _guard(source)),
        "guard-stamp/bindings.yaml": written("webhook/guards.py", *_bindings(source)),
    }


def _about(source: Source) -> str:
    marks = ", ".join(map(str, source.marks))
    return f"# Pods of {source.system} are sent to the webhook too: those with {marks}.\n"


def _slots(source: Source) -> list[str]:
    return [f"{source.name}-{number}" for number, _ in enumerate(source.marks)]


def _mark(slot: str, mark: Any) -> Json:
    return {
        "apiVersion": "kustomize.fairlead.dev/v1",
        "kind": "Mark",
        # Kustomize reads it, and leaves it out of what it writes.
        "metadata": {"name": slot, "annotations": {"config.kubernetes.io/local-config": "true"}},
        "absent": absent(mark),
    }


def _exclusions(source: Source) -> Json:
    """Every entry that is there by now gets the negation of each of the source's marks.

    So does every binding of the guard, if it is loaded, for it means the pods of one entry.

    A path that selects a list's element by a field that no element has makes a new one; that the
    element is then replaced as a whole takes the field away again.
    """
    return {
        **_kind("Component"),
        "resources": ["marks.yaml"],
        "replacements": [
            {
                "source": {"kind": "Mark", "name": slot, "fieldPath": "absent"},
                "targets": [
                    _target(CONFIGURATION, f"webhooks.*.{_SELECTION}[slot={slot}]"),
                    _target(_GUARDS, f"spec.matchResources.{_SELECTION}[slot={slot}]"),
                ],
            }
            for slot in _slots(source)
        ],
    }


def _entries(source: Source) -> Json:
    """The source's entries; what is not of their marks they have from Fairlead's own entry."""
    marks = source.marks
    own = [entry_name(source.name, number) for number, _ in enumerate(marks)]
    patch = [
        {
            "op": "add",
            "path": "/webhooks/-",
            "value": {
                "name": name,
                "objectSelector": {
                    "matchExpressions": [present(mark), *map(absent, marks[number + 1 :])]
                },
            },
        }
        for number, (name, mark) in enumerate(zip(own, marks, strict=True))
    ]
    return {
        **_kind("Component"),
        "components": ["marks"],
        "patches": [
            {"target": CONFIGURATION, "patch": _dumped(patch)},
            {"target": _CONTROLLER, "patch": _dumped(_recorded(own))},
        ],
        "replacements": [
            {
                "source": {**CONFIGURATION, "fieldPath": f"webhooks.[name={_OURS['name']}].{key}"},
                "targets": [
                    _target(CONFIGURATION, *(f"webhooks.[name={name}].{key}" for name in own))
                ],
            }
            for key in _OURS
            if key not in ("name", "objectSelector")
        ],
    }


def _recorded(entries: Sequence[str]) -> list[Json]:
    """What records the entries on the controller's Deployment."""
    return [
        {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": kind}
        for key, kind in record_annotations(entries, (), ()).items()
    ]


def _guard(source: Source) -> Json:
    """Bindings of the guard for the source's entries; what they do, the guard's own say."""
    first, *_ = _guarding([_OURS])
    own = [each["metadata"]["name"] for each in _bindings(source)]
    return {
        **_kind("Component"),
        "resources": ["bindings.yaml"],
        "replacements": [
            {
                "source": {**_BINDING, "name": first["metadata"]["name"], "fieldPath": path},
                "targets": [_target({**_BINDING, "name": name}, path) for name in own],
            }
            for path in ("spec.validationActions", "spec.matchResources.namespaceSelector")
        ],
    }


def _bindings(source: Source) -> list[Json]:
    chosen = webhooks((*DEFAULT_SOURCES, source.name))
    return _guarding([entry for entry in chosen if entry["name"].startswith(source.name)])


def _guarding(entries: Sequence[Json]) -> list[Json]:
    _, *bound = stamp_guard(entries, deny=False)
    return bound


def _kind(kind: str) -> Json:
    return {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": kind}


def _target(select: Json, *paths: str) -> Json:
    return {"select": select, "fieldPaths": list(paths), "options": {"create": True}}


def _dumped(document: object) -> str:
    return yaml.dump(document, Dumper=_Plain, sort_keys=False, width=100)


class _Plain(yaml.SafeDumper):
    """Writes what is there twice twice, and text of several lines as it stands."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Plain.add_representer(str, _block)
