"""The hooks of pre-commit and the steps of the action do what they say, on a repository.

The steps run in bash with the inputs in the environment, as a runner does it. `gh` speaks to a
forge, which is not here: a program in its place writes down how it was called.
"""

from __future__ import annotations

import json
import os
import re
import shlex
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


def test_the_action_puts_no_input_into_its_scripts() -> None:
    """A branch's name or a folder may hold shell code; it goes through the environment."""
    assert not [name for name, step in STEPS.items() if "${{" in step["run"]]


RELEASE: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
RELEASE_STEPS: list[dict[str, Any]] = RELEASE["jobs"]["release"]["steps"]


def run_release_step(
    name: str, folder: Path, settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    (step,) = (each for each in RELEASE_STEPS if each.get("name") == name)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, "GITHUB_ENV": str(folder / "env"), **settings},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def released(repository: Path) -> Path:
    """A checkout in version 1.2.0, with a changelog of two versions."""
    (repository / "pyproject.toml").write_text('[project]\nname = "fairlead"\nversion = "1.2.0"\n')
    (repository / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n\n- New.\n\n"
        "## [1.1.0] - 2026-11-01\n\n- Old.\n"
    )
    return repository


def test_a_release_needs_the_version_of_the_tag_and_its_section(released: Path) -> None:
    """Each is refused with the cure, before anything is built."""
    assert run_release_step("Check the tag", released, {"TAG": "v1.2.0"}).returncode == 0
    settings = dict(line.split("=") for line in (released / "env").read_text().splitlines())
    assert settings["VERSION"] == "1.2.0"
    assert settings["SOURCE_DATE_EPOCH"].isdigit()
    wrong = run_release_step("Check the tag", released, {"TAG": "v1.3.0"})
    assert wrong.returncode == 1
    assert "tag v1.2.0" in wrong.stdout
    (released / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    without = run_release_step("Check the tag", released, {"TAG": "v1.2.0"})
    assert without.returncode == 1
    assert "[Unreleased]" in without.stdout


def test_a_release_has_the_notes_of_its_version_and_what_was_signed(released: Path) -> None:
    """`gh` gets the notes, and every file."""
    tools = released / "tools"
    tools.mkdir()
    (tools / "gh").write_text('#!/bin/sh\necho "$@" > called\n')
    (tools / "gh").chmod(0o755)
    (released / "dist").mkdir()
    settings = {"TAG": "v1.2.0", "VERSION": "1.2.0", "IMAGE": "r/fairlead@sha256:1", "CHART": "c"}
    done = run_release_step(
        "Publish", released, {**settings, "PATH": f"{tools}:{os.environ['PATH']}"}
    )
    assert done.returncode == 0, done.stderr
    notes = (released / "dist" / "notes.md").read_text()
    assert "New." in notes
    assert "Old." not in notes
    assert "r/fairlead@sha256:1" in notes
    called = (released / "dist" / "called").read_text()
    assert "release create v1.2.0" in called
    for file in ("py3-none-any.whl", "1.2.0.tgz", "SHA256SUMS.sigstore.json", "cdx.json"):
        assert file in called


def test_a_release_runs_no_code_that_can_change_under_it() -> None:
    """Actions are pinned by commit; no expression stands in a script; every target is there."""
    used = [step["uses"] for step in RELEASE_STEPS if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each) for each in used)
    scripts = [step["run"] for step in RELEASE_STEPS if "run" in step]
    assert not [script for script in scripts if "${{" in script]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = {
        word
        for words in re.findall(r"^\s*make (.*)$", "\n".join(scripts), re.MULTILINE)
        for word in words.split()
    }
    assert wanted <= targets
