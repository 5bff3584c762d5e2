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
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import webhook
from tests.wording import Wording, line_with, mentions
from webhook.cli.demo import command
from webhook.cli.demo.show import DATA, NAMESPACE, loopback
from webhook.errors import FairleadError, ServingError
from webhook.evaluation.replicas import Replicas
from webhook.questions.decisions import decisions
from webhook.questions.offline import read_offline
from webhook.questions.policy_test_report import run

ROOT = Path(__file__).parents[2]
Json = dict[str, Any]


def demo(*arguments: str, color: bool = False) -> Result:
    """The command, within this process; the webhook is a process of its own all the same."""
    return CliRunner().invoke(command, [*arguments], color=color)


@pytest.fixture(scope="module")
def text() -> str:
    """What it prints."""
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
def replicas() -> list[Replicas]:
    """The evaluations that it shows."""
    files = [DATA / "pods.yaml"], [DATA / "policies"]
    return decisions(read_offline(*files, NAMESPACE, DATA / "namespace.yaml"))


def test_its_text(text: str, wording: Wording) -> None:
    """In the first lines it says that there is no cluster."""
    first, second, third, *_ = text.splitlines()
    assert "without a cluster" in first
    assert "TLSv1.3 at https://127.0.0.1:" in second
    assert "no pod is created" in third
    port = re.findall(r":(\d+)/mutate", second)[0]
    wording(text, {f":{port}/": ":PORT/", f" {webhook.__version__}:": " VERSION:"})
    mentions(line_with(text.split("\n\n"), "10 answers"), "fairlead preview", "fairlead explain")


def test_the_first_page_shows_a_part_of_it(text: str) -> None:
    """One of its examples, without the line that is drawn over it."""
    shown = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (title, *lines), *others = [each.splitlines() for each in shown]
    assert others == []
    assert "\n".join(lines) in text.partition(f"{title} ")[2]


def test_each_result_is_shown_once(document: Json) -> None:
    """A pod that is sent to spot, one kept from it, and so on; and a Run's pods."""
    assert document["kind"] == "Demonstration"
    examples = {each["object"]: each["result"] for each in document["examples"]}
    assert examples == {
        "Pod/mnist-worker-0": "placed",
        "Pod/mnist-master-0": "placed",
        "Pod/mnist-evaluator-0": "unchanged",
        "Pod/bert-worker-0": "placed",
        "Pod/digits-worker-0": "rejected",
        "DaemonSet/dataset-cache": "left-alone",
        "Pod/web": "not-a-run",
    }
    assert [(each["pods"], each["result"]) for each in document["run"]] == [
        ("master", "placed"),
        ("worker × 2", "placed"),
    ]


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
    with loopback() as server:
        port = int(server.url.split(":")[2].split("/")[0])
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
        loopback(namespaces=tmp_path / "absent.yaml"),
    ):
        pass


def test_an_answer_without_a_decision_is_a_failure(
    tmp_path: Path, replicas: list[Replicas]
) -> None:
    """Over policies that are not there the webhook answers 503, and the demo fails with that."""
    with (
        pytest.raises(ServingError, match=r"503 .*no policies"),
        loopback(policies=tmp_path / "absent") as server,
    ):
        server.compare(replicas[0])


def test_a_webhook_that_answers_something_else_is_found_out(replicas: list[Replicas]) -> None:
    """The demo shows what the evaluation says, so the two must be one."""
    with loopback() as server:
        for each in replicas:
            server.compare(each)
        placed, *_ = replicas
        for wrong in ({"patch": ()}, {"result": "rejected", "reason": "no", "patch": ()}):
            decision = placed.decision._replace(**wrong)
            evaluation = replace(placed.evaluation, decision=decision)
            with pytest.raises(ServingError, match="mnist-worker-0"):
                server.compare(replace(placed, evaluation=evaluation))


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
    assert "File exists; name a new folder" in str(again.exception)


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
