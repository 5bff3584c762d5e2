"""The tutorials on a real control plane; tests/test_docs.py has the offline part of one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
# What differs between two runs: what is waited for, times, addresses, which node of several, and
# widths of columns.
VARIES = re.compile(
    r"run \w+: (?:Pending|Starting): .*\n|\b[\d.]+m?\d* ?s\b|\b(?:\d+\.){3}\d+\b"
    r"|[\w-]+-\d(?= +<none>)| +"
)


def lasting(text: str) -> list[str]:
    """The words of a command's output that do not differ between two runs."""
    return VARIES.sub(" ", text).split()


@pytest.fixture
def environ(
    binaries: Mapping[str, Path], kubectl_path: Path, tmp_path: Path
) -> Iterator[Mapping[str, str]]:
    """A cache of the test's own, with the binaries that are built already."""
    assets = tmp_path / "assets"
    assets.mkdir()
    for name, path in binaries.items():
        (assets / name).symlink_to(path)
    tools = [str(Path(sys.executable).parent), str(kubectl_path.parent), os.environ["PATH"]]
    result = {
        **os.environ,
        "PATH": os.pathsep.join(tools),
        "FAIRLEAD_CACHE": str(tmp_path / "cache"),
        "KUBEBUILDER_ASSETS": str(assets),
    }
    yield result
    # Whatever the test came to.
    for name in ("tour", "train"):
        subprocess.run(["fairlead", "sandbox", "down", "--name", name], env=result, check=True)


def play(pages: tuple[Path, ...], folder: Path, environ: Mapping[str, str]) -> str:
    """Write the files of the pages, and run the commands of their sandbox; what they print.

    The page shows what each command prints.
    """
    tour = "".join(page.read_text() for page in pages)
    for name, text in re.findall(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", tour, re.DOTALL):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    blocks = re.findall(r"```console\n(.*?)```", tour, re.DOTALL)
    first = next(at for at, each in enumerate(blocks) if "sandbox up" in each)
    block = "".join(blocks[first:])
    shown = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    script = "\n".join(f"echo '$ next'\n{command}" for command, _ in shown)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environ,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    printed = done.stdout.split("$ next\n")[1:]
    differing = [
        command
        for (command, text), found in zip(shown, printed, strict=True)
        if lasting(found) != lasting(text)
    ]
    assert differing == [], done.stdout
    return done.stdout


def test_the_pods_of_the_tutorial_go_where_it_says(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    """One to a spot node of the zone that it asked for, stamped with the policies; then a run's."""
    printed = play(PAGES, tmp_path, environ)
    # The shipped nodes take the zones in turn: odd ones are in europe-west4-b.
    assert re.search(r"^mnist-worker-0 .* spot-[13] ", printed, re.MULTILINE)
    assert '"workers-on-spot":["capacity[spot]"]' in printed
    assert re.search(r"^digits +Running +tensorflow +3/3 +0 ", printed, re.MULTILINE)
    for worker in ("digits-worker-0", "digits-worker-1"):
        assert re.search(rf"^{worker} .* Running .* spot-[02] ", printed, re.MULTILINE)
    assert re.search(r"^digits-master-0 .* Running .* \S+-[02] ", printed, re.MULTILINE)
    assert not (tmp_path / "cache" / "sandboxes").exists()


def test_who_trains_comes_to_the_end_of_a_run(environ: Mapping[str, str], tmp_path: Path) -> None:
    """From the terminal and from Python, through a failure; the page shows what they print."""
    work = tmp_path / "work"
    work.mkdir()
    printed = play((ROOT / "docs" / "train.md",), work, environ)
    assert re.search(r"^mnist +Succeeded ", printed, re.MULTILINE)
    assert not (tmp_path / "cache" / "sandboxes").exists()
