"""The sweep over other projects' files finds faults, and counts what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy_tests.writing import policy
from tests.wording import mentions
from tools import corpora

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    metadata: {labels: {fairlead.dev/run: r}}
    spec: {restartPolicy: Never, containers: [{name: main, image: i}]}
"""
POLYAXON = "version: 1\nkind: job\nrun: {cmd: python x.py}\nbuild: {image: python}\n"
POLICY = policy("pool", "overrides: {nodeSelector: {pool: a}}")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """A corpus and policies."""
    corpus, policies = tmp_path / "corpus", tmp_path / "policies"
    for name, text in (("job.yaml", JOB), ("polyaxonfile.yml", POLYAXON), (".hidden.yaml", "{")):
        corpus.mkdir(exist_ok=True)
        (corpus / name).write_text(text)
    policies.mkdir()
    (policies / "pool.yaml").write_text(POLICY)
    return str(corpus), str(policies)


def test_a_corpus_without_faults_is_counted(
    folders: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """How each command ended, and how many files there were."""
    corpus, policies = folders
    assert corpora.main([corpus, "--policies", policies]) == 0
    lines = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert {"2 files", "3 preview: exit code 0", "1 mutated again", "0 faults"} <= lines


@pytest.mark.parametrize(
    ("ended", "fault"),
    [
        (corpora.Ended(0, "", "", ""), "not a word"),
        (corpora.Ended(1, "", "", ""), "not a word"),
        (corpora.Ended(1, "", "", "Traceback"), "a traceback"),
    ],
)
def test_what_a_command_must_not_do_is_a_fault(
    folders: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    ended: corpora.Ended,
    fault: str,
) -> None:
    """Silence, and a traceback."""
    monkeypatch.setattr(corpora, "call", lambda *_: ended)
    corpus, policies = folders
    assert corpora.main([corpus, "--policies", policies]) == 1
    mentions(capsys.readouterr().out, "job.yaml: preview: ", fault)


def test_second_thoughts_are_a_fault(
    folders: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was printed must stay as it is."""
    texts = iter(f"text {number}" for number in range(100))
    monkeypatch.setattr(corpora, "call", lambda *_: corpora.Ended(0, next(texts), "", ""))
    corpus, policies = folders
    assert corpora.main([corpus, "--policies", policies]) == 1
    mentions(capsys.readouterr().out, "job.yaml: preview: ", "changed when it is mutated again")


@pytest.mark.parametrize("count", [0, 7])
def test_a_count_that_differs_from_the_second_is_a_fault(
    folders: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    count: int,
) -> None:
    """By the object's kind and name, with both numbers."""
    corpus, policies = folders
    monkeypatch.setattr("tools.pod_counts.count_pods", lambda *_: count)
    assert corpora.main([corpus, "--policies", policies]) == 1
    mentions(capsys.readouterr().out, "Job/train: 1 pods", f"{count} by the second count")


@pytest.mark.parametrize("told", [["a note"], []])
def test_containers_of_another_kind_are_not_passed_over(
    folders: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    told: list[str],
) -> None:
    """Without a pod template there is a note, or else a fault."""
    corpus, policies = folders
    head = "apiVersion: a.example.com/v1\nkind: Thing\nmetadata: {name: x}\n"
    text = f"{head}spec: {{a: {{containers: [{{}}]}}}}"
    (Path(corpus) / "thing.yaml").write_text(text)
    monkeypatch.setattr("webhook.workloads.template_search.unread", lambda *_: told)
    assert corpora.main([corpus, "--policies", policies]) == (0 if told else 1)
    printed = capsys.readouterr().out
    mentions(printed, "1 objects of other kinds that have containers")
    assert ("Thing/x: has containers, and not a word" in printed) is (not told)
