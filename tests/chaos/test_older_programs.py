"""The programs of the release before refuse what only this one reads: they never ignore it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import orjson
import pytest

from tests.chaos.upgraded import ARCHIVE
from tests.policy.test_field_releases import EXAMPLES, FIRST, outermost, place

PROGRAM = "from webhook.cli import main; main()"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the release before."""
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    return folder


def test_the_release_before_refuses_each_new_field_by_name(before: Path, tmp_path: Path) -> None:
    """So a replica of it keeps its last good set, or is not ready."""
    for document in EXAMPLES:
        (tmp_path / f"{place(document).replace('/', '-')}.json").write_bytes(orjson.dumps(document))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "check", tmp_path],
        env={**os.environ, "PYTHONPATH": str(before)},
        cwd=before,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert any(map(outermost, EXAMPLES))
    for document in EXAMPLES:
        file = f"{place(document).replace('/', '-')}.json"
        said = " ".join(
            line for line in done.stdout.splitlines() + done.stderr.splitlines() if file in line
        )
        for field in outermost(document):
            assert field in said, f"{FIRST} says nothing of {field}: {said}"
