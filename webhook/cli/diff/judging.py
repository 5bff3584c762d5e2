"""Decides on everything that was gathered, under both sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.admission.arrival import Arrival, Cluster
from webhook.cli.decisions import MAX_REPLICAS, misshapen
from webhook.cli.diff.comparison_input import Template
from webhook.cli.live.unstamped import unsent
from webhook.cli.offline import labels_of
from webhook.cli.run.previewed import pod_of
from webhook.comparison.compare import Comparison, Sets
from webhook.comparison.report import Judged, Maker, report
from webhook.errors import InvalidPod, UnreadableInput
from webhook.placement.nodes import by_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.cli.diff.comparison_input import ComparisonInput, Planned
    from webhook.comparison.report import Report
    from webhook.placement.shapes import JsonObject


def compared(gathered: ComparisonInput, now: datetime) -> Report:
    """What becomes of all pods otherwise, if they came `now`.

    Of replicas that are made alike those after the thousandth are taken to be like the last
    before, as `fairlead mutate` and `fairlead run preview` do. Raises UnreadableInput with every
    pod whose fields have no pod's shape.
    """
    judge = _Judge(gathered, now)
    found: list[Judged] = []
    problems: list[str] = []
    for each in gathered.pods.makers:
        if not isinstance(each, Template):
            found += judge.of_run(each)
            continue
        try:
            found += judge.of_template(each)
        except InvalidPod as error:
            problems.append(misshapen(each.template, error))
    if problems:
        raise UnreadableInput(problems)
    return report(found)


class _Judge:
    def __init__(self, gathered: ComparisonInput, now: datetime) -> None:
        self._now = now
        facts = gathered.facts
        cluster = Cluster(facts.default_priority_class, node=by_name(facts.nodes))
        self._namespaces = facts.namespaces
        self._configuration = facts.configuration
        self._comparison = Comparison(Sets(gathered.old, gathered.new, cluster, facts.nodes))

    def of_template(self, each: Template) -> Iterator[Judged]:
        template = each.template
        source = template.source
        place = source.place(template.path)
        maker = Maker(source.title, each.namespace, place, template.part, template.count, each.live)
        count = 1 if template.count is None else max(template.count, 1)
        decided = min(count, MAX_REPLICAS)
        for index in range(decided):
            more = count - decided if index == decided - 1 else 0
            yield self._judged(maker, index, more, template.pod(index))

    def of_run(self, each: Planned) -> Iterator[Judged]:
        plan = each.plan
        for role, count in plan.gang.counts.items():
            maker = Maker(f"Run/{plan.run.name}", each.namespace, each.place, role, count)
            usual = [index for index in range(count) if (role, index) not in plan.special]
            special = [index for index in range(count) if (role, index) in plan.special]
            for index in (*special, *usual[:MAX_REPLICAS]):
                last = len(usual) >= MAX_REPLICAS and index == usual[MAX_REPLICAS - 1]
                more = len(usual) - MAX_REPLICAS if last else 0
                yield self._judged(maker, index, more, pod_of(plan, role, index))

    def _judged(self, maker: Maker, index: int, more: int, pod: JsonObject) -> Judged:
        labels = labels_of(maker.namespace, self._namespaces)
        arrival = Arrival(pod, maker.namespace, labels, now=self._now)
        found = self._comparison.of(arrival)
        own = pod["metadata"].get("labels") or {}
        if unsent(own, maker.namespace, labels, self._configuration):
            found = "no run"
        return Judged(maker, index, more, found)
