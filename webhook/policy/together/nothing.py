"""Blocks of conditions that no pod can meet: a policy that matches nothing, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.policy.findings import Caution, Kind
from webhook.policy.match_model import Match
from webhook.policy.together.reach import Reach, atoms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.policy.findings import Path
    from webhook.policy.model import PolicySpec


class Nothing(NamedTuple):
    """Why no pod is matched; `at` is below the block's spec."""

    at: Path
    why: str


def nothing(match: Match, exclude: Sequence[Match] = ()) -> Nothing | None:
    """Why no pod can meet `match` and none of the excludes; None if some pod may."""
    reach = Reach(match)
    if unmet := reach.unmet():
        field, why = unmet
        return Nothing(("match", field), why)
    blocks = [Reach(each) for each in exclude]
    for at, block in enumerate(blocks):
        if block.covers(reach):
            return Nothing(("exclude", at), "it excludes every pod that match takes in")
    if blocks and all(_taken(Reach(atom), blocks) for atom in atoms(match)):
        return Nothing(("exclude",), "together they exclude every pod that match takes in")
    return None


def _taken(atom: Reach, blocks: Sequence[Reach]) -> bool:
    return atom.unmet() is not None or any(block.covers(atom) for block in blocks)


def of_policy(spec: PolicySpec) -> Iterator[Caution]:
    """The policy matches no pod, is enforced for none, or a block of it excludes none."""
    match = spec.match or Match()
    found = nothing(match, spec.exclude)
    if found:
        yield _caution(found.at, f"the policy can match no pod: {found.why}")
        return
    for at, block in enumerate(spec.exclude):
        if unmet := Reach(block).unmet():
            field, why = unmet
            yield _caution(("exclude", at, field), f"the block can exclude no pod: {why}")
    if spec.rollout:
        rollout = Reach(Match(namespaces=spec.rollout.namespaces))
        if rollout.apart(Reach(match)):
            what = "the policy is enforced for no pod: it matches in other namespaces alone"
            yield _caution(("rollout", "namespaces"), what)


def of_exception(match: Match) -> Iterator[Caution]:
    """The exception takes nothing away."""
    if found := nothing(match):
        yield _caution(found.at, f"the exception can match no pod: {found.why}")


def _caution(at: Path, message: str) -> Caution:
    return Caution(("spec", *at), message, Kind.MATCHES_NOTHING)
