"""Golden cases: what becomes of a Run, one file a case.

A file gives `rule`, the sentence that it shows; `run`, with name and spec; and what is made of it:

    pods      by name, whole; or under `parts` what of them is to be seen, all else left out: maps
              are looked into, lists and values must be equal, and null means that it is not there
    count     how many pods there are
    service, configMap, deployment    whole, but for the metadata that all of them have
    needs     what the run needs beside its pods
    problems  or the lines for which no pods can be made of it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from tests.run.runs import a_run
from webhook.errors import InvalidRun
from webhook.run.manifests import metadata
from webhook.run.plan import Plan, plan

Json = dict[str, Any]
CASES = sorted((Path(__file__).parents[1] / "golden" / "runs").glob("*.yaml"))
PARTS = {"rule", "run", "pods", "parts", "count", "service", "configMap", "deployment", "needs"}


def seen(value: Any, part: Any) -> Any:
    """What of a value a case looks at."""
    if isinstance(value, dict) and isinstance(part, dict):
        return {key: seen(value.get(key), below) for key, below in part.items()}
    return value


def others(manifest: Json | None, made: Plan) -> Json | None:
    """An object without what all objects of the run have."""
    if manifest is None:
        return None
    meta = manifest["metadata"]
    assert meta == metadata(made.run, meta["name"])
    return {**manifest, "metadata": {"name": meta["name"]}}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_becomes_of_a_run(path: Path) -> None:
    """The rule that the file states."""
    case: Json = load_yaml(path.read_text())
    assert set(case) <= {*PARTS, "problems"}
    assert case["rule"].endswith(".")
    run = a_run(case["run"]["name"], case["run"]["spec"])
    if "problems" in case:
        with pytest.raises(InvalidRun) as caught:
            plan(run)
        assert list(caught.value.problems) == case["problems"]
        return
    made = plan(run, cluster_domain=case["run"].get("clusterDomain", ""))
    every = [made.pod(role, at, 0) for role, n in made.gang.counts.items() for at in range(n)]
    pods = {pod["metadata"]["name"]: pod for pod in every}
    assert len(pods) == case.get("count", len(pods))
    for name, whole in case.get("pods", {}).items():
        assert pods[name] == whole
    for name, part in case.get("parts", {}).items():
        assert seen(pods[name], part) == part, name
    for key, manifest in (
        ("service", made.service),
        ("configMap", made.config_map),
        ("deployment", made.deployment),
    ):
        if key in case:
            assert others(manifest(), made) == case[key]
    if "needs" in case:
        assert made.needs._asdict() == case["needs"]


def test_there_are_cases() -> None:
    """An empty folder proves nothing."""
    assert CASES
