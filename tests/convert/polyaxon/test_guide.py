"""The guide to Polyaxonfiles shows what converting really gives."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fast_yaml import load_yaml
from webhook.convert.polyaxon.components.compose import RUNTIMES, STRATEGIES
from webhook.convert.polyaxon.convert import ConversionOptions, convert
from webhook.convert.polyaxon.old_schema.experiment import KINDS, REFUSED

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "convert-polyaxonfiles.md"
FENCED = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_polyaxonfile_of_the_guide_becomes_its_run() -> None:
    """To the letter, with the image of the command line and no warning."""
    file, run = FENCED.findall(GUIDE.read_text())
    result = convert(
        {"mnist.yml": file.encode()}, ConversionOptions(image="registry.example/mnist:1")
    )
    assert result.findings == ()
    assert result.document == load_yaml(run)
    assert "--image registry.example/mnist:1" in GUIDE.read_text()


def test_every_kind_and_strategy_is_in_the_tables() -> None:
    """What can be converted, and what cannot."""
    words = set(re.findall(r"[\w-]+", GUIDE.read_text()))
    assert words >= {*KINDS, *REFUSED, *RUNTIMES, *STRATEGIES} - {"experiment", "job"}
