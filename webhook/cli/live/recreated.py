"""Live objects as if they were created now: what `fairlead mutate` decides on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.live.judged import LivePod
from webhook.cli.offline import Offline
from webhook.workloads.template import PodTemplate

if TYPE_CHECKING:
    from webhook.cli.live.question import Answers


def recreated(answers: Answers, *, whole: bool) -> Offline:
    """The objects, pods as their authors wrote them. `whole`: they are to be printed as objects.

    Raises UsageError for a Run that is to be printed, for it has no such pod in its text.
    """
    objects, templates = [], []
    for each in answers.found:
        if isinstance(each, LivePod):
            objects.append(each.origin.pod)
            templates.append(PodTemplate(each.origin.pod, ()))
            continue
        if whole and each.source.is_own_run:
            name, namespace = each.source.name, each.source.namespace
            raise click.UsageError(
                f"a Run has no pod in its text: kubectl get run {name} -n {namespace} -o yaml | "
                "fairlead run preview -f - -o yaml prints its pods"
            )
        objects.append(each.source)
        templates += each.templates
    first = objects[0].namespace
    return Offline(
        answers.policies,
        objects,
        templates,
        answers.namespaces,
        answers.cluster,
        first,
        answers.now,
        nodes=answers.nodes,
        configuration=answers.configuration,
    )
