"""The package for Python: its surface is pinned, and it answers what the commands answer."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import fairlead as fl
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.demo.show import DATA
from webhook.text.documents import as_document

ROOT = Path(__file__).resolve().parents[2]
SIGNATURES = Path(__file__).with_name("signatures.txt")
IMAGE = "example.invalid/a:1"


def _surface() -> Iterator[str]:
    for name in fl.__all__:
        value = getattr(fl, name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
            yield name
            continue
        yield f"{name}{inspect.signature(value)}"
        for part, member in sorted(vars(value).items()) if inspect.isclass(value) else ():
            if part.startswith("_"):
                continue
            function = member.__func__ if isinstance(member, classmethod) else member
            shown = inspect.signature(function) if callable(function) else ""
            yield f"  {name}.{part}{shown}"


def test_what_is_exported_is_as_pinned() -> None:
    """A change of it is one for every user: write it to the file, and to CHANGELOG.md."""
    assert "\n".join(_surface()) + "\n" == SIGNATURES.read_text()


def test_no_cluster_is_asked_and_no_client_imported() -> None:
    program = (
        "import sys, fairlead as fl; fl.Run('a', image='a').manifest(); "
        f"fl.check({str(DATA / 'policies')!r}); print('kubernetes' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_an_evaluation_is_that_of_explain() -> None:
    """With the placement of each pod as data."""
    files = {name: str(DATA / name) for name in ("policies", "pods.yaml", "nodes.yaml")}
    found = fl.evaluate(files["pods.yaml"], policies=files["policies"], nodes=files["nodes.yaml"])
    options = ("--policies", files["policies"], "--nodes", files["nodes.yaml"], "-o", "json")
    done = CliRunner().invoke(fairlead, ["explain", "-f", files["pods.yaml"], *options])
    theirs = {(each["object"], each["pods"]): each for each in json.loads(done.stdout)["pods"]}
    for each in found.pods:
        ours = as_document(each.result.document())
        assert theirs[ours["object"], ours["pods"]]["result"] == ours["result"]
        assert theirs[ours["object"], ours["pods"]]["trace"] == ours["trace"]
    (worker,) = [each for each in found.pods if "mnist-worker-0" in each.result.object_]
    assert worker.admitted
    assert worker.nodes == ["spot-a-1", "spot-a-2", "spot-a-3", "spot-a-4"]
    assert worker.placement["tolerations"][0]["key"] == "cloud.google.com/gke-spot"
    mentions(str(found), "workers-on-spot", "rejected")
    subject, _, verdict = str(found).splitlines()[0].partition(": ")
    mentions(found._repr_html_(), subject, verdict, "tolerations", "spot-a-1 spot-a-2")


def test_objects_and_runs_are_evaluated_without_files() -> None:
    run = fl.Run("mnist", image=IMAGE, framework="pytorch", workers=3, capacity={"spot": "Prevent"})
    policies = DATA / "policies"
    by_object = fl.evaluate(run.manifest(), policies=policies)
    assert [each.result.count for each in by_object.pods] == [
        each.result.count for each in run.preview(policies=policies).pods
    ]
    assert sum(each.result.count for each in by_object.pods) == 3


def test_findings_have_places_and_raise() -> None:
    found = fl.check(DATA / "policies")
    found.raise_for_errors()
    assert "workers-on-spot" in found.policies
    with pytest.raises(fl.FairleadError, match="no such file"):
        fl.check("nowhere")
    with pytest.raises(fl.FairleadError):
        fl.evaluate("nowhere", policies=DATA / "policies")


def test_a_wrong_set_raises_every_error(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nspec: {none: 1}\n")
    with pytest.raises(fl.FairleadError) as caught:
        fl.check(file).raise_for_errors()
    mentions(str(caught.value), f"{file}:", "metadata", "none")


def test_a_wrong_run_says_every_problem() -> None:
    with pytest.raises(fl.FairleadError) as caught:
        fl.Run("A_b", image=IMAGE, framework="nope", gpus=-1).manifest()
    mentions(str(caught.value), "A_b", "nope")
    with pytest.raises(fl.FairleadError, match=r"count: -1"):
        fl.Run("a", image=IMAGE, workers=-1).manifest()
    with pytest.raises(fl.FairleadError, match=r"metadata\.name"):
        fl.Run("", image=IMAGE).manifest()


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"command": "python train.py"}, ("command: want a list, not 'python train.py'",)),
        ({"command": 3}, ("command: want a list, not '3'",)),
        ({"workers": "3"}, ("workers: want a whole number, not text", "'3'")),
        ({"env": {"A": None}}, ("env.A: is null",)),
        ({"env": {1: "a"}}, ("env[1]: want text, and 1 is a number",)),
        ({"volumes": ["a"]}, ("volumes: want a mapping, not a list",)),
        ({"code": {"../x.py": b""}}, ("code", "'../x.py'")),
        ({"code": {"x.py": bytes(10**6)}}, ("code", "900 KiB")),
        ({"code": {"x.py": "text"}}, ("code[x.py]: want bytes, not 'text'",)),
    ],
)
def test_values_of_another_type_are_said_at_once(
    settings: dict[str, Any], facts: tuple[str, ...]
) -> None:
    """Before they become something else in a pod."""
    with pytest.raises(fl.FairleadError) as caught:
        fl.Run("a", image=IMAGE, **settings)
    mentions(str(caught.value), *facts)


@pytest.mark.parametrize(("words", "fact"), [(("Runing",), "until"), (("ended", "zz"), "timeout")])
def test_what_is_waited_for_is_checked_before_a_cluster_is_asked(
    words: tuple[str, ...], fact: str
) -> None:
    handle = fl.RunHandle(fl.Client("/nowhere"), "default", "mnist")
    until, *timeout = words
    with pytest.raises(fl.FairleadError) as caught:
        handle.wait(until, timeout=timeout[0] if timeout else None)
    mentions(str(caught.value), fact)


def _needs(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({}, ("_needs", "value")),
        ({"arguments": {"value": 1, "zz": 2}}, ("_needs", "zz")),
        ({"arguments": {"value": float("nan")}}, ("value", "no literal")),
        ({"arguments": {"value": object()}}, ("value", "no literal")),
        ({"arguments": {"value": 1}, "requirements": "numpy"}, ("requirements", "list")),
    ],
)
def test_a_call_that_would_fail_in_the_pod_is_refused(
    settings: dict[str, Any], facts: tuple[str, ...]
) -> None:
    with pytest.raises(fl.FairleadError) as caught:
        fl.Run.from_function(_needs, name="a", image=IMAGE, **settings)
    mentions(str(caught.value), *facts)


def _train(epochs: int = 1) -> None:
    import math

    print(f"{math.floor(math.pi) * epochs} steps")


def test_a_function_is_a_program_that_runs(tmp_path: Path) -> None:
    """The real interpreter runs what would be mounted."""
    run = fl.Run.from_function(
        _train, name="mnist", image="python:3.11", requirements=["numpy<3"], arguments={"epochs": 4}
    )
    pod = run.manifest()["spec"]["template"]["spec"]
    mentions(pod["containers"][0]["command"][2], "pip install", "'numpy<3'", "/code/train.py")
    (tmp_path / "train.py").write_bytes(run.code["train.py"])
    done = subprocess.run(
        [sys.executable, str(tmp_path / "train.py")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "12 steps\n"


def test_the_guide_runs(tmp_path: Path) -> None:
    """Every block, one after the other, as a program beside policies, nodes and a job."""
    guide = (ROOT / "docs" / "guides" / "python.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL))
    (tmp_path / "guide.py").write_text(program)
    shutil.copytree(DATA / "policies", tmp_path / "policies")
    shutil.copy(DATA / "nodes.yaml", tmp_path)
    pods = [each for each in (DATA / "pods.yaml").read_text().split("---") if "-worker-0" in each]
    (tmp_path / "job.yaml").write_text(pods[0])
    done = subprocess.run(
        [sys.executable, "guide.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    mentions(done.stdout, "framework: pytorch", "import time", "worker × 2")
