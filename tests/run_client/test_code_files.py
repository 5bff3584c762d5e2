"""Which files of a folder go with a Run; git itself is the judge of what is ignored."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wording import mentions
from webhook.errors import UnreadableInput
from webhook.run_client.code_files import MOST_CODE, read_code

PATTERNS = (
    "*.log",
    "!keep.log",
    "/data",
    "data/",
    "sub/*.py",
    "**/a.py",
    "# a",
    "",
    "!b.log",
    "sub",
)
patterns = st.lists(st.sampled_from(PATTERNS), max_size=4)


def tree(root: Path, top: list[str], below: list[str]) -> None:
    """A folder with files in it and in a folder below, each with a .gitignore."""
    for at, lines in ((root, top), (root / "sub", below)):
        (at / "data").mkdir(parents=True)
        for name in ("a.py", "b.log", "keep.log", "data/a.py", "data/b.log"):
            (at / name).write_text(name)
        (at / ".gitignore").write_text("".join(f"{line}\n" for line in lines))
    (root / "main.py").write_text("")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(patterns, patterns)
def test_what_git_ignores_stays_behind(tmp_path: Path, top: list[str], below: list[str]) -> None:
    root = tmp_path / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    tree(root, top, below)
    git = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null"]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = [*git, "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    wanted = {each for each in done.stdout.splitlines() if not Path(each).name.startswith(".")}
    assert read_code(root).files.keys() == wanted


def test_what_fairleadignore_says_counts_more(tmp_path: Path) -> None:
    """It names what git keeps, and keeps what git ignores."""
    (tmp_path / ".gitignore").write_text("*.bin\n")
    (tmp_path / ".fairleadignore").write_text("!model.bin\nnotes.md\n")
    for name in ("a.bin", "model.bin", "notes.md", "train.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to(tmp_path.parent)
    found = read_code(tmp_path)
    assert [*found.files] == ["model.bin", "train.py"]
    assert found.left_out == {"hidden": 2, "ignored": 2, "links to folders": 1}


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_refused_whatever_its_name(tmp_path: Path, kind: str) -> None:
    """And every one of them; where one is named in .fairleadignore the rest goes."""
    for name in ("train.py", "id_rsa", "conf"):
        (tmp_path / name).write_text("x\n")
    for name in ("id_rsa", "conf"):
        (tmp_path / name).write_text(f"# mine\n-----BEGIN {kind}PRIVATE KEY-----\nMII\n")
    with pytest.raises(UnreadableInput) as caught:
        read_code(tmp_path)
    mentions(str(caught.value), "id_rsa", "conf", ".fairleadignore")
    (tmp_path / ".fairleadignore").write_text("id_rsa\nconf\n")
    assert [*read_code(tmp_path).files] == ["train.py"]


def test_what_is_too_large_is_named(tmp_path: Path) -> None:
    """Beside every link to a file that is elsewhere; such a link may be left out by its name."""
    (tmp_path / "small.py").write_text("")
    for name in ("one", "other"):
        (tmp_path / name).symlink_to("/etc/hostname")
    (tmp_path / "data.bin").write_bytes(bytes(MOST_CODE + 1))
    with pytest.raises(UnreadableInput) as caught:
        read_code(tmp_path)
    mentions(str(caught.value), "901 KiB", "900 KiB", "data.bin with 901 KiB", ".fairleadignore")
    mentions(str(caught.value), "one: it leads out of", "other: it leads out of")
    (tmp_path / ".fairleadignore").write_text("one\nother\ndata.bin\n")
    assert [*read_code(tmp_path).files] == ["small.py"]


def test_a_folder_of_which_all_stays_behind_says_so(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "train.py").write_text("")
    with pytest.raises(UnreadableInput, match="no files but 1 hidden, 1 ignored"):
        read_code(tmp_path)
