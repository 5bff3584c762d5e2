"""A plot of simulated runs: how many are done by when, and at what cost."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from webhook.simulation.summary import Simulated

_AXES: Final = (
    ("hours until the run is done", "seconds", 3600.0),
    ("cost, in hours of a replica on demand", "cost", 1.0),
)


def figure_class() -> type[Figure]:
    """Return matplotlib's Figure. Raises UnreadableInput if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnreadableInput(
            ["--plot needs matplotlib: install it beside fairlead (pip install 'fairlead[plot]')"]
        ) from None
    return Figure


def svg_of(sets: Sequence[Simulated], title: str) -> bytes:
    """Return the plot as SVG. Raises as `figure_class`."""
    figure = figure_class()(figsize=(10, 4), layout="constrained")
    figure.suptitle(_plain(title))
    for place, (label, attribute, unit) in zip(figure.subplots(1, 2), _AXES, strict=True):
        for simulated_set in sets:
            amounts = sorted(
                getattr(ending, attribute) / unit for ending in simulated_set.succeeded
            )
            hours = [*amounts[:1], *amounts]
            share = [100 * at / len(simulated_set.endings) for at in range(len(hours))]
            place.step(hours, share, where="post")
        place.set(xlabel=label, ylabel="runs done, in %", ylim=(0, 101))
        place.grid(visible=True, alpha=0.3)
    from matplotlib import rc_context

    figure.legend(
        [_plain(simulated_set.policies) for simulated_set in sets], loc="outside lower center"
    )
    file = io.BytesIO()
    # Without a date and with fixed ids, equal plots are equal files.
    with rc_context({"svg.hashsalt": "fairlead"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _plain(text: str) -> str:
    # matplotlib takes what is between dollar signs for a formula.
    return text.replace("$", r"\$")
