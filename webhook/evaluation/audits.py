"""What enforcing a policy under Audit does to a pod: the pod is evaluated with it enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.decision.decision import TOGETHER, Audited
from webhook.shortening import shortened

if TYPE_CHECKING:
    from webhook.decision.decision import Effect, Outcome
    from webhook.evaluation.evaluation import Evaluation

NODES_DECIDE: Final = (
    "a webhook that watches nodes rejects pods whose node does not meet a requirement"
)
_NODES_UNKNOWN: Final = f"{NODES_DECIDE}; the nodes are unknown here: give --nodes"


def judge(evaluation: Evaluation) -> Audited | None:
    """Return the effects of the policies under Audit, with what the API server does to the pod.

    The decision knows what policies reject. A pod that they change is evaluated as it would be.
    """
    given = evaluation.decision.audited
    if given is None:
        return None
    alone = {policy: _judged(evaluation, policy, effect) for policy, effect in given.alone.items()}
    if len(alone) == 1:
        (together,) = alone.values()
    else:
        together = _judged(evaluation, TOGETHER, given.together)
    return Audited(alone, together, given.patch)


def _judged(evaluation: Evaluation, policy: str, effect: Effect) -> Effect:
    if effect.outcome == "rejects" and evaluation.refusals:
        return effect._replace(outcome="same")
    if effect.outcome != "changes":
        return effect
    then = evaluation.enforcing("" if policy == TOGETHER else policy)
    if then.refusals:
        outcome: Outcome = "rejects" if evaluation.allowed else "same"
        return effect._replace(outcome=outcome, rejections=then.refusals)
    if then.depends_on_node and not evaluation.depends_on_node:
        return effect._replace(outcome="not-judged", unknown=_NODES_UNKNOWN)
    off = [name for name in then.held_off if name not in evaluation.held_off]
    if off:
        why = then.on_node(off[0]).decision.reason.removeprefix("fairlead: ")
        rejections = [f"on {shortened(off)}: {why}"]
        return effect._replace(outcome="rejects", rejections=rejections, nodes=off)
    if classes := [
        unlisted_class
        for unlisted_class in then.unlisted
        if unlisted_class not in evaluation.unlisted
    ]:
        named = ", ".join(f"{kind} {name}" for kind, name in classes)
        what = f"whether the cluster has the {named} is not read, and without it pods are refused"
        return effect._replace(outcome="not-judged", unknown=what)
    return effect


def unjudged(given: Audited, why: str) -> Audited:
    """Return the effects of a decision where the API server's part is unknown."""

    def of(effect: Effect) -> Effect:
        if effect.outcome != "changes":
            return effect
        return effect._replace(outcome="not-judged", unknown=why)

    alone = {policy: of(effect) for policy, effect in given.alone.items()}
    return Audited(alone, of(given.together), given.patch)


def needs_nodes(evaluation: Evaluation) -> bool:
    """Return whether what happens to a DaemonSet's pod depends on nodes that are unknown: by the
    policies in force, or by those under Audit."""
    effects = evaluation.audited.effects.values() if evaluation.audited else ()
    return evaluation.depends_on_node or any(effect.unknown == _NODES_UNKNOWN for effect in effects)
