"""`fairlead demo`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import webhook
from tests.wording import Wording, line_with, mentions
from webhook.cli.demo import command
from webhook.cli.demo.examples import (
    NAMESPACE,
    POLICIES,
    Disagreement,
    explain_example,
    read_examples,
)
from webhook.cli.demo.stages import loopback
from webhook.cli.demo.text import placement_lines, summarize
from webhook.cli.policy_test_report import run
from webhook.errors import FairleadError, ServingError
from webhook.policy.load import load
from webhook.server.folder import read_folder

ROOT = Path(__file__).parents[2]
DATA = POLICIES.parent
Json = dict[str, Any]

SPOT = {"field": "nodeAffinity", "text": "cloud.google.com/gke-spot In [true]"}
NOT_SPOT = {"field": "nodeAffinity", "text": "cloud.google.com/gke-spot NotIn [true]"}
ON_SPOT = {"field": "tolerations", "text": "cloud.google.com/gke-spot=true:NoSchedule"}


def demo(*arguments: str, color: bool = False) -> Result:
    """The command, within this process; the webhook is a process of its own all the same."""
    return CliRunner().invoke(command, [*arguments], color=color)


@pytest.fixture(scope="module")
def text() -> str:
    """What it prints without a cluster."""
    result = demo()
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def document() -> Json:
    """The same as JSON."""
    result = demo("-o", "json")
    assert result.exit_code == 0, result.output
    loaded: Json = json.loads(result.stdout)
    return loaded


@pytest.fixture(scope="module")
def examples(document: Json) -> Mapping[str, Json]:
    """The examples by name."""
    return {example["name"]: example for example in document["examples"]}


def test_the_output_states_that_there_is_no_cluster(
    text: str, document: Json, wording: Wording
) -> None:
    """In the first lines, and in the JSON."""
    first, second, third, *_ = text.splitlines()
    assert "without a cluster" in first
    assert "TLSv1.3 at https://127.0.0.1:" in second
    assert "no pod is created" in third
    port = re.findall(r":(\d+)/mutate", second)[0]
    wording(text, {f":{port}/": ":PORT/", f" {webhook.__version__}:": " VERSION:"})
    assert document["kind"] == "loopback"


def test_a_worker_is_sent_to_spot(examples: Mapping[str, Json]) -> None:
    """By a term that requires spot nodes and a toleration that admits it there."""
    worker = examples["mnist-worker-0"]
    assert (worker["result"], worker["before"]) == ("placed", [])
    assert SPOT in worker["after"]
    assert ON_SPOT in worker["after"]
    assert {"workers-on-spot", "near-the-data"} == {entry["policy"] for entry in worker["why"]}


def test_a_master_is_kept_on_demand(examples: Mapping[str, Json]) -> None:
    """Though its author copied a toleration, which goes, and the author is told."""
    master = examples["mnist-master-0"]
    assert master["before"] == [ON_SPOT]
    assert NOT_SPOT in master["after"]
    assert ON_SPOT not in master["after"]
    assert [warning for warning in master["warnings"] if "gke-spot" in warning]


def test_a_pods_own_setting_wins_over_a_default(examples: Mapping[str, Json]) -> None:
    """It keeps its zone, and the reason quotes it."""
    pod = examples["mnist-evaluator-0"]
    assert pod["result"] == "unchanged"
    assert pod["before"] == pod["after"]
    (entry,) = pod["why"]
    assert (entry["outcome"], entry["part"]) == ("kept", "defaults")
    assert "europe-west4-b" in entry["reason"]


def test_each_of_three_terms_is_narrowed(examples: Mapping[str, Json]) -> None:
    """Every alternative also wants spot."""
    pod = examples["bert-worker-0"]
    before = [line["text"] for line in pod["before"]]
    after = [line["text"] for line in pod["after"] if line["field"] == "nodeAffinity"]
    assert len(before) == 3
    assert after == [f"{text} and {SPOT['text']}" for text in before]


def test_a_contradiction_is_refused_with_its_reason(examples: Mapping[str, Json]) -> None:
    """The message names policy, field, and the pod's own word."""
    pod = examples["digits-worker-0"]
    assert (pod["result"], pod["after"]) == ("rejected", [])
    mentions(pod["message"], "policy tensorflow-on-amd64", "requirements.nodeSelector", "arm64")
    assert {entry["outcome"] for entry in pod["why"]} == {"rejected"}


def test_a_daemon_set_s_pod_is_left_alone(examples: Mapping[str, Json]) -> None:
    """With the reason."""
    pod = examples["dataset-cache"]
    assert (pod["result"], pod["before"]) == ("left-alone", pod["after"])
    assert "DaemonSet" in pod["reason"]


def test_an_unmarked_pod_is_not_touched(examples: Mapping[str, Json]) -> None:
    """It belongs to no run."""
    assert (examples["web"]["result"], examples["web"]["after"]) == ("not-a-run", [])


def test_every_example_is_shown_before_after_and_why(text: str, document: Json) -> None:
    """Under the title that its manifest has."""
    blocks = re.split(r"\n\n(?=\d  )", text.partition("\n\n8  ")[0])[1:]
    assert len(blocks) == len(document["examples"]) == 7
    answers = line_with(text.split("\n\n"), "10 answers")
    mentions(answers, "offline", "fairlead mutate", "fairlead explain")
    for block, example in zip(blocks, document["examples"], strict=True):
        assert example["title"] in block
        assert [label for label in ("before", "after", "why") if f"\n{label}" not in block] == []


def test_a_run_is_shown_as_the_pods_that_it_would_be(text: str, document: Json) -> None:
    """Each with its rank and the policies that place it."""
    run = document["run"]
    assert run["name"] == "resnet"
    assert [(pod["pod"], pod["rank"], pod["result"]) for pod in run["pods"]] == [
        ("resnet-master-0", "0", "placed"),
        ("resnet-worker-0", "1", "placed"),
        ("resnet-worker-1", "2", "placed"),
    ]
    assert run["pods"][0]["policies"] == ["leaders-on-demand", "near-the-data"]
    assert run["pods"][1]["policies"] == ["workers-on-spot", "near-the-data"]
    block = text.partition("\n\n8  ")[2].partition("\n\n")[0]
    assert block.startswith(run["title"])
    line_with(block, "resnet-worker-1", "rank 2 of 3", "workers-on-spot, near-the-data")


def test_no_line_is_wider_than_a_hundred_columns(text: str) -> None:
    """So that it can be read in an ordinary terminal."""
    assert [line for line in text.splitlines() if len(line) > 100] == []


def test_it_is_plain_in_a_pipe_and_coloured_for_a_terminal(text: str) -> None:
    """The same words either way."""
    coloured = demo(color=True).output
    assert "\x1b" not in text
    assert "\x1b[32m" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert re.sub(r":\d+/mutate", "", plain) == re.sub(r":\d+/mutate", "", text)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a file nor a process that listens."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with loopback() as stage:
        port = int(stage.url.split(":")[2].split("/")[0])
        assert [*tmp_path.iterdir()]
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_it_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """A signal in the middle of it ends the webhook and removes its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from webhook.cli import main; main()", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as lines:
        lines.readline()
        port = re.search(r"127\.0\.0\.1:(\d+)/", lines.readline())
        process.send_signal(number)
        lines.read()
    process.wait()
    assert port is not None
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port[1])))


def test_a_webhook_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    """Its own last words are in the error."""
    with (
        pytest.raises(ServingError, match=r"(?s)ended.*absent\.yaml"),
        loopback(namespace_file=tmp_path / "absent.yaml"),
    ):
        pass


def test_an_answer_without_a_decision_is_a_failure(tmp_path: Path) -> None:
    """Over policies that are not there the webhook answers 503, and the demo fails with that."""
    example, *_ = read_examples()
    with (
        pytest.raises(ServingError, match=r"503 .*no policies"),
        loopback(policies=tmp_path / "absent") as stage,
    ):
        stage.admit(example)


def test_a_webhook_that_says_something_else_than_the_engine_is_found_out() -> None:
    """The demo shows the reason that the engine gives offline, so the two must be one."""
    example, *_ = read_examples()
    policies = load(read_folder(POLICIES)).policies
    labels = {"kubernetes.io/metadata.name": NAMESPACE}
    with loopback() as stage:
        answer = stage.admit(example)
    explain_example(example, answer, policies, labels)
    for wrong in (replace(answer, pod=answer.sent), replace(answer, pod=None, message="no")):
        with pytest.raises(Disagreement, match=example.name):
            explain_example(example, wrong, policies, labels)


def test_its_files_can_be_saved_and_played_with(tmp_path: Path) -> None:
    """They come with tests that pass; a folder that is there is not written into."""
    folder = tmp_path / "mine"
    result = demo("--save", str(folder))
    assert result.exit_code == 0
    assert str(folder) in result.output
    assert run(folder).passed
    assert (folder / "pods.yaml").exists()
    again = demo("--save", str(folder))
    assert isinstance(again.exception, FairleadError)
    assert "already exists" in str(again.exception)


def test_its_policies_have_tests_that_reach_each_of_them() -> None:
    """As every policy that ships."""
    report = run(DATA)
    assert report.passed
    assert report.unreached == []


def test_the_wheel_has_everything_that_it_reads(tmp_path: Path) -> None:
    """It runs where only the distribution is installed."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(path.relative_to(ROOT)) for path in DATA.rglob("*") if path.is_file()}
    assert wanted
    assert wanted <= shipped


def test_a_placement_is_described_in_few_lines(wording: Wording) -> None:
    """One an item; what the API server gives every pod is left out."""
    preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a"}]}}]
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    node_affinity = "requiredDuringSchedulingIgnoredDuringExecution"
    pod: Json = {
        "metadata": {},
        "spec": {
            "nodeSelector": {"example.com/pool": "large"},
            "tolerations": [
                {"operator": "Exists"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "affinity": {
                "nodeAffinity": {
                    node_affinity: {"nodeSelectorTerms": [{}]},
                    "preferredDuringSchedulingIgnoredDuringExecution": preferred,
                }
            },
            "topologySpreadConstraints": [spread],
            "priorityClassName": "high",
        },
    }
    selector, affinity, tolerations, *others = placement_lines(pod)
    assert selector == ("nodeSelector", "example.com/pool=large")
    assert (affinity.field, tolerations.field) == ("nodeAffinity", "tolerations")
    mentions(affinity.text, "no node")
    mentions(tolerations.text, "every taint")
    assert others == [
        ("nodeAffinity.preferred", json.dumps(preferred[0], separators=(",", ":"))),
        ("topologySpread", json.dumps(spread, separators=(",", ":"))),
        ("priorityClass", "high"),
    ]
    mentions(summarize(pod), "pool=large, ", affinity.text, "tolerates everything")
    wording(summarize(pod))
