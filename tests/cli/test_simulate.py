"""`fairlead run simulate`: all of it as JSON, and a plot; golden/sessions/ has the text."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.simulation.scenes import SPOT, on_spot, scenario
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.simulation.plot import half_width

RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: mnist}
spec:
  framework: jax
  restartScope: Run
  replicas: {worker: {count: 4}}
  template: {spec: {containers: [{name: main, image: x}]}}
"""
POOLS = [
    {"name": "cheap", "labels": SPOT, "nodes": 9, "price": 0.25, "lifetime": "12h"},
    {"name": "solid", "nodes": 9},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Run, two sets and a scenario, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(RUN)
    Path("week.json").write_bytes(scenario(POOLS))
    for name, setting in (("spot", {}), ("solid", {"mode": "Prevent"})):
        Path(f"{name}.yaml").write_bytes(on_spot(**setting)["a.yaml"])
    return tmp_path


def simulate(*arguments: str, sets: tuple[str, ...] = ("spot.yaml", "solid.yaml")) -> Result:
    policies = [each for name in sets for each in ("--policies", name)]
    given = ["-f", "run.yaml", "--scenario", "week.json", "--repeat", "8"]
    return CliRunner().invoke(fairlead, ["run", "simulate", *given, *policies, *arguments])


@pytest.mark.usefixtures("folder")
def test_all_of_it_is_json() -> None:
    """Each repetition with what happened; the same numbers give the same text."""
    done = simulate("-o", "json")
    found = json.loads(done.stdout)
    spot, solid = found["sets"]
    assert (found["scenario"], found["seed"], len(found["assumptions"])) == ("test", 1, 9)
    assert [spot["done"], solid["done"], len(spot["runs"])] == [8, 8, 8]
    assert any("loses its node" in each["what"] for each in spot["runs"][0]["happenings"])
    assert {run["cost"] for run in solid["runs"]} == {40.0}
    assert simulate("-o", "json").stdout == done.stdout
    assert simulate("-o", "json", "--seed", "2").stdout != done.stdout


@pytest.mark.usefixtures("folder")
def test_a_plot_is_an_svg() -> None:
    """With a line for each set, in each part; equal plots are equal files."""
    Path("a$b.yaml").write_bytes(Path("spot.yaml").read_bytes())
    files = [Path("one.svg"), Path("two.svg")]
    for file in files:
        done = simulate("--plot", str(file), sets=("a$b.yaml", "solid.yaml"))
        assert done.exit_code == 0, done.output
    assert files[0].read_bytes() == files[1].read_bytes()
    root = ET.fromstring(files[0].read_text())  # noqa: S314  the plot is our own
    groups = [each.get("id") or "" for each in root.iter("{http://www.w3.org/2000/svg}g")]
    assert sum(each.startswith("legend") for each in groups) == 1
    assert sum(each.startswith("axes") for each in groups) == 3
    text = files[0].read_text()
    mentions(text, "prefers-color-scheme: dark", "var(--paper, ", "var(--ink, ")
    assert sum(each.startswith("FillBetweenPolyCollection") for each in groups) == 6


def test_an_interval_is_as_wide_as_the_proof_says() -> None:
    """0.136 for 100 repetitions: the square root of ln(2/0.05)/200."""
    assert round(half_width(100), 3) == 0.136
    assert half_width(400) == half_width(100) / 2


@pytest.mark.usefixtures("folder")
def test_without_the_library_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the cure."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = simulate("--plot", "x.svg")
    assert done.exit_code == 1
    mentions(done.stderr or str(done.exception), "matplotlib", "fairlead[plot]")
