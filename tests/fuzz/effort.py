"""How many cases a run tries: FAIRLEAD_FUZZ_CASES reviews in process, and a tenth over TLS."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.examples import fuzz_cases
from tests.fuzz.mutations import Mutation

# For a long run: make fuzz FAIRLEAD_FUZZ_CASES=1000000.
CASES = fuzz_cases(12_000)
BATCH = 20


def fuzz(share: float, each: int = 1) -> settings:
    """Settings for this share of the cases, where an example is `each` of them."""
    return settings(
        max_examples=max(10, int(CASES * share / each)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


def batches(changes: st.SearchStrategy[Mutation]) -> st.SearchStrategy[list[list[Mutation]]]:
    """About BATCH times a few changes, each time of the same review."""
    few = st.lists(changes, min_size=1, max_size=3)
    return st.lists(few, min_size=BATCH // 2, max_size=2 * BATCH)
