"""Build an operator's program on first use, and render the manifests of its module."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from webhook.errors import SandboxError
from webhook.sandbox.binaries import (
    REQUIREMENTS,
    Program,
    Toolchain,
    build,
    cache_key,
    find_toolchain,
    go_environment,
    obtain_kubectl,
    pinned_requirement,
    run_command,
)
from webhook.sandbox.cache_folder import cache_directory, locked, writing_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.progress import Progress
    from webhook.sandbox.operators.table import Json, Operator

_CURE: Final = "Run the same command again to continue the build where it stopped."
_PIP_PATIENCE: Final = 1800  # seconds for one environment


@dataclass(frozen=True)
class BuiltOperator:
    """An operator's program in the cache.

    command: how it is started, without its arguments; version: as v1.9.3;
    file: the manifests of its module, a JSON list.
    """

    command: tuple[Path, ...]
    version: str
    file: Path

    def manifests(self) -> list[Json]:
        """Return the objects that its own installation creates."""
        read: list[Json] = json.loads(self.file.read_text())
        return read


def obtain_operators(
    wanted: Sequence[Operator], progress: Progress, environ: Mapping[str, str] = os.environ
) -> dict[str, BuiltOperator]:
    """Return the wanted operators by name, building those that the cache lacks.

    Two processes that call this at once do not build twice. Raises SandboxError with the cure if
    there is neither a Go nor a way to get one, or a build fails or takes too long.
    """
    cache = cache_directory(environ)
    built = {operator.name: _locate(operator, cache) for operator in wanted}
    if all(built_operator.file.exists() for built_operator in built.values()):
        return built
    kubectl = obtain_kubectl(progress, environ)
    with locked(cache / "build.lock"):
        missing = [operator for operator in wanted if not built[operator.name].file.exists()]
        toolchain = None
        if any(operator.go for operator in missing):
            toolchain = find_toolchain(environ, cache, progress)
        for number, operator in enumerate(missing, 1):
            target = built[operator.name]
            what = f"[{number}/{len(missing)}] building operator {operator.name} {target.version}"
            with progress.step(what, about=operator.seconds):
                source = _obtain_source(operator, target, toolchain, environ)
                manifests = render_manifests(kubectl, operator.kustomization, source)
                # Last, and whole: if it exists, everything exists.
                part = target.file.with_suffix(".part")
                with writing_cache():
                    part.write_text(json.dumps(manifests))
                    part.replace(target.file)
        if toolchain and toolchain.scratch:
            shutil.rmtree(toolchain.scratch, ignore_errors=True)
    return built


def _locate(operator: Operator, cache: Path) -> BuiltOperator:
    """Return where the operator is in the cache, whether it is built or not."""
    text = json.dumps(operator.kustomization, sort_keys=True)
    file = f"manifests-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    if program := operator.program:
        folder = cache / "binaries" / cache_key(program.module)
        return BuiltOperator((folder / program.name,), program.module.version, folder / file)
    requirements = _requirements(operator)
    digest = hashlib.sha256(requirements.read_bytes())
    python = f"{platform.system()}-{platform.machine()}-{platform.python_version()}"
    # A folder is never changed once it is whole: another sandbox may run from it.
    digest.update(f"{python} {text}".encode())
    version = "v" + pinned_requirement(requirements, operator.name).partition("==")[2]
    folder = cache / "environments" / f"{operator.name}-{version}-{digest.hexdigest()[:12]}"
    return BuiltOperator((folder / "bin" / "python",), version, folder / file)


def _requirements(operator: Operator) -> Path:
    if operator.python is None:
        raise SandboxError(f"operator {operator.name} has neither a Go module nor a package")
    return REQUIREMENTS / operator.python.requirements


def _obtain_source(
    operator: Operator,
    target: BuiltOperator,
    toolchain: Toolchain | None,
    environ: Mapping[str, str],
) -> Path:
    """Build the program if it is missing; return the folder of its source."""
    program = operator.program
    (binary,) = target.command
    if program is None or toolchain is None:
        return _install_environment(_requirements(operator), binary.parent.parent, environ)
    if not binary.exists():
        build(program, binary, toolchain, environ, cure=_CURE)
    return _find_source(program, toolchain, environ)


def _find_source(program: Program, toolchain: Toolchain, environ: Mapping[str, str]) -> Path:
    done = run_command(
        [str(toolchain.go), "mod", "download", "-json", program.module.path],
        f"{program.module.path} cannot be downloaded",
        cwd=program.module.directory,
        environ=go_environment(toolchain, environ),
    )
    return Path(json.loads(done)["Dir"])


def _install_environment(requirements: Path, home: Path, environ: Mapping[str, str]) -> Path:
    """Install the requirements into an environment of their own; return its packages' folder."""
    # A folder without manifests is a leftover of an installation that was interrupted.
    shutil.rmtree(home, ignore_errors=True)
    make = [sys.executable, "-m", "venv", str(home)]
    run_command(make, "an environment cannot be made", environ=environ)
    python = str(home / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--require-hashes"]
    command += ["--only-binary", ":all:", "--requirement", str(requirements)]
    problem = f"pip could not install {requirements.stem}; give pip an index that it can reach"
    run_command(command, problem, environ=environ, patience=_PIP_PATIENCE)
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(run_command([python, "-c", script], "the environment does not work").strip())


def render_manifests(kubectl: Path, kustomization: Json, source: Path) -> list[Json]:
    """Return the objects of a kustomization whose resources are paths below `source`.

    Raises SandboxError with kubectl's words.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        # kustomize takes no absolute paths.
        paths: list[str] = kustomization["resources"]
        resources = [os.path.relpath(source.resolve() / path, folder) for path in paths]
        document = json.dumps({**kustomization, "resources": resources})
        (folder / "kustomization.yaml").write_text(document)
        options = ["kustomize", "--load-restrictor=LoadRestrictionsNone", str(folder)]
        text = run_command(
            [str(kubectl), *options], f"manifests of {source.name} cannot be rendered"
        )
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [manifest for manifest in yaml.load_all(text, Loader=loader) if manifest]
