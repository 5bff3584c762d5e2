"""What the scripts that measure policies in the cluster make of their figures."""

from __future__ import annotations

import base64

import orjson

from tests.bench import policy_arena, policy_tables
from tests.bench.__main__ import TABLES
from tests.bench.document import check
from tests.bench.policy_memory import node
from tests.bench.policy_writes import BurstResult, WritesResult, value_in, written
from webhook import names
from webhook.policy.load import load


def test_a_percentile_is_a_figure_that_was_measured() -> None:
    """The least that so many of them do not exceed; of a hundred the 99th, and not the worst."""
    hundred = [float(figure) for figure in range(100, 0, -1)]
    assert [policy_tables.percentile(hundred, s) for s in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert policy_tables.percentile([7.0], 0.99) == 7


def test_the_slowest_replica_decides_whether_a_write_was_in_time() -> None:
    """One that took longer than a second among a hundred is none at p99, two are."""
    for late, word in ((1, "**reached**"), (2, "**not reached**")):
        every = [300.0] * (100 - late) + [1500.0] * late
        text = policy_tables.writes(WritesResult(1000, 3, [20.0] * 100, [200.0] * 100, every))
        assert "1,000 policies is written, 100 writes" in text
        assert text.endswith(word)


def test_a_write_that_fails_or_takes_long_misses_the_goal() -> None:
    """Of a burst by one kubectl: each of the two goals by itself."""
    for failed, seconds, words in (
        (0, 19.0, ["**reached**", "**reached**"]),
        (1, 19.0, ["**not reached**", "**reached**"]),
        (0, 21.0, ["**reached**", "**not reached**"]),
    ):
        text = policy_tables.burst(BurstResult(1000, 500, failed, seconds, {"webhook": 10.0}))
        assert "| webhook | 20 |" in text
        assert [line.rpartition(", ")[2] for line in text.splitlines()[-2:]] == words


def test_the_measured_settings_are_the_documented_ones() -> None:
    """The policies load, a node is about 10 KB, and an answer's value is found in its patch."""
    documents = [*policy_arena.documents(30), written("w1")]
    loaded = load({f"{at}.yaml": orjson.dumps(each) for at, each in enumerate(documents)})
    assert len(loaded.policies.policies) == 31
    assert 8_000 < len(orjson.dumps(node(7))) < 12_000
    patches = (
        [{"op": "add", "path": "/metadata/annotations", "value": {"example.com/write": "w1"}}],
        [{"op": "add", "path": "/metadata/annotations/example.com~1write", "value": "w1"}],
    )
    for patch in patches:
        text = base64.b64encode(orjson.dumps(patch)).decode()
        assert value_in(orjson.dumps({"response": {"patch": text}})) == "w1"
    assert value_in(orjson.dumps({"response": {}})) == ""
    assert policy_arena.collection(names.POLICY_KIND).endswith("/placementpolicies")


def test_every_table_has_its_place_in_the_document() -> None:
    """Else minutes of work would have nowhere to go."""
    check(TABLES)
