"""The guide for those who come from Polyaxon shows what converting really gives."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fast_yaml import load_yaml
from webhook.convert.polyaxon.components.compose import RUNTIMES, STRATEGIES
from webhook.convert.polyaxon.convert import ConversionOptions, convert
from webhook.convert.polyaxon.old_schema.experiment import KINDS, REFUSED

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "coming-from-polyaxon.md"
FENCED = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def section() -> str:
    """The part of the guide that speaks of files."""
    text = GUIDE.read_text()
    return text[text.index("## Convert files to Runs") : text.index("## Run as non-root")]


def test_the_polyaxonfile_of_the_guide_becomes_its_run() -> None:
    """To the letter, with the image of the command line and no warning."""
    file, run = FENCED.findall(section())
    result = convert(
        {"mnist.yml": file.encode()}, ConversionOptions(image="registry.example/mnist:1")
    )
    assert result.findings == ()
    assert result.document == load_yaml(run)
    assert "--image registry.example/mnist:1" in section()


def test_every_kind_and_strategy_is_in_the_tables() -> None:
    """What can be converted, and what cannot."""
    words = set(re.findall(r"[\w-]+", section()))
    assert words >= {*KINDS, *REFUSED, *RUNTIMES, *STRATEGIES} - {"experiment", "job"}
