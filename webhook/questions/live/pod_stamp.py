"""A stored pod as policies found it: its stamp, and what its author wrote.

What the author wrote comes from the template of its owner, its file, or its stamp.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jsonpatch

from webhook import names
from webhook.comparison.authored import with_origin, without_credits
from webhook.errors import InvalidPod, UnreadableText
from webhook.foreign_text import parse_object
from webhook.placement import patch
from webhook.placement import pod as pods
from webhook.placement.fields import OF_PODS, is_empty
from webhook.pod_schema import field_checks
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.object import Object
from webhook.workloads.stored_pod import has_edited_tolerations, normal_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.comparison.authored import Credit
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject
    from webhook.placement.stamp_text import Stamp
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.template import PodTemplate

_BY_STAMP: Final = (
    "the pod itself, without what policies set according to its stamp; what they replaced is not "
    "known"
)
_AS_IT_IS: Final = "the pod itself, as it is"
_BY_FILE: Final = "the file that it was applied from"
# The value of a label that differs between the replicas of a template.
_VARIES: Final = object()
# A value that fits a replica fits the template; a value that varies may fit.
_FITS: Final = 2
_MAY_FIT: Final = 1


class Origin(NamedTuple):
    """The pod as its author wrote it; `evidence` names the source of that.

    `unsure` has the fields whose value of the policy is unknown. `doubt` is why the author's text
    is unknown though the pod has an owner; empty if it is known.
    """

    pod: Object
    evidence: str
    unsure: Sequence[Credit] = ()
    doubt: str = ""


def origin_of(
    pod: Object, stamp: Stamp | None, templates: Sequence[PodTemplate], policies: PolicySet
) -> Origin:
    """Return the pod as its author wrote it. `templates` are those of the object that made it, if
    known.

    `pod` is as admission left it. Raises InvalidPod if its placement fields have no pod's shape.
    """
    placement = pods.parse_pod(pod.value)
    if stamp is None:
        return Origin(_bare(pod, placement, placement), _AS_IT_IS)
    stripped = without_credits(placement, stamp.policies, policies)
    source, text, doubt = _text(placement, templates)
    edited = has_edited_tolerations(pod.value)
    if edited and text is None:
        source += "; its tolerations were changed since; policies do not see that"
    elif edited:
        stripped = stripped._replace(doubtful=stripped.doubtful | {"tolerations"})
    if text is not None:
        stripped = with_origin(stripped, text)
    return Origin(_bare(pod, placement, stripped.placement), source, stripped.unsure, doubt)


def _text(
    placement: PodPlacement, templates: Sequence[PodTemplate]
) -> tuple[str, PodPlacement | None, str]:
    """Return the source of the author's text, the text, and why the text is unknown."""
    if templates:
        title = templates[0].source.title
        likely = likely_templates(templates, placement.labels)
        texts = [pods.parse_pod(_whole(template.pod(0))) for template in likely]
        if all(text == texts[0] for text in texts):
            return f"the template of {title}", _with_values(texts[0], placement), ""
        doubt = f"the pod's labels do not show which template of {title} it is from"
        return f"{_BY_STAMP}; {doubt}", None, doubt
    if file := _file(placement.annotations.get(names.LAST_APPLIED, "")):
        return _BY_FILE, file, ""
    return _BY_STAMP, None, ""


def _file(text: str) -> PodPlacement | None:
    """Return the placement in the file that a pod was applied from; None if it is no pod's.

    Anybody may write there, so nothing counts that the API server would not have taken.
    """
    try:
        pod = parse_object(text) if text else {}
        faults = [*field_checks.faults(pod, field_checks.POD, whole=False)]
        # Errors may follow the last fault that is listed.
        wrong = len(faults) == field_checks.MAX_FAULTS or any(f.severity == "error" for f in faults)
        return pods.parse_pod(_whole(pod)) if pod and not wrong else None
    except (UnreadableText, InvalidPod):
        return None


def _with_values(text: PodPlacement, placement: PodPlacement) -> PodPlacement:
    values = {
        key: placement.labels.get(key) if value == UNKNOWN else value
        for key, value in text.labels.items()
    }
    return text._replace(labels={k: value for k, value in values.items() if value is not None})


def _whole(pod: object) -> JsonObject:
    """With the two parts that a pod is read by, also where a template leaves one out.

    Its placement is as the API server would store it.
    """
    if not isinstance(pod, dict):
        raise InvalidPod("pod", "an object", pod)
    spec = pod.get("spec") or {}
    if isinstance(spec, dict):
        spec = normal_fields(spec)
    return {**pod, "metadata": pod.get("metadata") or {}, "spec": spec}


def _bare(pod: Object, placement: PodPlacement, author: PodPlacement) -> Object:
    """Return the pod with this placement, and without its status and its node."""
    value = copy.deepcopy({key: member for key, member in pod.value.items() if key != "status"})
    operations = copy.deepcopy(patch.operations(value, placement, author))
    value = jsonpatch.apply_patch(value, operations, in_place=True)
    # A patch takes no affinity away: no policy does.
    value["spec"]["affinity"] = copy.deepcopy(patch.affinity_of({}, author))
    value["spec"]["nodeName"] = author.node_name
    for field in OF_PODS:
        # Left by what was taken away, where a pod that says nothing has no such field.
        holder = value[field.holder]
        if field.filled_in is None and is_empty(holder.get(field.name)):
            holder.pop(field.name, None)
    return Object(pod.file, value)


def likely_templates(
    templates: Sequence[PodTemplate], labels: Mapping[str, str]
) -> Sequence[PodTemplate]:
    """Return the templates that fit the pod's labels best: several if they fit equally well.

    The labels that the controller adds count first: the author may have edited the templates since,
    or may have put a label of another role into one.
    """
    marks = [_common_labels(template) for template in templates]
    keys = [
        key
        for key in dict.fromkeys(key for mark in marks for key in mark)
        if len({repr(mark.get(key)) for mark in marks}) > 1
        and not any(mark.get(key) == UNKNOWN for mark in marks)
    ]
    best = _best(
        templates, [sum(_fit(mark.get(key), labels.get(key)) for key in keys) for mark in marks]
    )
    written = map(_written_labels, best)
    # Without a label of its own, a template fits any pod.
    return _best(best, [len(w) if w.items() <= labels.items() else -1 for w in written])


def _best(templates: Sequence[PodTemplate], scores: Sequence[int]) -> list[PodTemplate]:
    most = max(scores, default=0)
    return [template for template, score in zip(templates, scores, strict=True) if score == most]


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
        key: first.get(key)
        if all(other.get(key) == first.get(key) for other in others)
        else _VARIES
        for key in {key for labels in (first, *others) for key in labels}
    }
