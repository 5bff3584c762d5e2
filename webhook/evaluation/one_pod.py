"""Judge one pod of many: a fault of Fairlead's own is about that pod, and ends no other look."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from webhook.errors import FairleadError
from webhook.shortening import cut, harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

# What counts as such a fault.
FAULTS: tuple[type[Exception], ...] = (Exception,)
_FAULT_MAX_CHARACTERS: int = 200


class Unjudged(FairleadError):
    """A pod could not be judged because of a fault of Fairlead's own, which is `__cause__`."""

    def __init__(self, fault: Exception) -> None:
        what = cut(harmless(f"{type(fault).__name__}: {fault}"), _FAULT_MAX_CHARACTERS)
        super().__init__(f"a fault of Fairlead itself ends the look at this pod: {what}; report it")


@contextmanager
def one_pod() -> Iterator[None]:
    """Raise Unjudged for an unexpected exception in the block, which judges one pod of many.

    Whoever may write a pod may have caused it, and everybody else's pods are still to be judged.
    What readers of pods raise on purpose passes.
    """
    try:
        yield
    except FairleadError:
        raise
    except FAULTS as fault:
        raise Unjudged(fault) from fault
