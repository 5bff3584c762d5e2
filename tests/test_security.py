"""The pages about security are held to the code, and the code to what they claim."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fast_yaml import load_all_yaml
from tests.reference_pages import security_claims
from webhook import names

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs"
CALLERS = (ROOT / "docs/guides/webhook-port.md").read_text()
# About unsafe loading, evaluating, shells and unverified TLS (flake8-bandit, by ruff).
UNSAFE = {
    *("S102", "S301", "S302", "S306", "S307", "S323", "S324", "S501", "S502", "S503", "S504"),
    *("S506", "S507", "S602", "S604", "S605", "S608", "S609", "S612"),
}
NETWORK = {"socket", "ssl", "http", "urllib", "asyncio", "aiohttp", "requests", "kubernetes"}


def rows(page: str, *heads: str) -> list[list[str]]:
    """The cells of all tables of a page whose first column has one of these heads."""
    found: list[list[str]] = []
    head = ""
    for line in (FOLDER / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not line.startswith("|"):
            head = ""
        elif not head:
            head = cells[0] or cells[1]
        elif head in heads and not line.startswith("|---"):
            found.append(cells)
    return found


def test_each_of_the_eighteen_threats_is_answered() -> None:
    """By a test that is named, or by saying plainly that it is not ours."""
    threats = rows("security/threats.md", "threat")
    shown = security_claims()["security/threats.md"]
    assert [int(row[0].strip("| ")) for row in threats] == list(range(1, 19))
    assert [answer for _, threat, answer in threats if threat not in shown] == [
        answer for number, _, answer in threats if number in ("6", "17")
    ]
    assert all(answer.startswith("Not ours") for number, _, answer in threats if number == "6")


@pytest.mark.parametrize("page", security_claims())
def test_each_claim_with_a_test_is_on_its_page(page: str) -> None:
    """As a cell or words of it."""
    text = (FOLDER / page).read_text().replace("**", "")
    assert [claim for claim in security_claims()[page] if claim not in text] == []


@pytest.mark.parametrize(
    ("page", "head"),
    [
        ("security/bypasses.md", "way"),
        ("security/network.md", "attack"),
        ("security/run-authors.md", "what an author writes"),
    ],
)
def test_each_attack_has_a_test(page: str, head: str) -> None:
    """On the pages that list them, each row is a claim that a test shows."""
    attacks = [row[0] for row in rows(page, head)]
    assert len(attacks) > 5
    unshown = [attack for attack in attacks if attack not in security_claims()[page]]
    assert unshown == []


def granted() -> Iterator[tuple[str, str, frozenset[str], str]]:
    """What the manifests give each program: resource, verbs, and where."""
    files = [*(ROOT / "manifests/base").glob("*-rights.yaml")]
    files.append(ROOT / "manifests/components/certificates/rights.yaml")
    documents = [each for file in files for each in load_all_yaml(file.read_text())]
    roles = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    for binding in (each for each in documents if each["kind"].endswith("Binding")):
        (account,) = binding["subjects"]
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        within = role["metadata"].get("namespace", "")
        for rule in role["rules"]:
            named = ", ".join(f"`{name}`" for name in rule.get("resourceNames", ()))
            where = " in ".join(part for part in (named, within) if part) or "everywhere"
            for resource in rule["resources"]:
                program = account["name"].removeprefix("fairlead-")
                yield program, f"`{resource}`", frozenset(rule["verbs"]), where


def test_the_table_of_rights_is_what_the_manifests_give() -> None:
    """Each right with a reason, none left out, none too many."""
    told = [
        (program, resource, frozenset(verbs.split(", ")), where)
        for program, resources, verbs, where, reason in rows("security/rights.md", "program")
        for resource in resources.split(", ")
        if reason.strip("| ")
    ]
    assert len(set(told)) == len(told)
    assert set(told) == set(granted())


def test_the_pure_part_reaches_no_network() -> None:
    """What reads policies and pods imports nothing that could send them anywhere."""
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
    (pure,) = (each for each in contracts if each["name"] == "The pure part does no I/O")
    packages = [name.replace(".", "/") for name in pure["source_modules"]]
    assert {"webhook/policy", "webhook/placement", "webhook/run"} <= set(packages)
    for package in packages:
        base = ROOT / package
        for file in [*base.rglob("*.py")] if base.is_dir() else [base.with_suffix(".py")]:
            for node in ast.walk(ast.parse(file.read_text())):
                found = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                assert not NETWORK & {name.partition(".")[0] for name in found}, file


def test_no_line_switches_off_a_rule_about_unsafe_calls() -> None:
    """They are on for the whole product, and stay on."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "S" in lint["select"]
    assert not UNSAFE & set(lint["ignore"])
    for file in [*(ROOT / "webhook").rglob("*.py"), *(ROOT / "certs").rglob("*.py")]:
        for line in file.read_text().splitlines():
            if "noqa" in line:
                switched_off = set(re.findall(r"\b[A-Z]+\d+\b", line.partition("noqa")[2]))
                assert switched_off, f"{file}: {line}"
                assert not UNSAFE & switched_off, f"{file}: {line}"


def test_one_connection_alone_verifies_nothing() -> None:
    """The look at the leaf that a replica presents: it is compared, and nothing is sent."""
    found = {
        file.relative_to(ROOT).as_posix()
        for top in ("webhook", "certs", "fairlead")
        for file in (ROOT / top).rglob("*.py")
        if re.search(r"CERT_NONE|check_hostname = False|verify=False", file.read_text())
    }
    assert found == {"webhook/controller/certificates/observe.py"}


def test_the_name_that_callers_are_configured_by_is_the_services() -> None:
    """An API server finds its credentials for a webhook by that name."""
    admission, kubeconfig = map(
        yaml.safe_load, re.findall(r"```json\n(.*?)```", CALLERS, re.DOTALL)
    )
    assert admission["kind"] == "AdmissionConfiguration"
    (user,) = kubeconfig["users"]
    assert user["name"] == f"{names.WEBHOOK}.{names.NAMESPACE}.svc"
