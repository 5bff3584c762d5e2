"""Kubernetes' own Job (batch/v1), which is converted to a Run without a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.backends.backend import (
    FieldMapping,
    ObjectKind,
    make_object,
    render_fields,
    render_template,
)

if TYPE_CHECKING:
    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest

KIND: Final = ObjectKind(
    api_version="batch/v1",
    kind="Job",
    framework=None,
    roles={"master": "the one pod", "worker": "completions and parallelism"},
    fields=(
        FieldMapping("restartScope", "", only=("Replica",)),
        FieldMapping(
            "backoffLimit",
            "backoffLimit",
            unset="6",
            # batch/v1 JobSpec: "When backoffLimitPerIndex is specified, defaults to 2147483647".
            beside={"backoffLimitPerIndex": "no limit, because of backoffLimitPerIndex"},
        ),
        FieldMapping("activeDeadlineSeconds", "activeDeadlineSeconds"),
        FieldMapping("ttlSecondsAfterFinished", "ttlSecondsAfterFinished"),
        FieldMapping("suspend", "suspend"),
    ),
)


def render_batch_job(drafts: Drafts) -> Manifest:
    """Return the Job of a Run with one role."""
    run = drafts.run
    ((role, draft),) = drafts.roles.items()
    template = render_template(draft, first=True)
    template["spec"]["restartPolicy"] = "Never"
    count = run.spec.roles[role].count
    pods: JsonObject = {} if role == "master" else {"completions": count, "parallelism": count}
    return make_object(run, KIND, {**pods, **render_fields(run, KIND), "template": template})
