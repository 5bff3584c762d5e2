"""Hypothesis strategies: whole pods, the laws' placements with all that real pods have besides."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.additions import Addition, Json
from tests.laws.strategies import pods
from webhook import names


def added(pod: Json, addition: Addition) -> Json:
    """The pod, changed in place, with the addition; objects that are missing are made.

    Where the pod has no item of the list that the path goes through, it stays as it is.
    """
    path, value = addition
    holder: Any = pod
    for step, then in pairwise(path):
        if isinstance(holder, list):
            holder = holder[int(step)]
            continue
        inner = holder.get(step)
        if isinstance(then, int):
            if not isinstance(inner, list) or then >= len(inner):
                return pod
        elif not isinstance(inner, dict):
            inner = holder[step] = {}
        holder = inner
    holder[path[-1]] = copy.deepcopy(value)
    return pod


@st.composite
def whole_pods(
    draw: st.DrawFn, *kinds: st.SearchStrategy[Addition], most: int = 5, run: bool = True
) -> Json:
    """A pod with some of the additions; without `run` some are of no run."""
    pod: Json = draw(pods())
    for addition in draw(st.lists(st.one_of(*kinds), max_size=most)):
        added(pod, addition)
    if not run and draw(st.integers(0, 3)) == 0 and isinstance(pod["metadata"].get("labels"), dict):
        pod["metadata"]["labels"].pop(names.RUN, None)
    if draw(st.integers(0, 3)) == 0:
        del pod["metadata"]["name"]
        pod["metadata"]["generateName"] = "p-"
    return pod
