"""`fairlead policy audit`: from files and from the replicas, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.test_audited import exposed
from webhook import metric_names
from webhook.cli.policy.audit import command
from webhook.decision.decision import TOGETHER
from webhook.server.webhook_metrics import Metrics


def test_metrics_of_all_replicas_are_one_sum(tmp_path: Path) -> None:
    """As JSON, for a job that goes by it; nobody would have been rejected."""
    files = []
    for number, outcome in enumerate(["changes", "changes", "same"]):
        metrics = Metrics()
        metrics.count(metric_names.AUDITED_DECISIONS, "strict", "research", outcome)
        file = tmp_path / str(number)
        file.write_text(exposed(metrics))
        files += ["--metrics", str(file)]
    result = CliRunner().invoke(command, [*files, "-o", "json"])
    assert result.exit_code == 0
    (row,) = json.loads(result.output)["rows"]
    assert (row["namespace"], row["policy"]) == ("research", "strict")
    assert (row["rejects"], row["changes"], row["same"]) == (0, 2, 1)
    assert row["now"] is None
    elsewhere = CliRunner().invoke(command, [*files, "-n", "vision", "-o", "json"])
    assert json.loads(elsewhere.output)["rows"] == []
    assert CliRunner().invoke(command, [*files, "-A", "-o", "json"]).output == result.output


def test_what_was_not_judged_is_not_known_to_be_well(tmp_path: Path) -> None:
    """With the reason; and what all policies do together has a row of its own."""
    metrics = Metrics()
    for policy, outcome in (("late", "not-judged"), (TOGETHER, "changes")):
        metrics.count(metric_names.AUDITED_DECISIONS, policy, "research", outcome)
    file = tmp_path / "metrics"
    file.write_text(exposed(metrics))
    result = CliRunner().invoke(command, ["--metrics", str(file)])
    assert result.exit_code == 2
    assert "* (together)" in result.output
    assert "late in research: 1 pod not judged: more policies under Audit match" in result.output
