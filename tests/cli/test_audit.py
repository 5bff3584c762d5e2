"""`fairlead audit`: from files and from the replicas, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.test_audited import exposed
from tests.wording import mentions
from webhook import metric_names
from webhook.cli.audit import command
from webhook.server.webhook_metrics import Metrics


def metrics_of(outcome: str) -> str:
    """What a replica tells that has seen one pod."""
    metrics = Metrics()
    metrics.count(metric_names.AUDITED_DECISIONS, "strict", "research", outcome)
    return exposed(metrics)


def test_a_missing_answer_is_not_a_rejection(tmp_path: Path) -> None:
    """A job that goes by the exit code can tell one from the other."""
    nowhere = tmp_path / "kubeconfig"
    result = CliRunner().invoke(command, ["--kubeconfig", str(nowhere)])
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True), result.output


def test_metrics_of_all_replicas_are_one_sum(tmp_path: Path) -> None:
    """As JSON, for a job that goes by it; nobody would have been rejected."""
    files = []
    for number, outcome in enumerate(["changes", "changes", "same"]):
        file = tmp_path / str(number)
        file.write_text(metrics_of(outcome))
        files += ["--metrics", str(file)]
    result = CliRunner().invoke(command, [*files, "-o", "json"])
    assert result.exit_code == 0
    (row,) = json.loads(result.output)["rows"]
    assert (row["namespace"], row["policy"]) == ("research", "strict")
    assert (row["rejects"], row["changes"], row["same"]) == (0, 2, 1)
    assert row["now"] == {"rejects": 0, "changes": 0, "same": 0}


def test_a_file_that_is_given_twice_would_count_twice(tmp_path: Path) -> None:
    """So it is wrong usage."""
    file = tmp_path / "f"
    file.write_text("")
    result = CliRunner().invoke(command, ["--metrics", str(file), "--metrics", str(file)])
    assert result.exit_code == 2
    mentions(result.output, str(file), "given twice")


def test_a_file_of_another_kind_is_an_error(tmp_path: Path) -> None:
    """Named, and with exit code 2: nobody was asked what policies would do."""
    readme = tmp_path / "README.md"
    readme.write_text("# Fairlead\n\nPlaces runs.\n")
    for file, text in ((readme, readme.read_text()), (tmp_path / "empty", "")):
        file.write_text(text)
        result = CliRunner().invoke(command, ["--metrics", str(file)])
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert str(file) in result.stderr
