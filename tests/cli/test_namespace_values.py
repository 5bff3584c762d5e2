"""`fairlead policy values` and `check --namespaces`, as the guide to one platform shows them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.test_guides import blocks
from webhook.cli import fairlead

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "one-platform.md"


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the guide."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGE):
        if block.language == "yaml":
            name = block.text.splitlines()[0].removeprefix("# ")
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(block.text)
    (tmp_path / "policies").symlink_to(Path(__file__).parents[2] / "policies")
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(fairlead, words)
    return result.exit_code, result.stdout


@pytest.mark.usefixtures("guide")
def test_the_guide_shows_what_its_commands_print() -> None:
    shown = [block.text for block in blocks(PAGE) if block.language == "console"]
    assert len(shown) == 3
    for text in shown:
        command, _, output = text.removeprefix("$ fairlead ").partition("\n")
        words, _, file = command.partition(" > ")
        code, printed = run(*shlex.split(words))
        assert code == 0
        if file:
            assert "fairlead-namespace-labels" in printed
        else:
            assert printed == output


@pytest.mark.usefixtures("guide")
def test_json_has_the_value_of_each_namespace() -> None:
    given = ("--policies", "mine", "--namespaces", "namespaces.yaml", "-o", "json")
    code, printed = run("policy", "values", *given)
    rows = json.loads(printed)["values"]
    assert code == 0
    pools = {row["namespace"]: row for row in rows if "pool" in row["setting"]}
    assert {name: (row["value"], row["isDefault"]) for name, row in pools.items()} == {
        "speech": ("green", False),
        "vision": ("red", False),
        "web": ("shared", True),
    }
    missing = json.loads(run("policy", "values", *given, "--missing")[1])["values"]
    assert [row for row in rows if row["value"] is None or row["isDefault"]] == missing
    assert {row["rejects"] for row in rows} == {False}


@pytest.mark.usefixtures("guide")
def test_a_check_tries_the_values_of_namespaces(tmp_path: Path) -> None:
    """Without them, it says that they are not checked."""
    policy = tmp_path / "mine" / "teams.yaml"
    policy.write_text(policy.read_text().replace(", default: shared", ""))
    checked = CliRunner().invoke(fairlead, ["check", "mine"])
    assert (checked.exit_code, "give --namespaces" in checked.stderr) == (0, True)
    code, printed = run("check", "mine", "--namespaces", "namespaces.yaml", "--strict")
    assert code == 1
    assert "1 namespace (web)" in printed
