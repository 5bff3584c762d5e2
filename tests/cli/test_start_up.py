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


# What a check of policies without nodes and sources does not need: a client, Runs and what plays
# them, and the model of a source.
UNUSED = (
    *("kubernetes", "aiohttp", "starlette", "cryptography"),
    *("webhook.run.model", "webhook.run.plan", "webhook.run.observed", "webhook.policy.run_source"),
)


def checked(folder: Path, at_exit: str) -> list[str]:
    """Return the words that this expression has at the end of `fairlead check` of a policy."""
    (folder / "p.yaml").write_text(policy("p", "defaults: {nodeSelector: {pool: a}}"))
    code = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print(*{at_exit}, file=sys.stderr))\n"
        "sys.argv = ['fairlead', 'check', 'p.yaml']\n"
        "from webhook.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder
    )
    assert "no errors" in done.stdout
    return done.stderr.split()


def test_a_check_of_policies_imports_no_model_of_runs_and_no_client(tmp_path: Path) -> None:
    """These take half of its time, or more; times themselves differ from machine to machine."""
    modules = checked(tmp_path, "sys.modules")
    assert "webhook.judgement.set_judgement" in modules
    assert [name for name in modules if any(f"{name}.".startswith(f"{no}.") for no in UNUSED)] == []


def test_a_check_of_policies_builds_no_part_of_their_model_again(tmp_path: Path) -> None:
    """A part that is read or dumped alone is built alone: 20 ms for the fields of a placement."""
    parts = "PlacementSettings", "Requirements", "Defaults", "PolicySpec"
    models = (
        "(f'{model.__name__}={model.__pydantic_complete__}' for name in ('policy.model', "
        "'placement.schema.placement') for model in vars(sys.modules[f'webhook.{name}']).values() "
        "if hasattr(model, '__pydantic_complete__'))"
    )
    built = checked(tmp_path, models)
    assert "PlacementPolicy=True" in built
    assert {f"{part}=False" for part in parts} <= {*built}
