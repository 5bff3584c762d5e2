"""Policy files are read from folders, mounted ConfigMaps and single files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.server.config_map import mount
from tests.wording import Wording
from webhook.errors import UnreadableInput
from webhook.server.folder import MAX_FILE_BYTES, Folder, is_test_file, read_folder


def test_a_folder_is_read_recursively_and_sorted(tmp_path: Path) -> None:
    """YAML and JSON files of every depth are there, by their paths in order; others are not."""
    (tmp_path / "b").mkdir()
    for name in ("z.yaml", "b/c.yml", "a.json", "README.md", "b/notes.txt"):
        (tmp_path / name).write_bytes(name.encode())
    read = read_folder(tmp_path)
    assert list(read) == [f"{tmp_path}/a.json", f"{tmp_path}/b/c.yml", f"{tmp_path}/z.yaml"]
    assert read[f"{tmp_path}/b/c.yml"] == b"b/c.yml"


def test_paths_begin_as_the_folder_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a person typed is what messages show: relative stays relative."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert list(read_folder("policies")) == ["policies/a.yaml"]
    assert list(read_folder("./policies/")) == ["policies/a.yaml"]
    assert list(read_folder(".")) == ["policies/a.yaml"]
    assert list(read_folder("policies/a.yaml")) == ["policies/a.yaml"]


def test_tests_beside_policies_are_not_policies(tmp_path: Path) -> None:
    """Files named *.test.yaml and *.test.yml are passed over, and read when they are wanted."""
    for name in ("a.yaml", "a.test.yaml", "b.test.yml", "c.YAML", "d.Test.YML"):
        (tmp_path / name).touch()
    assert list(read_folder(tmp_path)) == [f"{tmp_path}/a.yaml", f"{tmp_path}/c.YAML"]
    tests = read_folder(tmp_path, wanted=is_test_file)
    assert list(tests) == [
        f"{tmp_path}/{each}" for each in ("a.test.yaml", "b.test.yml", "d.Test.YML")
    ]


def test_a_file_given_itself_is_read_whatever_its_name(tmp_path: Path) -> None:
    """Only in a folder is the name what tells policies from other files."""
    path = tmp_path / "a.test.yaml"
    path.write_bytes(b"x")
    assert read_folder(path) == {str(path): b"x"}


def test_a_pipe_given_itself_is_read() -> None:
    """A shell's process substitution gives a pipe, and it is read like a file."""
    reading, writing = os.pipe()
    os.write(writing, b"from a pipe")
    os.close(writing)
    try:
        path = f"/dev/fd/{reading}"
        assert read_folder(path) == {path: b"from a pipe"}
    finally:
        os.close(reading)


def test_a_mounted_config_map_is_read_once(tmp_path: Path) -> None:
    """Each key is read by its own name, and not again by the hidden folder's."""
    mount(tmp_path, "v1", {"a.yaml": b"a", "sub/b.yaml": b"b"})
    read = read_folder(tmp_path)
    assert read == {f"{tmp_path}/a.yaml": b"a", f"{tmp_path}/sub/b.yaml": b"b"}


def test_hidden_names_are_passed_over(tmp_path: Path) -> None:
    """What editors and version control leave in a folder is no policy."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "a.yaml").touch()
    (tmp_path / ".#a.yaml").symlink_to("somebody@somewhere.1234")
    assert read_folder(tmp_path) == {}


def test_links_that_lead_in_circles_end(tmp_path: Path) -> None:
    """A folder is entered once, and a file with two names is read under the first."""
    (tmp_path / "a.yaml").write_bytes(b"a")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    (tmp_path / "loop").symlink_to(".")
    assert read_folder(tmp_path) == {f"{tmp_path}/a.yaml": b"a"}


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    """A link to nothing, a pipe, and a file too large: one error has a line for each."""
    (tmp_path / "a.yaml").symlink_to("gone")
    os.mkfifo(tmp_path / "b.yaml")
    (tmp_path / "c.yaml").write_bytes(b" " * (MAX_FILE_BYTES + 1))
    (tmp_path / "d.yaml").write_bytes(b" " * MAX_FILE_BYTES)
    with pytest.raises(UnreadableInput) as caught:
        read_folder(tmp_path)
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        f"{tmp_path}/a.yaml",
        f"{tmp_path}/b.yaml",
        f"{tmp_path}/c.yaml",
    ]
    assert "not a regular file" in str(caught.value)
    assert f"over {MAX_FILE_BYTES} bytes" in str(caught.value)


def test_a_path_that_leads_nowhere_is_an_error(tmp_path: Path, wording: Wording) -> None:
    """A folder that is missing is no empty folder."""
    with pytest.raises(UnreadableInput, match="gone: no such") as caught:
        read_folder(tmp_path / "gone")
    wording(str(caught.value), {tmp_path: "<tmp>"})


@pytest.mark.parametrize("change", ["edit", "add", "remove", "swap"])
def test_a_signature_tells_every_change(change: str, tmp_path: Path) -> None:
    """An edit, a new file, a file gone and a swapped ConfigMap each give another signature."""
    mount(tmp_path, "v1", {"a.yaml": b"a", "b.yaml": b"b"})
    (tmp_path / "plain.yaml").write_bytes(b"x")
    folder = Folder(tmp_path)
    before = folder.signature()
    assert folder.signature() == before
    match change:
        case "edit":
            (tmp_path / "plain.yaml").write_bytes(b"xy")
        case "add":
            (tmp_path / "new.yaml").touch()
        case "remove":
            (tmp_path / "plain.yaml").unlink()
        case "swap":
            mount(tmp_path, "v2", {"a.yaml": b"a", "b.yaml": b"b"})
    assert folder.signature() != before


def test_a_signature_of_what_is_not_there_tells_when_it_comes(tmp_path: Path) -> None:
    """A missing folder has a signature too, and another one once it is made."""
    folder = Folder(tmp_path / "later")
    before = folder.signature()
    (tmp_path / "later").mkdir()
    assert folder.signature() != before
