"""Every face gives the same answer about the pod of two scenarios at once.

Nobody says what the answer is: it is that of `explain`, and all others must agree with it. Each
run takes some of all pairs.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.evaluation import test_scenarios as faces
from tests.examples import examples
from tests.scenarios import SCENARIOS, Json, Scenario

PAIRS = list(itertools.combinations(SCENARIOS, 2))
CHECKS: tuple[Callable[[Scenario], None], ...] = (
    faces.test_the_same_nodes_are_named,
    faces.test_the_same_policies_apply,
    faces.test_a_refusal_is_a_rejection_in_diff_and_a_failure_in_test,
    faces.test_the_pod_of_a_run_gets_the_same_answer,
    faces.test_the_author_of_a_workload_is_told_the_same,
    faces.test_a_policy_report_says_the_same_of_the_stored_pod,
    faces.test_a_pod_that_is_not_sent_is_reported_by_each_command,
)


def read(path: Path, prefix: str) -> Json:
    """A scenario with names of its own."""
    text = path.read_text()
    given: Json = yaml.safe_load(text)
    described = yaml.safe_load_all(given["policies"])
    every = (*described, *given.get("nodes", ()), *given.get("objects", ()))
    for name in {each["metadata"]["name"] for each in every}:
        text = re.sub(rf"(?<![\w./-]){name}(?![\w./-])", f"{prefix}-{name}", text)
    found: Json = yaml.safe_load(text)
    return found


def merged(one: Any, other: Any) -> Any:
    """Both, where that can be; lists of containers by name; else the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        return {
            key: merged(one[key], other[key])
            if key in one and key in other
            else one.get(key, other.get(key))
            for key in keys
        }
    if isinstance(one, list) and isinstance(other, list):
        if all(isinstance(each, dict) and "name" in each for each in (*one, *other)):
            by_name = [{each["name"]: each for each in some} for some in (one, other)]
            return list(merged(*by_name).values())
        return [*one, *(each for each in other if each not in one)]
    return other


def written(first: Path, second: Path, folder: Path) -> Path:
    """The file of a scenario of both, without what is expected."""
    one, other = read(first, "one"), read(second, "two")
    both = {
        "policies": f"{one['policies']}\n---\n{other['policies']}",
        "pod": merged(one["pod"], other["pod"]),
        "objects": [*one.get("objects", ()), *other.get("objects", ())],
        "namespace": one.get("namespace", "") or other.get("namespace", ""),
    }
    if nodes := [*one.get("nodes", ()), *other.get("nodes", ())]:
        both["nodes"] = nodes
    path = folder / "both.yaml"
    path.write_text(yaml.safe_dump(both, sort_keys=False))
    return path


def foreseen(path: Path, folder: Path) -> Path | None:
    """The same file with what `explain` says; None if it cannot read the pod."""
    bare = Scenario(path, folder)
    explained = faces.decide(bare, "explain", "json")
    report = json.loads(explained.stdout)
    if "pods" not in report:
        return None
    (pod,) = report["pods"]
    alone = faces.ask(
        bare, "preview", "-f", f"{folder}/pod.yaml", "--policies", "/dev/null", "-o", "patch"
    )
    refused = pod["result"] == "rejected" or bool(pod["refusals"])
    found = yaml.safe_load(path.read_text())
    if refused:
        found["refused"] = [""]
    if pod["result"] == "rejected":
        found["rejected"] = [""]
    found["refusedBefore"] = alone.exit_code == 1
    if pod["nodes"]:
        last = pod["nodes"]["after"] or pod["nodes"]["before"]
        found["admitted"] = last["admitted"]
        found["before"] = pod["nodes"]["before"]["admitted"]
        found["onDemand"] = pod["nodes"]["onDemand"]
        found["evicting"] = pod["nodes"]["evicting"]
        found["notJudged"] = pod["nodes"]["notJudged"]
    if not refused:
        found["applies"] = [e["name"] for e in pod["policies"] if e["answer"] == "applies"]
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    return path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Some pairs of all, by the run's seed; all of them in `make test-all`."""
    if "pair" in metafunc.fixturenames:
        seed = metafunc.config.getoption("randomly_seed", 1)
        some = Random(str(seed)).sample(PAIRS, min(len(PAIRS), examples(len(PAIRS))))
        ids = [f"{one.stem}+{other.stem}" for one, other in some]
        metafunc.parametrize("pair", some, ids=ids)


def test_every_face_says_the_same_of_two_scenarios_at_once(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """Result, policies, nodes, refusals and exit codes."""
    file = written(*pair, tmp_path)
    if foreseen(file, tmp_path) is None:
        # What the two say of a container contradicts itself: its requests exceed its limits.
        for output in ("yaml", "name"):
            assert faces.decide(Scenario(file, tmp_path), "preview", output).exit_code == 1
        return
    scenario = Scenario(file, tmp_path)
    for check in CHECKS:
        if scenario.refused and check is faces.test_the_same_nodes_are_named:
            continue
        check(scenario)
    for command, output in (("preview", "yaml"), ("preview", "name"), ("explain", "text")):
        faces.test_the_exit_code_does_not_depend_on_the_format(scenario, command, output)
