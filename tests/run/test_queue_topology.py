"""What pods may ask of a topology of Kueue, by the rules of its jobs' webhooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fast_yaml import load_yaml
from tests.test_guides import blocks
from tests.wording import mentions
from webhook import names
from webhook.run.queue_topology import find_problems, read_request

PREFIX = f"{names.KUEUE_PREFIX}podset-"
HOST = "kubernetes.io/hostname"


def problems(*sets: tuple[int, dict[str, str]]) -> str:
    """What is wrong with pod sets of so many pods with these annotations."""
    asked = [
        (f"set {at}", count, read_request({PREFIX + key: text for key, text in own.items()}))
        for at, (count, own) in enumerate(sets)
    ]
    return "; ".join(find_problems(asked))


GROUP = {"required-topology": HOST, "group-name": "all"}
SLICES = {"slice-required-topology": HOST, "slice-size": "2"}


@pytest.mark.parametrize(
    "sets",
    [
        [],
        [(3, {})],
        [(1, GROUP), (4, GROUP)],
        [(4, GROUP), (1, GROUP)],
        [(1, GROUP), (1, GROUP), (1, {"required-topology": HOST})],
        [(4, {"preferred-topology": HOST, **SLICES})],
        [(2, {"unconstrained-topology": "true"})],
        [(2, {"slice-required-topology-constraints": "[]", "required-topology": HOST})],
    ],
)
def test_what_kueue_takes_of_its_own_jobs_is_taken(sets: list[tuple[int, dict[str, str]]]) -> None:
    assert problems(*sets) == ""


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([(1, GROUP)], ["group all has set 0;", "two sets of pods"]),
        ([(1, GROUP), (1, GROUP), (1, GROUP)], ["set 0, set 1, set 2;", "two sets of pods"]),
        ([(2, GROUP), (3, GROUP)], ["one of them of one pod"]),
        (
            [(1, GROUP), (2, {"preferred-topology": HOST, "group-name": "all"})],
            ["set 0, set 1 of group all", "the same"],
        ),
        ([(1, {"group-name": "a"}), (1, GROUP)], ["set 0", "group-name needs"]),
        (
            [(1, {**GROUP, "group-name": "7"}), (1, {**GROUP, "group-name": "7"})],
            ["'7'", "no number"],
        ),
        ([(2, {**GROUP, **SLICES}), (1, GROUP)], ["excludes slices"]),
        (
            [(1, {"required-topology": HOST, "preferred-topology": HOST})],
            ["required-topology", "preferred-topology exclude"],
        ),
        ([(2, {"slice-size": "1"})], ["belong together"]),
        ([(2, {"slice-required-topology": HOST})], ["belong together"]),
        ([(2, {**SLICES, "slice-size": "3"})], ["slice-size is 3", "1 to 2"]),
        ([(2, {**SLICES, "slice-size": "0"})], ["slice-size is 0", "1 to 2"]),
        (
            [(2, {**SLICES, "slice-required-topology-constraints": "[]"})],
            ["constraints excludes"],
        ),
    ],
)
def test_what_kueue_refuses_of_its_own_jobs_is_named(
    sets: list[tuple[int, dict[str, str]]], words: list[str]
) -> None:
    """Its scheduler panics at a Workload with some of them."""
    mentions(problems(*sets), *words)


def test_the_guide_asks_for_one_rack_for_all_pods_of_a_run() -> None:
    """By annotations of its pod template, of one leader and workers of one kind."""
    (text,) = (
        block.text
        for block in blocks(Path(__file__).parents[2] / "docs" / "guides" / "one-rack.md")
        if "kueue" in block.text
    )
    annotations = load_yaml(text)["spec"]["template"]["metadata"]["annotations"]
    request = read_request(annotations)
    assert request == {"required": "example.com/rack", "podSetGroupName": "all"}
    assert find_problems([("master", 1, request), ("workers", 3, request)]) == []
