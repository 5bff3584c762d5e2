"""tools/venv.sh on machines that lack something: in PATH is only what a test puts there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "venv.sh"
# What every distribution has, however small.
PROGRAMS = ("sh", "awk", "df", "rm", "env")
NO_ENSUREPIP = "raise ModuleNotFoundError('ensurepip')\n"
OLD = "import sys\nsys.version_info = (3, 9, 2, 'final', 0)\n"


@dataclass(frozen=True)
class Machine:
    """A folder with a lock, and the programs of the machine."""

    folder: Path

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def has(self, name: str, module: str = "", text: str = "") -> None:
        """Give it an interpreter of this name; one of its modules may be another."""
        modules = self.folder / f"modules-of-{name}"
        modules.mkdir()
        if module:
            (modules / f"{module}.py").write_text(text)
        program = self.folder / "bin" / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{modules}" exec "{sys.executable}" -s "$@"\n')
        program.chmod(0o755)

    def run(self, lock: str = "", python: str = "") -> subprocess.CompletedProcess[str]:
        (self.folder / "some.lock").write_text(lock)
        path = str(self.folder / "bin")
        known = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        return subprocess.run(
            [str(SCRIPT), ".venv", "some.lock", *([python] if python else [])],
            cwd=self.folder,
            env={**known, "PATH": path, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without Python."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found, name
        (programs / name).symlink_to(found)
    return Machine(tmp_path)


def test_without_python_the_packages_are_named(machine: Machine) -> None:
    """Of Debian, Fedora and macOS, and the command of uv; nothing is left behind."""
    done = machine.run()
    assert done.returncode == 1
    for fact in ("3.11, 3.12, 3.13 or 3.14", "apt install", "dnf install", "brew install", "uv "):
        assert fact in done.stderr
    assert not machine.venv.exists()


def test_an_older_python_is_named_with_its_version(machine: Machine) -> None:
    """Also one that somebody chose."""
    machine.has("python3", "sitecustomize", OLD)
    done = machine.run(python="python3")
    assert (done.returncode, "python3 is Python 3.9" in done.stderr) == (1, True), done.stderr
    assert "PYTHON=python3" in done.stderr


def test_without_ensurepip_its_package_is_named_and_the_cure_is_enough(machine: Machine) -> None:
    """As Debian has it: python3.11 without python3.11-venv."""
    machine.has("python3.11", "ensurepip", NO_ENSUREPIP)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    done = machine.run()
    assert done.returncode == 1
    assert f"apt install python{version}-venv" in done.stderr
    assert not machine.venv.exists()
    (machine.folder / "modules-of-python3.11" / "ensurepip.py").unlink()
    assert machine.run().returncode == 0


def test_the_first_python_that_serves_is_taken(machine: Machine) -> None:
    """Whatever its name, past those that cannot."""
    machine.has("python3.11", "ensurepip", NO_ENSUREPIP)
    machine.has("python3.13")
    assert machine.run().returncode == 0
    assert (machine.venv / "bin" / "python").exists()


def test_a_half_environment_is_made_anew(machine: Machine) -> None:
    """One without pip, as an interrupted or failed venv leaves it."""
    machine.has("python3")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", machine.venv], check=True)
    done = machine.run()
    assert done.returncode == 0, done.stderr
    pip = [str(machine.venv / "bin" / "python"), "-m", "pip", "--version"]
    assert subprocess.run(pip, capture_output=True, check=False).returncode == 0


def test_a_registry_that_does_not_answer_is_said_with_the_settings(machine: Machine) -> None:
    """And the next call goes on."""
    machine.has("python3")
    lock = f"--index-url http://127.0.0.1:9/simple\nno-such-package==1 --hash=sha256:{'0' * 64}\n"
    done = machine.run(lock)
    assert done.returncode == 1
    for fact in ("some.lock", "PIP_INDEX_URL", "HTTPS_PROXY"):
        assert fact in done.stderr
    assert machine.run().returncode == 0
