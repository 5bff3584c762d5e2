"""The wheel alone, in an empty environment, installed as people install commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.ui.served_pages import page
from webhook import __version__

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# Of the parts that run in a cluster; `version` and `--help` do without.
HEAVY = ("kubernetes", "starlette", "uvicorn", "cryptography", "pydantic", "aiohttp")
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: pool}
spec:
  defaults: {nodeSelector: {pool: a}}
"""


def run(command: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path) -> str:
    """Return stdout. Raises AssertionError with all output if the command fails."""
    done = subprocess.run(
        [str(part) for part in command], env=env, cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, beside those of everything that it depends on, in the locked versions."""
    folder = tmp_path_factory.mktemp("wheels")
    pip = [sys.executable, "-m", "pip"]
    locked: list[str | Path] = ["--require-hashes", "-r", ROOT / "requirements.lock"]
    run([*pip, "download", "-q", *locked, "-d", folder], env=os.environ, cwd=folder)
    alone = ["--no-build-isolation", "--no-deps"]
    run([*pip, "wheel", "-q", *alone, "-w", folder, ROOT], env=os.environ, cwd=folder)
    (built,) = folder.glob("fairlead-*.whl")
    return built


def uv_tool(wheel: Path) -> list[str | Path]:
    """The command of uv that installs the wheel, from its folder alone."""
    from_folder: list[str | Path] = [
        "--no-config",
        "--offline",
        "--no-index",
        "--find-links",
        wheel.parent,
    ]
    return [BIN / "uv", "tool", "install", *from_folder, "--python", sys.executable, wheel]


def pipx(wheel: Path) -> list[str | Path]:
    from_folder = f"--pip-args=--no-index --find-links {wheel.parent}"
    return [BIN / "pipx", "install", "--python", sys.executable, from_folder, wheel]


@pytest.mark.parametrize("installer", [uv_tool, pipx], ids=["uv", "pipx"])
def test_the_command_installs_and_works_without_a_checkout(
    installer: Callable[[Path], list[str | Path]], wheel: Path, tmp_path: Path
) -> None:
    """It reads policies, has its data files, and imports nothing of the cluster's parts early."""
    bin_folder = tmp_path / "bin"
    env = {
        "HOME": str(tmp_path),
        "PATH": f"{bin_folder}:{BIN}:/usr/bin:/bin",
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(bin_folder),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(bin_folder),
    }
    run(installer(wheel), env=env, cwd=tmp_path)
    programs = {"fairlead", "kubectl-fairlead", "kubectl_complete-fairlead"}
    assert {each.name for each in bin_folder.iterdir()} == programs

    env["PATH"] = "/usr/bin:/bin"
    fairlead = bin_folder / "fairlead"
    assert __version__ in run([fairlead, "version"], env=env, cwd=tmp_path)
    proposed = run([bin_folder / "kubectl_complete-fairlead", "vers"], env=env, cwd=tmp_path)
    assert proposed.startswith("version")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "pool.yaml").write_text(POLICY)
    assert "no errors" in run([fairlead, "check", "policies"], env=env, cwd=tmp_path)
    shown = run([fairlead, "generate", "manifests"], env=env, cwd=tmp_path)
    assert "kind: MutatingWebhookConfiguration" in shown

    with page(program=[str(fairlead)], env=env) as served:
        served.enter()
        for path in ("playground", "static/editor.js", "static/page.css", "schema.json"):
            assert served.ask("GET", f"/{path}").status == 200

    script = fairlead.resolve()
    profiled = [str(script.parent / "python"), "-X", "importtime", str(script), "version"]
    done = subprocess.run(profiled, env=env, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & set(HEAVY)
