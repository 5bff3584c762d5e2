"""Where policies are read from."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.wording import Wording, mentions
from webhook.cli.where import CLUSTER, Where, paths_of

A, B = Path("a"), Path("b")


@pytest.mark.parametrize(
    ("policies", "paths"), [((), []), ((CLUSTER,), []), ((A, B), [A, B]), ((A,), [A])]
)
def test_without_a_path_the_cluster_s_policies_are_meant(
    policies: tuple[Where, ...], paths: list[Path]
) -> None:
    """Whether the word stands there or nothing."""
    assert paths_of(policies) == paths


@pytest.mark.parametrize("policies", [(CLUSTER, A), (A, CLUSTER), (A, B, CLUSTER)])
def test_the_cluster_and_paths_are_not_one_set(
    policies: tuple[Where, ...], wording: Wording
) -> None:
    """In whichever order they are named, neither is left out in silence."""
    with pytest.raises(click.UsageError) as refused:
        paths_of(policies)
    mentions(refused.value.message, "cluster", "paths")
    wording(refused.value.message)
