"""All errors of a file are reported at once, whatever reads them."""

from __future__ import annotations

from tests.convert.polyaxon.converting import converted, said
from tests.wording import line_with

WRONG = """\
version: 1.1
kind: component
inputs: [{name: img, type: str}]
run:
  kind: tfjob
  chief: {container: {image: "{{ img }}"}}
  worker:
    replicas: 0x2
    container: {image: 3, args: [a], resources: {limits: {cpu: many}}}
"""


def test_errors_of_values_of_params_and_of_the_template_come_at_once() -> None:
    """None is reported only because of another one: the chief's image is not."""
    lines = said(converted(WRONG, image=""))
    line_with(lines, "3:10: inputs[0]", "img", "no value")
    line_with(lines, "8:15: ", "replicas", "0x2", "write it as a decimal number")
    line_with(lines, "9:24: ", "image", "want a string, not 3")
    line_with(lines, "9:64: ", "cpu", "'many'")
    assert len(lines) == 4
