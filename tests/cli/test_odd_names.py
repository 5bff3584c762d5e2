"""Every option and argument that takes a text, with names that would lead elsewhere.

The commands and their texts are those of the parser: a new one is tried by itself. What is done
with the same names on a real API server is in tests/cluster/test_names.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.every_command import ALL, Words, arguments, write_files
from tests.cli.run.scripted_cluster import served
from tests.cli.test_every_failure import DISCOVERY, Faulty
from tests.odd_names import ODD_NAMES
from webhook.cli import fairlead
from webhook.errors import FairleadError
from webhook.kube.failure_text import target_of
from webhook.server.settings import NamespacedName
from webhook.settings import ObjectName

# What serves or builds, after all options are read.
BEGINNINGS = (
    "webhook.controller.controller_process.run",
    "webhook.sandbox.instances.up",
    "webhook.server.webhook_process.run",
    "webhook.ui.serving.serve",
)
NAMES = (ObjectName, NamespacedName)
WRITES = {"POST", "PUT", "PATCH", "DELETE"}
# Reads by which an API server is asked about rights, and dry runs.
ASKED_ABOUT = "selfsubjectaccessreviews"


def texts() -> Iterator[tuple[Words, click.Parameter]]:
    """Every parameter of a command that takes any text, or a name."""
    for words, command in ALL.items():
        for each in command.params:
            if isinstance(each.type, NAMES) or each.type is click.STRING:
                yield words, each


TEXTS = {f"{' '.join(words)} {each.opts[-1]}": (words, each) for words, each in texts()}


def line(words: Words, parameter: click.Parameter, text: str) -> list[str]:
    """A command line with the text as that parameter, and with it alone if it is an argument."""
    if isinstance(parameter, click.Argument):
        return [*words, "--", text] if words != ("run", "create") else [*words, text]
    return [*arguments(words), parameter.opts[-1], text]


def is_impossible(kind: click.ParamType[Any], text: str) -> bool:
    """Whether it is no name of this kind: of two parts, NAMESPACE/NAME is one."""
    return isinstance(kind, NAMES) and not (
        isinstance(kind, NamespacedName) and text == "one/status"
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def begin(*_arguments: object, **_options: object) -> None:
        sys.exit(0)

    for each in BEGINNINGS:
        monkeypatch.setattr(each, begin)
    monkeypatch.setattr("webhook.server.logs.configure", lambda _level: None)
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("which", TEXTS)
def test_an_odd_text_leads_nowhere(folder: Path, which: str) -> None:
    """There is no traceback, nothing is written, and a name that none can have is wrong usage."""
    words, parameter = TEXTS[which]
    there = Faulty("conflict")
    with served(there, folder):
        # Of what is no name of an object, some: each of these commands does its work.
        of_names = isinstance(parameter.type, NAMES)
        for text in ODD_NAMES if of_names else ("", "../x", "a?x=1", "a b\x00", "a" * 254):
            there.asked.clear()
            done = CliRunner().invoke(fairlead, line(words, parameter, text))
            where = f"{which} {text!r}: {done.output}"
            assert isinstance(done.exception, SystemExit | FairleadError | None), where
            written = [each for each in there.asked if each.split()[0] in WRITES]
            if is_impossible(parameter.type, text):
                assert done.exit_code == 2, where
                assert "Invalid value" in done.output or "is empty" in done.output, where
                assert there.asked == [], where
            elif done.exit_code == 2:
                assert written == [], where
            for each in there.asked:
                path = each.split(" ", 1)[1]
                assert target_of(path) or path in DISCOVERY, where
                assert not text.strip() or f"/{text}" not in path, where
