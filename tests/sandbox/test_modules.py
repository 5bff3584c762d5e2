"""The pins: which versions are built, and when they are built again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webhook.sandbox.binaries import ETCD, KUBERNETES, KWOK, PROGRAMS, Module, cache_key
from webhook.sandbox.operators.table import operators

PINS = (
    *(ETCD, KUBERNETES, KWOK),
    *(each.program.module for each in operators().values() if each.program),
)


@pytest.fixture
def module(tmp_path: Path) -> Module:
    """A module of the test's own, in a folder that it may change."""
    folder = tmp_path / "thing"
    folder.mkdir()
    (folder / "go.mod").write_text("module a\n\nrequire example.org/thing v1.2.3\n")
    (folder / "go.sum").write_text("example.org/thing v1.2.3 h1:one=\n")
    return Module("thing", "example.org/thing", tmp_path)


@pytest.mark.parametrize("module", PINS, ids=lambda module: module.name)
def test_every_module_pins_an_exact_version(module: Module) -> None:
    """The version comes from go.mod, the one place that says it."""
    assert re.fullmatch(r"v\d+\.\d+\.\d+", module.version)


@pytest.mark.parametrize("module", PINS, ids=lambda module: module.name)
def test_the_sums_of_every_module_name_what_it_requires(module: Module) -> None:
    """go.sum holds the hash of each module that go.mod requires, or that stands in for it."""
    text = (module.directory / "go.mod").read_text()
    sums = (module.directory / "go.sum").read_text()
    stands_in = dict(re.findall(r"^\s(\S+) => \S+ (v\S+)$", text, re.MULTILINE))
    required = re.findall(r"^(?:require )?\s*(\S+/\S+) (v\S+)", text, re.MULTILINE)
    assert len(required) > 20
    for path, version in required:
        assert f"{path} {stands_in.get(path, version)}/go.mod h1:" in sums


def test_all_staging_modules_of_kubernetes_are_of_its_own_release() -> None:
    """Kubernetes 1.N.P goes with k8s.io modules 0.N.P, every one of them."""
    text = (KUBERNETES.directory / "go.mod").read_text()
    versions = set(re.findall(r"^\s(?:k8s\.io/\S+) => k8s\.io/\S+ (v\S+)$", text, re.MULTILINE))
    assert versions == {"v0." + KUBERNETES.version.removeprefix("v1.")}


def test_the_cache_key_changes_with_the_pins(module: Module) -> None:
    """Another go.mod or go.sum is another folder in the cache, and the same is the same."""
    first = cache_key(module)
    assert cache_key(module) == first
    assert first.startswith("thing-v1.2.3-")
    (module.directory / "go.sum").write_text("example.org/thing v1.2.3 h1:two=\n")
    assert cache_key(module) != first


def test_a_module_that_does_not_pin_its_path_is_an_error(module: Module) -> None:
    """A go.mod that requires something else cannot be mistaken for a pin."""
    with pytest.raises(ValueError, match=r"not require example\.org/other"):
        _ = Module(module.name, "example.org/other", module.home).version


def test_kubernetes_programs_are_stamped_with_the_pinned_version() -> None:
    """Without its stamp an API server would call itself v0.0.0, and clients would believe it."""
    flags = PROGRAMS["kube-apiserver"].linker_flags()
    assert f"gitVersion={KUBERNETES.version}" in flags
    assert "gitMinor=" + KUBERNETES.version.split(".")[1] in flags
