"""The warnings of a whole set of documents, or of some of its policies beside all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.policy.model import PlacementPolicy
from webhook.policy.together import contradicting
from webhook.policy.together.said import Policy, policy
from webhook.policy.together.shadowed import Shadows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.policy.findings import Finding
    from webhook.policy.source import Document

# Pairs of policies that are folded; each takes some 20 µs.
MOST_PAIRS: Final = 20_000


class Memory:
    """What policies were made ready as, kept for the next look: of a thousand a write has one."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Document, list[CapacityClass], Policy]] = {}

    def policies(
        self, documents: Sequence[Document], classes: Mapping[str, CapacityClass]
    ) -> list[Policy]:
        """The policies of the documents in their order, without those of unknown classes."""
        known, found = self._known, {}
        for document in documents:
            model = document.model
            if not isinstance(model, PlacementPolicy):
                continue
            named = [classes[name] for name in classes_of(model) if name in classes]
            if len(named) < len(classes_of(model)):
                continue
            before = known.get(model.name)
            if before and before[0] is document and before[1] == named:
                found[model.name] = before
            else:
                found[model.name] = (document, named, policy(document, model, classes))
        self._known = found
        return sorted((each for _, _, each in found.values()), key=lambda each: each.order)


def classes_of(model: PlacementPolicy) -> list[str]:
    """The names of the classes that a policy wants something of, in order."""
    spec = model.spec
    parts = (spec.requirements, spec.overrides, spec.defaults)
    wishes = [wish for part in parts if part for wish in part.capacity or ()]
    return list(dict.fromkeys(wish.class_name for wish in wishes))


def warnings(
    policies: Sequence[Policy],
    chosen: Collection[str] | None = None,
    *,
    most_pairs: int = MOST_PAIRS,
) -> list[Finding]:
    """What is to be said of the policies, given in their order: of all, or of those chosen by name.

    Of chosen ones it is told what they do to others, too. At most `most_pairs` of policies are held
    against each other.
    """
    mine = [each for each in policies if chosen is None or each.name in chosen]
    shadows, pairs = Shadows(policies), contradicting.Pairs(policies)
    found: list[Finding] = []
    for each in mine:
        found += contradicting.alone(each)
        found += shadows.over(each)
        if chosen is not None:
            found += shadows.under(each)
    # Of what reaches no pod there is no more to say.
    dead = {(each.file, each.path) for each in found}
    found += [each for each in pairs.of(mine, most_pairs) if (each.file, each.path) not in dead]
    return sorted(set(found))
