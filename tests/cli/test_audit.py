"""`fairlead audit`: from files and from the replicas, for people and for programs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from tests.test_audited import REFUSED, event, exposed
from tests.wording import Wording, line_with, mentions
from webhook.cli.audit import command, read_metrics
from webhook.errors import ClusterError
from webhook.server.webhook_metrics import Metrics

STRICT = {"policies": ["strict"], "differs": True, "rejections": [REFUSED]}


def metrics_of(outcome: str) -> str:
    """What a replica tells that has seen one pod."""
    metrics = Metrics()
    metrics.audited("strict", "research", outcome)
    return exposed(metrics)


def test_the_audit_log_tells_pods_and_messages(tmp_path: Path) -> None:
    """The exit code says that somebody would have been rejected."""
    log = tmp_path / "audit.log"
    log.write_bytes(event(STRICT, name="mnist-0") + event({"policies": ["a"], "differs": False}))
    result = CliRunner().invoke(command, ["--audit-log", str(log)])
    assert result.exit_code == 1
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[2:4] == ["research strict 1 0 0", "research a 0 0 1"]
    subject = line_with(lines, "strict in research", "(mnist-0)")
    assert " ".join(lines[lines.index(subject) + 1 :]) == REFUSED


def test_what_pods_are_called_does_not_steer_a_terminal(tmp_path: Path) -> None:
    """The API server records a pod before it looks at its name, which its author has chosen."""
    log = tmp_path / "audit.log"
    log.write_bytes(event({**STRICT, "rejections": [f"{REFUSED}\x1b[2J"]}, name="m\x1b]0;x\x07\na"))
    result = CliRunner().invoke(command, ["--audit-log", str(log)], color=True)
    assert "strict in research (m\\x1b]0;x\\x07 a):" in result.output
    assert "\\x1b[2J" in result.output
    assert {text[:2] for text in result.output.split("\x1b")[1:]} == {"[3", "[0"}


def test_a_missing_answer_is_not_a_rejection(tmp_path: Path) -> None:
    """A job that goes by the exit code can tell one from the other."""
    nowhere = tmp_path / "kubeconfig"
    result = CliRunner().invoke(command, ["--kubeconfig", str(nowhere)])
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True), result.output


def test_metrics_of_all_replicas_are_one_sum(tmp_path: Path) -> None:
    """As JSON, for a job that goes by it; nobody would have been rejected."""
    files = []
    for number, outcome in enumerate(["changes", "changes", "same"]):
        file = tmp_path / str(number)
        file.write_text(metrics_of(outcome))
        files += ["--metrics", str(file)]
    result = CliRunner().invoke(command, [*files, "-o", "json"])
    assert result.exit_code == 0
    (row,) = json.loads(result.output)["rows"]
    assert (row["namespace"], row["policy"]) == ("research", "strict")
    assert (row["rejects"], row["changes"], row["same"]) == (0, 2, 1)


def test_a_missing_match_is_reported(wording: Wording) -> None:
    """Of pods that were decided on; standard input will do."""
    result = CliRunner().invoke(command, ["--audit-log", "-"], input=decided())
    assert result.exit_code == 0
    mentions(result.output, "created in the log: 1", "by Fairlead: 1", "No policy under Audit")
    wording(result.output)


@pytest.mark.parametrize(
    "line",
    [
        event(STRICT)[:-10],
        event(STRICT).strip() + event(STRICT),
        b'{"metadata":\n',
        json.dumps(
            {
                **json.loads(event(STRICT)),
                "annotations": {"pods-0.fairlead.dev/audit": '{"policies":["b"],"differs":tr'},
            }
        ).encode(),
    ],
    ids=["cut", "two in one", "over several lines", "annotation"],
)
def test_lines_that_cannot_be_read_are_counted(
    tmp_path: Path, line: bytes, wording: Wording
) -> None:
    """What they say of rejections nobody knows: that there were none is no answer."""
    log = tmp_path / "audit.log"
    log.write_bytes(decided() + line.strip() + b"\n")
    result = CliRunner().invoke(command, ["--audit-log", str(log)])
    assert result.exit_code == 2
    told = line_with(result.output.splitlines(), "1 line ", f"{log}:2", "not counted")
    wording(told, {tmp_path: "TMP"})


@pytest.mark.parametrize("option", ["--audit-log", "--metrics"])
def test_a_file_that_is_given_twice_would_count_twice(tmp_path: Path, option: str) -> None:
    """So it is wrong usage."""
    file = tmp_path / "f"
    file.write_text("")
    result = CliRunner().invoke(command, [option, str(file), option, str(file)])
    assert result.exit_code == 2
    mentions(result.output, str(file), "given twice")


def decided() -> bytes:
    """A pod of a run that no policy under Audit matches."""
    line = json.loads(event({"policies": []}))
    line["annotations"] = {"pods-0.fairlead.dev/result": "unchanged"}
    return json.dumps(line).encode() + b"\n"


@pytest.mark.parametrize("option", ["--audit-log", "--metrics"])
def test_a_file_of_another_kind_is_an_error(tmp_path: Path, option: str) -> None:
    """Named, and with exit code 2: nobody was asked what policies would do."""
    readme = tmp_path / "README.md"
    readme.write_text("# Fairlead\n\nPlaces runs.\n")
    for file, text in ((readme, readme.read_text()), (tmp_path / "empty", "")):
        file.write_text(text)
        result = CliRunner().invoke(command, [option, str(file)])
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert str(file) in result.stderr


def test_pods_without_an_answer_are_reported(tmp_path: Path, wording: Wording) -> None:
    """What would have become of them is unknown: exit code 2, unless a rejection is known."""
    open_line = json.loads(decided())
    key = "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0"
    open_line["annotations"] = {key: "pods-0.fairlead.dev"}
    log = tmp_path / "audit.log"
    log.write_bytes(decided() + json.dumps(open_line).encode() + b"\n")
    result = CliRunner().invoke(command, ["--audit-log", str(log)])
    assert result.exit_code == 2
    mentions(result.stdout, "failed open: 1")
    wording(result.stdout)
    whole = CliRunner().invoke(command, ["--audit-log", str(log), "-o", "json"])
    pods = {"created": 2, "decided": 1, "failedOpen": 1, "unreadLines": 0} | {
        "unanswered": {"pods": 0, "names": []}
    }
    assert json.loads(whole.stdout)["log"] == pods
    with log.open("ab") as file:
        file.write(event(STRICT))
    assert CliRunner().invoke(command, ["--audit-log", str(log)]).exit_code == 1


def test_two_ways_to_count_the_same_pods_are_refused(tmp_path: Path, wording: Wording) -> None:
    """They would be counted twice."""
    file = tmp_path / "file"
    file.write_text("")
    result = CliRunner().invoke(command, ["--audit-log", str(file), "--metrics", str(file)])
    assert result.exit_code == 2
    error = result.output.partition("Error: ")[2]
    mentions(error, "--audit-log", "--metrics", "same pods")
    wording(error)


def replica(name: str, phase: str = "Running") -> dict[str, object]:
    """A pod of the webhook, as far as it matters."""
    ports = [{"name": "https", "containerPort": 8443}, {"name": "health", "containerPort": 8081}]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"phase": phase, "podIP": "10.0.0.1"},
    }


def test_every_replica_that_runs_is_asked_through_the_api_server(tmp_path: Path) -> None:
    """At the number of its health port: the API server knows no names of ports of pods."""

    async def handle(request: Request, answer: Answer) -> None:
        if "proxy" in request.path:
            await answer.raw(request.path.encode())
        else:
            items = [replica("a"), replica("b", "Pending"), replica("c")]
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async def run() -> None:
        async with fake_api(handle) as api, client_of(api, tmp_path) as client:
            pods = "/api/v1/namespaces/fairlead-system/pods"
            assert list(await read_metrics(client)) == [
                f"{pods}/{name}:8081/proxy/metrics" for name in ("a", "c")
            ]

    asyncio.run(run())


@pytest.mark.parametrize("refused", [True, False])
def test_a_replica_that_cannot_be_asked_is_an_error(tmp_path: Path, refused: bool) -> None:
    """A sum that leaves one out would be wrong; so would none, where none runs."""

    async def handle(request: Request, answer: Answer) -> None:
        if "proxy" in request.path:
            await answer.status(403, "Forbidden", "no pods/proxy for you")
        else:
            items = [replica("a")] if refused else []
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})

    async def run() -> None:
        async with fake_api(handle) as api, client_of(api, tmp_path) as client:
            with pytest.raises(ClusterError, match="no pods/proxy" if refused else "no replica"):
                await read_metrics(client)

    asyncio.run(run())
