"""The tutorial on a real control plane; tests/test_docs.py has its offline part."""

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
# What differs between two runs: times, addresses, which node of several, and widths of columns.
VARIES = re.compile(r"\b[\d.]+m?\d* ?s\b|\b(?:\d+\.){3}\d+\b|[\w-]+-\d(?= +<none>)| +")


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
    subprocess.run(["fairlead", "sandbox", "down", "--name", "tour"], env=result, check=True)


def test_the_pods_of_the_tutorial_go_where_it_says(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    """One to a spot node of the zone that it asked for, stamped with the policies; then a run's.

    The page shows what each command prints.
    """
    tour = "".join(page.read_text() for page in PAGES)
    for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", tour, re.DOTALL):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (block,) = (
        block
        for block in re.findall(r"```console\n(.*?)```", tour, re.DOTALL)
        if "sandbox up" in block
    )
    shown = dict(re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE))
    script = "\n".join(f"echo '$ next'\n{command}" for command in shown)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environ,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed = dict(zip(shown, done.stdout.split("$ next\n")[1:], strict=True))
    differing = [
        command for command, text in shown.items() if lasting(printed[command]) != lasting(text)
    ]
    assert differing == [], "".join(f"$ {command}\n{text}" for command, text in printed.items())
    # The shipped nodes take the zones in turn: odd ones are in europe-west4-b.
    assert re.search(r"^mnist-worker-0 .* spot-[13] ", done.stdout, re.MULTILINE)
    assert '"workers-on-spot":["capacity[spot]"]' in done.stdout
    assert re.search(r"^digits +Running +tensorflow +3/3 +0 ", done.stdout, re.MULTILINE)
    for worker in ("digits-worker-0", "digits-worker-1"):
        assert re.search(rf"^{worker} .* Running .* spot-[02] ", done.stdout, re.MULTILINE)
    assert re.search(r"^digits-master-0 .* Running .* \S+-[02] ", done.stdout, re.MULTILINE)
    assert not (tmp_path / "cache" / "sandboxes").exists()
