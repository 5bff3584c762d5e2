"""Golden wordings: the exact text of messages, kept in one file per test module.

A test asserts the facts of a message itself (`mentions`), and hands its text to the fixture
`wording`, which compares it with tests/golden/wording/<module>.yaml. `make golden` rewrites these
files after a message was reworded. A pytest plugin.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.fast_yaml import load_yaml

TESTS: Final = Path(__file__).parent
FOLDER: Final = TESTS / "golden" / "wording"
# Golden texts of one module: test name, with its parameters, to texts in the order of the calls.
Texts = dict[str, list[str]]


def mentions(text: str, *facts: object) -> None:
    """Assert that a message names each of these facts: policy, field, value, cure.

    White space in the message counts as one space, for terminals wrap lines.
    """
    flat = " ".join(text.split())
    missing = [fact for fact in map(str, facts) if fact not in flat]
    assert not missing, f"not mentioned: {missing}\nin: {text}"


def line_with(text: str | Iterable[str], *facts: object) -> str:
    """Return the one line that names all of these facts; a run of blanks counts as one."""
    lines = text.splitlines() if isinstance(text, str) else list(text)
    flat = [" ".join(line.split()) for line in lines]
    found = [line for line in flat if all(str(fact) in line for fact in facts)]
    assert len(found) == 1, f"{len(found)} lines name {facts}\nin: " + "\n".join(flat)
    return found[0]


class Wording:
    """Compares a test's texts with the golden ones; with `update` it only collects them."""

    def __init__(self, file: Path, test: str, *, update: bool = False) -> None:
        self._golden = read(file).get(test, [])
        self._update = update
        self.texts: list[str] = []

    def __call__(self, text: str, replace: Mapping[object, str] | None = None) -> None:
        """Compare the next text. `replace`: what differs between two runs -> what stands for it."""
        for volatile, name in (replace or {}).items():
            text = text.replace(str(volatile), name)
        self.texts.append(text)
        if self._update:
            return
        count, golden = len(self.texts), self._golden
        cure = "run `make golden` and read its diff"
        assert count <= len(golden), f"no golden text for call {count}; {cure}:\n{text}"
        assert text == golden[count - 1], f"reworded? {cure}"

    def finish(self) -> None:
        """Fail if the golden file has more texts than the test handed over."""
        if not self._update:
            found = len(self.texts)
            assert found == len(self._golden), f"{len(self._golden)} golden texts, {found} compared"


def golden_file(module: Path) -> Path:
    """Return the golden file of a test module: tests/cli/test_x.py has cli/x.yaml."""
    relative = module.relative_to(TESTS)
    return FOLDER / relative.parent / f"{relative.stem.removeprefix('test_')}.yaml"


def module_of(golden: Path) -> Path:
    """Return the test module of a golden file."""
    relative = golden.relative_to(FOLDER)
    return TESTS / relative.parent / f"test_{relative.stem}.py"


@functools.cache
def read(file: Path) -> Texts:
    """Read a golden file, once; empty where there is none."""
    return (load_yaml(file.read_text()) or {}) if file.exists() else {}


def updated(old: Texts, passed: Texts, collected: Iterable[str] | None) -> Texts:
    """Return the texts of a golden file after a run.

    Those of tests that passed are replaced. All others stay, but for those of tests that exist no
    more: they go where the run had every test of the module, which are then `collected`.
    """
    existing = old if collected is None else {*collected}
    kept = {test: texts for test, texts in old.items() if test in existing}
    return {test: texts for test, texts in {**kept, **passed}.items() if texts}


def write(file: Path, texts: Texts) -> None:
    """Write a golden file, in the order of the tests' names; without texts there is none."""
    if not texts:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    dumped = yaml.dump(
        dict(sorted(texts.items())), Dumper=_Dumper, width=10_000, allow_unicode=True
    )
    file.write_text(
        f"# The exact texts of these tests' messages. `make golden` rewrites them.\n{dumped}"
    )


def defined_tests(module: Path) -> set[str]:
    """Return the names of the test functions in a module, without importing it."""
    return set(re.findall(r"^(?:async )?def (test_\w+)", module.read_text(), re.MULTILINE))


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""

    def represent_text(self, text: str) -> Any:
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Rewrite the golden wordings of the tests that run, instead of comparing. Wants -n 0.",
    )


# By golden file, the texts of the tests that passed. Only with --update-golden.
_RECORDED: Final = pytest.StashKey[dict[Path, Texts]]()
_DESELECTED: Final = pytest.StashKey[bool]()
_WORDING: Final = pytest.StashKey[Wording]()
_PASSED: Final = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden"):
        if getattr(config.option, "numprocesses", None):
            raise pytest.UsageError("--update-golden wants -n 0: one process writes the files")
        config.stash[_RECORDED] = {}


@pytest.fixture
def wording(request: pytest.FixtureRequest) -> Iterator[Wording]:
    """Compare texts with the golden ones of this test."""
    update = _RECORDED in request.config.stash
    comparison = Wording(golden_file(request.path), request.node.name, update=update)
    request.node.stash[_WORDING] = comparison
    yield comparison
    if _PASSED in request.node.stash:
        comparison.finish()


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Record the texts of a test that came to its end."""
    if call.when != "call" or call.excinfo:
        return
    item.stash[_PASSED] = True
    if (recorded := item.config.stash.get(_RECORDED, None)) is not None:
        texts = item.stash[_WORDING].texts if _WORDING in item.stash else []
        recorded.setdefault(golden_file(item.path), {})[item.name] = texts


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Remember that modules were not run whole: -k, -m, --tier properties."""
    for item in items[:1]:
        item.config.stash[_DESELECTED] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was recorded."""
    config = session.config
    whole = _DESELECTED not in config.stash and not any("::" in each for each in config.args)
    collected: dict[Path, list[str]] = {}
    for item in session.items:
        collected.setdefault(golden_file(item.path), []).append(item.name)
    for file, passed in config.stash.get(_RECORDED, {}).items():
        texts = updated(read(file), passed, collected[file] if whole else None)
        if texts != read(file):
            write(file, texts)
