"""What an audit says, and that silence is not taken for safety."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.wording import Wording, mentions
from tools.audit import CLEAN, UNKNOWN, VULNERABLE, judged, main

WANTED = {"click", "orjson"}
GOOD = {"name": "click", "version": "1", "vulns": []}
SKIPPED = {"name": "orjson", "skip_reason": "Dependency not found on PyPI"}
BAD = {
    "name": "orjson",
    "version": "2",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"], "aliases": [], "description": "x"}],
}


def report(*dependencies: Any) -> dict[str, Any]:
    """As pip-audit writes it."""
    return {"dependencies": list(dependencies), "fixes": []}


def test_clean_is_what_was_looked_up_without_a_finding(wording: Wording) -> None:
    """Every package of the lock."""
    verdict = judged(report(GOOD, {**GOOD, "name": "Orjson"}), WANTED, "")
    assert verdict.code == CLEAN
    (line,) = verdict.lines
    mentions(line, "2 packages", "no known vulnerability")
    wording(line)


def test_a_finding_is_named_with_the_version_that_mends_it(wording: Wording) -> None:
    """Whatever else could not be looked up."""
    verdict = judged(report(BAD), WANTED, "")
    assert verdict.code == VULNERABLE
    mentions(verdict.lines[0], "orjson 2", "PYSEC-1", "in 3", "make lock")
    mentions(verdict.lines[1], "2 packages", "1 ", "not be looked up", ": click")
    unmended = {**BAD, "vulns": [{"id": "PYSEC-2", "fix_versions": []}]}
    (first, *_) = judged(report(GOOD, unmended), WANTED, "").lines
    mentions(first, "orjson 2", "PYSEC-2", "not mended")
    assert "make lock" not in first
    wording("\n".join(verdict.lines[:2]))
    wording(first)


@pytest.mark.parametrize("seen", [None, "nonsense", report(), report(GOOD), report(GOOD, SKIPPED)])
def test_what_was_not_looked_up_is_not_clean(seen: Any, wording: Wording) -> None:
    """Though pip-audit itself says that it found nothing."""
    verdict = judged(seen, WANTED, "first\nConnectionError: no route\n")
    assert verdict.code == UNKNOWN
    mentions(verdict.lines[0], "could not be looked up")
    mentions(verdict.lines[1], "make audit")
    if seen is None:
        wording("\n".join(verdict.lines[:2]))
    assert verdict.lines[2:] == (("ConnectionError: no route",) if seen is None else ())


def test_of_several_locks_the_worst_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line says which lock it is about; a vulnerability is worse than not to know."""
    pinned = f"orjson==2 --hash=sha256:{'0' * 64}\n"
    for name in ("one.lock", "two.lock"):
        (tmp_path / name).write_text(pinned)
    program = tmp_path / "pip-audit"
    program.write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in *one.lock) echo '{json.dumps(report(BAD))}';; *) exit 1;; esac\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    locks = [str(tmp_path / name) for name in ("one.lock", "two.lock")]
    assert main([str(program), *locks]) == VULNERABLE
    assert main([str(program), *reversed(locks)]) == VULNERABLE
    assert main([str(program), locks[1]]) == UNKNOWN
    assert f"{locks[0]}: orjson 2: PYSEC-1" in capsys.readouterr().out
