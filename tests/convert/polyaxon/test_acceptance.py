"""The run of the acceptance, written as a Run and as a Polyaxonfile, is one run."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fast_yaml import load_yaml
from webhook.convert.polyaxon.convert import convert
from webhook.run.model import Run
from webhook.run.plan import Plan, plan

FILES = Path(__file__).parents[2] / "cluster" / "files"


def both() -> tuple[Plan, Plan]:
    """The plan of the Run, and of what the Polyaxonfile becomes."""
    run = Run.model_validate(
        load_yaml((FILES / "mnist-run.yaml").read_text()), by_alias=True, by_name=False
    )
    file = FILES / "mnist-polyaxonfile.yml"
    result = convert({file.name: file.read_bytes()})
    assert result.run is not None, result.errors
    return plan(run), plan(result.run)


def test_a_run_and_its_polyaxonfile_give_the_same_eleven_pods() -> None:
    """Every manifest, to the letter: resources, placement, what each is told."""
    ours, theirs = both()
    replicas = [(role, at) for role, n in ours.gang.counts.items() for at in range(n)]
    assert len(replicas) == 11
    for role, index in replicas:
        assert theirs.pod(role, index, 0) == ours.pod(role, index, 0)
    assert theirs.service() == ours.service()
    assert theirs.run.spec == ours.run.spec


def test_programs_of_that_time_find_their_master() -> None:
    """TF_CONFIG calls the first replica master, as Polyaxon's did."""
    _, theirs = both()
    main = theirs.pod("worker", 2, 0)["spec"]["containers"][0]
    told = json.loads(next(v["value"] for v in main["env"] if v["name"] == "TF_CONFIG"))
    assert {task: len(hosts) for task, hosts in told["cluster"].items()} == {
        "master": 1,
        "worker": 7,
        "ps": 3,
    }
    assert told["task"] == {"type": "worker", "index": 2}
