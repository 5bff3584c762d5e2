"""Judge the values that a pod's author chose by those that requirements allow."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from webhook.placement import label_values
from webhook.placement.bundle import conjoined
from webhook.placement.fields import SCALARS
from webhook.placement.settings import ScalarSetting, ValuesSetting
from webhook.placement.trace import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity_setting import CapacitySetting
    from webhook.placement.merge import MergeContext
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term
    from webhook.placement.trace import Ledger


class _Choice(NamedTuple):
    """A value that the author allows the scheduler, and where the pod says it."""

    value: str
    where: str


def judge(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[CapacitySetting],
    context: MergeContext,
    ledger: Ledger,
) -> None:
    """Reject the pod for each value that is not allowed, and where its author has to choose one.

    `asked` are the classes that the author requests. Raises TooManyTerms.

    What policies set is allowed: the API server may send a pod again that they have changed. So is
    the nodeSelector of a pod that Kueue has admitted, where that comes before overrides.
    """
    terms = conjoined(pod.required, [capacity.condition for capacity in asked]) or []
    for setting in bundle.of(ValuesSetting):
        name, allowed = setting.name, {*setting.values, *_set_by_policies(setting, bundle)}
        choices = [*_choices(setting, pod, terms, context)]
        wrong = next((choice for choice in choices if choice.value not in allowed), None)
        may = f"allowed: {setting.describe_value}"
        if context.flavor is not None and context.flavor.kept and name == "nodeSelector":
            ledger.note(setting, "skipped", f"{context.flavor.by} has chosen the nodes")
        elif wrong is not None:
            ledger.reject(setting, f"{wrong.where} {quoted(wrong.value)}; {may}")
        elif setting.stated and not choices:
            ledger.reject(setting, f"the pod says nothing about {setting.judged}; {may}")
        elif choices:
            ledger.note(setting, "kept", f"{quoted(choices[0].value)} is allowed")
        else:
            ledger.note(setting, "kept", "the pod says nothing about it")


def _set_by_policies(setting: ValuesSetting, bundle: Bundle) -> Iterator[str]:
    for scalar in bundle.of(ScalarSetting):
        if scalar.name == setting.name:
            yield str(scalar.value)
    if setting.key:
        for node_setting in bundle.on_nodes:
            if node_setting.of_team:
                continue
            for term in node_setting.node_terms or ():
                yield from label_values.listed_values(term, setting.key)


def _choices(
    setting: ValuesSetting, pod: PodPlacement, terms: Sequence[Term], context: MergeContext
) -> Iterator[_Choice]:
    """Yield the values that the pod leaves to the scheduler; none if it says nothing.

    Terms of required node affinity are alternatives: the pod says something if each of them does.
    """
    if not setting.key:
        field = SCALARS[setting.name]
        value = str(getattr(pod, field.attribute))
        unset = value in field.unwritten(context.default_priority_class)
        if not unset or value in setting.values:
            yield _Choice(value, f"{setting.judged} is")
        return
    if setting.key in pod.node_selector:
        yield _Choice(pod.node_selector[setting.key], f"{setting.judged} is")
        return
    by_term = [label_values.listed_values(term, setting.key) for term in terms]
    says = all(by_term)
    for value in chain.from_iterable(by_term):
        if says or value not in setting.values:
            yield _Choice(value, f"affinity allows {setting.key}")
