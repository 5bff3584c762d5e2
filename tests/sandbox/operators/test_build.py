"""Operators are built once, with their manifests, and every failure names its cure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from webhook.errors import SandboxError
from webhook.progress import Progress
from webhook.sandbox.operators.build import obtain_operators
from webhook.sandbox.operators.table import operators

KUEUE = operators()["kueue"]
# Builds by writing a file, and knows where the module's source is.
GO = """
if [ "$1" = version ]; then echo go version go1.26.8 linux/amd64; exit; fi
echo "$*" >> {folder}/calls
if [ "$1" = mod ]; then echo '{{"Dir": "{folder}/source"}}'; exit; fi
while [ "$1" != -o ]; do shift; done
echo built > "$2"
"""
# Makes an environment with itself in it, and says where that has its packages.
PYTHON = """
echo "$*" >> {folder}/calls
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi
if [ "$1" = -c ]; then echo {folder}/packages; fi
"""
KUBECTL = "for last; do :; done; cat $last/kustomization.yaml >> {folder}/calls; echo 'kind: Seen'"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a Go and a kubectl that write down how they are called."""
    for name, text in (("go", GO), ("kubectl", KUBECTL)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text.format(folder=tmp_path)}\n")
        path.chmod(0o755)
    return {
        "PATH": f"{tmp_path / 'bin'}:/bin:/usr/bin",
        "FAIRLEAD_CACHE": str(tmp_path / "cache"),
    }


def test_an_operator_is_built_once_with_its_manifests(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """A second call finds both in the cache, and starts nothing."""
    first = obtain_operators([KUEUE], Progress(), environ)["kueue"]
    calls = (tmp_path / "calls").read_text()
    assert obtain_operators([KUEUE], Progress(), environ)["kueue"] == first
    assert (tmp_path / "calls").read_text() == calls
    assert first.manifests() == [{"kind": "Seen"}]
    assert first.command[0].read_text() == "built\n"
    # kustomize reads the folder of the module's source.
    assert "source/config/default" in calls


def test_another_kustomization_renders_again_without_building(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """The manifests depend on the row, the program on the module only."""
    obtain_operators([KUEUE], Progress(), environ)
    other = KUEUE.model_copy(update={"kustomization": {"resources": ["config/crd"]}})
    obtain_operators([other], Progress(), environ)
    calls = (tmp_path / "calls").read_text()
    assert calls.count("build -mod=readonly") == 1
    assert "source/config/crd" in calls


def test_a_build_that_fails_shows_the_compiler_and_the_cure(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Nothing is left in the cache that could be taken for an operator."""
    go = tmp_path / "bin" / "go"
    go.write_text(go.read_text().replace("echo built >", "echo no such module >&2; exit 1;"))
    with pytest.raises(SandboxError, match=r"(?s)kueue v.*no such module.*same command again"):
        obtain_operators([KUEUE], Progress(), environ)
    assert not [*(tmp_path / "cache").rglob("manifests-*")]


def test_manifests_that_cannot_be_rendered_show_kubectl_s_words(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Such as a path that the module does not have."""
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\necho no such folder >&2; exit 1\n")
    with pytest.raises(SandboxError, match=r"(?s)cannot be rendered.*no such folder"):
        obtain_operators([KUEUE], Progress(), environ)


def test_without_operators_nothing_is_needed(tmp_path: Path) -> None:
    """No Go, no kubectl, no cache."""
    environ = {"PATH": "", "FAIRLEAD_CACHE": str(tmp_path / "cache")}
    assert obtain_operators([], Progress(), environ) == {}
    assert not (tmp_path / "cache").exists()


def test_the_source_is_of_the_module_that_go_mod_pins(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Program and manifests are of one version."""
    obtain_operators([KUEUE], Progress(), environ)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert "mod download -json sigs.k8s.io/kueue" in calls
    assert any(call.endswith("sigs.k8s.io/kueue/cmd/kueue") for call in calls)
    assert json.loads(calls[-1])["resources"]


def test_a_python_operator_has_an_environment_of_its_own(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip installs it with hashes, once; a failure shows pip's words and the cure."""
    python = tmp_path / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{PYTHON.format(folder=tmp_path)}\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    (operator,) = (each for each in operators().values() if each.python)
    first = obtain_operators([operator], Progress(), environ)[operator.name]
    assert obtain_operators([operator], Progress(), environ)[operator.name] == first
    calls = (tmp_path / "calls").read_text()
    assert calls.count("-m pip install --quiet --require-hashes --only-binary :all:") == 1
    assert "packages/dask_kubernetes" in calls
    assert first.version.startswith("v20")

    python.write_text("#!/bin/sh\necho no route >&2; exit 1\n")
    other = operator.model_copy(update={"kustomization": {"resources": ["other"]}})
    with pytest.raises(SandboxError, match="no route"):
        obtain_operators([other], Progress(), environ)
