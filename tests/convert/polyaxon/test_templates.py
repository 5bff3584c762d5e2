"""What stands in double braces is replaced, or it is said why not."""

from __future__ import annotations

import pytest

from tests.convert.polyaxon.converting import converted, said
from tests.wording import Wording, mentions

FILE = """\
version: 1
kind: job
params:
  lr: 0.10
  name: "x y"
  flag: yes
  twice: "--lr={{{{ lr }}}}"
run: {{cmd: "{cmd}"}}
"""


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ lr }}", "0.10"),
        ("{{lr}}/{{ name }}", "0.10/x y"),
        ("{{ flag }}", "True"),
        ("{{ twice }}", "--lr=0.10"),
        ("{{ params.lr }}", "0.10"),
        ("{{ params.lr.as_arg }}", "--lr=0.10"),
        ("no template", "no template"),
        ("{ lr }", "{ lr }"),
    ],
)
def test_a_name_stands_for_its_value(template: str, text: str) -> None:
    """As it is written in the file; booleans as Python has them, for so Polyaxon did."""
    result = converted(FILE.format(cmd=template))
    assert result.document is not None, result.errors
    container = result.document["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == [text]
    assert said(result) == []


@pytest.mark.parametrize(
    ("template", "facts"),
    [
        ("{{ learning }}", ("param 'learning'", "lr, name, flag, twice")),
        ("{{ nam }}", ("param 'nam'", "did you mean 'name'?")),
        ("{{ lr.x }}", ("lr.x: ", "no x")),
        ("{{ params }}", ("params", "no value")),
        ("{{ globals.uuid }}", ("warning: run.cmd: ", "globals.uuid")),
        ("{{ lr | round }}", ("warning: run.cmd: ", "'lr | round'")),
        ("{% if lr %}a{% endif %}", ("warning: run.cmd: ", "blocks")),
    ],
)
def test_an_unknown_template_is_reported_at_its_place(
    template: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """An error for a name that the file has not; a warning for what only Polyaxon can do."""
    result = converted(FILE.format(cmd=template))
    (found,) = said(result)
    mentions(found, *facts)
    assert found.startswith("8:12: ")
    assert (result.run is None) == ("warning: run.cmd: " not in facts)
    wording(found)


def test_a_list_may_be_what_a_template_stands_for() -> None:
    """All params as arguments; what stands for nothing is left out."""
    result = converted(
        """\
        kind: component
        inputs:
        - {name: lr, value: 0.1}
        - {name: verbose, type: bool, value: false, isFlag: true}
        - {name: seed, isOptional: true}
        run:
          kind: job
          container: {image: i, args: ["{{ params.as_args }}", "{{ verbose }}"]}
        """
    )
    assert result.document is not None, result.errors
    assert result.document["spec"]["template"]["spec"]["containers"][0]["args"] == ["--lr=0.1"]


def test_a_number_stays_one_where_a_template_is_the_whole_value() -> None:
    """The count of replicas may be a param."""
    result = converted(
        """\
        kind: component
        inputs: [{name: n, type: int}]
        run:
          kind: pytorchjob
          worker: {replicas: "{{ n }}", container: {image: i}}
        """,
        n="3",
    )
    assert result.document is not None, result.errors
    assert result.document["spec"]["replicas"]["worker"]["count"] == 3
