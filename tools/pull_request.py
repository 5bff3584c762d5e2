"""The steps of action.yml: check policies, run their tests, compare them with a pull request's
base, and say in one comment which pods would change.

Variables: inputs as POLICIES, TESTS, PODS, NODES, BASE, FAIL_ON, TOKEN, and NUMBER, that of the
pull request; GITHUB_API_URL, GITHUB_REPOSITORY and GITHUB_STEP_SUMMARY, which the runners of GitHub
and Forgejo set. `fairlead` is looked for beside the Python that runs this.

Exit codes: 0 all is right; 1 an error in a policy, a test that fails, or a difference that FAIL_ON
names; 2 nothing was compared, or a fact is unknown that could change the answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FAIRLEAD: Final = Path(sys.executable).with_name("fairlead")
# Comments in an answer, the most pages that are read, and seconds for one request.
PAGE: Final = 100
MOST_PAGES: Final = 30
PATIENCE: Final = 30.0


def main(given: Mapping[str, str]) -> int:
    """Do all steps, whatever one of them finds; return the highest of their exit codes."""
    policies = Path(given["POLICIES"])
    codes = [_run("check", str(policies))]
    if given.get("TESTS"):
        codes.append(_run("test", given["TESTS"]))
    else:
        # Where production.md keeps them, as kubectl cannot apply tests.
        beside = (policies, policies.parent / "tests")
        folders = [path for path in beside if path.is_dir() and any(path.rglob("*.test.yaml"))]
        codes += [_run("test", str(folder)) for folder in folders]
        if not folders:
            _annotate("notice", f"there are no policy tests in {' or '.join(map(str, beside))}")
    if given.get("BASE") and given.get("PODS"):
        codes.append(_compare(given))
    return max(codes)


def _run(*words: str) -> int:
    sys.stdout.write(f"::group::fairlead {' '.join(words)}\n")
    sys.stdout.flush()
    code = subprocess.run([FAIRLEAD, *words], check=False).returncode  # noqa: S603
    sys.stdout.write("::endgroup::\n")
    sys.stdout.flush()
    return code


def _compare(given: Mapping[str, str]) -> int:
    policies, nodes = given["POLICIES"], given.get("NODES")
    # Without nodes nobody knows where pods run.
    fail_on = given.get("FAIL_ON") or ("unplaceable" if nodes else "rejected")
    words = ["diff", f"{given['BASE']}:{policies}", policies, "--pods", given["PODS"]]
    words += [*(("--nodes", nodes) if nodes else ()), "--fail-on", fail_on, "-o", "markdown"]
    done = subprocess.run([FAIRLEAD, *words], stdout=subprocess.PIPE, check=False)  # noqa: S603
    if not done.stdout:
        # Nothing was compared, and stderr says why.
        return done.returncode
    text = done.stdout.decode()
    if summary := given.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text)
    if given.get("TOKEN") and given.get("NUMBER"):
        try:
            _comment(given, text)
        except (OSError, ValueError) as error:
            # A pull request from a fork has a token that may not comment.
            why = f"{error}: it needs `permissions: pull-requests: write`, which forks do not get"
            _annotate("warning", f"the comparison is in the job's summary, not in a comment: {why}")
    return done.returncode


def _annotate(kind: str, text: str) -> None:
    line = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    sys.stdout.write(f"::{kind} title=Fairlead::{line}\n")
    sys.stdout.flush()


def _comment(given: Mapping[str, str], text: str) -> None:
    """Write the comment, or write this action's earlier one for these policies again.

    Raises OSError if the forge refuses or does not answer, ValueError if its answer is no JSON.
    """
    mark = f"<!-- fairlead: {given['POLICIES'].replace('--', '')} -->"
    body = {"body": f"{mark}\n{text}"}
    issues = f"repos/{given['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{given['NUMBER']}/comments"
    for comment in _listed(given, comments):
        if str(comment.get("body")).startswith(mark):
            _ask(given, "PATCH", f"{issues}/comments/{comment['id']}", body)
            return
    _ask(given, "POST", comments, body)


def _listed(given: Mapping[str, str], path: str) -> Iterator[dict[str, Any]]:
    comment_ids: set[object] = set()
    for page in range(1, MOST_PAGES + 1):
        listed = _ask(given, "GET", f"{path}?per_page={PAGE}&limit={PAGE}&page={page}")
        new = [comment for comment in listed if comment["id"] not in comment_ids]
        # Forgejo has all comments in each page.
        yield from new
        comment_ids.update(comment["id"] for comment in new)
        if len(listed) < PAGE or not new:
            return


def _ask(given: Mapping[str, str], method: str, path: str, body: object = None) -> Any:
    request = urllib.request.Request(  # noqa: S310  (the runner sets the address)
        f"{given['GITHUB_API_URL']}/{path}",
        data=orjson.dumps(body) if body else None,
        method=method,
        headers={
            "Authorization": f"token {given['TOKEN']}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        return orjson.loads(answer.read())


if __name__ == "__main__":
    sys.exit(main(os.environ))
