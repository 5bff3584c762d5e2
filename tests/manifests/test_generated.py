"""What is made from the code is fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fast_yaml import load_all_yaml
from tests.manifests.chart import CHART, chart_files, with_components
from tests.manifests.generated import MANIFESTS, files
from tests.manifests.kustomize import OVERLAYS, kustomized
from webhook.installation.manifests import components, render
from webhook.installation.object_kinds import in_order

COMBINED = ("nodes", "policy-reports", "backend-dask", "policies-from-files")


def test_every_generated_file_is_fresh() -> None:
    """`make manifests` makes them again."""
    stale = [
        name
        for name, text in files().items()
        if not (MANIFESTS / name).exists() or (MANIFESTS / name).read_text() != text
    ]
    assert stale == [], "run: make manifests"


def test_no_component_is_left_of_a_source_that_is_gone() -> None:
    """Nor a file of one."""
    components = MANIFESTS / "components"
    found = {
        str(path.relative_to(MANIFESTS))
        for folder in components.glob("source-*")
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == {name for name in files() if name.startswith("components/source-")}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_fairlead_install_renders_overlays_as_kustomize_does(
    overlay: str, kubectl_path: Path
) -> None:
    """Though it has neither kubectl nor a checkout."""
    assert render((overlay,)) == in_order(kustomized(kubectl_path, MANIFESTS / overlay))


@pytest.mark.parametrize("chosen", [*((each,) for each in components()), COMBINED], ids="+".join)
def test_fairlead_install_renders_components_as_kustomize_does(
    chosen: tuple[str, ...], kubectl_path: Path
) -> None:
    """Each alone, and several together."""
    wanted = in_order(with_components(kubectl_path, "cert-manager", *chosen))
    assert render(("cert-manager",), chosen) == wanted


def test_the_chart_has_the_objects_of_the_manifests(kubectl_path: Path) -> None:
    """`make manifests` makes its files again, values and schema among them."""
    wanted = {name: list(load_all_yaml(text)) for name, text in chart_files(kubectl_path).items()}
    stale = [
        name
        for name, documents in wanted.items()
        if not (CHART / name).exists()
        or list(load_all_yaml((CHART / name).read_text())) != documents
    ]
    assert stale == [], "run: make manifests"
    assert {f"files/{path.name}" for path in (CHART / "files").iterdir()} <= set(wanted)
