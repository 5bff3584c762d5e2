"""What kustomize makes of each overlay, as files of the package, for `fairlead install`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.fast_yaml import load_all_yaml
from tests.manifests.generated import MANIFESTS, ROOT, written
from tests.manifests.kustomize import OVERLAYS, RENDERED, Json, kustomized, of_kind

# Rights that are chosen in addition to an overlay, besides those to other engines.
CHOSEN: Final = ("nodes", "policy-reports")
CLASSES: Final = ROOT / "policies" / "capacity" / "any-provider.yaml"
DEFINITION: Final = "CustomResourceDefinition"


def rendered(kubectl: Path) -> Mapping[str, list[Json]]:
    """The objects of each file; the definitions, which every overlay has, once for all.

    And the classes, which none of them has, for an installation to bring where there are none; and
    the rights to see nodes, to write reports and to use other engines, for one that asks for them.
    """
    made = {name: kustomized(kubectl, MANIFESTS / name) for name in OVERLAYS}
    found = {
        f"{name}.yaml": [each for each in objects if each["kind"] != DEFINITION]
        for name, objects in made.items()
    }
    return {
        "crds.yaml": of_kind(made["default"], DEFINITION),
        "classes.yaml": [each for each in load_all_yaml(CLASSES.read_text()) if each],
        **{
            f"{folder.name}.yaml": list(load_all_yaml((folder / "rights.yaml").read_text()))
            for folder in sorted((MANIFESTS / "components").iterdir())
            if folder.name in CHOSEN or folder.name.startswith("backend-")
        },
        **found,
    }


def write(kubectl: Path) -> None:
    """Write every file, and take away what is of no overlay."""
    found = rendered(kubectl)
    RENDERED.mkdir(parents=True, exist_ok=True)
    for stale in RENDERED.iterdir():
        if stale.name not in found:
            stale.unlink()
    for name, objects in found.items():
        (RENDERED / name).write_text(written("manifests", *objects))
