"""The stamp that every decision leaves on a run's pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from webhook import names
from webhook.placement.stamp_text import read_stamp
from webhook.placement.trace import QUOTE_LIMIT
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.pod import PodPlacement

# Enough to distinguish all policy sets of a cluster's lifetime, and short enough to read aloud.
HASH_LENGTH = 16
_MOST_REMOVED: Final = 16


def write_stamp(
    content: Mapping[str, object],
    set_hash: str,
    policies_by_exception: Mapping[str, Sequence[str]],
) -> str:
    """Return the annotation fairlead.dev/placement of a pod: compact JSON.

    It is the same for the same pod and policies. No decision reads it, but for `removed_texts`; the
    controller reads the fallbacks.

    `content` has `policies`: the fields that each policy set, an empty object if none applies;
    `fallback`: by class the seconds after which the controller gives up waiting, None if it does
    not, or the time until when the class is not required; `removed`: what `removed_texts` returns;
    `leftOut`: by policy the labels that it did not set, because the selector of the pod's owner was
    not read. Or it has `leftAlone`: the reason. In a dry run of the controller, `turns`: the
    replica indexes whose replicas policies may treat otherwise than those before.
    """
    stamp = {**content, "set": set_hash[:HASH_LENGTH]}
    if policies_by_exception:
        stamp["exceptions"] = policies_by_exception
    return orjson.dumps(stamp, option=orjson.OPT_SORT_KEYS).decode("utf-8")


def removed_texts(
    placement: PodPlacement, removed: Mapping[str, Sequence[str]], removers: Sequence[str]
) -> dict[str, list[str]]:
    """Return by policy the tolerations that it took from the pod, now or in an earlier call.

    `removers` are the policies that may do so. The API server may call again about a pod that has
    lost them; the stamp then is the only record. It decides nothing.
    """
    before = read_stamp({"annotations": placement.annotations})
    texts_by_policy = {}
    for policy in removers:
        earlier = before.removed.get(policy, ()) if before else ()
        texts = dict.fromkeys([*removed.get(policy, ()), *earlier])
        texts_by_policy[policy] = [cut(text, QUOTE_LIMIT) for text in texts][:_MOST_REMOVED]
    return {policy: texts for policy, texts in texts_by_policy.items() if texts}


def stamp_of(placement: PodPlacement | None) -> str:
    """Return the pod's stamp; empty if it has none."""
    return placement.annotations.get(names.PLACEMENT, "") if placement else ""
