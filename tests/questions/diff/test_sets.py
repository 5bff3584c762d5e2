"""Policy files of a revision: read from the repository's objects, and from nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.questions.diff.repository import Repository
from tests.wording import Wording, mentions
from webhook.errors import UnreadableInput
from webhook.questions.diff.sets import read_revision
from webhook.server.folder import MAX_FILE_BYTES, read_folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository, which is also the working directory."""
    found = Repository(tmp_path / "repository")
    monkeypatch.chdir(found.folder)
    return found


def refused(where: str) -> str:
    """What is said of it."""
    with pytest.raises(UnreadableInput) as caught:
        read_revision(where)
    return str(caught.value)


def test_a_folder_is_read_as_it_was_committed(repository: Repository) -> None:
    """With the folders in it; neither what came later nor the work tree counts, or is touched."""
    repository.write("policies/a.yaml", "one")
    repository.write("policies/deep/b.json", "two")
    repository.commit()
    repository.write("policies/a.yaml", "changed")
    repository.write("policies/c.yaml", "new")
    before = repository.git("status", "--porcelain")
    assert read_revision("main:policies") == {
        "main:policies/a.yaml": b"one",
        "main:policies/deep/b.json": b"two",
    }
    assert repository.git("status", "--porcelain") == before


def test_the_same_files_count_as_in_a_folder(repository: Repository) -> None:
    """No tests, nothing hidden, nothing else; a link to a file in there is that file, once."""
    for name in ("a.yaml", "b.yml", "c.test.yaml", "README.md", ".hidden.yaml", ".deep/d.yaml"):
        repository.write(f"policies/{name}", name)
    (repository.folder / "policies" / "link.yaml").symlink_to("a.yaml")
    repository.commit()
    from_git = {
        name.removeprefix("main:"): text for name, text in read_revision("main:policies").items()
    }
    assert from_git == read_folder("policies")


def test_one_file_is_a_set_too(repository: Repository) -> None:
    """Whatever it is called, as when a file is given itself."""
    repository.write("spot.txt", "text")
    repository.commit()
    assert read_revision("main:spot.txt") == {"main:spot.txt": b"text"}


def test_paths_may_go_from_where_one_stands(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As git has it; names stay those below the folder."""
    repository.write("deep/policies/a.yaml", "one")
    repository.commit()
    monkeypatch.chdir(repository.folder / "deep")
    assert read_revision("HEAD:./policies") == {"HEAD:./policies/a.yaml": b"one"}


def test_names_may_be_odd(repository: Repository) -> None:
    """Blanks, quotes and umlauts; empty files and files that are alike."""
    repository.write('p/ä "b" c.yaml', "")
    repository.write("p/one.yaml", "same\n\n")
    repository.write("p/two.yaml", "same\n\n")
    repository.commit()
    assert read_revision("main:p") == {
        'main:p/ä "b" c.yaml': b"",
        "main:p/one.yaml": b"same\n\n",
        "main:p/two.yaml": b"same\n\n",
    }


def test_an_unknown_git_revision_is_reported_with_the_cure(
    repository: Repository, wording: Wording
) -> None:
    """A shallow clone has one branch only."""
    repository.write("policies/a.yaml", "one")
    repository.commit()
    wording(refused("nowhere:policies"))


def test_a_path_that_does_not_exist_is_reported(repository: Repository) -> None:
    """With what git says."""
    repository.write("policies/a.yaml", "one")
    repository.commit()
    assert "does not exist in 'main'" in refused("main:elsewhere")


@pytest.mark.parametrize("where", [":policies", "--help:x"])
def test_an_invalid_revision_never_reaches_git(where: str, wording: Wording) -> None:
    """An option, or nothing at all."""
    wording(refused(where))


def test_outside_of_a_repository_git_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is guessed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "not a git repository" in refused("main:policies")


def test_without_git_the_cure_is_named(monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    """Folders and clusters need none."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    wording(refused("main:policies"))


def test_a_link_that_leads_elsewhere_is_refused(repository: Repository, wording: Wording) -> None:
    """What it led to is not known, and leaving it out would be no answer."""
    repository.write("other/a.yaml", "one")
    repository.write("policies/b.yaml", "two")
    (repository.folder / "policies" / "a.yaml").symlink_to("../other/a.yaml")
    repository.commit()
    wording(refused("main:policies"))


def test_a_link_to_a_folder_elsewhere_is_refused(repository: Repository) -> None:
    """A folder would be read with all that is in there: no policy goes missing in silence."""
    repository.write("other/a.yaml", "one")
    repository.write("policies/b.yaml", "two")
    (repository.folder / "policies" / "shared").symlink_to("../other")
    (repository.folder / "policies" / "away").symlink_to("/somewhere/else")
    repository.commit()
    said = refused("main:policies")
    mentions(said, "policies/shared: ", "link to ../other")
    mentions(said, "policies/away: ", "link to /somewhere/else")


def test_a_link_is_followed_to_what_the_folder_hides(repository: Repository) -> None:
    """By whatever links, and once: as a folder is read, and as a mounted ConfigMap stands."""
    repository.write("policies/..2026/a.yaml", "one")
    repository.write("policies/plain.txt", "two")
    for name, target in (
        ("..data", "..2026"),
        ("a.yaml", "..2026/a.yaml"),
        ("again.yaml", "a.yaml"),
        ("text.yaml", "plain.txt"),
    ):
        (repository.folder / "policies" / name).symlink_to(target)
    repository.commit()
    from_git = {
        name.removeprefix("main:"): text for name, text in read_revision("main:policies").items()
    }
    assert from_git == read_folder("policies")
    assert sorted(from_git) == ["policies/a.yaml", "policies/text.yaml"]


def test_links_that_hold_no_policies_are_passed_over(repository: Repository) -> None:
    """What is called otherwise than policy files are: other files, the folder itself, circles."""
    repository.write("README.md", "text")
    repository.write("policies/deep/a.yaml", "one")
    for name, target in (
        ("README.md", "../README.md"),
        ("here", "."),
        ("same", "deep"),
        ("round", "round"),
        ("nowhere", "../nowhere"),
    ):
        (repository.folder / "policies" / name).symlink_to(target)
    repository.commit()
    assert read_revision("main:policies") == {"main:policies/deep/a.yaml": b"one"}


def test_the_folder_may_be_a_link_itself(repository: Repository) -> None:
    """As it may where files are read."""
    repository.write("policies/a.yaml", "one")
    (repository.folder / "current").symlink_to("policies")
    repository.commit()
    assert read_revision("main:current") == {"main:current/a.yaml": b"one"}


def test_a_submodule_is_refused(repository: Repository, wording: Wording) -> None:
    """Its files are another repository's, and leaving them out would be no answer."""
    repository.write("policies/a.yaml", "one")
    repository.commit()
    commit = repository.git("rev-parse", "HEAD").strip()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},policies/theirs")
    repository.git("commit", "--quiet", "--message", "it")
    wording(refused("main:policies"))


def test_a_file_that_no_webhook_would_read_is_refused(
    repository: Repository, wording: Wording
) -> None:
    """The limit is that of folders."""
    repository.write("policies/a.yaml", "#" * (MAX_FILE_BYTES + 1))
    repository.commit()
    wording(refused("main:policies"))
