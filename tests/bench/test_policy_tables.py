"""What the scripts that measure policies in the cluster make of their figures."""

from __future__ import annotations

import base64

import orjson

from tests.bench import nodes_decide, policy_arena, policy_decide, policy_memory, policy_tables
from tests.bench.__main__ import TABLES
from tests.bench.document import check
from tests.bench.nodes_decide import NodesDecide
from tests.bench.policy_decide import DecideResult
from tests.bench.policy_memory import Held, PolicyMemory, node
from tests.bench.policy_writes import WritesResult, value_in, written
from tests.wording import Wording, mentions
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


def test_deciding_is_compared_within_each_round() -> None:
    """The machine was twice as slow in the second: the ratios do not tell."""
    rounds = {
        policy_decide.CLUSTER: [150.0, 300.0],
        policy_decide.FILES: [150.0, 300.0],
        policy_decide.TEN: [100.0, 200.0],
    }
    text = policy_tables.decide(DecideResult(rounds), 1000)
    assert "| 10, from files | 150 (100–200) | 1.50 (1.50–1.50) |" in text
    assert text.count("**reached**") == 2


def test_a_look_at_the_nodes_is_compared_within_each_round() -> None:
    """Pod by pod; the change of a node stands by itself."""
    without = {arm: [100.0, 300.0, 200.0] for arm in nodes_decide.ARMS}
    looking = {arm: [110.0, 330.0, 240.0] for arm in nodes_decide.ARMS}
    text = policy_tables.nodes(NodesDecide(5000, without, looking, [90.0, 120.0, 100.0]))
    assert text.startswith("| 10 KB pod, 100 policies, 5,000 nodes |")
    for arm in nodes_decide.ARMS:
        assert f"| {arm} | 1.10 (1.10–1.20) |" in text
    assert text.endswith("The change of a node: 100 (90–120) µs.")


def test_the_view_of_the_nodes_is_what_a_process_holds_more(wording: Wording) -> None:
    """Than one beside the same nodes that does not look at them."""
    held = dict.fromkeys(
        (
            policy_memory.FROM_FEW,
            policy_memory.FROM_FILES,
            policy_memory.FROM_CLUSTER,
            policy_memory.REWRITTEN,
            policy_memory.BESIDE_NODES,
        ),
        Held(100, 110),
    )
    held[policy_memory.WITH_NODES] = Held(150, 600)
    text = policy_tables.memory(PolicyMemory(1000, 5000, 4000, 250, held))
    mentions(text, "nodes: +50 MiB, 10.2 KiB", "600 MiB at most, **not reached**")
    wording(text)


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
