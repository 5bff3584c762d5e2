"""The page of Kubernetes versions, and what is pinned for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.versions import OWN, PAGE, VERSIONS, Result, programs, read, results, with_row

REPORT = """<testsuites><testsuite>
<testcase classname="tests.cluster.test_one" name="test_that_passes"/>
<testcase classname="tests.cluster.test_one" name="test_that_fails[a]"><failure/></testcase>
<testcase classname="tests.cluster.test_one" name="test_that_fails[b]"><error/></testcase>
</testsuite></testsuites>"""


def test_every_version_is_pinned_with_its_staging_modules() -> None:
    """By go.mod: the folder's name is the version that is built."""
    assert OWN in VERSIONS
    for version in VERSIONS:
        for program in programs(version).values():
            assert program.module.version == f"v{version}"
            text = (program.module.directory / "go.mod").read_text()
            assert f"k8s.io/api v0.{version.partition('.')[2]}" in text


def test_a_report_names_each_failed_test_once(tmp_path: Path) -> None:
    """A parametrized test by its function; errors of fixtures are failures."""
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    found = read("1.33.4", "abc", path)
    assert (found.tests, found.cases_failed) == (3, 2)
    assert found.failed == ["test_one::test_that_fails"]


@pytest.mark.parametrize("first", VERSIONS[:2])
def test_a_row_is_replaced_and_rows_are_in_the_order_of_versions(first: str) -> None:
    """Whatever was there before; the rest of the page stays."""
    text = PAGE.read_text()
    for version in (VERSIONS[-1], first, first):
        text = with_row(text, Result(version, "abc", 7, 1, ["test_one::test_that_fails"]))
    rows = list(results(text))
    assert rows == sorted(rows, key=VERSIONS.index)
    assert {first, VERSIONS[-1]} <= set(rows)
    assert "| abc, " in results(text)[first]
    before, after = PAGE.read_text().splitlines(), text.splitlines()
    assert [line for line in before if line[:3] != "| 1"] == [
        line for line in after if line[:3] != "| 1"
    ]
