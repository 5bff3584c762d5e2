"""What commands print: each case of golden/commands/ is a rule, with its commands.

files.yaml has the files that every case finds in its working directory, and cluster.yaml the
cluster; the other documents have cases by their rules. A case has the commands to `run`, and may
have `policies` by name, `stdin` and more `files`: a text, an object, or a file with replacements.
With `cluster` it has a fake API server, which has these paths too, and may have `forbidden` ones.
`make golden` writes the exit code and the whole output of each command.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.fast_yaml import load_yaml
from tests.kube.fake_api import answering, fake_api, write_kubeconfig
from tests.wording import Wording
from webhook import names
from webhook.cli import fairlead
from webhook.errors import FairleadError, InvalidDocuments
from webhook.interception import webhooks
from webhook.judgement.set_judgement import load_objects

FOLDER = Path(__file__).parents[1] / "golden" / "commands"
DOCUMENTS = {path.stem: load_yaml(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))}
FILES: dict[str, str] = DOCUMENTS.pop("files")
CLUSTER: dict[str, Any] = DOCUMENTS.pop("cluster")
POLICIES = "/apis/fairlead.dev/v1alpha1/placementpolicies"
SENDING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fairlead"
VOLATILE = {
    r"\b[0-9a-f]{16}\b|\b[0-9a-f]{64}\b": "HASH",
    r"http://127\.0\.0\.1:\d+": "http://API",
}
CASES = [
    pytest.param(case, id=f"{stem}: {rule}")
    for stem, cases in DOCUMENTS.items()
    for rule, case in cases.items()
]


def text_of(content: Any) -> str:
    """The text of a file."""
    if isinstance(content, list):
        name, *replacements = content
        text = FILES[name]
        for old, new in zip(replacements[::2], replacements[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        return text
    return content if isinstance(content, str) else json.dumps(content)


def documents_of(policies: dict[str, Any]) -> str:
    """The documents of policies, by name."""
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PlacementPolicy"}
    found = [{**head, "metadata": {"name": name}, "spec": spec} for name, spec in policies.items()]
    return "\n---\n".join(map(json.dumps, found))


def paths_of(more: dict[str, Any]) -> dict[str, Any]:
    """What an API server has by path: lists, of all namespaces too, and each of their objects.

    `THE SET` in a text is the hash of its policies.
    """
    given = {SENDING: {"metadata": {}, "webhooks": webhooks(url="https://e")}, **CLUSTER, **more}
    objects = {
        f"placementpolicies/{each['metadata']['name']}": json.dumps(
            {**each, "apiVersion": names.API_VERSION, "kind": "PlacementPolicy", "status": None}
        ).encode()
        for each in given[POLICIES] or ()
    }
    text = json.dumps(given)
    with suppress(InvalidDocuments):
        text = text.replace("THE SET", load_objects(objects).policies.hash)
    given = json.loads(text)
    found: dict[str, Any] = {}
    for path, answer in given.items():
        found.setdefault(path, answer)
        if not isinstance(answer, list):
            continue
        for each in answer:
            if within := re.search(r"/namespaces/([^/]+)/", path):
                each["metadata"].setdefault("namespace", within[1])
            if name := each["metadata"].get("name"):
                found.setdefault(f"{path}/{name}", each)
        everywhere = re.sub(r"/namespaces/[^/]+(/\w+)$", r"\1", path)
        if everywhere not in given:
            found[everywhere] = [*found.get(everywhere, ()), *answer]
    return found


async def beside(case: dict[str, Any], call: Callable[[], Result]) -> Result:
    """The result of a call beside the case's API server."""
    handler = answering(paths_of(case["cluster"]), case.get("forbidden", ()))
    async with fake_api(handler) as api:
        write_kubeconfig(Path(), api.url)
        return await asyncio.to_thread(call)


@pytest.mark.parametrize("case", CASES)
def test_commands_answer_as_their_case_shows(
    case: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wording: Wording,
) -> None:
    """To the letter: on stdout and on stderr, with the exit code."""
    monkeypatch.chdir(tmp_path)
    policies = {"policies.yaml": documents_of(case.get("policies", {}))}
    for name, content in {**FILES, **policies, **case.get("files", {})}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text_of(content))
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    for line in case["run"]:
        call = partial(CliRunner().invoke, fairlead, shlex.split(line), input=case.get("stdin"))
        result = asyncio.run(beside(case, call)) if "cluster" in case else call()
        shown = [f"{result.stdout}stderr:\n{result.stderr}" if result.stderr else result.stdout]
        if isinstance(result.exception, FairleadError):
            shown.append(f"error: {result.exception}\n")
        else:
            assert result.exception is None or isinstance(result.exception, SystemExit), line
        text = "".join(shown)
        for volatile, name in VOLATILE.items():
            text = re.sub(volatile, name, text)
        wording(f"$ fairlead {line}\n{text}exit code {result.exit_code}\n")
