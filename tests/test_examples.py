"""What a seed repeats."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from hypothesis import strategies
import webhook.names
from tests.examples import draw_nothing_of_the_code
from hypothesis.internal.conjecture import providers
if {steady}:
    draw_nothing_of_the_code()
print(sorted(providers._get_local_constants().set_for_type("string")))
"""


@pytest.mark.parametrize("steady", [True, False])
def test_with_a_seed_nothing_is_drawn_from_the_code(steady: bool) -> None:
    program = [sys.executable, "-c", PROGRAM.format(steady=steady)]
    drawn = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    assert ("fairlead.dev" in drawn) != steady
