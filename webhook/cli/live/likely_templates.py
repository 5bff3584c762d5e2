"""Find the template of an object from which a live pod was made, by the pod's labels.

The labels that the controller adds count first: its author may have edited the templates since, or
may have put a label of another role into one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.sources.kind_model import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.workloads.template import PodTemplate

# The value of a label that differs between the replicas of a template.
_VARIES: Final = object()
# A value that fits a replica fits the template; a value that varies may fit.
_FITS: Final = 2
_MAY_FIT: Final = 1


def likely_templates(
    templates: Sequence[PodTemplate], labels: Mapping[str, str]
) -> Sequence[PodTemplate]:
    """Return the templates that fit the pod's labels best: several if they fit equally well."""
    if len(templates) < 2:
        return templates
    marks = [_common_labels(each) for each in templates]
    keys = [
        key
        for key in dict.fromkeys(key for each in marks for key in each)
        if len({repr(each.get(key)) for each in marks}) > 1
        and not any(each.get(key) == UNKNOWN for each in marks)
    ]
    scores = [sum(_fit(each.get(key), labels.get(key)) for key in keys) for each in marks]
    best = _best(list(zip(templates, scores, strict=True)))
    if len(best) < 2:
        return best
    own = [_written_labels(each) for each in best]
    # Without a label of its own, a template fits any pod.
    fitting = [
        (template, len(written))
        for template, written in zip(best, own, strict=True)
        if written.items() <= labels.items()
    ]
    return _best(fitting) if fitting else best


def _best(scored: Sequence[tuple[PodTemplate, int]]) -> list[PodTemplate]:
    most = max(score for _, score in scored)
    return [template for template, score in scored if score == most]


def _fit(value: object, of_pod: str | None) -> int:
    if value is _VARIES:
        return _MAY_FIT
    return _FITS if value == of_pod else 0


def _written_labels(template: PodTemplate) -> dict[str, Any]:
    """Return the labels of the template itself, as far as the controller adds no others."""
    metadata = template.template.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    added = template.made(0)
    if added.alone or not isinstance(labels, dict):
        return {}
    return {key: value for key, value in labels.items() if key not in added.labels}


def _common_labels(template: PodTemplate) -> dict[str, Any]:
    """Return the labels that the controller adds; _VARIES for one that differs between replicas.

    Numbers of replicas and of groups differ between the first, the second or the last one.
    """
    last = max((template.count or 1) - 1, 0)
    first, *others = (template.made(index).labels for index in sorted({0, min(1, last), last}))
    return {
        key: first.get(key) if all(each.get(key) == first.get(key) for each in others) else _VARIES
        for key in {key for each in (first, *others) for key in each}
    }
