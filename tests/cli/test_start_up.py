"""Help comes at once: what takes long to import is imported when it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each of these costs a tenth of a second or more, or means that one does.
HEAVY = (
    *("pydantic", "yaml", "orjson", "jsonpatch", "kubernetes", "starlette", "uvicorn"),
    "cryptography",
)


@pytest.mark.parametrize(
    "command", ["check", "preview", "explain", "policy.in_force", "run.status", "run.logs", "serve"]
)
def test_a_commands_module_imports_nothing_heavy(command: str) -> None:
    """Its body does, after --help has had its chance."""
    code = f"import sys, webhook.cli.{command}; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {name.partition(".")[0] for name in modules} & set(HEAVY)
