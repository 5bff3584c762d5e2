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
    run       command lines without `fairlead`; `< FILE` gives standard input. Each has its exit
              code, and what it prints is golden: `make golden` rewrites it. Or it has a list: the
              exit code, and facts of its answer; `!` begins what is not in it. Then only its
              messages on stderr are golden
    says      what all print among the rest, whatever its wording

A long answer is golden once for each command and format: the others differ from it in a few facts.
"""

from __future__ import annotations

import json
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.fake_clusters import SHARED, paths_of
from tests.cli.run.scripted_cluster import PODS, RUNS, Cluster, log, refuse, served
from tests.fast_yaml import load_yaml
from tests.kube.fake_api import answering
from tests.wording import Wording, golden_file, mentions, read
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
    r"(?<=  )\d+d +": "DAYS ",
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
# A shorter answer is golden as it is: its facts would take as many lines.
LONG_ANSWER_LINES = 12
# Most commands that read files print it.
USUAL_NOTE = "2> note: the API server was not asked"
COLLECTIONS = {"runs": RUNS, "pods": PODS, "nodes": "/api/v1/nodes"}


def printed(line: str, code: int) -> tuple[str, str]:
    """Run one command line; return its answer, and what it prints on stderr."""
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
    return result.stdout, errors


def play(commands: dict[str, Any]) -> tuple[str, str]:
    """Run command lines; return all that they print, and what of it is golden."""
    transcript, golden = "", ""
    for line, expected in commands.items():
        code, *facts = expected if isinstance(expected, list) else [expected]
        answer, messages = printed(line, code)
        transcript += answer + messages
        mentions(answer, *(fact for fact in facts if fact[0] != "!"))
        for absent in (fact[1:] for fact in facts if fact[0] == "!"):
            assert absent not in answer + messages
        if not isinstance(expected, list):
            golden += f"$ fairlead {line}\n{answer}{messages}"
        elif shown := re.sub(rf"^{USUAL_NOTE}.*\n", "", messages, flags=re.MULTILINE):
            golden += f"$ fairlead {line}\n{shown}"
    return transcript, golden


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
        transcript, golden = play(session["run"])
    mentions(transcript, *session.get("says", ()))
    for pattern, word in VOLATILE.items():
        golden = re.sub(pattern, word, golden)
    if golden:
        wording(golden)


def test_a_long_answer_is_golden_once_for_each_command_and_format() -> None:
    """A session that prints a long answer again has a list of facts in place of its text."""
    lines_by_kind: dict[tuple[str, str], list[str]] = {}
    for texts in read(golden_file(Path(__file__))).values():
        for answer in re.split(r"^(?=\$ fairlead)", "".join(texts), flags=re.MULTILINE):
            line, *lines = answer.splitlines() or [""]
            if sum(not text.startswith("2> ") for text in lines) >= LONG_ANSWER_LINES:
                lines_by_kind.setdefault(command_and_format(line), []).append(line)
    again = {kind: lines for kind, lines in lines_by_kind.items() if len(lines) > 1}
    assert not again, "keep one of these; give the others a list: the exit code, and facts"


def command_and_format(line: str) -> tuple[str, str]:
    """Return what two command lines share: the command, with `-f` if it reads files; the format."""
    words = shlex.split(line.removeprefix("$ fairlead"))
    command: click.Command = fairlead
    names = []
    while isinstance(command, click.Group) and words:
        subcommand = command.get_command(click.Context(command), words[0])
        if subcommand is None:
            break
        names.append(words.pop(0))
        command = subcommand
    if "-f" in words:
        names.append("-f")
    return " ".join(names), words[words.index("-o") + 1] if "-o" in words else "text"
