"""The hooks of pre-commit and the steps of the action do what they say, on a repository.

The steps run in bash with the inputs in the environment, as a runner does it. `gh` speaks to a
forge, which is not here: a program in its place writes down how it was called.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {each["name"]: each for each in ACTION["runs"]["steps"]}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "labels": {"fairlead.dev/run": "train"}},
    "spec": {"containers": [{"name": "main", "image": "example.invalid/train"}]},
}
NODES = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-a", "labels": {"pool": "a"}},
}


def policy(selector: dict[str, str]) -> str:
    """Return a policy that adds the selector to every pod."""
    return yaml.safe_dump(
        {
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "PlacementPolicy",
            "metadata": {"name": "pool"},
            "spec": {"defaults": {"nodeSelector": selector}},
        }
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with a good policy, its test, a pod and a node; one commit."""
    folder = tmp_path / "repository"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "pool.yaml").write_text(policy({"pool": "a"}))
    test = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PolicyTest",
        "policies": ["pool.yaml"],
        "tests": [
            {
                "name": "pool a",
                "pod": {"labels": {"fairlead.dev/run": "train"}},
                "expect": {"equals": {"nodeSelector": {"pool": "a"}}},
            }
        ],
    }
    (folder / "policies" / "pool.test.yaml").write_text(yaml.safe_dump(test))
    (folder / "pod.json").write_text(json.dumps(POD))
    (folder / "nodes.json").write_text(json.dumps(NODES))
    who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def run_hook(name: str, repository: Path) -> int:
    """Run a hook as pre-commit does: entry and args, without file names."""
    (hook,) = (each for each in HOOKS if each["id"] == name)
    program, *words = shlex.split(hook["entry"])
    assert hook["pass_filenames"] is False
    return subprocess.run(
        [BIN / program, *words, *hook["args"]], cwd=repository, capture_output=True
    ).returncode


@pytest.mark.parametrize("name", ["fairlead-check", "fairlead-test"])
def test_a_hook_passes_good_policies_and_stops_wrong_ones(name: str, repository: Path) -> None:
    """Another file than the changed one may be wrong, so the folder is read."""
    assert run_hook(name, repository) == 0
    (repository / "policies" / "pool.yaml").write_text(policy({"not a key": "b"}))
    assert run_hook(name, repository) == 1


def run_step(
    name: str, repository: Path, inputs: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a step with these inputs, and the defaults for all others."""
    temporary = repository.parent / "runner"
    bin_folder = temporary / "fairlead" / "bin"
    bin_folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(BIN / "fairlead", bin_folder / "fairlead")
    forge = temporary / "gh"
    forge.write_text(f'#!/bin/sh\necho "$@" >> {temporary}/comments\n')
    forge.chmod(0o755)
    defaults = {key: value["default"] for key, value in ACTION["inputs"].items()}

    def fill(found: re.Match[str]) -> str:
        scope, _, key = found.group(1).partition(".")
        given: dict[str, str] = {**defaults, **inputs}
        return given[key] if scope == "inputs" else inputs.get("number", "")

    step = STEPS[name]
    settings = {
        key: re.sub(r"\$\{\{ ([\w.-]+) \}\}", fill, value)
        for key, value in step.get("env", {}).items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=repository,
        env={
            **os.environ,
            **settings,
            "PATH": f"{temporary}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(temporary),
            "GITHUB_STEP_SUMMARY": str(temporary / "summary"),
        },
        capture_output=True,
        text=True,
    )


def test_the_action_checks_and_tests(repository: Path) -> None:
    """With the exit codes of the commands."""
    assert [run_step(name, repository, {}).returncode for name in ("Check", "Test")] == [0, 0]
    (repository / "policies" / "pool.yaml").write_text(policy({"pool": "b"}))
    assert [run_step(name, repository, {}).returncode for name in ("Check", "Test")] == [0, 1]


def test_the_action_comments_what_moves_and_fails_only_for_what_it_was_told(
    repository: Path,
) -> None:
    """The comment is written even if the job fails."""
    inputs = {"base": "HEAD", "pods": "pod.json", "nodes": "nodes.json", "token": "t"}
    runner = repository.parent / "runner"
    (repository / "policies" / "pool.yaml").write_text(policy({"pool": "b"}))
    done = run_step("Compare", repository, {**inputs, "number": "7"})
    assert done.returncode == 1, done.stderr
    assert "pool" in (runner / "summary").read_text()
    assert "pr comment 7 " in (runner / "comments").read_text()
    assert run_step("Compare", repository, {**inputs, "fail-on": "rejected"}).returncode == 0
    assert (runner / "comments").read_text().count("pr comment") == 1


def test_the_action_fails_if_nothing_was_compared(repository: Path) -> None:
    """A revision that is not fetched is no "nothing moves"."""
    inputs = {"base": "0" * 40, "pods": "pod.json", "token": "t", "number": "7"}
    done = run_step("Compare", repository, inputs)
    assert done.returncode == 2
    assert not (repository.parent / "runner" / "comments").exists()


def test_the_action_puts_no_input_into_its_scripts() -> None:
    """A branch's name or a folder may hold shell code; it goes through the environment."""
    assert not [name for name, step in STEPS.items() if "${{" in step["run"]]
