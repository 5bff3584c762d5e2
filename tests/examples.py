"""How many random cases a property tries: few in `make test`, many in `make test-all`.

FAIRLEAD_EXAMPLES says which: `few` (the default), `many`, or a number, which is what each law of
tests/laws then tries; other properties try in proportion.
"""

from __future__ import annotations

import os
from typing import Final

# What `many` is for each law.
BASE: Final = 300
# Under `few` a property tries this part of its `many`, but no fewer than FEWEST.
PART: Final = 6
FEWEST: Final = 12


def examples(many: int) -> int:
    """Return how many cases to try of a property that tries `many` in `make test-all`.

    Raises ValueError if FAIRLEAD_EXAMPLES is neither few, many nor a number from 1 on.
    """
    wanted = os.environ.get("FAIRLEAD_EXAMPLES", "few")
    if wanted == "many":
        return many
    if wanted == "few":
        return min(many, max(FEWEST, many // PART))
    if not wanted.isdecimal() or int(wanted) == 0:
        raise ValueError(f"FAIRLEAD_EXAMPLES={wanted}: want few, many, or a number from 1 on")
    return max(1, many * int(wanted) // BASE)
