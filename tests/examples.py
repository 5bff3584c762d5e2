"""How many random cases a property tries: few in `make test`, many in `make test-all`.

FAIRLEAD_EXAMPLES says which: `few` (the default), `many`, or a number, which is what each law of
tests/laws then tries; other properties try in proportion.
"""

from __future__ import annotations

import os
from typing import Final

import pytest
from hypothesis.internal.conjecture import providers

# What `many` is for each law.
BASE: Final = 300
# Under `few` a property tries this part of its `many`, but no fewer than FEWEST.
PART: Final = 10
FEWEST: Final = 12


def examples(many: int) -> int:
    """Return how many cases to try of a property that tries `many` in `make test-all`.

    Raises pytest.UsageError if FAIRLEAD_EXAMPLES is neither few, many nor a number from 1 on.
    """
    wanted = os.environ.get("FAIRLEAD_EXAMPLES", "few")
    if wanted == "many":
        return many
    if wanted == "few":
        return min(many, max(FEWEST, many // PART))
    return max(1, many * _number("FAIRLEAD_EXAMPLES", wanted, "few, many, or ") // BASE)


def fuzz_cases(many: int) -> int:
    """Return how many reviews fuzzing tries: FAIRLEAD_FUZZ_CASES, else as `examples`."""
    wanted = os.environ.get("FAIRLEAD_FUZZ_CASES", "")
    return _number("FAIRLEAD_FUZZ_CASES", wanted) if wanted else examples(many)


def draw_nothing_of_the_code() -> None:
    """Make a seed draw the same cases after every change of the code.

    Hypothesis also draws constants that it finds in the code of the tested project, so each change
    gave the same seed other cases. Without a seed it still does.
    """
    pytest.MonkeyPatch().setattr(providers, "is_local_module_file", lambda _path: False)


def _number(variable: str, found: str, beside: str = "") -> int:
    if not (found.isascii() and found.isdecimal() and 0 < int(found) <= 10**9):
        raise pytest.UsageError(f"{variable}={found}: want {beside}a number from 1 to 1000000000")
    return int(found)
