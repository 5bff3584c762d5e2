"""Programs of other projects that only tests need, built from pinned Go modules and cached."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from webhook.errors import SandboxError
from webhook.progress import Lines
from webhook.sandbox.binaries import (
    Module,
    Program,
    build,
    cache_key,
    find_toolchain,
    go_environment,
)
from webhook.sandbox.cache_folder import cache_directory, locked

HOME: Final = Path(__file__).parent / "go"
# The version of Kubernetes for which Helm 3 renders and lints; its own build sets it as well.
_RENDERED_FOR: Final = {"k8sVersionMajor": "1", "k8sVersionMinor": "36"}
# Both majors are in use, and differ in options and in how they apply objects.
HELMS: Final = {
    "helm-4": Program(
        "helm", Module("helm", "helm.sh/helm/v4", HOME), "helm.sh/helm/v4/cmd/helm", 120
    ),
    "helm-3": Program(
        "helm",
        Module(
            "helm-3",
            "helm.sh/helm/v3",
            HOME,
            tuple(
                f"helm.sh/helm/v3/pkg/{package}.{name}={text}"
                for package in ("chartutil", "lint/rules")
                for name, text in _RENDERED_FOR.items()
            ),
        ),
        "helm.sh/helm/v3/cmd/helm",
        120,
    ),
}
# The kustomize of kubectl 1.27, the oldest that docs/guides/customize.md names, and a new one:
# since kubectl 1.31 generators come before components.
KUSTOMIZES: Final = {
    name: Program(
        "kustomize",
        Module(name, "sigs.k8s.io/kustomize/kustomize/v5", HOME),
        "sigs.k8s.io/kustomize/kustomize/v5",
        30,
    )
    for name in ("kustomize-5.0", "kustomize")
}
# Its controllers and cainjector; go/cert-manager/main.go has why it is a program of ours.
CERT_MANAGER: Final = Program(
    "cert-manager",
    Module("cert-manager", "github.com/cert-manager/cert-manager", HOME),
    ".",
    180,
)
# Without service discovery: one package of a cloud's SDK takes 3 GB of memory to compile. Version
# 0.316 needs Go 1.26.7, which the pinned wheel is not.
PROMETHEUS: Final = Program(
    "prometheus",
    Module("prometheus", "github.com/prometheus/prometheus", HOME),
    "github.com/prometheus/prometheus/cmd/prometheus",
    200,
    tags="remove_all_sd",
)
PROMTOOL: Final = dataclasses.replace(
    PROMETHEUS, name="promtool", package="github.com/prometheus/prometheus/cmd/promtool"
)
_CURE: Final = "Run the same command again to continue the build where it stopped."


def obtain_program(program: Program) -> Path:
    """Return the program's binary, built on first use. Raises SandboxError if that fails."""
    cache = cache_directory(os.environ)
    target = cache / "binaries" / cache_key(program.module) / program.name
    if target.exists():
        return target
    with locked(cache / "build.lock"):
        if not target.exists():
            progress = Lines(sys.stderr)
            toolchain = find_toolchain(os.environ, cache, progress)
            what = f"building {program.name} {program.module.version}"
            with progress.step(what, about=program.seconds):
                build(program, target, toolchain, os.environ, cure=_CURE)
            if toolchain.scratch:
                shutil.rmtree(toolchain.scratch, ignore_errors=True)
    return target


def module_source(module: Module) -> Path:
    """Return the folder of the module's source. Raises SandboxError if it cannot be downloaded."""
    toolchain = find_toolchain(os.environ, cache_directory(os.environ), Lines(sys.stderr))
    done = subprocess.run(
        [toolchain.go, "mod", "download", "-json", module.path],
        cwd=module.directory,
        env=go_environment(toolchain, os.environ),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SandboxError(f"{module.path} cannot be downloaded: {done.stdout}")
    return Path(json.loads(done.stdout)["Dir"])
