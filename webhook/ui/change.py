"""The page of a change: what `fairlead diff` finds, in parts that one can look for."""

from __future__ import annotations

import io
import secrets
from collections import Counter
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from webhook.comparison.difference import KINDS
from webhook.comparison.difference_report import summed
from webhook.errors import FairleadError, UnreadableInput
from webhook.kube.kubeconfig import Kubeconfig
from webhook.questions.diff import report
from webhook.questions.diff.question import answer as compare
from webhook.questions.diff.settings import Question as DiffQuestion
from webhook.questions.diff.settings import Source
from webhook.questions.where import CLUSTER
from webhook.shortening import one_line
from webhook.ui.paging import paged
from webhook.ui.playground import Texts
from webhook.ui.worker import TooMuch, Worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.comparison.difference_report import Row
    from webhook.questions.diff.report import Outcome, ShownChange
    from webhook.ui.worker import Gone

# Seconds for a comparison, which may read a whole cluster; and how many are kept.
SECONDS: Final = 300.0
MOST_KEPT: Final = 4
# Changes on one page, and rows of the sums.
PAGE: Final = 50
MOST_ROWS: Final = 200
START: Final = "start"
EDITOR: Final = "editor"
_NO_POLICY: Final = "-"


class Question(NamedTuple):
    """What is compared.

    old, new: `start` for the policies at the start, `editor` for those of the texts, `cluster`, or
    REV:PATH. folder: for the texts as files. kubeconfig: of the cluster whose pods are compared,
    else those of the manifests are; namespace: of these pods, all if it is empty. given_nodes: as
    JSON, which count if the text has none.
    """

    old: str
    new: str
    texts: Texts
    before: str
    kubeconfig: Kubeconfig | None
    namespace: str
    folder: str
    given_nodes: bytes = b""


class Found(NamedTuple):
    """The comparison, or why there is none."""

    outcome: Outcome | None
    problems: Sequence[str] = ()


def answer(question: Question) -> Found:
    """Compare as `fairlead diff` does."""
    folder = question.folder
    with redirect_stderr(io.StringIO()):
        try:
            return Found(_compare(question, Path(folder)))
        except FairleadError as error:
            problems = str(error).splitlines()
        except (OSError, ValueError) as error:
            problems = [f"{question.old} or {question.new} cannot be read: {error}"]
        return Found(None, [one_line(problem.replace(f"{folder}/", "")) for problem in problems])


def _compare(question: Question, folder: Path) -> Outcome:
    texts = question.texts
    files = {START: question.before, EDITOR: texts.policies}
    files |= {"manifests": texts.manifests, "nodes": _nodes_text(texts.nodes, question.given_nodes)}
    paths = {name: folder / f"{name}.yaml" for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    sources = []
    for given in (question.old, question.new):
        # A path that exists would be read as such.
        foreign = ":" not in given or Path(given).exists()
        if given not in (START, EDITOR, CLUSTER.value) and foreign:
            wanted = f"{START}, {EDITOR}, {CLUSTER.value}, or REV:PATH for a git revision's folder"
            raise UnreadableInput([f"{given or 'nothing'}: want {wanted}"])
        if given == CLUSTER.value and not question.kubeconfig:
            raise UnreadableInput(["fairlead ui shows no cluster: start fairlead ui cluster"])
        empty = given in files and not files[given].strip()
        sources.append(Source("/dev/null" if empty else str(paths.get(given, given))))
    outcome = compare(
        DiffQuestion(
            old=sources[0],
            new=sources[1],
            kubeconfig=question.kubeconfig or Kubeconfig(),
            pods=() if question.kubeconfig else (paths["manifests"],),
            namespace=question.namespace,
            everywhere=False,
            namespaces_file=None,
            nodes=paths["nodes"] if files["nodes"] and not question.kubeconfig else None,
            fail_on="never",
            history=(),
            dry_run=None,
            plugins=None,
        )
    )
    return outcome._replace(
        old=outcome.old._replace(source=question.old), new=outcome.new._replace(source=question.new)
    )


def _nodes_text(text: str, given_nodes: bytes) -> str:
    """Return the text if it has more than comments, else the nodes beside it as a List."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    if any(lines) or not given_nodes:
        return text.strip() and text
    return f'{{"apiVersion": "v1", "kind": "List", "items": {given_nodes.decode()}}}'


class Filter(NamedTuple):
    """Which changes are shown; empty texts leave none out. `words`: in the names of objects."""

    namespace: str = ""
    policy: str = ""
    kind: str = ""
    words: str = ""


class Selected(NamedTuple):
    """A part of the comparison. sums: of the changes that are found, `rows_more` are left out."""

    answer: str
    remarks: Sequence[str]
    kinds: Mapping[str, tuple[str, int]]
    sums: Sequence[Row]
    rows_more: int
    changes: Sequence[ShownChange]
    total: int
    page: int
    pages: int


def select(outcome: Outcome, wanted: Filter, page: int) -> Selected:
    """Return the changes with all that is wanted; the kinds count without the wanted kind."""
    words = wanted.words.lower().split()
    changes = []
    for change in outcome.changes:
        policies = change.policies or (_NO_POLICY,)
        if wanted.namespace not in ("", change.namespace) or (
            wanted.policy and wanted.policy not in policies
        ):
            continue
        objects = [
            group
            for group in change.objects
            if all(word in f"{group.object} {group.pods}".lower() for word in words)
        ]
        if objects:
            count = sum(group.count for group in objects)
            changes.append(replace(change, objects=objects, count=count))
    kinds: Counter[str] = Counter()
    for matching_change in changes:
        kinds[matching_change.change] += matching_change.count
    changes = [change for change in changes if wanted.kind in ("", change.change)]
    part, at, pages = paged(changes, page, PAGE)
    sums = summed(changes)
    return Selected(
        answer=outcome.answer,
        remarks=list(report.remarks(outcome)),
        kinds={kind: (report.TITLES[kind], kinds[kind]) for kind in KINDS if kinds[kind]},
        sums=sums[:MOST_ROWS],
        rows_more=max(0, len(sums) - MOST_ROWS),
        changes=[report.shown(change, outcome.nodes) for change in part],
        total=len(changes),
        page=at,
        pages=pages,
    )


class Changes:
    """The last comparisons, each with a key for its page."""

    def __init__(
        self, texts: Texts, kubeconfig: Kubeconfig | None, namespace: str, given_nodes: bytes = b""
    ) -> None:
        self.texts = texts
        self.given_nodes = given_nodes
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._worker = Worker(answer, SECONDS)
        self._kept: dict[str, tuple[Question, Found]] = {}
        # Where policies are, but for git revisions.
        self.places = [*([CLUSTER.value] if kubeconfig else []), START, EDITOR]

    async def compare(self, given: Mapping[str, str], gone: Gone) -> str:
        """Compare what the fields of a form say, and return the key."""
        texts = {name: given.get(name, text) for name, text in self.texts._asdict().items()}
        # Here, not in the process that may be ended.
        with TemporaryDirectory(prefix="fairlead-ui-") as folder:
            question = Question(
                given.get("old", ""),
                given.get("new", ""),
                Texts(**texts),
                self.texts.policies,
                self._kubeconfig,
                self._namespace,
                folder,
                self.given_nodes,
            )
            try:
                result = await self._worker.ask(question, gone)
            except TooMuch:
                why = f"no answer within {SECONDS:g} s: give a namespace, or use fairlead diff"
                result = Found(None, [why])
        # In a cluster several people may use the pages.
        key = secrets.token_urlsafe(9)
        self._kept[key] = question, result
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return key

    def page(self, given: Mapping[str, str], number: int) -> dict[str, Any]:
        """Return what the page shows: a comparison by its key, with a filter, or only a form."""
        key = given.get("of", "")
        question, result = self._kept.get(key, (None, Found(None)))
        wanted = Filter(*(given.get(name, "") for name in Filter._fields))
        gone = ["This comparison is no longer kept: compare again."]

        def address(**other: object) -> str:
            parameters = {"of": key, **wanted._asdict(), **other}
            return f"?{urlencode({name: value for name, value in parameters.items() if value})}"

        return {
            "of": key,
            "places": self.places,
            "old": question.old if question else self.places[0],
            "new": question.new if question else EDITOR,
            "texts": (question.texts if question else self.texts)._asdict(),
            "problems": gone if key and not question else result.problems,
            "wanted": wanted,
            "notes": [*result.outcome.unknown, *result.outcome.notes] if result.outcome else [],
            "sets": (result.outcome.old, result.outcome.new) if result.outcome else (),
            "selected": select(result.outcome, wanted, number) if result.outcome else None,
            "address": address,
        }

    def end(self) -> None:
        """End the process of the comparisons."""
        self._worker.end()
