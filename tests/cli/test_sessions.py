"""Golden sessions: commands over files, and all that they print.

A file of golden/sessions/ has `files`, else those of shared/, and `sessions` by the rule that each
shows:

    files     more files, or others in their place: a text, an object, or a file of those with
              replacements; null: there is none
    policies  the policies of policies.yaml, by name
    cluster   objects of a fake API server, by resource; `logs` of its pods, by name; and the status
              of requests that are refused, by path
    paths     what a fake API server has beside the cluster of shared/, by path; a list also has its
              objects; null: not found
    run       command lines without `fairlead`, each with its exit code; `< FILE` gives standard
              input
    says      what is printed among the rest, whatever its wording

The transcript of a session is its golden wording, so `make golden` rewrites it.
"""

from __future__ import annotations

import json
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cli.fake_clusters import SHARED, paths_of
from tests.cli.run.scripted_cluster import PODS, RUNS, Cluster, log, refuse, served
from tests.fast_yaml import load_yaml
from tests.kube.fake_api import answering
from tests.wording import Wording, mentions
from webhook.cli import fairlead
from webhook.cli.exit_codes import code_of
from webhook.errors import FairleadError

FOLDER = Path(__file__).parents[1] / "golden" / "sessions"
# What differs between two runs: hashes, and time until or since now.
VOLATILE = {
    r"\b([0-9a-f]{16}|[0-9a-f]{64})\b": "HASH",
    r"\(in [\ddhm]+\)": "(in TIME)",
    r"\b[\ddhm]+ ago": "TIME ago",
    r'"spot":"20[^"]*Z"': '"spot":"TIME"',
    r"ends in \d+ days": "ends in SOME days",
    r"http://127\.0\.0\.1:\d+": "http://API",
}


def read_sessions() -> dict[str, dict[str, Any]]:
    """Return every session by file and rule; its own files are added to those of its file."""
    found = {}
    shared = load_yaml((SHARED / "files.yaml").read_text())
    for path in sorted(FOLDER.glob("*.yaml")):
        content = load_yaml(path.read_text())
        for rule, session in content["sessions"].items():
            assert len(rule) < 90, "pytest numbers tests with longer names"
            usual = content.get("files", shared)
            given = {name: text_of(each, usual) for name, each in session.get("files", {}).items()}
            files = {**usual, **given}
            if policies := session.get("policies"):
                files["policies.yaml"] = documents_of(policies)
            found[f"{path.stem}: {rule}"] = {**session, "files": files}
    return found


def text_of(content: Any, files: dict[str, str]) -> str | None:
    """The text of a file: itself, an object, or one of the files with replacements."""
    if isinstance(content, dict):
        return json.dumps(content)
    if not isinstance(content, list):
        return None if content is None else str(content)
    name, *replacements = content
    text = files[name]
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return text


def documents_of(policies: dict[str, Any]) -> str:
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PlacementPolicy"}
    found = [{**head, "metadata": {"name": name}, "spec": spec} for name, spec in policies.items()]
    return "\n---\n".join(map(json.dumps, found))


SESSIONS = read_sessions()
KEYS = {"files", "policies", "cluster", "logs", "refused", "paths", "run", "says"}
COLLECTIONS = {"runs": RUNS, "pods": PODS, "nodes": "/api/v1/nodes"}


def printed(line: str, code: int) -> str:
    """Run one command line; return what a terminal shows, with stderr after stdout."""
    words, _, source = line.partition(" < ")
    stdin = Path(source).read_text() if source else None
    result = CliRunner().invoke(fairlead, shlex.split(words), input=stdin)
    exit_code = result.exit_code
    if isinstance(result.exception, FairleadError):
        # `main` prints it.
        exit_code = code_of(result.exception)
        result.stderr_bytes += f"error: {result.exception}\n".encode()
    elif not isinstance(result.exception, SystemExit | None):
        raise result.exception
    assert exit_code == code, result.output
    stderr = re.sub(r"`.* --help` shows the usage\.\n", "", result.stderr)
    errors = "".join(f"2> {each}".rstrip() + "\n" for each in stderr.splitlines())
    return f"$ fairlead {line}\n{result.stdout}{errors}"


@pytest.mark.parametrize("name", SESSIONS)
def test_commands_print_the_golden_transcript(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    session = SESSIONS[name]
    assert session.keys() <= KEYS
    monkeypatch.chdir(tmp_path)
    for file, text in session["files"].items():
        if text is not None:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(text)
    cluster = Cluster()
    for resource, objects in session.get("cluster", {}).items():
        for each in objects:
            within = f"/{each['metadata'].get('namespace', 'default')}/"
            cluster.add(COLLECTIONS[resource].replace("/default/", within), each)
    if "paths" in session:
        paths = paths_of(session["paths"])
        cluster.answers |= dict.fromkeys(paths, answering(paths))
    for path, code in session.get("refused", {}).items():
        cluster.answers[path] = refuse(code)
    for pod, text in session.get("logs", {}).items():
        cluster.answers[f"{PODS}/{pod}/log"] = log(text.encode())
    with served(cluster, tmp_path) if cluster.objects or cluster.answers else nullcontext():
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        transcript = "".join(printed(line, code) for line, code in session["run"].items())
    mentions(transcript, *session.get("says", ()))
    for pattern, word in VOLATILE.items():
        transcript = re.sub(pattern, word, transcript)
    wording(transcript)
