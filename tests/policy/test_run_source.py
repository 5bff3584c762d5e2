"""Files of systems are read strictly: what ships is sound, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fast_yaml import load_yaml
from tests.wording import mentions
from webhook.policy.run_source import parse

FOLDER = Path(__file__).parents[2] / "webhook" / "sources"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_that_ships_is_sound_and_keeps_its_values(file: Path) -> None:
    """The strict model loses nothing, so what is built from the plain values is what was judged."""
    (document,) = parse({file.name: file.read_bytes()}).sound()
    kept = document.model.model_dump(by_alias=True, exclude_unset=True)
    assert kept == load_yaml(file.read_text())
    assert document.model.metadata.name == file.stem


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("head: [head]", "haed: [head]", ["spec.identity.role[0].words", "'haed'", "head"]),
        ('"{name}-head"', '"{nam}-head"', ["spec.kinds[0].pods[0]", "{nam}", "name"]),
        (
            "spec.submitterPodTemplate",
            '"spec..x"',
            ["pods[1].template", "'spec..x'"],
        ),
        ("part: submitter", "prat: submitter", ["spec.kinds[1].pods[1].prat", "'part'"]),
        (
            "- label: ray.io/cluster\n",
            "- value: x\n",
            ["identity.marks[0]", "namespaceLabel"],
        ),
        ("      when:\n", "      when: true\n      x:\n", ["spec.kinds[1].pods", "when", "list"]),
        ("precedence: 760", "precedence: 5000", ["spec.identity.precedence", "5000", "1000"]),
    ],
)
def test_an_invalid_file_is_reported_with_line_path_value_and_allowed_values(
    old: str, new: str, facts: list[str]
) -> None:
    """At the place of the value in the file."""
    text = (FOLDER / "kuberay.yaml").read_text()
    assert old in text
    changed = text.replace(old, new, 1)
    (finding, *_) = parse({"kuberay.yaml": changed.encode()}).errors
    assert 0 <= finding.line - (text[: text.index(old)].count("\n") + 1) <= 1
    mentions(str(finding), "kuberay.yaml:", *facts)
