"""Where binaries are found, and that they are built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.errors import SandboxError
from webhook.progress import Progress
from webhook.sandbox.binaries import (
    ETCD,
    KUBERNETES,
    cache_key,
    find_binaries,
    new_enough,
    obtain_binaries,
    obtain_kubectl,
    version_of,
)


def script(path: Path, text: str = "") -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# A `go` that is new enough and "builds" by writing how it was called into the output file.
GO = """
if [ "$1" = version ]; then echo go version go1.26.8 linux/amd64; exit; fi
echo "$PWD $CGO_ENABLED $GOTOOLCHAIN flags:$GOFLAGS $*" >> {log}
while [ "$1" != -o ]; do shift; done
echo built > "$2"
"""


def test_assets_go_before_the_cache(tmp_path: Path) -> None:
    """KUBEBUILDER_ASSETS wins for what it holds; the rest comes from the cache."""
    cached = tmp_path / "cache" / "binaries"
    script(cached / cache_key(ETCD) / "etcd")
    server = script(cached / cache_key(KUBERNETES) / "kube-apiserver")
    etcd = script(tmp_path / "assets" / "etcd")
    environ = {
        "FAIRLEAD_CACHE": str(tmp_path / "cache"),
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
    }
    found = find_binaries(["etcd", "kube-apiserver", "kwok"], environ)
    assert found == {"etcd": etcd, "kube-apiserver": server}


def test_what_is_missing_is_built_once_and_cached(tmp_path: Path) -> None:
    """A second call finds the binary in the cache and does not call Go again."""
    log = tmp_path / "log"
    script(tmp_path / "bin" / "go", GO.format(log=log))
    environ = {
        "PATH": f"{tmp_path / 'bin'}:/bin:/usr/bin",
        "FAIRLEAD_CACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=mod",
    }
    first = obtain_binaries(["etcd"], Progress(), environ)
    assert obtain_binaries(["etcd"], Progress(), environ) == first
    assert first["etcd"].read_text() == "built\n"
    (call,) = log.read_text().splitlines()
    # The pinned module's folder, no cgo, no other toolchain, none of the caller's flags.
    assert call.startswith(f"{ETCD.directory} 0 local flags: build -mod=readonly")
    # Nothing half built lies about.
    assert [path.name for path in first["etcd"].parent.iterdir()] == ["etcd"]


def test_a_build_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """The compiler's last words reach the person, and no broken binary the cache."""
    text = 'if [ "$1" = version ]; then echo go1.26; else echo no such module >&2; exit 1; fi'
    script(tmp_path / "bin" / "go", text)
    environ = {"PATH": f"{tmp_path / 'bin'}:/bin", "FAIRLEAD_CACHE": str(tmp_path / "cache")}
    with pytest.raises(SandboxError, match=r"(?s)etcd v3.*no such module"):
        obtain_binaries(["etcd"], Progress(), environ)
    assert find_binaries(["etcd"], environ) == {}


def test_kubectl_comes_from_the_assets_then_from_the_path(tmp_path: Path) -> None:
    """A kubectl that came with an API server fits it better than any other."""
    ours = script(tmp_path / "assets" / "kubectl")
    theirs = script(tmp_path / "bin" / "kubectl")
    environ = {"PATH": str(tmp_path / "bin")}
    assert obtain_kubectl(Progress(), environ) == theirs
    environ["KUBEBUILDER_ASSETS"] = str(tmp_path / "assets")
    assert obtain_kubectl(Progress(), environ) == ours


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("Kubernetes v1.36.3", "v1.36.3"),
        ("etcd Version: 3.7.3\nGo Version: go1.26.8", "v3.7.3"),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", "v0.8.0"),
        ("nothing of the kind", ""),
    ],
)
def test_every_program_s_way_of_saying_its_version_is_read(
    tmp_path: Path, output: str, version: str
) -> None:
    """Each prints it in its own form; all become v1.2.3."""
    assert version_of(script(tmp_path / "program", f"echo '{output}'")) == version


@pytest.mark.parametrize(
    ("version", "enough"),
    [
        ("go version go1.26.8 linux/amd64", True),
        ("go version go1.27rc1 linux/amd64", True),
        ("go version go2.0 linux/amd64", True),
        ("go version go1.25.9 linux/amd64", False),
        ("go version go1.9 linux/amd64", False),
        ("go: cannot find GOROOT", False),
        ("", False),
    ],
)
def test_a_go_before_1_26_is_not_taken(version: str, enough: bool) -> None:
    """Versions are compared by number, and what says none is not taken."""
    assert new_enough(version) is enough
