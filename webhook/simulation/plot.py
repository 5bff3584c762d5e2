"""A plot of simulated runs: how many are done by when, at what cost, and what they held."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Final

from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from webhook.simulation.summary import Simulated

_AXES: Final = (
    ("hours until the run is done", "seconds", 3600.0),
    ("cost, in hours of a replica on demand", "cost", 1.0),
    ("held, in hours of replicas", "held", 1.0),
)
# Colours of matplotlib's that stand for those of the reader's scheme: light, then dark.
_INK: Final = ("#010203", "#16202c", "#e7edf3")
_PAPER: Final = ("#fdfefd", "#ffffff", "#171e26")
# Readable on white and on black.
_LINES: Final = ("#3b82d6", "#c98a1b", "#3a9d5d", "#7a6fb0", "#cf3b3b", "#0a8a98")
# The share of true curves that an interval has.
_CONFIDENCE: Final = 0.95


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
    figure = figure_class()(figsize=(14, 4), layout="constrained", facecolor=_PAPER[0])
    figure.suptitle(_plain(title), color=_INK[0])
    for place, (label, attribute, unit) in zip(figure.subplots(1, len(_AXES)), _AXES, strict=True):
        for number, simulated_set in enumerate(sets):
            amounts = sorted(
                getattr(ending, attribute) / unit for ending in simulated_set.succeeded
            )
            hours = [*amounts[:1], *amounts]
            share = [100 * at / len(simulated_set.endings) for at in range(len(hours))]
            colour = _LINES[number % len(_LINES)]
            place.step(hours, share, where="post", color=colour)
            half = 100 * half_width(len(simulated_set.endings))
            low = [max(0.0, percent - half) for percent in share]
            high = [min(100.0, percent + half) for percent in share]
            place.fill_between(hours, low, high, step="post", color=colour, alpha=0.15, lw=0)
        place.set(xlabel=label, ylabel="runs done, in %", ylim=(0, 101), facecolor=_PAPER[0])
        place.grid(visible=True, alpha=0.3)
        place.tick_params(colors=_INK[0])
        for part in (place.xaxis.label, place.yaxis.label):
            part.set_color(_INK[0])
        for spine in place.spines.values():
            spine.set_edgecolor(_INK[0])
    from matplotlib import rc_context

    lines = figure.axes[0].get_lines()
    legend = figure.legend(
        lines,
        [_plain(simulated_set.label) for simulated_set in sets],
        loc="outside lower center",
        facecolor=_PAPER[0],
        labelcolor=_INK[0],
        title=f"shaded: interval of {_CONFIDENCE:.0%}",
    )
    legend.get_title().set_color(_INK[0])
    file = io.BytesIO()
    # Without a date and with fixed ids, equal plots are equal files.
    with rc_context({"svg.hashsalt": "fairlead"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return _in_both_schemes(file.getvalue())


def half_width(count: int) -> float:
    """Return half the width of the interval of a share, from so many repetitions.

    That of Dvoretzky, Kiefer and Wolfowitz with Massart's constant (1990), for all times at once.
    """
    return math.sqrt(math.log(2 / (1 - _CONFIDENCE)) / (2 * count))


def _in_both_schemes(svg: bytes) -> bytes:
    """Return the plot in the colours of the reader's scheme."""
    text = svg.decode()
    light, dark = (f"--ink: {_INK[scheme]}; --paper: {_PAPER[scheme]}" for scheme in (1, 2))
    for (stand_in, colour, _), name in ((_INK, "ink"), (_PAPER, "paper")):
        text = text.replace(stand_in, f"var(--{name}, {colour})")
    style = f"svg {{ {light} }} @media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}"
    return text.replace("<defs>", f"<style>{style}</style>\n <defs>", 1).encode()


def _plain(text: str) -> str:
    # matplotlib takes what is between dollar signs for a formula.
    return text.replace("$", r"\$")
