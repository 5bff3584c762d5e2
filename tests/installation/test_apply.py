"""What `fairlead install` need not send again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from webhook import names
from webhook.installation.apply import is_applied
from webhook.policy.crd.definitions import custom_resource_definitions

Json = dict[str, Any]
OURS = {"manager": names.INSTALL_MANAGER, "operation": "Apply"}
STATUS = {"manager": "kube-apiserver", "operation": "Update", "subresource": "status"}
SOMEBODY = {"manager": "kubectl-edit", "operation": "Update"}


def wanted() -> Json:
    """A definition as the manifests have it."""
    definition = next(iter(custom_resource_definitions().values()))
    return {**definition, "metadata": {"name": "x", "labels": {"app": "fairlead"}}}


def stored() -> Json:
    """The same as the API server has it after it was applied."""
    found = wanted()
    metadata = {**found["metadata"], "uid": "u", "managedFields": [OURS, STATUS]}
    spec = {**found["spec"], "conversion": {"strategy": "None"}}
    return {**found, "metadata": metadata, "spec": spec, "status": {"conditions": []}}


def test_an_unchanged_definition_is_not_sent_again() -> None:
    """Its status is the API server's own."""
    assert is_applied(stored(), wanted())


def also_written_by_somebody(live: Json) -> None:
    """A field may have another owner now, though its value is as it was."""
    live["metadata"]["managedFields"].append(SOMEBODY)


def applied_by_somebody_else(live: Json) -> None:
    """By kubectl, from the manifests."""
    live["metadata"]["managedFields"] = [SOMEBODY, STATUS]


def updated_by_us(live: Json) -> None:
    """Not by server-side apply: nothing that leaves the manifests would go."""
    live["metadata"]["managedFields"] = [{**OURS, "operation": "Update"}, STATUS]


def of_another_schema(live: Json) -> None:
    """As an older version has it."""
    live["spec"]["versions"] = [{**live["spec"]["versions"][0], "schema": {}}]


def with_a_conversion(live: Json) -> None:
    """That the manifests know nothing of."""
    live["spec"]["conversion"] = {"strategy": "Webhook"}


def with_an_old_label(live: Json) -> None:
    """The manifests have it no more."""
    live["metadata"]["labels"] = {**live["metadata"]["labels"], "old": "yes"}


def with_an_old_annotation(live: Json) -> None:
    """The same."""
    live["metadata"]["annotations"] = {"old": "yes"}


@pytest.mark.parametrize(
    "difference",
    [
        also_written_by_somebody,
        applied_by_somebody_else,
        updated_by_us,
        of_another_schema,
        with_a_conversion,
        with_an_old_label,
        with_an_old_annotation,
    ],
)
def test_a_definition_that_differs_is_applied(difference: Callable[[Json], None]) -> None:
    """In what it says, or in who has written it."""
    live = stored()
    difference(live)
    assert not is_applied(live, wanted())
