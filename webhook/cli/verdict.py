"""What becomes of pods, in a few words; and what those of no run are lacking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook import names

if TYPE_CHECKING:
    from webhook.admission.decision import Decision
    from webhook.workloads.template import PodTemplate

_COLOURS = {"placed": "green", "rejected": "red", "left-alone": "yellow", "not-sent": "yellow"}


def verdict(decision: Decision) -> str:
    """What becomes of the pods, in a few words."""
    match decision.result:
        case "placed":
            return f"placed by {', '.join(took_part(decision)) or 'its own request'}"
        case "unchanged" if decision.policies:
            return f"unchanged: {_as_wanted(decision)}"
        case "unchanged" if decision.set_aside.by:
            return "unchanged: exceptions set aside every policy that matches"
        case "unchanged":
            return "unchanged: no policy matches"
        case "left-alone":
            return f"left alone: {decision.reason}"
        case "rejected":
            return "rejected"
        case "not-sent":
            return "not sent to the webhook: left as it is"
    return "not part of a run: left as it is"


def took_part(decision: Decision) -> list[str]:
    """The policies that took part; of one that has settings without effect, that it is so."""
    unfulfilled = decision.unfulfilled
    return [f"{name} (not in full)" if name in unfulfilled else name for name in decision.policies]


def _as_wanted(decision: Decision) -> str:
    unfulfilled = decision.unfulfilled
    whole = [name for name in decision.policies if name not in unfulfilled]
    lines = [f"it is as {', '.join(whole)} would have it"] if whole else []
    lines += [
        f"{', '.join(fields)} of {name} {'has' if len(fields) == 1 else 'have'} no effect"
        for name, fields in unfulfilled.items()
    ]
    return "; ".join(lines)


def coloured(decision: Decision, text: str) -> str:
    """`text` in the colour of what becomes of the pods."""
    return click.style(text, fg=_COLOURS.get(decision.result))


def cure(template: PodTemplate) -> str:
    """How pods that belong to no run become a part of one."""
    if template.source.is_labelled and not template.is_pod:
        return (
            f"the label {names.RUN} is on the {template.source.kind} itself; "
            f"pods get those of {template.labels_path}"
        )
    return f"to make it one, put the label {names.RUN}: NAME into {template.labels_path}"
