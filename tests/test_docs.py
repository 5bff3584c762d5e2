"""What the documentation names is there, and what it shows is what comes out."""

from __future__ import annotations

import html
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests import reference_pages
from tests.fast_yaml import load_yaml
from tests.messages import (
    CURES,
    GOLDEN,
    GROUPS,
    golden_messages,
    other_messages,
    scheduler_messages,
)
from tests.ui import served_pages
from tests.wording import FOLDER
from webhook.cli import fairlead
from webhook.installation.doctor.diagnose import CHECKS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PACKAGE = ROOT / "webhook"
TUTORIAL = ROOT / "docs" / "tutorial.md"
CLASSES = ROOT / "docs" / "guides" / "part-on-spot.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("policies/*.md")])
FILES_ALONE = (ROOT / "docs" / "guides", ROOT / "docs" / "concepts", ROOT / "policies")
INDEX = ROOT / "docs" / "README.md"
MESSAGES = ROOT / "docs" / "reference" / "messages"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def name(path: Path) -> str:
    """A path as test names show it."""
    return str(path.relative_to(ROOT))


def code_in(text: str) -> str:
    """The blocks of code in a page, and what stands between back quotes."""
    blocks = re.findall(r"```.*?```", text, re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`[^`\n]+`", text)])


def test_every_link_to_a_file_leads_somewhere() -> None:
    """From every page, relative to that page; those for users of a cluster link to files alone."""
    broken = [
        (name(page), link)
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
        if (":" not in link or page.parent in FILES_ALONE) and not (page.parent / link).exists()
    ]
    assert broken == []


def anchors(page: Path) -> set[str]:
    """What a link into that page may name: its headings, as GitHub writes them, and ids."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


def test_every_link_to_a_heading_leads_to_one() -> None:
    """In the same page or in another."""
    broken = [
        (name(page), f"{link}#{anchor}")
        for page in PAGES
        for link, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text())
        if link.endswith(".md") or not link
        if anchor not in anchors(page.parent / link if link else page)
    ]
    assert broken == []


def test_the_index_has_every_page_once() -> None:
    """Decisions as a folder; other pages by their links, which the test above follows."""
    links = re.findall(r"\]\(([^)#]+)\)", INDEX.read_text().partition("\n## ")[2])
    linked = [(INDEX.parent / link).resolve() for link in links]
    pages = [
        page for page in PAGES if INDEX.parent in page.parents and page.parent.name != "decisions"
    ]
    assert len(linked) == len(set(linked))
    assert [name(page) for page in pages if page != INDEX and page not in linked] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != MESSAGES], ids=name)
def test_every_command_that_is_named_is_there(page: Path) -> None:
    """`fairlead X`: all words of that form in code, and whatever begins a line or code.

    In messages `fairlead` is also a name of objects.
    """
    text = page.read_text()
    named = re.findall(r"(?<!import )\bfairlead ([a-z]+)(?=[ `\n\"])", code_in(text))
    named += re.findall(r"(?:^\$ |`)fairlead ([a-z]+)", text, re.MULTILINE)
    assert set(named) <= set(fairlead.list_commands(click.Context(fairlead)))


def leaf_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and the words after its name."""
    command: click.Command = fairlead
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            break
        command, words = found, words[1:]
    return command, words


def test_every_option_of_a_shown_command_exists() -> None:
    """`$ fairlead …` in console blocks, up to a pipe or a redirection. Values are not checked."""
    unknown = []
    parsed = 0
    for page in PAGES:
        shown = "\n".join(re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL))
        lines = shown.replace("\\\n", " ")
        for line in re.findall(r"^\$ (?:kubectl )?fairlead (.*)", lines, re.MULTILINE):
            command, words = leaf_command(shlex.split(re.split(r" 2?[|>&;]", line)[0]))
            try:
                command.make_parser(click.Context(command)).parse_args(words)
            except click.UsageError as error:
                unknown.append((name(page), line, error.message))
            parsed += 1
    assert unknown == []
    assert parsed > 50


@pytest.mark.parametrize("page", reference_pages.PAGES)
def test_the_reference_lists_what_the_programs_have(page: str) -> None:
    """Every option, metric, scenario and message: nothing is added without its line."""
    made = reference_pages.PAGES[page]()
    written = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    assert written == made, "run: .venv/bin/python -m tests.reference_pages"


def test_every_golden_wording_is_on_the_page_of_messages() -> None:
    """But for those of tools and of reports."""
    grouped = {path for each in GROUPS.values() for glob in each for path in GOLDEN.glob(glob)}
    missing = {
        str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.yaml") if path not in grouped
    }
    assert missing == {"chaos/pieces.yaml", "questions/diff/report.yaml", "tools/audit.yaml"}


def test_a_message_has_its_cause_and_cure_under_an_anchor_of_its_own() -> None:
    """All of those about pods; of the others, the few that report a state have none."""
    for page in MESSAGES.glob("*.md"):
        entries = re.findall(r"^- (.*)$", page.read_text(), re.MULTILINE)
        anchors = [re.match(r'<a id="(m[0-9a-f]{8})"></a>`', entry) for entry in entries]
        assert all(anchors)
        assert len({anchor[1] for anchor in anchors if anchor}) == len(entries)
        cured = [entry for entry in entries if "<br>Cure: " in entry]
        if page.stem == "pods-and-workloads":
            assert cured == entries
            assert all("untolerated taint" not in each or "toleration" in each for each in cured)
        elif page.stem != "other-messages":
            assert len(cured) >= 0.7 * len(entries), page.stem


def test_every_row_of_cures_explains_a_message() -> None:
    """None is kept for a message that is gone, and none is hidden by a row above it."""
    messages = [*golden_messages().values(), other_messages(), scheduler_messages()]
    used = {message.explanation for group in messages for message in group}
    causes = {cause for cause, _ in used}
    assert [
        row["cause"] for row in load_yaml(CURES.read_text()) if row["cause"] not in causes
    ] == []


def test_every_check_of_the_doctor_that_is_named_is_there() -> None:
    """`--check X`, in the guides; a name of several words is in quotes."""
    named = {
        quoted or plain
        for page in (ROOT / "docs" / "guides").glob("*.md")
        for quoted, plain in re.findall(r"--check (?:'([^']+)'|(\w+))", page.read_text())
    }
    assert {"end to end", "policies"} <= named <= {check.name for check in CHECKS}


def test_every_check_of_the_doctor_is_on_its_page() -> None:
    """In the first column of its table, several to a row."""
    table = (ROOT / "docs/reference/doctor.md").read_text().partition("| check |")[2]
    cells = re.findall(r"^\| ([^|]+) \|", table.partition("\n\n")[0], re.MULTILINE)
    assert {word.strip("`") for cell in cells for word in cell.split(", ")} == {
        each.name for each in CHECKS
    }


def test_every_target_of_make_that_is_named_is_there() -> None:
    """`make X`, in code."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target
        for page in PAGES
        if page.parent != MESSAGES
        for target in re.findall(r"[`$ ]make ([a-z][\w-]*)[`\n ]", page.read_text())
        if re.search(rf"(?:`|\$ )make {target}\b", page.read_text())
    }
    assert named
    assert named <= targets


def test_every_test_that_is_named_is_there() -> None:
    """`tests/…`, in code: the file or folder, and the function after `::`. Records may be old."""
    missing = []
    for page in PAGES:
        if page.parent.name == "decisions" or page.name == "CHANGELOG.md":
            continue
        code = code_in(page.read_text())
        for path, test in re.findall(r"(?<![\w/])(tests/[\w/.-]+)(?:::(\w+))?", code):
            file = ROOT / path
            if not file.exists() or (test and f"def {test}(" not in file.read_text()):
                missing.append((name(page), f"{path}::{test}"))
    assert missing == []


def test_architecture_names_what_is_there() -> None:
    """Every file and folder in it, from the top or below webhook/."""
    named = re.findall(r"`([\w./]+(?:\.py|\.md|/))`", ARCHITECTURE.read_text())
    missing = [
        path
        for path in named
        if not any((ROOT / top / path).exists() for top in (".", "webhook"))
        and not any((ROOT / "webhook").glob(f"*/{path}"))
    ]
    assert named
    assert missing == []


def test_architecture_lists_the_files_of_common_changes() -> None:
    """Each row's files are those that contain the name of its example, and no others."""
    table = ARCHITECTURE.read_text().partition("## Common changes")[2].partition("\nAfter")[0]
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+`) \| (`[^|]+`) \|$", table, re.MULTILINE)
    assert len(rows) >= 10
    texts = {
        str(path.relative_to(PACKAGE)): path.read_text()
        for path in PACKAGE.rglob("*.*")
        if path.suffix in (".py", ".yaml") and "shipped" not in path.parts
    }
    for examples, files in rows:
        names = re.compile(rf"\b({'|'.join(re.findall(r'`([^`]+)`', examples))})\b")
        found = {path for path, text in texts.items() if names.search(text)}
        assert found == set(re.findall(r"`([^`]+)`", files)), examples


def test_architecture_names_every_package() -> None:
    """So that nobody has to guess what a folder is for."""
    text = ARCHITECTURE.read_text()
    packages = [
        path.parent
        for path in (ROOT / "webhook").glob("*/__init__.py")
        if path.parent.name != "__pycache__"
    ]
    assert [name(folder) for folder in packages if f"`{name(folder)}" not in text] == []


def test_decisions_are_numbered_without_gaps() -> None:
    """And each says its number again in its title."""
    assert DECISIONS
    for number, page in enumerate(DECISIONS, 1):
        assert page.name.startswith(f"{number:04}-")
        assert page.read_text().startswith(f"# {number}. ")


def test_the_first_minutes_are_as_they_are_shown(tmp_path: Path) -> None:
    """Files and offline commands of the README and the tutorial give what they show, exactly."""
    tour = README.read_text().partition("## Write your first policy")[2].partition("\n## ")[0]
    tour += TUTORIAL.read_text()
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    run = 0
    for kind, block in re.findall(r"```(yaml|console)\n(.*?)```", tour, re.DOTALL):
        if kind == "yaml":
            first = block.partition("\n")[0]
            file = tmp_path / first.removeprefix("# ")
            file.parent.mkdir(exist_ok=True)
            file.write_text(block)
            continue
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if command.startswith("fairlead ") and not re.search("sandbox| ui ", command):
                done = subprocess.run(
                    command.split(),
                    cwd=tmp_path,
                    env=environ,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                assert (done.returncode, done.stdout) == (0, shown), command
                run += 1
    assert run >= 5


@pytest.mark.parametrize(
    ("page", "options"),
    [
        (page, options)
        for page in PAGES
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
        for options in re.findall(r"^\$ fairlead ui (--policies .*)$", block, re.MULTILINE)
    ],
    ids=lambda each: name(each) if isinstance(each, Path) else each,
)
def test_the_playground_opens_with_the_example_of_the_page(
    page: Path, options: str, tmp_path: Path
) -> None:
    """Its files are those of the page and of the README, and the policies that ship; on pages
    about spot also the classes of the first one."""
    text = README.read_text() + page.read_text()
    if f"{CLASSES.name}#1-define-the-classes" in text:
        text = CLASSES.read_text() + text
    for file, content in re.findall(r"```ya?ml\n# (\S+\.yaml)\n(.*?)```", text, re.DOTALL):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(content)
    if not (tmp_path / "policies").exists():
        (tmp_path / "policies").symlink_to(ROOT / "policies")
    with served_pages.page(*options.split(), cwd=tmp_path) as found:
        found.enter()
        shown = found.ask("GET", "/playground").text
        texts = re.findall(r"<textarea id=\"(\w+)\"[^>]*>(.*?)</textarea>", shown, re.DOTALL)
        answer = found.evaluate(**{name: html.unescape(each) for name, each in texts}).json
    assert "kind: PlacementPolicy" in shown
    assert 'class="card group"' in answer["html"]
    assert [mark for mark in answer["marks"] if mark["severity"] == "error"] == []
