"""`fairlead demo` on a real control plane of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
Place = Mapping[str, str]


def demo(folder: Path, *arguments: str) -> str:
    """What the command prints; its temporary files go to `folder`."""
    command = [sys.executable, "-c", "from webhook.cli import main; main()", "demo", *arguments]
    environ = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.run(
        command, env=environ, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo puts what it removes again."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def document(binaries: Mapping[str, Path], folder: Path) -> Json:
    """The demo as JSON; the binaries are there, so it takes the cluster unasked."""
    assert binaries
    loaded: Json = json.loads(demo(folder, "-o", "json"))
    return loaded


@pytest.fixture(scope="module")
def places(document: Json) -> Mapping[str, Sequence[Place]]:
    """Where the pods of each example went."""
    names = [example["name"] for example in document["examples"]]
    return {
        name: [place for place in document["places"] if place["example"] == name] for name in names
    }


def test_the_scheduler_puts_each_pod_where_the_policies_say(
    places: Mapping[str, Sequence[Place]],
) -> None:
    """Workers on spot, the master on demand, and who named a zone, in it."""
    for worker in ("mnist-worker-0", "bert-worker-0"):
        (place,) = places[worker]
        assert (place["pool"], place["capacity"]) == ("spot", "spot")
    (master,) = places["mnist-master-0"]
    assert master["capacity"] == "on-demand"
    # The shipped nodes take the zones in turn: odd ones are in europe-west4-b.
    (evaluator,) = places["mnist-evaluator-0"]
    assert evaluator["node"] in ("on-demand-1", "on-demand-3")


def test_who_is_refused_is_nowhere_and_who_is_left_alone_is_everywhere(
    places: Mapping[str, Sequence[Place]],
) -> None:
    """No pod of the refused one; one of the DaemonSet's on each node without a taint."""
    assert places["digits-worker-0"] == []
    nodes = sorted(place["node"] for place in places["dataset-cache"])
    assert nodes == [f"on-demand-{number}" for number in range(4)]
    assert len(places["web"]) == 1


def test_its_answers_are_those_of_the_demo_without_a_cluster(document: Json, folder: Path) -> None:
    """Pod by pod: the same result, the same fields before and after, the same reasons."""
    without = json.loads(demo(folder, "--no-cluster", "-o", "json"))
    assert (document["kind"], without["kind"]) == ("cluster", "loopback")
    for seen, same in zip(document["examples"], without["examples"], strict=True):
        if seen["name"] == "dataset-cache":
            # Its controller, and not we, chose the node of the pod that is shown.
            seen, same = ({**one, "before": "", "after": ""} for one in (seen, same))
        # kubectl puts its own words around the reason.
        assert same["message"] in seen["message"]
        assert {**seen, "message": ""} == {**same, "message": ""}


def test_its_run_becomes_pods_that_are_placed_and_ends(document: Json, folder: Path) -> None:
    """The controller's pods, as foreseen without a cluster: workers on spot, the master not."""
    run = document["run"]
    assert run["phases"][-2:] == ["Running", "Succeeded"]
    on_spot = [pod["node"].startswith(("spot-", "gpu-spot-")) for pod in run["pods"]]
    assert on_spot == [False, True, True]
    without = json.loads(demo(folder, "--no-cluster", "-o", "json"))["run"]
    assert [{**pod, "node": ""} for pod in run["pods"]] == without["pods"]


def test_it_says_plainly_that_the_control_plane_is_real(
    binaries: Mapping[str, Path], folder: Path
) -> None:
    """What is real, what is simulated, and a table of which pod went where."""
    assert binaries
    text = demo(folder, "--cluster")
    first, *_ = text.splitlines()
    head = " ".join(text.partition("\n\n")[0].split())
    assert "on a real control plane" in first
    assert "kube-apiserver v1." in head
    assert "nodes are simulated" in head
    assert re.search(r"^POD +RUN/ROLE +ASKED +NODE +POOL +CAPACITY$", text, re.MULTILINE)
    assert re.search(
        r"^mnist-worker-0 +mnist/worker +nothing +spot-\d +spot +spot$", text, re.MULTILINE
    )
    assert re.search(r"^digits-worker-0 .* none: rejected$", text, re.MULTILINE)
    assert re.search(r" resnet-worker-0 +rank 1 of 3 +node \S*spot-\d +by workers-on-spot", text)
    assert re.search(r"^phases .*Running; Succeeded after the demo .*$", text, re.MULTILINE)
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert [*folder.iterdir()] == []
    port = re.search(r"127\.0\.0\.1:(\d+)/mutate", text)
    assert port is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port[1])))
