"""`fairlead run logs`, with logs that come slowly, late, and in pieces."""

from __future__ import annotations

import asyncio
import math
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run.scripted_cluster import (
    PODS,
    RUNS,
    Cluster,
    Handler,
    log,
    pod_object,
    run_object,
    served,
)
from tests.kube.fake_api import Answer, Request
from tests.wording import Wording, mentions
from webhook.errors import FairleadError
from webhook.run_client import log_reading
from webhook.times import to_second


def cluster(logs: dict[str, Handler], *, phase: str = "Running", workers: int = 2) -> Cluster:
    """A run of workers, some of which have a log."""
    there = Cluster()
    there.add(RUNS, run_object(phase=phase, replicas={"worker": {"desired": workers}}))
    for replica, handler in logs.items():
        there.add(PODS, pod_object(replica))
        there.answers[f"{PODS}/mnist-{replica}/log"] = handler
    return there


def log_requests(there: Cluster) -> list[Request]:
    return [request for request in there.requests if request.path.endswith("/log")]


def test_one_log_comes_after_the_other(tmp_path: Path) -> None:
    """However fast each is: the first replica's lines are first."""
    logs = {
        "worker-0": log(b"slow 1\nslo", b"w 2\n", pause=0.05),
        "worker-1": log(b"fast 1\nfast 2"),
    }
    there = cluster(logs)
    with served(there, tmp_path) as call:
        done = call("logs", "mnist")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "worker-0 | slow 1",
        "worker-0 | slow 2",
        "worker-1 | fast 1",
        "worker-1 | fast 2",
    ]
    assert done.stderr == ""
    assert all(request.query == {"container": "main"} for request in log_requests(there))


def test_options_reach_the_api_server(tmp_path: Path) -> None:
    """Container, number of lines, following."""
    there = cluster({"worker-0": log(b"x\n")}, phase="Succeeded")
    with served(there, tmp_path) as call:
        call("logs", "mnist", "--index", "0", "-c", "side", "--tail", "5", "-f")
        (request,) = log_requests(there)
    assert request.query == {"container": "side", "tailLines": "5", "follow": "true"}


def test_replicas_without_a_log_are_reported_on_stderr(tmp_path: Path, wording: Wording) -> None:
    """The others' are printed all the same; a log that could not be read is a failure."""

    async def waits(_: Request, answer: Answer) -> None:
        await answer.status(400, "BadRequest", "is waiting to start: ContainerCreating")

    there = cluster({"worker-0": waits, "worker-1": log(b"fine\n")}, workers=4)
    with served(there, tmp_path) as call:
        done = call("logs", "mnist")
    assert done.exit_code == 1
    assert done.stdout == "worker-1 | fine\n"
    missing, refused = done.stderr.splitlines()
    assert missing.startswith("worker 2-3: ")
    mentions(missing, "no pod")
    assert refused.startswith("worker-0: ")
    mentions(refused, "ContainerCreating")
    wording(missing)


def test_a_log_that_breaks_off_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    """With the reason on stderr."""
    there = cluster({"worker-0": log(b"one\ntw", ends=False), "worker-1": log(b"fine\n")})
    with served(there, tmp_path) as call:
        done = call("logs", "mnist")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == ["worker-0 | one", "worker-0 | tw", "worker-1 | fine"]
    assert done.stderr.startswith("worker-0: cannot read log of pod mnist-worker-0")


def test_a_kubelet_that_does_not_answer_is_named_by_its_node(
    tmp_path: Path, wording: Wording
) -> None:
    """Before the API server's own words, which have its address only."""
    words = 'Get "https://127.0.0.1:10250/containerLogs/default/mnist-worker-0/main": dial tcp: no'

    async def unreached(_: Request, answer: Answer) -> None:
        await answer.status(500, "", words)

    with served(cluster({"worker-0": unreached}, workers=1), tmp_path) as call:
        done = call("logs", "mnist")
    assert done.exit_code == 1
    (refused,) = done.stderr.splitlines()
    mentions(refused, "node-1", words)
    wording(refused)


def test_no_pod_at_all_is_a_failure(tmp_path: Path, wording: Wording) -> None:
    """It says that there is none."""
    with served(cluster({}), tmp_path) as call:
        done = call("logs", "mnist")
    assert (done.exit_code, done.stdout) == (1, "")
    missing, waits = done.stderr.splitlines()
    assert missing.startswith("worker 0-1: ")
    mentions(missing, "no pod")
    mentions(waits, "run mnist: there is no log yet: Running")
    with served(Cluster(objects={f"{RUNS}/mnist": run_object()}), tmp_path) as call:
        done = call("logs", "mnist")
    (none,) = done.stderr.splitlines()
    assert none.startswith("run mnist: ")
    mentions(none, "no controller has reconciled it yet")
    wording(none)


def test_a_run_that_was_created_just_now_is_no_fault_of_the_controller(tmp_path: Path) -> None:
    """`run create --logs` looks before the controller does."""
    new = run_object()
    new["metadata"]["creationTimestamp"] = to_second(datetime.now(UTC))
    with served(Cluster(objects={f"{RUNS}/mnist": new}), tmp_path) as call:
        done = call("logs", "mnist")
    assert done.stderr == "run mnist: there is no log yet: it was created just now\n"


def test_only_some_logs_are_read_at_a_time(tmp_path: Path) -> None:
    """And all of them in the end, in order."""
    busy = most = 0

    async def slow(request: Request, answer: Answer) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await answer.begin()
        await asyncio.sleep(0.02)  # so that those read at a time meet here
        await answer.chunk(request.path.split("/")[-2].encode() + b"\n")
        busy -= 1
        await answer.end()

    names = [f"worker-{number}" for number in range(50)]
    there = cluster(dict.fromkeys(names, slow), workers=50)
    with served(there, tmp_path) as call:
        done = call("logs", "mnist")
    assert [line.split()[0] for line in done.stdout.splitlines()] == names
    assert most <= log_reading.CONCURRENT_LOGS


def test_a_log_of_many_pieces_that_waits_for_its_turn_is_whole(tmp_path: Path) -> None:
    """It is read no further than some pieces ahead, and then to its end."""
    long = [b"%d\n" % number for number in range(500)]
    logs = {"worker-0": log(b"first\n", pause=0.3), "worker-1": log(*long)}
    with served(cluster(logs), tmp_path) as call:
        done = call("logs", "mnist")
    assert done.stdout.splitlines()[1:] == [f"worker-1 | {number}" for number in range(500)]


def test_following_shows_lines_as_they_come_and_pods_that_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """Each replica's in order; until the run has ended."""
    monkeypatch.setattr(log_reading, "SEARCH_SECONDS", 0.02)
    there = cluster({"worker-0": log(b"a\n", b"b\n", pause=0.1)})
    waiting = pod_object("worker-1", phase="Pending", containerStatuses=[])
    there.add(PODS, waiting)
    there.answers[f"{PODS}/mnist-worker-1/log"] = log(b"late\n")
    looks = 0

    async def run(_: Request, answer: Answer) -> None:
        nonlocal looks
        looks += 1
        if looks == 5:
            there.add(PODS, pod_object("worker-1"))
        phase = "Running" if looks < 10 else "Succeeded"
        replicas = {"worker": {"desired": 2}}
        await answer.json(run_object(phase=phase, replicas=replicas))

    there.answers[f"{RUNS}/mnist"] = run
    with served(there, tmp_path) as call:
        done = call("logs", "mnist", "--follow")
    assert done.exit_code == 0
    assert sorted(done.stdout.splitlines()) == ["worker-0 | a", "worker-0 | b", "worker-1 | late"]
    assert done.stdout.index("| a") < done.stdout.index("| b")
    (waits,) = done.stderr.splitlines()
    assert waits.startswith("worker-1: ")
    mentions(waits, "not started")
    wording(waits)


def test_a_recreated_pod_of_the_same_name_is_followed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another pod, with a log of its own; and no log is opened twice."""
    monkeypatch.setattr(log_reading, "SEARCH_SECONDS", 0.02)
    there = cluster({"worker-0": log(b"a life\n")})
    looks = 0

    async def run(_: Request, answer: Answer) -> None:
        nonlocal looks
        looks += 1
        if looks == 5:
            again = pod_object("worker-0")
            again["metadata"]["uid"] = "another"
            there.add(PODS, again)
        if looks == 10:
            await answer.status(404, "NotFound", "deleted, its time to live being over")
        else:
            replicas = {"worker": {"desired": 1}}
            await answer.json(run_object(phase="Running", replicas=replicas))

    there.answers[f"{RUNS}/mnist"] = run
    with served(there, tmp_path) as call:
        done = call("logs", "mnist", "--follow")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == ["worker-0 | a life"] * 2


def test_a_cluster_that_goes_away_while_logs_are_followed_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason; what is being followed is let go."""
    monkeypatch.setattr(log_reading, "SEARCH_SECONDS", 0.02)
    # Counted once the log has begun, which is read well before three more looks are over.
    looks = -math.inf

    async def begins(_: Request, answer: Answer) -> None:
        nonlocal looks
        await answer.begin()
        await answer.chunk(b"a\n")
        looks = 0
        await asyncio.sleep(1000)

    there = cluster({"worker-0": begins})

    async def run(_: Request, answer: Answer) -> None:
        nonlocal looks
        looks += 1
        if looks > 3:
            await answer.status(500, "InternalError", "etcd is away")
        else:
            await answer.json(run_object(phase="Running", replicas={"worker": {"desired": 1}}))

    there.answers[f"{RUNS}/mnist"] = run
    with served(there, tmp_path) as call:
        done = call("logs", "mnist", "--follow")
    assert isinstance(done.exception, FairleadError)
    assert "etcd is away" in str(done.exception)
    assert done.stdout == "worker-0 | a\n"


def test_too_many_logs_are_not_followed(tmp_path: Path, wording: Wording) -> None:
    """It says how to choose, and begins none."""
    there = cluster({f"worker-{number}": log(b"x\n") for number in range(65)}, workers=65)
    with served(there, tmp_path) as call:
        done = call("logs", "mnist", "-f")
        assert log_requests(there) == []
    assert isinstance(done.exception, FairleadError)
    mentions(str(done.exception), "65", "64", "--role", "--index")
    wording(str(done.exception))


def two_runs(there: Cluster, **status: Any) -> Cluster:
    """`there`, with a run of one worker that ended beside its own."""
    other = run_object("other", "u2", phase="Succeeded", replicas={"worker": {"desired": 1}})
    there.add(RUNS, other)
    there.add(PODS, pod_object("worker-0", run="other", uid="u2", **status))
    there.answers[f"{PODS}/other-worker-0/log"] = log(b"of the other\n")
    return there


@pytest.mark.parametrize("options", [(), ("-f",)])
def test_logs_of_several_runs_have_the_run_in_front(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """In the order that was asked; followed at the same time."""
    logs = {"worker-0": log(b"slow 1\n", b"slow 2\n", pause=0.05)}
    there = two_runs(cluster(logs, phase="Succeeded", workers=1))
    with served(there, tmp_path) as call:
        done = call("logs", "other", "mnist", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [each for each in lines if "mnist" in each] == [
        "mnist/worker-0 | slow 1",
        "mnist/worker-0 | slow 2",
    ]
    assert "other/worker-0 | of the other" in lines
    assert len(lines) == 3
    assert options or lines[0].startswith("other")


def test_a_run_whose_logs_are_too_many_leaves_the_others(tmp_path: Path) -> None:
    """Those of all runs together are bounded."""
    there = two_runs(cluster({f"worker-{number}": log(b"x\n") for number in range(33)}, workers=33))
    with served(there, tmp_path) as call:
        done = call("logs", "mnist", "other", "-f")
    assert done.exit_code == 1
    mentions(done.stderr, "mnist", "33", "32")
    assert done.stdout == "other/worker-0 | of the other\n"


def test_logs_of_no_run_in_particular_are_wrong_usage(tmp_path: Path) -> None:
    """As labels that no run has are an error."""
    with served(cluster({}), tmp_path) as call:
        assert call("logs").exit_code == 2
        done = call("logs", "-l", "team=none")
    assert isinstance(done.exception, FairleadError)
    mentions(str(done.exception), "no such Runs")


@pytest.mark.parametrize(("options", "code"), [((), 1), (("-f",), 130)])
def test_a_closed_pipe_ends_it_without_a_message(
    tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    """A closed pipe (`| head -1`), and Ctrl-C."""

    async def endless(_: Request, answer: Answer) -> None:
        await answer.begin()
        await answer.chunk(b"first\n")
        while not options:
            await answer.chunk(b"more\n" * 1000)
        await asyncio.sleep(1000)

    there = cluster({"worker-0": endless}, workers=1)
    with served(there, tmp_path):
        program = [sys.executable, "-c", "from webhook.cli import main; main()", "run", "logs"]
        with subprocess.Popen(
            [*program, "mnist", *options, "--kubeconfig", str(tmp_path / "kubeconfig")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "worker-0 | first\n"
            if options:
                process.send_signal(signal.SIGINT)
            else:
                process.stdout.close()
            assert process.stderr.read() == ""
            assert process.wait() == code
