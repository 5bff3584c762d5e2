"""The Containerfile's own steps build the wheel, and `fairlead` runs from it.

`make image` builds it, as root and in minutes. Here its stages are played in a folder: what is
copied and run is what the file says. The locked dependencies are not installed once more but taken
from where the tests run, which were installed from the same lock.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

from tests.manifests.generated import ROOT
from tools import image
from webhook import __version__

FILE = ROOT / "Containerfile"
PREFIX = "/opt/fairlead"


class Step(NamedTuple):
    """One instruction of a stage."""

    instruction: str
    words: str


def stages() -> list[list[Step]]:
    """The instructions of each stage, FROM first; comments left out."""
    found: list[list[Step]] = []
    for line in FILE.read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            step = Step(*line.split(" ", 1))
            if step.instruction == "FROM":
                found.append([])
            if found:
                found[-1].append(step)
    return found


def of(stage: list[Step], instruction: str) -> list[str]:
    """What stands behind each instruction of this name."""
    return [step.words for step in stage if step.instruction == instruction]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in the place of /opt/fairlead, after the first stage."""
    root = tmp_path_factory.mktemp("image")
    source, prefix = root / "src", root / "opt"
    source.mkdir()
    # The tests' own Python builds: `python` is the first on the path.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for step in stages()[0]:
        if step.instruction == "COPY":
            *names, target = step.words.split()
            for name in names:
                copy(ROOT / name, source / target / ("" if (ROOT / name).is_dir() else name))
        elif step.instruction == "RUN" and ".lock" not in step.words:
            command = step.words.replace(PREFIX, str(prefix))
            done = subprocess.run(
                ["sh", "-euc", command],
                cwd=source,
                env={**os.environ, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    (site,) = prefix.glob("lib/python*/site-packages")
    dependencies = root / "dependencies"
    dependencies.mkdir()
    # All that is installed here but Fairlead itself.
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if "fairlead" not in each.name and each.suffix != ".pth":
            (dependencies / each.name).symlink_to(each)
    (site / "dependencies.pth").write_text(f"{dependencies}\n")
    return prefix


def copy(source: Path, target: Path) -> None:
    """A file, or a folder without what .containerignore leaves out; links stay links."""
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, ignore=ignored, symlinks=True)
    else:
        shutil.copy(source, target)


def everything(prefix: Path) -> dict[Path, tuple[int, int]]:
    """Each file with its size and the time of its last change."""
    files = (path for path in prefix.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def test_fairlead_runs_from_the_wheel_and_writes_nothing(built: Path, tmp_path: Path) -> None:
    """Every command of the manifests, from a folder without the checkout, on read-only files."""
    (entry,) = of(stages()[-1], "ENTRYPOINT")
    (program,) = json.loads(entry)
    (given,) = of(stages()[-1], "ENV")
    pairs = dict(word.split("=", 1) for word in shlex.split(given))
    environment = {**pairs, "PATH": f"{built / 'bin'}:/usr/bin:/bin"}
    before = everything(built)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [built / "bin" / program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert __version__ in run("--version")
    for command in ("serve", "controller"):
        assert "SIGTERM" in run("help", command)
    policy = ROOT / "policies" / "capacity" / "any-provider.yaml"
    run("check", str(policy))
    assert "kind: MutatingWebhookConfiguration" in run("generate", "manifests")
    assert everything(built) == before


def test_the_wheel_is_where_it_runs_from(built: Path) -> None:
    """Not the checkout; files that are no code came along, and tests did not."""
    (site,) = built.glob("lib/python*/site-packages")
    shipped = site / "webhook" / "installation" / "shipped"
    assert not any(path.is_symlink() for path in shipped.rglob("*"))
    assert (shipped / "manifests" / "default" / "kustomization.yaml").exists()
    assert (site / "webhook" / "sources" / "jobset.yaml").exists()
    assert (site / "webhook" / "cli" / "__init__.py").exists()
    assert (site / "certs").is_dir()
    assert not (site / "tests").exists()


def test_whatever_is_installed_is_pinned_by_hash() -> None:
    """Or comes from the folder that was just built."""
    installs = [words for stage in stages() for words in of(stage, "RUN") if " install " in words]
    assert len(installs) == 3
    for words in installs:
        assert "--require-hashes" in words or "--no-index" in words


@pytest.mark.parametrize(
    ("lock", "names"),
    [("requirements.lock", ["fairlead"]), ("requirements-build.lock", ["hatchling"])],
)
def test_the_lock_has_all_that_is_needed(lock: str, names: list[str]) -> None:
    """Each dependency of a dependency, in the very version that the tests run with."""
    locked = dict(re.findall(r"^([\w.-]+)==([^ ;]+)", (ROOT / lock).read_text(), re.MULTILINE))
    wanted, seen = list(names), set()
    while wanted:
        # As locks write it (PEP 503).
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        if name != "fairlead":
            assert locked.get(name) == found.version
        for text in found.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    assert len(seen) > 3


def test_the_last_stage_runs_unprivileged_and_opens_the_ports_of_the_manifests() -> None:
    """The same user as in the Deployments; a number, for runAsNonRoot cannot read a name."""
    last = stages()[-1]
    assert of(last, "USER") == ["65532:65532"]
    assert of(last, "EXPOSE") == ["8443 8081 8082"]
    assert of(last, "RUN") == []


def test_the_base_is_pinned_by_digest_and_the_same_throughout() -> None:
    """A tag may name another image tomorrow; an environment runs on the Python that made it."""
    bases = [words.split()[0] for stage in stages() for words in of(stage, "FROM")]
    assert bases == ["${BASE}", "${BASE}"]
    assert re.fullmatch(
        r"python:3\.11-slim@sha256:[0-9a-f]{64}", image.pinned_base(FILE.read_text())
    )


def test_what_is_copied_is_not_ignored() -> None:
    """.containerignore leaves out all but that."""
    lines = (ROOT / ".containerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {name for words in of(stages()[0], "COPY") for name in words.split()[:-1]}
    assert "*" in lines
    assert copied == allowed
