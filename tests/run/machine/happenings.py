"""What can happen on the stage, how often, and with which values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from tests.run.machine.cluster import NODES, OWN_EVICTIONS
from tests.run.machine.ledger import NODE_REASONS
from tests.run.machine.server import KINDS
from webhook.placement.capacity import Mode
from webhook.placement.fallback import Fallback


class Happening(NamedTuple):
    """A method of Stage. Each argument is one of its values, more often if it is there twice."""

    method: str
    often: int
    values: Mapping[str, tuple[object, ...]]


SOME = tuple(range(8))
MOSTLY = (True, True, True, False)
SELDOM = (False, False, False, True)
DRAINS = ("PreemptionByScheduler", "EvictionByEvictionAPI")
NODE_STORIES = (
    *("back", "back", "back", "untainted", "lost", "noticed", "tainted", "tainted"),
    *("off", "shut down", "shut down", "gone", "collected", "collected", "out of service"),
    *("not ready", "registered again", "restarted", "ill", "ill", "well"),
)

_RULE = Fallback(Mode.ALLOW, 1, timedelta(days=1), timedelta(seconds=60), timedelta(minutes=5))
RULES = (
    _RULE,
    _RULE._replace(disruptions=None),
    _RULE._replace(pending=None),
    _RULE._replace(disruptions=2, pending=timedelta(seconds=1)),
    None,
)

HAPPENINGS = (
    Happening("exits", 8, {"pod": SOME, "code": (1, 0, 0, 127, 128, 137)}),
    Happening("exits", 1, {"pod": SOME, "code": (137,), "word": ("OOMKilled",)}),
    Happening("killed", 2, {"pod": SOME, "reason": ("Evicted",), "marked": (False, True)}),
    Happening("killed", 2, {"pod": SOME, "reason": NODE_REASONS, "marked": SELDOM}),
    Happening("deleted", 3, {"pod": SOME, "force": (False, True)}),
    Happening("stripped", 2, {"pod": SOME}),
    Happening("targeted", 2, {"pod": SOME, "reason": (*DRAINS, "")}),
    Happening("goes", 4, {"pod": SOME, "code": (None, 0, 1, 143)}),
    Happening("starts", 2, {"pod": SOME}),
    Happening("node", 4, {"name": NODES, "what": NODE_STORIES}),
    Happening("suspend", 1, {"name": ("one", "two"), "value": SELDOM}),
    Happening("suspend", 1, {"name": ("one",), "value": (False, True)}),
    Happening("delete", 1, {"kind": ("services", "configmaps", "deployments")}),
    Happening("policy", 2, {"rule": RULES}),
    Happening("stock", 3, {"sold_out": (False, True)}),
    Happening("excluded", 2, {"value": (False, True)}),
    Happening("quota", 1, {"used_up": SELDOM}),
    Happening("answers", 1, {"stored": (None, None, True, False)}),
    Happening("stranger", 1, {"name": ("", "", "one-worker-0", "one-master-0")}),
    Happening("garbage", 1, {}),
    Happening("time", 10, {"seconds": (0, 0, 0, 0.4, 9.5, 30.0, 400.0, 700.0)}),
    Happening("mood", 2, {"lively": MOSTLY, "diligent": MOSTLY}),
    Happening("lag", 2, {"kind": KINDS}),
    Happening("hear", 3, {"who": SOME, "kind": KINDS, "events": (1, 2, 3)}),
    Happening("relist", 1, {"who": SOME, "kind": KINDS}),
    Happening("step", 4, {"who": SOME, "steps": (1, 2, 3, 4), "choice": SOME}),
    Happening("reconcile", 2, {"who": SOME}),
    Happening("settle", 2, {"who": SOME}),
    Happening("crash", 3, {"who": SOME, "kind": KINDS}),
)
# What happens to runs in queues.
QUEUES = (
    Happening(
        "kueue",
        6,
        {"reason": ("", "", "", "Preempted", "PodsReadyTimeout", "deleted", *OWN_EVICTIONS)},
    ),
)
# What happens to runs that start all at once.
STARTS = (
    Happening("room", 6, {"places": (1, 2, 2, 3)}),
    Happening("part", 3, {"most_pods": (None, None, 2, 3)}),
    Happening("demand", 1, {"value": (False, True)}),
    Happening("start_now", 1, {"name": ("one", "two")}),
    Happening("time", 6, {"seconds": (0, 0, 30.0, 61.0, 125.0, 600.0)}),
)
# What would end most plays early, if it were as frequent as the rest.
RARE = (
    Happening("delete", 1, {"kind": ("runs",), "foreground": (False, True)}),
    Happening("apply", 3, {"name": ("one", "two")}),
)
