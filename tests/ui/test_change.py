"""The page of a change has what `fairlead diff` finds, and finds a part of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

import orjson
import pytest
from click.testing import CliRunner

from tests.ui.served_pages import Answer, Page, page
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.demo.show import DATA
from webhook.text.documents import as_document
from webhook.ui.change import EDITOR, PAGE, START, Filter, Found, Question, answer, select
from webhook.ui.playground import Texts

POLICIES = "\n---\n".join(
    (DATA / "policies" / name).read_text() for name in ("capacity.yaml", "policies.yaml")
)
CHANGED = POLICIES.replace("{class: spot, mode: Constrain}", "{class: spot, mode: Prevent}")
TEXTS = Texts(CHANGED, (DATA / "pods.yaml").read_text(), (DATA / "nodes.yaml").read_text())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The pages over the files of the demo."""
    file = tmp_path_factory.mktemp("start") / "p.yaml"
    file.write_text(POLICIES)
    with page("--policies", str(file)) as found:
        found.enter()
        yield found


def asked(old: str = START, new: str = EDITOR, texts: Texts = TEXTS) -> Found:
    """Without a cluster."""
    with TemporaryDirectory() as folder:
        return answer(Question(old, new, texts, POLICIES, None, "", folder))


def sent(served: Page, **fields: str) -> str:
    """The address of the comparison that the form asks for."""
    body = urlencode({"old": START, "new": EDITOR, **TEXTS._asdict(), **fields}).encode()
    origin = {"origin": served.origin}
    answered = served.ask("POST", "/change", body, headers=origin)
    assert answered.status == 303, answered.text
    return answered.headers["location"]


def shown(served: Page, **fields: str) -> Answer:
    """The page after its form was sent."""
    return served.ask("GET", sent(served, **fields))


def test_it_is_what_the_command_finds(tmp_path: Path) -> None:
    """With the same sums and changes, but for the names of files."""
    for name, text in {"old": POLICIES, **TEXTS._asdict()}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    args = [str(tmp_path / f"{name}.yaml") for name in ("old", "policies", "manifests", "nodes")]
    done = CliRunner().invoke(
        fairlead, ["diff", *args[:2], "--pods", args[2], "--nodes", args[3], "-o", "json"]
    )
    theirs = json.loads(done.stdout)
    ours = json.loads(orjson.dumps(as_document(asked().outcome)))
    for document in (theirs, ours):
        for each in document["changes"]:
            for group in each["objects"]:
                group["place"] = group["place"].rpartition("/")[2]
    for key in ("nodes", "notes", "pods", "summary", "changes"):
        assert ours[key] == theirs[key]


@pytest.mark.parametrize(
    ("wanted", "counts"),
    [
        (Filter(), True),
        (Filter(kind="moved"), True),
        (Filter(words="mnist WORKER"), True),
        (Filter(kind="rejected"), False),
        (Filter(namespace="nowhere"), False),
        (Filter(policy="-"), False),
        (Filter(words="mnist nothing"), False),
    ],
)
def test_a_part_is_found(wanted: Filter, counts: bool) -> None:
    outcome = asked().outcome
    assert outcome
    selected = select(outcome, wanted, 1)
    assert bool(selected.changes) == counts
    assert all(wanted.kind in ("", each.change.change) for each in selected.changes)
    names = " ".join(name for each in selected.changes for name in each.names).lower()
    assert all(word in names for word in wanted.words.lower().split() if counts)


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 3, 99])
def test_each_change_is_on_one_page(number: int) -> None:
    """A page that does not exist is the first or the last."""
    outcome = asked().outcome
    assert outcome
    many = outcome._replace(changes=list(outcome.changes)[:1] * (2 * PAGE + 1))
    selected = select(many, Filter(), number)
    assert (selected.pages, selected.page) == (3, min(max(number, 1), 3))
    assert len(selected.changes) == (1 if selected.page == 3 else PAGE)


def test_the_page_has_the_change_and_its_filters(served: Page) -> None:
    """Each link of a filter leads to what it says."""
    address = sent(served)
    found = served.ask("GET", address)
    mentions(found.text, "placed differently", "capacity[spot]", "workers-on-spot", "before", "now")
    nothing = served.ask("GET", f"{address}&kind=rejected")
    mentions(nothing.text, "No changes with this filter")
    same = shown(served, policies=POLICIES)
    mentions(same.text, "7 unchanged")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"policies": "kind: 1"}, ("editor.yaml:1:", "kind")),
        ({"manifests": "a: [", "old": "nowhere"}, ("nowhere: want start, editor, cluster",)),
        ({"old": "cluster"}, ("fairlead ui cluster",)),
        ({"old": "no-revision:p"}, ("no-revision",)),
        ({"old": "/etc/passwd"}, ("/etc/passwd: want",)),
        ({"old": "--output=x:y"}, ("want REV:PATH",)),
        ({"old": "<script>:x"}, ("&lt;script&gt;:x",)),
        ({"old": "/sys/dev/char/1:3/../../../../../etc/passwd"}, ("want start",)),
        ({"old": "HEAD:" + 5000 * "a"}, ("cannot be read",)),
        ({"old": "HEAD\0:x"}, ("cannot be read",)),
    ],
)
def test_what_cannot_be_compared_is_said(
    served: Page, fields: dict[str, str], words: tuple[str, ...]
) -> None:
    found = shown(served, **fields)
    mentions(found.text, *words)
    assert "fairlead-ui-" not in found.text


def test_a_comparison_that_is_not_kept_is_said(served: Page) -> None:
    mentions(served.ask("GET", "/change?of=none").text, "no longer kept")
    assert served.ask("POST", "/change", b"\xff").status == 400


def test_the_sums_are_of_what_is_found() -> None:
    """Not of all, whatever the filter."""
    outcome = asked().outcome
    assert outcome
    for wanted in (Filter(), Filter(words="mnist"), Filter(kind="moved"), Filter(words="none")):
        selected = select(outcome, wanted, 1)
        of_kinds = sum(sum(row[2:]) for row in selected.sums)
        assert of_kinds == sum(
            each.change.count * max(1, len(each.change.policies)) for each in selected.changes
        )


def test_a_git_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As REV:PATH of the repository in which the command was started."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(POLICIES)
    for arguments in (
        ("init", "-q"),
        ("add", "p.yaml"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"),
    ):
        subprocess.run(["git", *arguments], check=True)
    outcome = asked("HEAD:p.yaml").outcome
    assert outcome
    assert outcome.old.source == "HEAD:p.yaml"
    assert outcome.pods.moved


def test_nodes_beside_the_texts_count_in_a_comparison() -> None:
    """They are too many for an editor, which has a remark in their place."""
    beside = json.dumps([{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}]).encode()
    texts = TEXTS._replace(nodes="# One node counts.\n")
    with TemporaryDirectory() as folder:
        found = answer(Question(START, EDITOR, texts, POLICIES, None, "", folder, beside))
    assert found.outcome is not None, found.problems
    assert found.outcome.nodes == 1
