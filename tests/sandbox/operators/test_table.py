"""The table of operators: each row is whole, and can be chosen by its name."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from webhook.cli import fairlead
from webhook.interception import select_sources
from webhook.sandbox.binaries import REQUIREMENTS
from webhook.sandbox.operators.install import fill_placeholders
from webhook.sandbox.operators.table import (
    Operator,
    interception_sources,
    operators,
    select_operators,
)

ROWS = pytest.mark.parametrize("operator", operators().values(), ids=lambda each: each.name)


@ROWS
def test_every_row_has_one_program(operator: Operator) -> None:
    """A Go module, or a Python package whose requirements are there, with hashes."""
    assert (operator.go is None) != (operator.python is None)
    if operator.python:
        text = (REQUIREMENTS / operator.python.requirements).read_text()
        assert f"{operator.name}==" in text
        assert "--hash=sha256:" in text


@ROWS
def test_every_row_names_operators_and_sources_that_exist(operator: Operator) -> None:
    """A misspelt name would only show when a sandbox starts."""
    assert {*operator.needs, *operator.beside} <= set(operators())
    assert len(select_sources(operator.sources)) == len(operator.sources)


@ROWS
def test_every_placeholder_of_a_row_has_a_value(operator: Operator) -> None:
    """And an argument names the sandbox's folder, by which its process is recognised."""
    names = ("folder", "certificates", "config", "kubeconfig")
    values: dict[str, str | int] = dict.fromkeys(names, "/box/file")
    values |= dict.fromkeys([*operator.ports, "api_port"], 1)
    for content in (operator.config, operator.environment):
        fill_placeholders(content, values)
    arguments = fill_placeholders(operator.arguments, values)
    assert any("/box" in argument for argument in arguments)


@ROWS
def test_every_row_says_how_readiness_is_asked(operator: Operator) -> None:
    """By its health or by its webhooks, whose port it must have."""
    assert operator.health or operator.probes
    assert not operator.health or "health" in operator.ports
    assert not operator.certificate or "webhook" in operator.ports


def test_a_port_alone_is_a_number_and_within_a_text_is_text() -> None:
    """Configuration files have numbers, command lines have texts."""
    content = {"port": "{webhook}", "address": "127.0.0.1:{webhook}", "on": True}
    filled = fill_placeholders(content, {"webhook": 9})
    assert filled == {"port": 9, "address": "127.0.0.1:9", "on": True}


def test_an_operator_comes_after_those_that_it_needs_and_once() -> None:
    """Whatever the order in which they are named."""
    for names in (list(operators()), list(operators())[::-1]):
        chosen = [each.name for each in select_operators([*names, *names])]
        assert sorted(chosen) == sorted(operators())
        for each in operators().values():
            assert all(chosen.index(one) < chosen.index(each.name) for one in each.needs)


def test_sources_of_several_operators_are_named_once() -> None:
    """An entry of a webhook configuration must not be there twice."""
    every = list(operators().values())
    found = interception_sources([*every, *every])
    assert len(found) == len(set(found))


def test_unknown_operators_are_usage_errors_with_a_guess() -> None:
    """Before anything is built or started."""
    wrong = ["--operator", "keue", "--operator", "jobset", "--operator", "slurm"]
    done = CliRunner().invoke(fairlead, ["sandbox", "up", *wrong])
    assert done.exit_code == 2
    said = "unknown operator 'keue'; did you mean 'kueue'?, 'slurm'; want one of dask-kubernetes,"
    assert said in " ".join(done.output.split())


def test_help_lists_every_operator_with_the_time_of_its_first_use() -> None:
    """The times are those of the table, rounded up to minutes."""
    text = CliRunner().invoke(fairlead, ["help", "sandbox", "up"]).output
    listed = dict(re.findall(r"^\s+(\S+)\s+(\d+) min  \S", text, re.MULTILINE))
    table = {each.name: str(-(-each.seconds // 60)) for each in operators().values()}
    assert listed == table
