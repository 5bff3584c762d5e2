"""`fairlead run create` before anything is sent: what it makes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.wording import mentions
from webhook.cli import fairlead
from webhook.run_client.code_files import MOST_CODE, read_code

IMAGE = ("--image", "example.invalid/a:1")
FILE = """
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: mnist}
spec:
  replicas: {worker: {count: 2}}
  template: {spec: {containers: [{name: main, image: a}]}}
"""


def create(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(fairlead, ["run", "create", *words], input=stdin)


def said(done: Result) -> str:
    """What a person reads; errors are printed by the program's outermost part."""
    return f"{done.output}{done.exception or ''}"


def test_a_dry_run_prints_a_run_that_preview_takes(tmp_path: Path) -> None:
    options = ("--framework", "pytorch", "--workers", "3", "--gpus", "1", "--spot", "require")
    more = ("--env", "A=b=c", "--volume", "claim:/data", "--queue", "q", "--memory", "16Gi")
    made = create("mnist", *IMAGE, *options, *more, "--dry-run", "--", "python", "a.py", "-n", "2")
    assert made.exit_code == 0, made.output
    run = yaml.safe_load(made.stdout)
    (container,) = run["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "a.py", "-n", "2"]
    assert container["env"] == [{"name": "A", "value": "b=c"}]
    assert run["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "q"}
    mentions(made.stdout, "fairlead.dev/capacity: spot=Constrain", "claimName: claim")
    file = tmp_path / "run.yaml"
    file.write_text(made.stdout)
    shown = CliRunner().invoke(fairlead, ["run", "preview", "-f", str(file)])
    assert shown.exit_code == 0, shown.output
    mentions(shown.output, "3 pods", "nvidia.com/gpu")


def test_a_file_is_changed_by_set() -> None:
    changes = ("--set", "spec.replicas.worker.count=8", "--set", "metadata.labels[a/b]=c")
    made = create("other", "-f", "-", *changes, "--dry-run", "-o", "yaml", stdin=FILE)
    assert made.exit_code == 0, made.output
    run = yaml.safe_load(made.stdout)
    assert run["spec"]["replicas"] == {"worker": {"count": 8}}
    assert run["metadata"] == {"name": "other", "labels": {"a/b": "c"}}


@pytest.mark.parametrize(
    ("words", "code", "facts"),
    [
        (("mnist",), 2, ("--image", "--from FILE")),
        (IMAGE, 2, ("NAME",)),
        (("-f", "-", "--gpus", "1"), 2, ("--set", "--gpus")),
        (("-f", "-", "--", "python"), 2, ("--set",)),
        (("a", *IMAGE, "--env", "A"), 2, ("NAME=VALUE",)),
        (("a", *IMAGE, "python", "a.py"), 2, ("python a.py", "after --")),
        (("a", *IMAGE, "python", "a.py", "--lr", "1"), 2, ("--lr", "after --")),
        (("a", *IMAGE, "b", "--", "python"), 2, ("unexpected b",)),
        (("a", *IMAGE, "--workers", "0"), 2, ("--workers",)),
        (("a", *IMAGE, "--queue", ""), 2, ("--queue is empty",)),
        (("a", *IMAGE, "--preview", "--dry-run"), 2, ("--preview", "--dry-run")),
        (("a", *IMAGE, "--env", "A=1", "--env", "A=2"), 2, ("--env", "twice for A")),
        (("a", *IMAGE, "--volume", "c:/a", "--volume", "c:/b"), 2, ("--volume", "twice for c")),
        (("a", *IMAGE, "--spot", "allow", "--capacity", "spot=Allow"), 2, ("twice", "--spot")),
        (("A_b", *IMAGE, "--dry-run"), 1, ("metadata.name", "A_b")),
        (("a", *IMAGE, "--framework", "ray", "--dry-run"), 1, ("ray", "-f")),
        (("a", *IMAGE, "--framework", "pytorhc", "--dry-run"), 1, ("did you mean 'pytorch'",)),
        (("a", *IMAGE, "--capacity", "spot=alow", "--dry-run"), 1, ("did you mean 'Allow'",)),
        (("a", *IMAGE, "--capacity", "spot=Maybe", "--dry-run"), 1, ("spot", "Maybe")),
        (("-f", "-", "--set", "spec.replicas=0", "--dry-run"), 1, ("spec.replicas",)),
        (("-f", "-", "--set", "kind[0].x=1", "--dry-run"), 1, ("--set kind[0].x",)),
    ],
)
def test_what_cannot_be_submitted_is_said(
    words: tuple[str, ...], code: int, facts: tuple[str, ...]
) -> None:
    done = create(*words, stdin=FILE)
    assert done.exit_code == code, done.output
    mentions(said(done), *facts)


@pytest.mark.parametrize("text", ["", "kind: Pod\n", FILE + "---" + FILE, "a: ["])
def test_a_file_has_one_run(text: str) -> None:
    done = create("-f", "-", "--dry-run", stdin=text)
    assert done.exit_code == 1
    mentions(said(done), "<stdin>")


def test_a_folder_of_code_is_mounted_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("train.py", "model/net.py", ".git/config", "__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    made = create("mnist", *IMAGE, "--code", str(tmp_path), "--dry-run")
    assert made.exit_code == 0, made.output
    held, run = yaml.safe_load_all(made.stdout)
    pod = run["spec"]["template"]["spec"]
    (volume,) = pod["volumes"]
    assert held["metadata"]["name"] == volume["configMap"]["name"]
    assert held["binaryData"].keys() == {each["key"] for each in volume["configMap"]["items"]}
    paths = [each["path"] for each in volume["configMap"]["items"]]
    assert paths == ["train.py", "model/net.py"]
    assert volume["configMap"]["defaultMode"] == 0o755
    assert pod["containers"][0]["workingDir"] == "/code"
    assert read_code(tmp_path).files == {each: each.encode() for each in paths}
    mentions(said(made), "2 files", "model/net.py", "left out: 1 hidden, 1 caches")
    listed = create("mnist", *IMAGE, "--code", str(tmp_path), "--dry-run", "-o", "json")
    assert [each["kind"] for each in json.loads(listed.stdout)["items"]] == ["ConfigMap", "Run"]


def test_code_that_is_too_large_or_missing_is_refused(tmp_path: Path) -> None:
    done = create("mnist", *IMAGE, "--code", str(tmp_path), "--dry-run")
    assert done.exit_code == 1
    mentions(said(done), "no files")
    (tmp_path / "link").symlink_to("/etc/hostname")
    done = create("mnist", *IMAGE, "--code", str(tmp_path), "--dry-run")
    mentions(said(done), "link", "leads out of")
    (tmp_path / "link").unlink()
    (tmp_path / "data.bin").write_bytes(bytes(MOST_CODE + 1))
    done = create("mnist", *IMAGE, "--code", str(tmp_path), "--dry-run")
    assert done.exit_code == 1
    mentions(said(done), "900 KiB", "image", "--volume")
