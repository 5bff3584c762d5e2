"""`kubectl fairlead <TAB>`, as kubectl itself completes its plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
PROGRAMS = {"kubectl-fairlead": "main", "kubectl_complete-fairlead": "complete"}


@pytest.mark.parametrize(
    ("words", "some", "directive"),
    [
        (("",), "explain", ":4"),
        (("run", "st"), "status", ":4"),
        (("check", "-o", "j"), "json", ":4"),
        (("check", "po"), "", ":0"),
    ],
)
def test_kubectl_completes_the_plugin(
    words: tuple[str, ...], some: str, directive: str, kubectl_path: Path, tmp_path: Path
) -> None:
    """It finds kubectl_complete-fairlead on the PATH, and takes its words and its directive."""
    for name, function in PROGRAMS.items():
        program = tmp_path / name
        code = f"from webhook.__main__ import {function}\n{function}()\n"
        program.write_text(f"#!{sys.executable}\nimport sys\nsys.path[0] = {str(SOURCE)!r}\n{code}")
        program.chmod(0o755)
    done = subprocess.run(
        [kubectl_path, "__complete", "fairlead", *words],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    *lines, last = done.stdout.splitlines()
    assert last == directive
    assert some in {line.split("\t")[0] for line in lines} or not (some or lines)
