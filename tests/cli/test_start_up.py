"""Help comes at once: what takes long to import is imported when it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.policy_tests.writing import policy

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


# What a check of policies without nodes does not need: a client, Runs, and what plays them.
UNUSED = (
    *("kubernetes", "aiohttp", "starlette", "cryptography"),
    *("webhook.run.model", "webhook.run.plan"),
)


def test_a_check_of_policies_imports_no_model_of_runs_and_no_client(tmp_path: Path) -> None:
    """These take half of its time, or more; times themselves differ from machine to machine."""
    (tmp_path / "p.yaml").write_text(policy("p", "defaults: {nodeSelector: {pool: a}}"))
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "sys.argv = ['fairlead', 'check', 'p.yaml']\n"
        "from webhook.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert "no errors" in done.stdout
    modules = done.stderr.split()
    assert "webhook.judgement.set_judgement" in modules
    assert [name for name in modules if any(f"{name}.".startswith(f"{no}.") for no in UNUSED)] == []
