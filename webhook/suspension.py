"""Disable the webhook for a time: its rules move into an annotation.

While disabled, the webhook configuration has no rules, so the API server sends no pod. Two
annotations hold the end time, and the rules by the webhook's name. They are all that is needed to
restore the rules. Pure: `configuration` is the object as it was read, and a patch is a JSON merge
patch that is valid only for that version of it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.errors import UnreadableText
from webhook.foreign_text import parse_moment, parse_object
from webhook.interception import rules as standard_rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    Json = dict[str, Any]

# The owner of the rules after they were removed or restored (`kubectl get --show-managed-fields`).
FIELD_MANAGER: Final = "fairlead-suspension"


@dataclass(frozen=True, slots=True)
class Suspension:
    """The annotations of a disabled webhook configuration.

    until: when to restore the rules; None if that cannot be read.
    saved: the rules to restore, by the webhook's name.
    lost: the webhooks that have no rules, and none saved either.
    silent: the webhooks that have no rules.
    problems: messages about annotations that cannot be read.
    """

    until: datetime | None
    saved: Mapping[str, list[Json]]
    silent: tuple[str, ...]
    lost: tuple[str, ...]
    problems: tuple[str, ...] = field(default=())

    def due(self, now: datetime) -> bool:
        """Return whether to restore the rules: the time is over or unknown, or they were restored
        already.

        They were if someone applied the manifests again in the meantime.
        """
        return self.until is None or now >= self.until or not self.silent


def parse_suspension(configuration: Mapping[str, Any]) -> Suspension | None:
    """Parse the annotations; None if the webhook is not disabled."""
    annotations = configuration["metadata"].get("annotations") or {}
    if not {names.DISABLED_UNTIL, names.DISABLED_RULES} & set(annotations):
        return None
    problems: list[str] = []
    until = _time(annotations.get(names.DISABLED_UNTIL), problems)
    saved = _rules(annotations.get(names.DISABLED_RULES), problems)
    silent = tuple(
        webhook["name"]
        for webhook in configuration.get("webhooks") or ()
        if not webhook.get("rules")
    )
    lost = tuple(name for name in silent if not saved.get(name))
    return Suspension(until, saved, silent, lost, tuple(problems))


def suspend(configuration: Mapping[str, Any], until: datetime) -> Json:
    """Return the patch that takes the rules away until then (which has a time zone).

    Rules that were saved before stay saved: a second time only moves the end.
    """
    suspension = parse_suspension(configuration)
    saved = dict(suspension.saved) if suspension else {}
    webhooks = list(configuration.get("webhooks") or ())
    saved |= {webhook["name"]: webhook["rules"] for webhook in webhooks if webhook.get("rules")}
    webhook_names = {webhook["name"] for webhook in webhooks}
    kept = {name: rules for name, rules in sorted(saved.items()) if name in webhook_names}
    return _patch(
        configuration,
        {
            names.DISABLED_UNTIL: until.astimezone(UTC).isoformat(timespec="seconds"),
            names.DISABLED_RULES: json.dumps(kept, separators=(",", ":")),
        },
        [{**webhook, "rules": []} for webhook in webhooks],
    )


def resume(configuration: Mapping[str, Any]) -> Json:
    """Return the patch that puts the rules back where there are none, and takes the annotations
    away.

    What is not saved is put back as every entry of Fairlead's has it. Rules that are there stay.
    """
    suspension = parse_suspension(configuration)
    saved = suspension.saved if suspension else {}
    return _patch(
        configuration,
        {names.DISABLED_UNTIL: None, names.DISABLED_RULES: None},
        [
            {
                **webhook,
                "rules": webhook.get("rules") or saved.get(webhook["name"]) or standard_rules(),
            }
            for webhook in configuration.get("webhooks") or ()
        ],
    )


def _patch(
    configuration: Mapping[str, Any], annotations: Mapping[str, str | None], webhooks: list[Json]
) -> Json:
    version = configuration["metadata"]["resourceVersion"]
    return {
        "metadata": {"resourceVersion": version, "annotations": dict(annotations)},
        "webhooks": webhooks,
    }


def _time(text: str | None, problems: list[str]) -> datetime | None:
    if text is None:
        problems.append(f"the annotation {names.DISABLED_UNTIL} is missing")
        return None
    try:
        return parse_moment(text)
    except UnreadableText as error:
        problems.append(f"the annotation {names.DISABLED_UNTIL}: {error}")
        return None


def _rules(text: str | None, problems: list[str]) -> dict[str, list[Json]]:
    rules_by_name: dict[str, Any] | None = None
    with suppress(UnreadableText):
        rules_by_name = parse_object(text or "")
    if rules_by_name is None or not all(map(_are_rules, rules_by_name.values())):
        problems.append(
            f"the annotation {names.DISABLED_RULES} is "
            f"{'missing' if text is None else 'no JSON object of lists of rules'}"
        )
        return {}
    return rules_by_name


def _are_rules(rules: object) -> bool:
    return (
        isinstance(rules, list)
        and bool(rules)
        and all(isinstance(rule, dict) and rule.get("operations") for rule in rules)
    )
