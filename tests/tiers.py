"""The tiers of the suite: which tests `make test-unit`, `test`, `test-all`, `test-operators` run.

A test's folder, or its file where one differs from its folder, is in exactly one tier. What may be
in which tier, and why: docs/testing.md. A pytest plugin: `--tier unit,cluster` collects those.
`--tier properties` collects the properties of every tier but operators, to run them again with
more examples.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
# Paths below tests/. A file is in the tier of the longest path that contains it.
TIERS: Final[dict[str, tuple[str, ...]]] = {
    "unit": (
        *("admission", "bench", "certs", "cli", "cluster_objects", "comparison", "controller"),
        *("convert", "crd", "decision", "evaluation", "exported", "fairlead", "frameworks", "fuzz"),
        *("installation", "judgement", "kube", "laws", "manifests", "placement", "pod_schema"),
        *("policy", "policy_tests", "questions", "run", "run_client", "sandbox", "server"),
        *("simulation", "text", "tools", "ui", "workloads"),
        "chaos/test_pieces.py",
        *(path.name for path in TESTS.glob("test_*.py")),
    ),
    "cluster": ("cluster",),
    "thorough": ("agreement", "chaos", "helm", "packaging"),
    "browser": ("browser",),
    # It was not seen green yet since it plays 0.1.0: it moves to `thorough` when it was.
    "operators": ("operators", "chaos/test_upgrade.py"),
}

PROPERTIES: Final = "properties"
# Seconds for one test, its fixtures included, where pyproject.toml's time-out is too short:
# thousands of random cases on the real API server, and scenarios of faults; a webhook of Kueue's.
TIMEOUTS: Final = {"thorough": 900, "operators": 600}
# Modules that take a minute and more. They begin first, in any order, so that no worker has one of
# them left when the others have nothing to do.
LONG: Final = (
    "agreement",
    "chaos/test_controller_kills.py",
    "chaos/test_scenarios.py",
    "cluster/test_controller_survives.py",
    "cluster/test_doctor.py",
    "cluster/test_install.py",
    "cluster/test_install_restores.py",
    "cluster/test_installing.py",
    "cluster/test_policies_from_cluster.py",
    "cluster/test_run_nodes.py",
    "cluster/test_sandbox_command.py",
)


@functools.cache
def tiers_of(path: Path) -> list[str]:
    """Return the tiers that claim a file or folder below tests/; a file wants exactly one.

    A folder has the tiers of all that is in it.
    """
    relative = path.relative_to(TESTS).as_posix()
    claims = [
        (claim.count("/"), tier)
        for tier, claimed in TIERS.items()
        for claim in claimed
        if _is_within(relative, [claim]) or _is_within(claim, [relative])
    ]
    if path.is_dir():
        return sorted({tier for _, tier in claims})
    longest = max((length for length, _ in claims), default=0)
    return [tier for length, tier in claims if length == longest]


def tier_of(path: Path) -> str:
    """Return the tier of a test module. Raises CollectError with the cure if it has none."""
    tiers = tiers_of(path)
    if len(tiers) != 1:
        name, found = path.relative_to(TESTS.parent), " and ".join(tiers) or "no tier"
        cure = "name its folder once in tests/tiers.py"
        raise pytest.Collector.CollectError(f"{name} is in {found}: {cure}")
    return tiers[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        metavar="NAMES",
        help=f"Collect the tests of these tiers only, separated by commas: {', '.join(TIERS)}; or "
        f"{PROPERTIES}, those of every tier that try random cases.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a tier that does not exist."""
    config.addinivalue_line(
        "markers", "property: tries random cases, as many as tests.examples says"
    )
    config.addinivalue_line(
        "markers", "last: after its module's other tests, while what it waits for goes on"
    )
    if unknown := set(_wanted(config)) - {*TIERS, PROPERTIES}:
        raise pytest.UsageError(
            f"--tier: unknown tier {', '.join(sorted(unknown))}; the tiers are {', '.join(TIERS)}"
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is in none of the tiers that are wanted."""
    wanted = _wanted(config)
    if not wanted or collection_path == TESTS or not collection_path.is_relative_to(TESTS):
        return None
    if collection_path.is_file() and not collection_path.name.startswith("test_"):
        return None
    if PROPERTIES in wanted:
        wanted = [*wanted, *(tier for tier in TIERS if tier != "operators")]
    tiers = tiers_of(collection_path)
    return True if tiers and not set(wanted) & set(tiers) else None


def pytest_collect_file(file_path: Path) -> None:
    """Refuse a module that is in no tier."""
    if file_path.name.startswith("test_") and file_path.is_relative_to(TESTS):
        tier_of(file_path)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Set time-outs, decide the order, and under --tier properties leave out the rest.

    Long modules are first, and what is marked `last` is at the end of its module, whatever the
    order is otherwise.
    """
    for item in items:
        tier = tier_of(item.path)
        if tier in TIMEOUTS and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUTS[tier]))
    paths = dict.fromkeys(item.path for item in items)
    modules = {
        path: (not _is_within(path.relative_to(TESTS).as_posix(), LONG), number)
        for number, path in enumerate(paths)
    }
    items.sort(key=lambda item: (modules[item.path], bool(item.get_closest_marker("last"))))
    wanted = _wanted(config)
    if PROPERTIES not in wanted:
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_property = any(item.get_closest_marker(name) for name in ("hypothesis", "property"))
        whole = set(tiers_of(item.path)) & set(wanted)
        (kept if is_property or whole else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _wanted(config: pytest.Config) -> list[str]:
    given: str = config.getoption("--tier") or ""
    return [name for name in given.split(",") if name]


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
