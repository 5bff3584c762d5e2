"""The pinned Go modules of the control plane."""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GO: Final = Path(__file__).parent / "go"
_REQUIRE: Final = r"^(?:require )?\s*{path} (v\S+)"


@dataclass(frozen=True)
class Module:
    """A Go module of this package in `home` that pins `path` and its dependencies."""

    name: str
    path: str
    home: Path = _GO

    @property
    def directory(self) -> Path:
        """The folder with go.mod and go.sum."""
        return self.home / self.name

    @property
    def version(self) -> str:
        """The version that go.mod requires of `path`, for example v1.36.3."""
        text = (self.directory / "go.mod").read_text()
        found = re.search(_REQUIRE.format(path=re.escape(self.path)), text, re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.directory / 'go.mod'} does not require {self.path}")
        return found[1]


@dataclass(frozen=True)
class Program:
    """One binary: its package in a module, and about how many seconds it takes to build.

    The seconds are for two cores and empty caches; they are only displayed.
    """

    name: str
    module: Module
    package: str
    seconds: int

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
    """Return assignments to the variables that hold the version of the module's programs."""
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
    # etcd and kwok have their version in their source.
    return ()
