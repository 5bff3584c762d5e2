"""Tab in a shell: the protocol of each shell, bash itself, and what kubectl asks of its plugin."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.every_command import ALL, write_files
from tests.cli.run.scripted_cluster import RUNS, Cluster, run_object, served
from webhook import names
from webhook.cli import fairlead
from webhook.cli.completion import complete_for_kubectl
from webhook.cli.options import Duration

POLICIES = f"/apis/{names.API_VERSION}/{names.PLACEMENT_POLICIES}"
NAMESPACES = "/api/v1/namespaces"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: a, user: a}}
- {name: other, context: {cluster: a, user: a}}
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: a, user: {}}]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))


def answer(shell: str, *words: str) -> str:
    """Return what the shell's script gets for the last word."""
    environment = {
        "_FAIRLEAD_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": shlex.join(["fairlead", *words]),
        # fish gives the word itself.
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    done = CliRunner().invoke(
        fairlead, [], env=environment, prog_name="fairlead", complete_var="_FAIRLEAD_COMPLETE"
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def completed(*words: str) -> list[str]:
    """What bash gets for the last word: a type and a value in each line."""
    return answer("bash", *words).split()


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("check", "--nodes"),
        ("preview", "--policies"),
        ("preview", "-f"),
        ("explain", "--nodes"),
        ("explain", "--namespaces"),
        ("diff",),
        ("diff", "policy.yaml"),
        ("diff", "a", "b", "--pods"),
        ("run", "simulate", "--policies"),
        ("ui", "--policies"),
        ("test",),
        ("generate", "map", "--policies"),
        ("policy", "list", "--kubeconfig"),
    ],
    ids=" ".join,
)
def test_a_path_is_left_to_the_shell(words: tuple[str, ...]) -> None:
    """Also where the word `cluster` may stand; it is proposed where no file begins so."""
    assert completed(*words, "po") == ["file,po"]
    assert completed(*words, "") == ["file,"]


def test_the_word_cluster_is_proposed_where_no_file_begins_so(tmp_path: Path) -> None:
    """A shell takes either files or words."""
    assert completed("check", "cl") == ["plain,cluster"]
    assert completed("diff", "cl") == ["plain,cluster"]
    assert completed("install", "--policies", "cl") == ["file,cl"]
    (tmp_path / "classes").mkdir()
    assert completed("check", "cl") == ["file,cl"]


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (("run", "create", "--framework"), {"pytorch", "ray"}),
        (("run", "render", "--backend"), {"kubeflow", "jobset"}),
        (("run", "wait", "--for"), {"Running", "ended", "condition="}),
        (("run", "logs", "--role"), {"worker", "driver"}),
        (("install", "--overlay"), {"default", "monitoring"}),
        (("install", "--source"), {"fairlead", "mlrun"}),
        (("generate", "guard", "stamp", "--source"), {"fairlead", "mlrun"}),
        (("sandbox", "up", "--operator"), {"kueue", "jobset"}),
        (("explain", "--field"), {"tolerations", "nodeSelector"}),
        (("explain", "--plugins"), {"none", "PodTolerationRestriction"}),
        (("preview", "--fail-on"), {"no-node", "warning"}),
        (("explain",), {"pod", "job", "deployment", "tfjob", "run"}),
        (("check", "-o"), {"text", "json"}),
        (("--color",), {"auto", "never"}),
        (("help",), {"check", "run"}),
        (("help", "run"), {"create", "list"}),
        (("explain", "--context"), {"one", "other"}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_closed_list_is_proposed(words: tuple[str, ...], some: set[str]) -> None:
    """What begins as the word does."""
    found = completed(*words, "")
    assert {f"plain,{each}" for each in some} <= {*found}
    one = min(some)
    assert f"plain,{one}" in completed(*words, one[:2])
    assert completed(*words, "~none") == []


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Yield a cluster with two Runs, a policy, two namespaces, and a pod."""
    found = Cluster()
    found.add(RUNS, run_object("mnist"), run_object("bert"))
    found.add("/api/v1/namespaces/default/pods", _object("train-0"))
    for path, listed in ((NAMESPACES, ("research", "default")), (POLICIES, ("spot",))):
        items = [_object(each) for each in listed]
        found.objects[path] = {"metadata": {"resourceVersion": "1"}, "items": items}
    with served(found, tmp_path):
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield found


def _object(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}}


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("run", "status", ""), ["bert", "mnist"]),
        (("run", "delete", "bert", ""), ["mnist"]),
        (("run", "list", "-n", ""), ["default", "research"]),
        (("explain", "-n", "re"), ["research"]),
        (("diff", "cluster", "a", "-n", "re"), ["research"]),
        (("doctor", "-n", "re"), ["research"]),
        (("policy", "get", ""), ["spot"]),
        (("explain", "--policy", "s"), ["spot"]),
    ],
    ids=lambda each: " ".join(each),
)
def test_names_are_those_of_the_cluster(words: tuple[str, ...], found: list[str]) -> None:
    """Of its Runs, namespaces and policies; none is proposed twice."""
    assert completed(*words) == [f"plain,{each}" for each in found]


def test_names_of_objects_follow_their_kind(cluster: Cluster) -> None:
    """As a word of its own, and after a slash; kinds are those that the API server serves."""
    cluster.objects["/apis"] = {"groups": []}
    pods = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list"]}
    cluster.objects["/api/v1"] = {"resources": [pods]}
    assert completed("explain", "pod", "tr") == ["plain,train-0"]
    assert completed("explain", "pod/") == ["plain,pod/train-0"]
    assert completed("explain", "pod", "train-0", "") == []


def test_a_cluster_that_does_not_answer_has_no_names() -> None:
    """Nobody who pressed Tab wants an error."""
    assert completed("run", "status", "") == []
    assert completed("explain", "pod", "") == []
    assert completed("explain", "--kubeconfig", "absent", "--context", "") == []


# Texts of the author's own.
FREE = {
    *("name", "image", "gpu_resource", "cpu", "memory", "env", "volumes", "capacity", "queue"),
    *("gang", "labels"),
    *("changes", "params", "selector", "container", "history", "webhook_url", "exempt"),
    *("webhook_configuration", "cluster_domain", "default_priority_class"),
}
NUMBERS = (click.types.IntParamType, click.types.FloatParamType, click.types.BoolParamType)


def test_every_parameter_completes_unless_its_value_is_free() -> None:
    """A new option with a closed list, a path or a name of the cluster has a completion."""
    silent = {
        f"{' '.join(words)} {each.name}"
        for words, command in ALL.items()
        for each in command.params
        if words not in {("serve",), ("controller",)}
        and not isinstance(each.type, (*NUMBERS, Duration))
        and each.name not in FREE
        and type(each.type).shell_complete is click.ParamType.shell_complete
        and vars(each)["_custom_shell_complete"] is None
    }
    assert silent == set()


PROGRAM = f"#!{sys.executable}\nfrom webhook.__main__ import main\nmain()\n"


def test_bash_completes_a_command_a_file_and_an_option(tmp_path: Path) -> None:
    """What is typed with Tab is what is run."""
    program = tmp_path / "bin" / "fairlead"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        start_new_session=True,
        env={
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HOME": str(tmp_path),
            "TERM": "dumb",
            "PS1": "READY\n",
        },
    )
    os.close(theirs)
    shown = ""

    def until(word: str, times: int = 1) -> None:
        nonlocal shown
        while shown.count(word) < times:
            shown += os.read(ours, 65536).decode()

    try:
        until("READY")
        os.write(ours, b'eval "$(fairlead completion bash)"; echo SET""UP\n')
        until("SETUP")
        until("READY", 2)
        os.write(ours, b"fairlead che\t")
        until("check ")
        os.write(ours, b"policy.y\t")
        until("check policy.yaml ")
        os.write(ours, b"--nod\t")
        until("policy.yaml --nodes ")
        os.write(ours, b"run.j\t -o js\t; echo ENDED\n")
        until("--nodes run.json")
        until("ENDED", 2)
    finally:
        shell.kill()
        shell.wait(10)
        os.close(ours)
    assert "error: run.json:1:1: want Nodes" in shown


# What a script reads for a type, a value and a help; without a help it is the last text.
FORMS = {
    "bash": ("{0},{1}\n", ""),
    "zsh": ("{0}\n{1}\n{2}\n", "_"),
    "fish": ("{0},{1}\t{2}\n", ""),
    "powershell": ("{0}\n{1}\n{2}\n", "_"),
}


@pytest.mark.parametrize("shell", FORMS)
def test_a_command_a_file_and_a_word_have_the_form_that_the_shells_script_reads(shell: str) -> None:
    """zsh, fish and PowerShell are not on every machine; bash itself is tried above."""
    form, no_help = FORMS[shell]
    script = CliRunner().invoke(fairlead, ["completion", shell]).stdout
    assert f"{shell}_complete" in script
    assert "_FAIRLEAD_COMPLETE" in script
    check = "Validate policies, also against nodes."
    assert answer(shell, "che") == form.format("plain", "check", check)
    bare = form.replace("\t{2}", "")
    assert answer(shell, "check", "po") == bare.format("file", "po", no_help)
    assert answer(shell, "check", "-o", "js") == bare.format("plain", "json", no_help)
    assert answer(shell, "check", "-o", "~none").strip() == ""


def test_kubectl_gets_words_with_a_directive() -> None:
    """4: nothing but these; 0: its own files. After a tab is the help."""
    words = [*complete_for_kubectl(fairlead, ["che"])]
    assert words[0].startswith("check\tValidate policies")
    assert words[1:] == [":4"]
    assert [*complete_for_kubectl(fairlead, ["check", "po"])] == [":0"]
    assert [*complete_for_kubectl(fairlead, ["check", "-o", "j"])] == ["json", ":4"]
    assert [*complete_for_kubectl(fairlead, ["run", "create", "--image", ""])] == [":4"]
    assert [*complete_for_kubectl(fairlead, ["run", "create", "--code", ""])] == [":16"]
    assert len([*complete_for_kubectl(fairlead, [])]) > 10
