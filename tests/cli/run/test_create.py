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
CODE = str(Path(__file__).parent)
CONTAINERS = "spec.template.spec.containers"
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
    shown = CliRunner().invoke(fairlead, ["preview", "-o", "pods", "-f", str(file)])
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
        (("mnist",), 2, ("give --image", "--from FILE")),
        (IMAGE, 2, ("give NAME",)),
        ((), 2, ("NAME and --image",)),
        (("-f", "-", "--gpus", "1"), 2, ("--set", "--gpus")),
        (("-f", "-", "--", "python"), 2, ("--set",)),
        (("a", *IMAGE, "--env", "A"), 2, ("NAME=VALUE",)),
        (("a", *IMAGE, "python", "a.py"), 2, ("python a.py", "after --")),
        (("a", *IMAGE, "python", "a.py", "--lr", "1"), 2, ("--lr", "after --")),
        (("a", *IMAGE, "b", "--", "python"), 2, ("unexpected b",)),
        (("a", *IMAGE, "--workers", "0"), 2, ("--workers",)),
        (("a", *IMAGE, "--gang", "20", "--dry-run"), 1, ("startWithin", "20", "15m, 90s, 1h30m")),
        (("a", *IMAGE, "--gang", "1m", "--queue", "q", "--dry-run"), 1, ("spec.gang", "Kueue")),
        (("a", *IMAGE, "--queue", ""), 2, ("--queue", "is empty")),
        (("a", *IMAGE, "--queue", "Q"), 2, ("--queue", "'Q'", "a-z")),
        (("a", *IMAGE, "--preview", "--dry-run"), 2, ("--preview", "--dry-run")),
        (("a", *IMAGE, "--env", "A=1", "--env", "A=2"), 2, ("--env", "twice for A")),
        (("a", *IMAGE, "--volume", "c:/a", "--volume", "c:/b"), 2, ("--volume", "twice for c")),
        (("a", *IMAGE, "--spot", "allow", "--capacity", "spot=Allow"), 2, ("twice", "--spot")),
        (("A_b", *IMAGE), 2, ("'A_b'", "a-z")),
        (("", *IMAGE), 2, ("NAME", "is empty")),
        (("1a", *IMAGE, "--dry-run"), 1, ("metadata.name", "1a")),
        (("a", *IMAGE, "--capacity", "SPOT=Allow", "--dry-run"), 1, ("capacity", "'SPOT'", "a-z")),
        (("a", *IMAGE, "--volume", "A_b:/d", "--dry-run"), 1, ("volumes", "'A_b'", "a-z")),
        (("-f", "-", "-n", "b", "--set", "metadata.namespace=a"), 2, ("is b", "is a")),
        (("a", *IMAGE, "--framework", "pytorhc", "--dry-run"), 1, ("did you mean 'pytorch'",)),
        (("a", *IMAGE, "--capacity", "spot=alow", "--dry-run"), 1, ("did you mean 'Allow'",)),
        (("a", *IMAGE, "--capacity", "spot=Maybe", "--dry-run"), 1, ("spot", "Maybe")),
        (("-f", "-", "--set", "spec.replicas=0", "--dry-run"), 1, ("spec.replicas",)),
        (("-f", "-", "--set", "kind[0].x=1", "--dry-run"), 1, ("--set kind[0].x",)),
        *(
            (("-f", "-", "--set", f"{path}={value}", "--code", CODE, "--dry-run"), 1, (path,))
            for path in ("metadata", "metadata.name", "spec", "spec.template", CONTAINERS)
            for value in ("null", "3", "[]", "text")
            if (path, value) != ("metadata.name", "text")
        ),
    ],
)
def test_what_cannot_be_submitted_is_said(
    words: tuple[str, ...], code: int, facts: tuple[str, ...]
) -> None:
    done = create(*words, stdin=FILE)
    assert done.exit_code == code, done.output
    mentions(said(done), *facts)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--memory", "16"), ("requests.memory", "'16' is 16 bytes", "16Gi")),
        (("--memory", "500m"), ("'500m' is 0.5 bytes", "500Mi")),
        (("--", "python train.py"), ("command[0]", "one program", "['python', 'train.py']")),
        (("--framework", "pytorch", "--workers", "2", "--env", "RANK=7"), ("env[0]", "sets RANK")),
        (("--framework", "pytorch", "--env", "RANK=7"), ("env[0]", "pytorch sets RANK")),
    ],
)
def test_what_is_hardly_meant_is_a_note(
    tmp_path: Path, words: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    """Of options, and of a file, which `preview` reads too."""
    done = create("a", *IMAGE, "--dry-run", *words)
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("note: ")
    mentions(done.stderr, *facts)
    (tmp_path / "run.yaml").write_text(done.stdout)
    shown = CliRunner().invoke(
        fairlead, ["preview", "-o", "pods", "-f", str(tmp_path / "run.yaml")]
    )
    mentions(shown.stderr, "run.yaml:", *facts)


@pytest.mark.parametrize(
    "words",
    [
        ("--memory", "16Mi"),
        ("--memory", "0"),
        ("--memory", "16777216"),
        ("--", "sh", "-c", "python train.py"),
        ("--env", "RANK=7"),
        ("--framework", "pytorch", "--workers", "2", "--env", "MASTER_PORT=7"),
    ],
)
def test_what_may_be_meant_is_not(words: tuple[str, ...]) -> None:
    """The same port for all replicas is a choice, and a rank without a framework too."""
    done = create("a", *IMAGE, "--dry-run", *words)
    assert (done.exit_code, done.stderr) == (0, "")


def test_the_namespace_is_written() -> None:
    """Of options, and of a file that names none."""
    for words in (("a", *IMAGE), ("-f", "-")):
        done = create(*words, "-n", "team", "--dry-run", stdin=FILE)
        assert yaml.safe_load(done.stdout)["metadata"]["namespace"] == "team"


def test_a_claim_that_cannot_be_is_a_note_of_a_file() -> None:
    claim = "[{name: d, persistentVolumeClaim: {claimName: A_b}}]"
    done = create(
        "-f", "-", "--set", f"spec.template.spec.volumes={claim}", "--dry-run", stdin=FILE
    )
    assert done.exit_code == 0, done.output
    mentions(done.stderr, "claimName", "'A_b'", "no pod starts")


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
