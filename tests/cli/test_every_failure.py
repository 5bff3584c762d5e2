"""What every command says when the cluster refuses: a sentence with the cure, and no REST path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.every_command import ASKING, RUN, Words, arguments, write_files
from tests.cli.run.scripted_cluster import Cluster, run_object, served
from tests.fast_yaml import load_yaml
from tests.kube.fake_api import Answer, Request, write_kubeconfig
from tests.wording import Wording
from webhook import names
from webhook.api_paths import ApiPath
from webhook.cli import fairlead
from webhook.cli.exit_codes import UNKNOWN, code_of
from webhook.cli.output import OutputOption
from webhook.errors import FairleadError
from webhook.installation.object_kinds import KINDS, Kind
from webhook.kube.failure_text import Target, target_of
from webhook.text.documents import REPORTS

OWN = f"/apis/{names.API_VERSION}"


def discovery() -> dict[str, Any]:
    """What the API server tells all clients of the kinds of an installation, a Run, and a pod."""
    found: dict[str, Any] = {"/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}}
    groups = {}
    pods, runs = Kind("v1", "Pod", "pods"), Kind(names.API_VERSION, names.RUN_KIND, names.RUNS)
    for kind in (*KINDS, pods, runs):
        path = ApiPath.of_version(kind.api_version)
        entry = {"name": kind.resource, "kind": kind.name, "namespaced": kind.namespaced}
        found.setdefault(path, {"resources": []})["resources"].append({**entry, "verbs": ["list"]})
        if kind.group:
            version = {"groupVersion": kind.api_version}
            group = {"name": kind.group, "preferredVersion": version, "versions": [version]}
            groups[kind.group] = group
    return {**found, "/apis": {"groups": list(groups.values())}}


DISCOVERY = discovery()
REVIEWS = "authorization.k8s.io"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# An HTTP verb with a path, and a status with its reason, as no person writes them.
RAW = re.compile(
    r"\b(GET|POST|PUT|PATCH|DELETE|WATCH|list) /|\b[45]\d\d [A-Z][A-Za-z]+:"
    r"|forbidden: User|cannot be fulfilled"
)
# The address of the fake API server, and what depends on the time.
VOLATILE = {
    r"127\.0\.0\.1:\d+": "SERVER",
    r"\b[0-9a-f]{16}\b": "HASH",
    r"in \d+\.\d s": "in TIME",
}


def words_for(target: Target) -> str:
    """The resource as the API server names it."""
    return ".".join(filter(None, (target.resource, target.group)))


async def no_right(request: Request, answer: Answer, target: Target) -> None:
    verb = VERBS.get(request.method, "get" if target.name else "list")
    resource = "/".join(filter(None, (target.resource, target.subresource)))
    at = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    who = f'User "jane" cannot {verb} resource "{resource}" in API group "{target.group}" {at}'
    await answer.status(403, "Forbidden", f"{words_for(target)} is forbidden: {who}")


async def gone(request: Request, answer: Answer, target: Target) -> None:
    if request.method == "POST" and target.namespace:
        await answer.status(404, "NotFound", f'namespaces "{target.namespace}" not found')
    elif target.name:
        text = f'{words_for(target)} "{target.name}" not found'
        await answer.status(404, "NotFound", text)
    else:
        await answer.json({"metadata": {"resourceVersion": "1"}, "items": []})


async def conflict(request: Request, answer: Answer, target: Target) -> None:
    what = f'{words_for(target)} "{target.name or RUN}"'
    template = {"spec": {"containers": [{"name": "main", "image": "a"}]}}
    run = {**run_object(phase="Running"), "spec": {"template": template}}
    if request.method == "POST":
        await answer.status(409, "AlreadyExists", f"{what} already exists")
    elif request.method != "GET":
        text = f"Operation cannot be fulfilled on {what}: the object has been modified; try again"
        await answer.status(409, "Conflict", text)
    elif (target.resource, target.name) == (names.RUNS, RUN):
        await answer.json(run)
    elif target.resource == names.RUNS:
        await answer.json({"metadata": {"resourceVersion": "1"}, "items": [run]})
    else:
        await gone(request, answer, target)


async def no_definition(request: Request, answer: Answer, target: Target) -> None:
    if target.group == names.GROUP:
        await answer.raw(b"404 page not found\n", 404, Content_Type="text/plain")
    else:
        await gone(request, answer, target)


FAULTS: dict[str, Callable[[Request, Answer, Target], Any]] = {
    "no right": no_right,
    "gone": gone,
    "conflict": conflict,
    "no definition": no_definition,
}


class Faulty(Cluster):
    """An API server at which every command meets the same fault; discovery answers, as to all."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.asked: list[str] = []

    async def answer(self, request: Request, answer: Answer) -> None:
        target = target_of(request.path)
        self.asked.append(f"{request.method} {request.path}")
        if target and target.group == REVIEWS:
            body = json.loads(request.body)
            await answer.json({**body, "status": {"allowed": self.fault != "no right"}}, 201)
        elif target:
            await FAULTS[self.fault](request, answer, target)
        elif request.path in DISCOVERY and not (
            self.fault == "no definition" and request.path == OWN
        ):
            await answer.json(DISCOVERY[request.path])
        else:
            await answer.raw(b"404 page not found\n", 404, Content_Type="text/plain")


def ask(words: Words, *more: str) -> tuple[int, str, str]:
    """The exit code of a command about the Run, what it prints, and what is beside it."""
    done = CliRunner().invoke(fairlead, [*arguments(words), *more])
    if isinstance(done.exception, FairleadError):
        # `main` prints it.
        return code_of(done.exception), done.stdout, f"{done.stderr}error: {done.exception}\n"
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done.exit_code, done.stdout, done.stderr


def shown(words: Words, code: int, text: str) -> str:
    for pattern, word in VOLATILE.items():
        text = re.sub(pattern, word, text)
    return f"$ fairlead {' '.join(arguments(words))}\n{text}exit code {code}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return tmp_path


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_command_says_what_the_cluster_refuses(
    folder: Path, words: Words, fault: str, wording: Wording
) -> None:
    """Every one asks, and ends without a traceback or the API server's raw words."""
    cluster = Faulty(fault)
    with served(cluster, folder):
        code, result, aside = ask(words)
    assert cluster.asked
    text = " ".join(f"{result} {aside}".split())
    assert not RAW.search(text), text
    if fault == "no right":
        assert "may not" in text, text
    wording(shown(words, code, aside))


REPORTS_OF = [
    pytest.param(words, each, form, id=f"{' '.join(words)} -o {form}")
    for words, command in ASKING.items()
    for each in command.params
    if isinstance(each, OutputOption) and isinstance(each.type, click.Choice) and each.report
    for form in ("json", "yaml", "patch")
    if form in each.type.choices
]


@pytest.mark.parametrize(("words", "option", "form"), REPORTS_OF)
def test_a_command_that_failed_prints_a_report_of_its_kind(
    folder: Path, words: Words, option: OutputOption, form: str
) -> None:
    """What it would have printed, with the error as a finding; objects for kubectl are none."""
    write_kubeconfig(folder, "http://127.0.0.1:1")
    code, printed, aside = ask(words, "-o", form)
    assert code in (1, 2), aside
    if form not in option.reports:
        assert printed == ""
        return
    report = load_yaml(printed)
    assert (report["apiVersion"], report["kind"]) == (REPORTS, option.report)
    (finding,) = report["findings"]
    assert finding["severity"] == "error"
    assert "127.0.0.1:1" in finding["message"]
    assert finding["message"] in aside


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_a_command_says_that_there_is_no_server(
    folder: Path, words: Words, wording: Wording
) -> None:
    """With its address, and the exit code of what is not known."""
    write_kubeconfig(folder, "http://127.0.0.1:1")
    code, _, aside = ask(words)
    assert code == UNKNOWN, aside
    assert "127.0.0.1:1" in aside
    assert not RAW.search(aside), aside
    wording(shown(words, code, aside))
