"""`fairlead test` runs the tests of a folder, and says what failed and what no test reached."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.policy_tests.writing import CLASS, HEAD, NODES, WORKER, policy
from tests.wording import Wording, line_with, mentions
from webhook.cli.test import command

SPOT = policy(
    "workers", "match: {roles: [worker]}, overrides: {capacity: [{class: spot, mode: Constrain}]}"
)
STEADY = SPOT.replace("mode: Constrain", "mode: Prevent")
MASTERS = policy("masters", "match: {roles: [master]}, defaults: {nodeSelector: {pool: steady}}")
TEST = f"""\
{HEAD}policies: [../classes.yaml, .]
{NODES}
tests:
- name: a worker runs on spot
  pod: {WORKER}
  expect: {{runsOn: [spot-1]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a capacity class, a policy, and a test of it in a folder below."""
    below = tmp_path / "policies" / "workers"
    below.mkdir(parents=True)
    (below.parent / "classes.yaml").write_text(CLASS)
    (below / "workers.yaml").write_text(SPOT)
    (below / "workers.test.yaml").write_text(TEST)
    return below.parent


def run(*arguments: str | Path) -> Result:
    """The command's result."""
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def report(*arguments: str | Path) -> dict[str, Any]:
    """What the command says for programs."""
    document: dict[str, Any] = json.loads(run(*arguments, "-o", "json").stdout)
    return document


def test_passed_tests_are_counted_by_file(folder: Path, wording: Wording) -> None:
    """One line a file, a summary, and exit code 0."""
    result = run(folder)
    assert result.exit_code == 0
    file, _, counts, reached = result.stdout.splitlines()
    assert file.split() == ["ok", f"{folder}/workers/workers.test.yaml", "1", "test"]
    mentions(counts, "1 test", "1 passed", "0 failed")
    mentions(reached, "1 of 1")
    wording(result.stdout, {folder: "DIR"})


def test_with_verbose_each_test_is_listed(folder: Path) -> None:
    """With its result, and the policies that took part."""
    line_with(run(folder, "-v").stdout, "ok", "a worker runs on spot", "(placed; workers)")


def test_a_failure_shows_expected_and_actual_values_and_the_reason(
    folder: Path, wording: Wording
) -> None:
    """With the place of the test, and the lines of the trace that concern the field."""
    (folder / "workers" / "workers.yaml").write_text(STEADY)
    result = run(folder)
    assert result.exit_code == 1
    failure, counts = result.stdout.split("\n\n")
    file, test, field, expected, actual, wanted, taken, _, why = map(
        str.split, failure.splitlines()
    )
    path = f"{folder}/workers/workers.test.yaml"
    assert file[:2] == ["FAILED", path]
    mentions(" ".join(file[2:]), "1 of 1", "failed")
    assert test == ["FAILED", f"{path}:11:", *["a", "worker", "runs", "on", "spot"]]
    assert (field, expected, actual) == (["runsOn"], ["expected", "spot-1"], ["actual", "steady-1"])
    mentions(" ".join(wanted), "spot-1: ", "affinity", "pool NotIn [spot]")
    assert taken[0] == "steady-1:"
    mentions(" ".join(why), "capacity[spot]: set", "policy workers (overrides): Prevent")
    mentions(counts, "1 test", "0 passed", "1 failed", "1 of 1")
    wording(result.stdout, {folder: "DIR"})


def test_only_what_concerns_the_failure_is_shown(folder: Path, wording: Wording) -> None:
    """A wrong list of policies needs no trace of fields; a wrong result needs all of it."""
    test = folder / "workers" / "workers.test.yaml"
    test.write_text(TEST.replace("runsOn: [spot-1]", "policies: [workers, others]"))
    shown = run(folder).stdout
    wording(line_with(shown, "others", "policy"))
    assert "why" not in shown
    test.write_text(TEST.replace("runsOn: [spot-1]", "result: unchanged"))
    line_with(run(folder).stdout, "capacity[spot]: set", "policy workers (overrides)")


def test_the_same_tests_run_over_other_policies(folder: Path, tmp_path: Path) -> None:
    """--policies takes the place of what the tests name, and may be repeated."""
    other = tmp_path / "new.yaml"
    other.write_text(STEADY)
    classes = folder / "classes.yaml"
    assert run(folder).exit_code == 0
    assert run(folder, "--policies", other, "--policies", classes).exit_code == 1
    assert run(folder, "--policies", classes, "--policies", folder / "workers").exit_code == 0


def test_policies_that_no_test_reached_are_listed(folder: Path, wording: Wording) -> None:
    """Those that a test loads and no pod matched, and those that no test loads."""
    (folder / "workers" / "masters.yaml").write_text(MASTERS)
    (folder / "lonely.yaml").write_text(MASTERS)
    result = run(folder)
    assert result.exit_code == 0
    reached, heading, *unreached = result.stdout.splitlines()[-4:]
    mentions(reached, "1 of 3")
    mentions(heading, "No test")
    assert list(map(str.split, unreached)) == [
        ["masters", f"({folder}/lonely.yaml)"],
        ["masters", f"({folder}/workers/masters.yaml)"],
    ]
    wording(f"{reached}\n{heading}")
    assert run(folder, "--all-reached").exit_code == 1


def test_all_reached_passes_if_every_policy_took_part(folder: Path) -> None:
    """For continuous integration: no policy goes untested."""
    assert run(folder, "--all-reached").exit_code == 0


def test_unreadable_input_is_reported_and_the_rest_runs(folder: Path, wording: Wording) -> None:
    """A test file with slips, policies with slips, a path that leads to nothing, an empty file."""
    (folder / "slip.test.yaml").write_text(TEST.replace("expect:", "expects:"))
    (folder / "gone.test.yaml").write_text(TEST.replace("../classes.yaml", "gone.yaml"))
    (folder / "empty.test.yaml").write_text("# nothing yet\n")
    (folder / "odd.yaml").write_text(SPOT.replace("Constrain", "Constrian"))
    (folder / "odd.test.yaml").write_text(TEST.replace("../classes.yaml, .", "odd.yaml"))
    result = run(folder)
    assert result.exit_code == 1
    line_with(result.stdout, f"ok {folder}/workers/workers.test.yaml")
    for place, *facts in (
        ("slip.test.yaml:13:3: tests[0].expects: ", "'expect'"),
        (f"gone.test.yaml:3:12: policies[0]: {folder}/gone.yaml: ", "no such file"),
        ("empty.test.yaml: ", "no test"),
        ("odd.yaml:4:77: spec.overrides.capacity[0].mode: ", "'Constrian'", "Constrain,"),
    ):
        wording(line_with(result.stdout, f"{folder}/{place}", *facts), {folder: "DIR"})
    wording(line_with(result.stdout, "4 files", "run"))


def test_a_folder_without_tests_is_a_usage_error(tmp_path: Path, wording: Wording) -> None:
    """Exit code 2: a wrong path must not look like success."""
    result = run(tmp_path)
    assert result.exit_code == 2
    error = result.stderr.partition("Error: ")[2]
    mentions(error, "no *.test.yaml", tmp_path)
    wording(error, {tmp_path: "TMP"})


def test_a_single_file_can_be_run(folder: Path) -> None:
    """Only the policies that it loads are counted."""
    (folder / "lonely.yaml").write_text(MASTERS)
    result = run(folder / "workers" / "workers.test.yaml")
    assert result.exit_code == 0
    assert "1 of 1 policy reached" in result.stdout


def test_a_file_is_the_same_however_a_test_comes_to_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths with dots, or from another folder, count no policy twice."""
    monkeypatch.chdir(folder / "workers")
    assert report(".")["policies"] == 1
    assert report("..")["unreached"] == []


def test_programs_get_everything_as_json(folder: Path) -> None:
    """Each test with its place, result, policies, failures and trace."""
    (folder / "workers" / "workers.yaml").write_text(STEADY + MASTERS)
    document = report(folder)
    assert document["passed"] is False
    (file,) = document["files"]
    (test,) = file["tests"]
    assert (test["name"], test["line"], test["passed"]) == ("a worker runs on spot", 11, False)
    assert (test["result"], test["policies"]) == ("placed", ["workers"])
    assert test["failures"][0]["expected"] == "spot-1"
    assert test["trace"][0]["field"] == "capacity[spot]"
    assert document["unreached"] == [
        {"file": f"{folder}/workers/workers.yaml", "policy": "masters"}
    ]


def test_terminals_get_colour_and_pipes_do_not(folder: Path) -> None:
    """As everywhere in the command."""
    assert "\x1b" not in run(folder).stdout
    assert "\x1b[32mok" in CliRunner().invoke(command, [str(folder)], color=True).stdout


def test_the_schema_is_printed_for_editors() -> None:
    """Without a path: it is not about any folder."""
    assert json.loads(run("--schema").stdout)["title"] == "Fairlead PolicyTest"
