"""What is made from the code is fresh."""

from __future__ import annotations

from pathlib import Path

from tests.fast_yaml import load_all_yaml
from tests.manifests.chart import CHART, chart_files
from tests.manifests.generated import MANIFESTS, files
from tests.manifests.kustomize import RENDERED
from tests.manifests.rendered import rendered


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


def test_what_fairlead_install_applies_is_what_kustomize_makes(kubectl_path: Path) -> None:
    """`make manifests` makes it again; compared as objects, for kubectls write differently."""
    wanted = rendered(kubectl_path)
    found = {path.name: list(load_all_yaml(path.read_text())) for path in RENDERED.iterdir()}
    stale = [name for name in {*wanted, *found} if wanted.get(name) != found.get(name)]
    assert stale == [], "run: make manifests"


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
