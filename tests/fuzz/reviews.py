"""Hypothesis strategies: reviews of creations of pods, as an API server might send them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.admission.reviews import review
from tests.fuzz.additions import ODD, SOUND, Json
from tests.fuzz.pods import whole_pods
from tests.laws.strategies import one
from webhook import names

# The namespaces that the webhook knows, with their labels.
NAMESPACES: dict[str, dict[str, str]] = {
    "ml-team": {"tier": "batch"},
    "whole": {names.PLACE: names.PLACE_ALL, names.KIND: "core"},
    "plain": {},
}
UNKNOWN = "elsewhere"

users = st.fixed_dictionaries(
    {"username": one("somebody", names.DAEMON_SET_CONTROLLER, "system:node:n1", "ü:\u2028")},
    optional={
        "uid": one("1", ""),
        "groups": one([], None, ["system:authenticated"], [names.NODE_GROUP]),
        "extra": one({}, {"a/b": ["c"]}),
    },
)


@st.composite
def reviews(draw: st.DrawFn) -> Json:
    """A review that is to be decided on, of a pod of a run or of none."""
    namespace = draw(one("ml-team", *NAMESPACES))
    pod = draw(whole_pods(*SOUND, *ODD, run=False))
    own = draw(one(None, namespace, ""))
    if own is not None:
        pod["metadata"]["namespace"] = own
    whole = review(
        pod,
        uid=draw(one("0df28fbd-00ed-11ea-9e9d-42010a800002", "u", 'ü/~"\u2028')),
        namespace=namespace,
        name=draw(one("p", "", None)),
        userInfo=draw(users),
        dryRun=draw(one(True, False, None)),
    )
    extra: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "subResource": one("", None),
                "requestKind": one({"group": "", "version": "v1", "kind": "Pod"}, None),
                "requestSubResource": one("", "eviction"),
                "future": one({}, [1.5, -0.0, 1e-300]),
            },
        )
    )
    whole["request"] |= extra
    if draw(st.booleans()):
        del whole["request"]["kind"]["group"]
    return whole


# What is a review, and yet not the creation of a pod in a namespace that is known.
foreign = st.builds(
    lambda whole, change: {**whole, "request": {**whole["request"], **change}},
    reviews(),
    one(
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT"},
        {"operation": None},
        {"subResource": "status"},
        {"subResource": "ephemeralcontainers"},
        {"subResource": "binding", "kind": {"group": "", "version": "v1", "kind": "Binding"}},
        {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
        {"kind": {"group": "", "version": "v2", "kind": "Pod"}},
        {"kind": None},
        {"object": None},
        {"object": []},
        {"uid": ""},
        {"uid": 7},
        {"namespace": None},
        {"userInfo": "somebody"},
        {"userInfo": None},
        {"userInfo": {"groups": ["system:nodes"]}},
        {"userInfo": {"username": ""}},
        {"userInfo": {"username": {}}},
        {"userInfo": {"username": "a", "groups": {}}},
        {"name": 0},
    ),
)
