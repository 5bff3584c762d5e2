"""The action, played: its step in a checkout of a pull request, beside a stand-in of the forge."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.wording import mentions
from tools.pull_request import PAGE

ROOT = Path(__file__).parents[2]
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: workers}
spec:
  description: Workers run in one pool.
  match: {roles: [worker]}
  overrides: {nodeSelector: {pool: POOL}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: w, labels: {fairlead.dev/run: mnist, fairlead.dev/role: worker}}
spec: {containers: [{name: main, image: busybox}]}
"""
TEST = """
apiVersion: fairlead.dev/v1alpha1
kind: PolicyTest
policies: [../policies]
tests:
- name: a worker gets the pool
  pod: {labels: {fairlead.dev/run: mnist, fairlead.dev/role: worker}}
  expect: {contains: {nodeSelector: {pool: EXPECTED}}}
"""


class Forge:
    """What GitHub and Forgejo do with comments. all_at_once: Forgejo, which has no pages."""

    def __init__(self, *comments: str, all_at_once: bool = False, may_write: bool = True) -> None:
        self.comments = dict(enumerate(comments, 1))
        self.writes: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                assert self.headers["Authorization"] == "token t0ken"
                listed = [{"id": at, "body": body} for at, body in outer.comments.items()]
                page = int(parse_qs(urlsplit(self.path).query)["page"][0])
                some = listed if all_at_once else listed[(page - 1) * PAGE : page * PAGE]
                self.answer(200, some)

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                if not may_write:
                    self.answer(403, {"message": "Resource not accessible by integration"})
                    return
                where = self.path.removeprefix("/api/repos/me/it/issues/")
                at = len(outer.comments) + 1 if where == "7/comments" else int(where.split("/")[1])
                outer.comments[at] = json.loads(raw)["body"]
                outer.writes.append(f"{self.command} {where}")
                self.answer(200, {"id": at})

            def do_PATCH(self) -> None:
                self.do_POST()

            def answer(self, status: int, body: Any) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/api"

    def __enter__(self) -> Forge:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A pull request that moves a worker from pool a to pool b, with a test beside the policies."""
    where = tmp_path / "checkout"
    for folder in ("policies", "workloads", "tests"):
        (where / folder).mkdir(parents=True)
    policy = where / "policies/workers.yaml"
    policy.write_text(POLICY.replace("POOL", "a"))
    (where / "workloads/pod.yaml").write_text(POD)
    (where / "tests/workers.test.yaml").write_text(TEST.replace("EXPECTED", "b"))
    git(where, "init", "--quiet", "--initial-branch", "main")
    git(where, "add", ".")
    git(where, "commit", "--quiet", "--message", "before")
    policy.write_text(POLICY.replace("POOL", "b"))
    return where


def git(where: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, *words], cwd=where, check=True)


def play(where: Path, forge: Forge, **inputs: str) -> tuple[int, str]:
    """Run the action's last step as a runner does; return its exit code and what it printed."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {f"inputs.{name}": of["default"] for name, of in action["inputs"].items()}
    values |= {"inputs.base": "main", "inputs.pods": "workloads", "inputs.token": "t0ken"}
    values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
    values["github.event.pull_request.number"] = "7"
    step = action["runs"]["steps"][-1]
    runner = where.parent
    link = runner / "fairlead"
    if not link.exists():
        link.symlink_to(sys.prefix)
    given = {name: values[text.strip("${} ")] for name, text in step["env"].items()}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=where,
        env={
            **given,
            "PATH": "/usr/bin:/bin",
            "RUNNER_TEMP": str(runner),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(runner / "summary.md"),
            "GITHUB_API_URL": forge.address,
            "GITHUB_REPOSITORY": "me/it",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_by_its_defaults_it_passes_and_comments(checkout: Path) -> None:
    """Without nodes too; the tests beside the policies are run, and the summary says the same."""
    with Forge() as forge:
        code, printed = play(checkout, forge)
        assert code == 0, printed
    mentions(printed, "::group::fairlead check", "::group::fairlead test tests", "1 passed")
    assert forge.writes == ["POST 7/comments"]
    mentions(forge.comments[1], "workers", "pool")
    assert forge.comments[1].endswith((checkout.parent / "summary.md").read_text())


@pytest.mark.parametrize("all_at_once", [False, True])
def test_it_writes_its_own_comment_again_and_no_other(checkout: Path, all_at_once: bool) -> None:
    """Though others have commented since, on another page; other policies have a comment apart."""
    others = ["thanks!"] * (PAGE + 3)
    with Forge(*others, all_at_once=all_at_once) as forge:
        for _ in range(2):
            play(checkout, forge)
            forge.comments[len(forge.comments) + 1] = "by another workflow"
        (checkout / "policies").rename(checkout / "more")
        play(checkout, forge, policies="more", base="")
    assert forge.writes == ["POST 7/comments", f"PATCH comments/{PAGE + 4}"]
    assert list(forge.comments.values()).count("thanks!") == len(others)


def test_a_token_that_may_not_comment_is_a_warning(checkout: Path) -> None:
    """As in a pull request from a fork: the result is that of the comparison."""
    with Forge(may_write=False) as forge:
        code, printed = play(checkout, forge)
        assert code == 0
        mentions(printed, "::warning", "403", "summary", "pull-requests: write")
        assert play(checkout, forge, fail_on="changed")[0] == 1
    assert "t0ken" not in printed
    assert (checkout.parent / "summary.md").read_text()


def test_every_step_is_done_whatever_one_finds(checkout: Path) -> None:
    """The exit code is the highest; what was not compared is 2."""
    with Forge() as forge:
        file = checkout / "tests/workers.test.yaml"
        file.write_text(TEST.replace("EXPECTED", "a"))
        code, printed = play(checkout, forge)
        assert (code, len(forge.writes)) == (1, 1), printed
        assert play(checkout, forge, base="nosuch")[0] == 2
        file.unlink()
        code, printed = play(checkout, forge)
        assert code == 0
        mentions(printed, "::notice", "no policy tests", "policies", "tests")
        assert play(checkout, forge, tests="tests")[0] == 2


def test_an_unknown_fact_fails_and_is_in_the_comment(checkout: Path) -> None:
    """A pod without a run label may be one of a run by labels of its namespace."""
    (checkout / "workloads/pod.yaml").write_text(POD.replace("fairlead.dev/run: mnist", "app: web"))
    with Forge() as forge:
        assert play(checkout, forge)[0] == 2
        mentions(forge.comments[1], "Unknown, or left out", "labels of namespace default")
        assert play(checkout, forge, fail_on="never")[0] == 0
