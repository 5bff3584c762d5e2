"""Whose the policies in the ConfigMap are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook.errors import InstallationError
from webhook.installation.policy_files import GIVEN, MAX_BYTES, has_own_policies, with_policies
from webhook.installation.policy_files import SHIPPED as SHIPS

Json = dict[str, Any]
EMPTY: Json = {"metadata": {"name": "c", "annotations": {"a": "b"}}}
SHIPPED = with_policies(EMPTY, {"a.yaml": "1"}, SHIPS)
NEWER = with_policies(EMPTY, {"a.yaml": "2"}, SHIPS)


def test_what_was_applied_may_be_brought_up_to_date() -> None:
    """Other annotations stay."""
    assert not has_own_policies(SHIPPED, NEWER)
    assert SHIPPED["metadata"]["annotations"]["a"] == "b"
    assert EMPTY == {"metadata": {"name": "c", "annotations": {"a": "b"}}}


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"a.yaml": "mine"}},
        {"data": {"a.yaml": "1", "b.yaml": "mine"}},
        {"data": {}},
        {"data": None},
        {"binaryData": {"b.yaml": "bWluZQ=="}},
        {"metadata": {"name": "c"}},
    ],
)
def test_objects_that_a_user_changed_or_created_are_not_ours(change: Json) -> None:
    """A file more, a file less, another text; or nothing says that we put it there."""
    assert has_own_policies({**SHIPPED, **change}, NEWER)


def test_given_policies_are_kept_by_an_installation_without_any() -> None:
    """The next one has the options of last time, and does not know the folder."""
    given = with_policies(EMPTY, {"a.yaml": "1"}, GIVEN)
    assert has_own_policies(given, NEWER)


def test_an_unchanged_object_is_not_a_change() -> None:
    """Whoever wrote it."""
    made_by_kubectl = {"metadata": {"name": "c"}, "data": {"a.yaml": "2"}}
    assert not has_own_policies(made_by_kubectl, NEWER)


def test_what_no_config_map_can_hold_is_an_error(wording: Wording) -> None:
    """Before anything is sent."""
    with pytest.raises(InstallationError) as refused:
        with_policies(EMPTY, {"a.yaml": "é" * (MAX_BYTES // 2 + 1)}, GIVEN)
    mentions(str(refused.value), "ConfigMap", "leave out")
    wording(str(refused.value))
