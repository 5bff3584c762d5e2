"""Which matching policies take part in a decision, where there are exceptions, and what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement.trace import warning
from webhook.policy.exceptions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.admission.arrival import Arrival
    from webhook.policy.exceptions import SetAside
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.subject import Subject


def taking_part(
    policies: PolicySet, subject: Subject, arrival: Arrival
) -> tuple[tuple[int, ...], SetAside]:
    """The positions of the policies that match and take part, and what exceptions did to others."""
    matched = policies.matching(subject)
    if not policies.exceptions:
        return matched, NOTHING
    called = [policies.policies[at].name for at in matched]
    aside = policies.exceptions.set_aside(called, subject, arrival.now)
    gone = aside.policies
    return tuple([at for at in matched if policies.policies[at].name not in gone]), aside


def of_ended(aside: SetAside) -> Iterator[str]:
    """A warning for each exception that would have done something, had it not ended."""
    for exception, policies in aside.ended:
        which = "policy" if len(policies) == 1 else "policies"
        yield warning(
            f"exception {exception.name} ended at {exception.end}: it would have set aside "
            f"{which} {', '.join(policies)}"
        )
