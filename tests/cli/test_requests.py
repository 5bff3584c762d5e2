"""What a command does about requests: it waits for a busy server, gives up, and shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.run.scripted_cluster import RUNS, Cluster, run_object, served
from tests.kube.fake_api import Answer, Request, write_kubeconfig
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.exit_codes import DONE, UNKNOWN, code_of
from webhook.errors import ClusterError

TOKEN = "sixteen-signs-of-it"
LIST = ["run", "list", "-n", "default", "-o", "name"]


class Busy(Cluster):
    """An API server that is too busy for the first requests."""

    def __init__(self, times: int, **headers: str) -> None:
        super().__init__()
        self.times = times
        self.headers = headers
        self.asked_with: set[str] = set()
        self.add(RUNS, run_object())

    async def answer(self, request: Request, answer: Answer) -> None:
        self.asked_with.add(request.headers.get("authorization", ""))
        if self.times:
            self.times -= 1
            await answer.status(429, "TooManyRequests", "try again", **self.headers)
        else:
            await super().answer(request, answer)


def test_a_busy_server_is_asked_again_when_it_says_so(tmp_path: Path) -> None:
    """As kubectl does: a request that was answered with 429 had no effect."""
    cluster = Busy(2, Retry_After="1")
    with served(cluster, tmp_path) as ask:
        done = ask("list", "-o", "name")
    assert (done.exit_code, done.stdout) == (DONE, "run.fairlead.dev/mnist\n")
    assert cluster.times == 0


def test_a_busy_server_that_names_no_time_is_not_asked_again(tmp_path: Path) -> None:
    """The answer is not known then."""
    with served(Busy(1), tmp_path) as ask:
        done = ask("list")
    assert isinstance(done.exception, ClusterError)
    assert code_of(done.exception) == UNKNOWN
    mentions(str(done.exception), "too busy")


def test_verbose_shows_each_request_and_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr: method, address, status and time."""
    cluster = Busy(0)
    with served(cluster, tmp_path):
        assert cluster.api
        kubeconfig = write_kubeconfig(tmp_path, cluster.api.url, token=TOKEN)
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        done = CliRunner().invoke(fairlead, [*LIST, "-v"])
        quiet = CliRunner().invoke(fairlead, LIST)
    assert done.exit_code == DONE, done.output
    line = re.compile(r"GET http://127[.]0[.]0[.]1:\d+/apis/\S+: 200 X in \d+ ms")
    assert any(line.fullmatch(each) for each in done.stderr.splitlines()), done.stderr
    assert done.stdout == quiet.stdout
    assert "GET" not in quiet.stderr
    assert cluster.asked_with == {f"Bearer {TOKEN}"}
    assert TOKEN not in done.output


def test_a_request_is_given_up_when_its_time_is_over(tmp_path: Path) -> None:
    """--request-timeout, as kubectl's; without it the answer would come after 30 s."""

    class Silent(Cluster):
        async def answer(self, request: Request, answer: Answer) -> None:
            import asyncio

            await asyncio.sleep(3)
            await super().answer(request, answer)

    with served(Silent(), tmp_path) as ask:
        done = ask("list", "--request-timeout", "1s")
    mentions(str(done.exception), "did not answer in time")
