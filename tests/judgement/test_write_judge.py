"""A write is judged as a change of the whole set: what it brings, and nothing that was there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.judgement.test_cluster_objects import objects
from tests.laws.strategies import CLASSES, policy_lists
from tests.objects import an_object, required_affinity
from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InvalidDocuments
from webhook.judgement.set_judgement import Objects, load_objects
from webhook.judgement.together.warnings import OF_A_WRITE, Budget
from webhook.judgement.write_judge import Judge, Judgement, Write
from webhook.placement.nodes import Node
from webhook.policy.findings import Kind

Json = dict[str, Any]


def stored(kind: str, name: str, **spec: Any) -> Json:
    return an_object(names.API_VERSION, kind, name, spec)


def policy(name: str, **spec: Any) -> Json:
    return stored(names.POLICY_KIND, name, **spec)


def setting(of: str, name: str = "setting", mode: str = "Prefer") -> Json:
    """A policy that wants something of a class."""
    return policy(name, overrides={"capacity": [{"class": of, "mode": mode}]})


def shaped(name: str, **labels: str) -> Json:
    return stored(names.CLASS_KIND, name, nodes=[{"labels": labels}])


def place(of: Json) -> str:
    """Where the object stands."""
    return f"{names.POLICY_RESOURCES[of['kind']]}/{of['metadata']['name']}"


def texts(*of: Json) -> dict[str, bytes]:
    """All of them, by place."""
    return {place(each): orjson.dumps(each) for each in of}


def judge(there: list[Json], new: Json | None, old: Json | None = None, **more: Any) -> Judgement:
    """The judgement of a creation, an update or a deletion."""
    seen = new or old
    assert seen is not None
    old = old or next((each for each in there if place(each) == place(seen)), None)
    old_text, new_text = (None if each is None else orjson.dumps(each) for each in (old, new))
    return Judge().judge(texts(*there), Write(place(seen), old_text, new_text), **more)


SPOT, ON_DEMAND = (
    shaped("spot", lifecycle="spot"),
    stored(names.CLASS_KIND, "on-demand", complementOf="spot"),
)
EVERYTHING = [
    {"matchExpressions": [{"key": "a", "operator": operator}]}
    for operator in ("Exists", "DoesNotExist")
]
READS = policy(
    "reads", match={"podSelector": {"matchLabels": {"team": "a"}}}, defaults={"schedulerName": "x"}
)
WRITES = policy("writes", overrides={"labels": {"team": "a"}})
MARKS = policy("marks", overrides={"labels": {names.RUN: "mine"}})


@pytest.mark.parametrize(
    ("there", "new", "facts"),
    [
        ([SPOT], setting("spt"), ("'spt'", "(classes: spot)", "did you mean 'spot'?")),
        ([WRITES], READS, ("policy 'writes': spec.overrides.labels.team: ", "no policy")),
        (
            [SPOT, setting("spot")],
            stored(names.CLASS_KIND, "spot", nodes=EVERYTHING),
            ("every node",),
        ),
    ],
)
def test_what_only_the_whole_set_knows_is_refused(
    there: list[Json], new: Json, facts: tuple[str, ...]
) -> None:
    """With where, what, and the cure."""
    found = judge(there, new)
    mentions("\n".join(found.refusals), *facts)
    assert not found.warnings


def test_a_class_that_is_named_is_not_deleted(wording: Wording) -> None:
    """All who name it are told in one line, five by name."""
    settings = [setting("spot", f"w{at}") for at in range(6)]
    (line,) = judge([SPOT, ON_DEMAND, *settings], None, SPOT).refusals
    first_five = ("class 'on-demand'", *(f"policy 'w{at}'" for at in range(4)))
    mentions(line, "class 'spot'", f"{', '.join(first_five)} and 2 more")
    mentions(line, "capacityclasses/on-demand: spec.complementOf", "change or delete")
    wording(line)
    assert judge([SPOT, setting("spot"), shaped("other", a="b")], None, shaped("other", a="b")) == (
        Judgement()
    )
    assert judge([SPOT, ON_DEMAND], None, ON_DEMAND) == Judgement()


def test_the_number_of_reported_errors_is_limited() -> None:
    settings = [{"class": f"c{at}", "mode": "Allow"} for at in range(30)]
    refusals = judge([], policy("p", overrides={"capacity": settings})).refusals
    assert len(refusals) == 21
    assert refusals[-1] == "and 10 more errors"


def test_a_stored_policy_that_writes_a_mark_of_a_later_version_serves() -> None:
    """An upgrade stops no set: a new one is refused, as with any other mark."""
    serve = {"labels": {"ray.io/serve": "true"}}
    stored, other = policy("a", overrides=serve), policy("b", overrides={"schedulerName": "x"})
    objects = Objects()
    served = objects.served(texts(stored, other))
    assert [each.name for each in served.policies.policies] == ["a", "b"]
    (fault,) = objects.checked(served).faults or ()
    assert fault.kind is Kind.WRITES_MARK
    assert not judge([stored], other).refusals
    (line,) = judge([stored], policy("b", defaults=serve)).refusals
    mentions(line, "ray.io/serve", "no policy may write")


@pytest.mark.parametrize(
    ("there", "new"),
    [
        ([setting("gone")], policy("other", defaults={"schedulerName": "x"})),
        ([setting("gone")], SPOT),
        ([setting("gone")], shaped("gone", a="b")),
        ([setting("gone", "a"), setting("gone", "b")], shaped("spot", a="b")),
        ([READS, WRITES], policy("reads", defaults={"schedulerName": "y"})),
        ([READS, WRITES], policy("more", **{**READS["spec"], "priority": 5})),
        ([stored(names.CLASS_KIND, "all", nodes=EVERYTHING)], setting("all")),
    ],
)
def test_existing_errors_reject_no_write(there: list[Json], new: Json) -> None:
    """Neither who mends it nor who has nothing to do with it."""
    assert judge(there, new).refusals == ()


def test_errors_may_be_mended_one_after_the_other() -> None:
    """Of two unknown classes one may go first, and the other may move up; a third may not come."""
    settings = [{"class": each, "mode": "Allow"} for each in ("one", "two")]
    broken = policy("p", overrides={"capacity": settings})
    assert judge([broken], policy("p", overrides={"capacity": settings[1:]})).refusals == ()
    worse = [{"class": "three", "mode": "Allow"}, *settings]
    (line,) = judge([broken], policy("p", overrides={"capacity": worse})).refusals
    assert "'three'" in line


def test_who_reads_a_label_may_go_while_another_reads_it() -> None:
    """The message then names the other one, and the error is no new one."""
    more = policy("zreads", **READS["spec"])
    assert judge([READS, more, WRITES], None, READS).refusals == ()


@pytest.mark.parametrize("metadata", [{"labels": {"a": "b"}}, {"deletionTimestamp": "now"}])
def test_what_says_nothing_new_is_not_judged(metadata: Json) -> None:
    """Whatever is wrong with it: labels, finalizers and a deletion are no change of the set."""
    old = setting("gone")
    new = {**old, "metadata": {**old["metadata"], **metadata}, "status": {"podsDecided": 3}}
    assert judge([old], new, old) == Judgement()


def test_the_object_as_it_is_stored_counts_and_not_what_a_watch_knew() -> None:
    """An update is a change of what the API server has."""
    (line,) = judge([setting("gone")], setting("gone"), setting("spot", mode="Allow")).refusals
    assert "'gone'" in line


def test_warnings_are_those_that_the_write_brings(wording: Wording) -> None:
    """Once; in one line for all of which the same is to be said, the others by name."""
    wide = {"tolerations": [{"operator": "Exists"}]}
    first = policy("first", defaults=wide)
    (line,) = judge([], first).warnings
    mentions(line, "spec.defaults.tolerations[0]: ", "every taint")
    wording(line)
    assert judge([first], policy("first", description="x", defaults=wide)).warnings == ()
    others = [policy(f"p{at}", overrides={"schedulerName": f"s{at}"}) for at in range(5)]
    (line,) = judge(others, policy("a", requirements={"schedulerName": "own"})).warnings
    mentions(line, "policy 'p0', policy 'p1', policy 'p2' and 2 more: ")
    mentions(line, "spec.overrides.schedulerName: ", "no pod gets it", "policy 'a': requirements")
    wording(line)


def test_a_setting_that_weakens_pods_is_a_warning() -> None:
    """At the write that brings it, and beside it at no other."""
    root = policy("root", overrides={"securityContext": {"runAsUser": 0}})
    (line,) = judge([], root).warnings
    mentions(line, "spec.overrides.securityContext.runAsUser: ", "runs containers as root")
    assert judge([root], policy("other", defaults={"nodeSelector": {"a": "b"}})).warnings == ()


def zone(name: str, value: str, **more: Any) -> Json:
    return policy(name, requirements={"nodeSelector": {"zone": value}}, **more)


def test_what_would_reject_every_pod_is_refused(wording: Wording) -> None:
    """With what both require; where it is for some pods it is a warning."""
    (line,) = judge([zone("a", "one")], zone("b", "two")).refusals
    mentions(line, "every run", "policy a requires 'one'", "policy b requires 'two'")
    wording(line)
    (line,) = judge([zone("b", "two")], zone("a", "one")).refusals
    assert line.startswith("policy 'b': ")
    some = judge([zone("a", "one", match={"roles": ["worker"]})], zone("b", "two"))
    mentions(some.refusals[0], "every pod of role worker")
    jobs = zone("b", "two", match={"kinds": ["job"]})
    found = judge([zone("a", "one", match={"roles": ["worker"]})], jobs)
    assert found.refusals == ()
    assert len(found.warnings) == 1
    (line,) = judge([], policy("p", overrides=LESS_THAN_NONE)).refusals
    mentions(line, "no node can meet lifecycle Lt 0", "no label is a negative number")


BELOW: Json = {"key": "lifecycle", "operator": "Lt", "values": ["0"]}
LESS_THAN_NONE: Json = {"affinity": required_affinity({"matchExpressions": [BELOW]})}


@pytest.mark.parametrize(
    ("new", "refused"),
    [
        (policy("other", defaults={"schedulerName": "x"}), False),
        (zone("a", "three"), False),
        (zone("a", "two"), False),
        (zone("b", "two", match={"roles": ["worker"]}), False),
        (zone("c", "one", match={"roles": ["worker"]}), False),
        (policy("p", overrides=LESS_THAN_NONE), True),
        (policy("d", requirements={"schedulerName": "y"}), True),
    ],
)
def test_a_stored_set_with_an_error_blocks_no_write(new: Json, refused: bool) -> None:
    """As an earlier version took it. What is fixed by half passes, and what brings another not."""
    there = [zone("a", "one"), zone("b", "two"), policy("s", requirements={"schedulerName": "x"})]
    assert bool(judge(there, new).refusals) is refused
    assert load_objects(texts(*there)).policies.policies


@pytest.mark.parametrize(
    ("there", "new"),
    [
        # The order of three that contradict each other.
        ([zone(name, name) for name in "abc"], zone("a", "a", priority=-1)),
        ([zone(name, name) for name in "abc"], zone("c", "c", priority=1)),
        # One that rejected all of its pods by itself.
        (
            [
                policy("a", requirements={**LESS_THAN_NONE, "nodeSelector": {"zone": "a"}}),
                zone("b", "b"),
            ],
            zone("a", "a"),
        ),
    ],
)
def test_an_edit_that_makes_nothing_worse_is_not_refused(there: list[Json], new: Json) -> None:
    """Whichever of the policies that reject pods are told first."""
    assert judge(there, new).refusals == ()


def test_a_class_that_changes_can_set_policies_against_each_other(wording: Wording) -> None:
    """Told to whoever changes the class, of those who name it or what is not of it."""
    there = [
        SPOT,
        ON_DEMAND,
        policy("a", requirements={"capacity": [{"class": "on-demand", "mode": "Constrain"}]}),
        policy("b", requirements={"nodeSelector": {"pool": "x"}}),
    ]
    (line,) = judge(there, shaped("spot", pool="x")).refusals
    assert line.startswith("policy 'b': spec.requirements.nodeSelector.pool: ")
    mentions(line, "every pod of every run", "policy a", "rejected")
    wording(line)
    some = policy("b", match={"roles": ["worker"]}, overrides={"nodeSelector": {"pool": "x"}})
    found = judge([SPOT, ON_DEMAND, there[2], some], shaped("spot", pool="x"))
    assert found.refusals == ()
    mentions(found.warnings[0], "policy 'b': spec.overrides.nodeSelector.pool", "policy 'a'")


def test_a_class_without_nodes_is_reported_if_nodes_are_known(wording: Wording) -> None:
    """To who writes it, and to who sends pods there; not if its nodes are made on demand."""
    nodes = [Node("n", {"lifecycle": "own"}, ())]
    (at_class,) = judge([], SPOT, nodes=nodes).warnings
    assert at_class.startswith("class 'spot': spec: ")
    mentions(at_class, "none of the 1 nodes", "class spot")
    wording(at_class)
    constrained = setting("spot", mode="Constrain")
    (found,) = judge([SPOT], constrained, nodes=nodes).warnings
    assert found.startswith("policy 'setting': spec.overrides.capacity[0]: ")
    mentions(found, "class spot", "Constrain", "none of the 1 nodes")
    again = {**constrained, "spec": {**constrained["spec"], "priority": 7}}
    assert judge([SPOT, constrained], again, nodes=nodes).warnings == ()
    for quiet in (
        judge([], SPOT, nodes=()),
        judge([], SPOT),
        judge([SPOT], setting("spot"), nodes=nodes),
        judge([], shaped("own", lifecycle="own"), nodes=nodes),
        judge([], {**SPOT, "spec": {**SPOT["spec"], "autoscaled": True}}, nodes=nodes),
        judge([SPOT], None, SPOT, nodes=nodes),
    ):
        assert quiet == Judgement()


def test_an_exception_is_judged_with_the_time() -> None:
    """One that has ended, and one to a policy that there is not, are warned of."""
    until = "2026-01-01T00:00:00Z"
    exception = stored(
        names.EXCEPTION_KIND, "x", policies=["p"], match={"namespaces": ["a"]}, until=until,
        reason="debugging",
    )  # fmt: skip
    now = datetime(2026, 2, 1, tzinfo=UTC)
    found = judge([], exception, now=now)
    assert not found.refusals
    assert any("has ended" in line for line in found.warnings)
    assert any("no policy 'p'" in line for line in found.warnings)
    (line,) = judge([policy("p", defaults={"schedulerName": "x"}), exception], None,
                    policy("p", defaults={"schedulerName": "x"}), now=now).warnings  # fmt: skip
    mentions(line, "exception 'x': spec.policies[0]: ", "no policy 'p'")


def test_a_set_changed_between_two_writes_is_noticed() -> None:
    """Though the judge remembers the last sets, and the very same is written again."""
    judging = Judge()
    write = Write(place(setting("spot")), None, orjson.dumps(setting("spot")))
    ours, otherwise = ({"k": "a"}, {"k": "b"})
    other = policy("other", requirements={"nodeSelector": {"lifecycle": "on-demand"}})
    constrained = setting("spot", mode="Constrain")
    against = Write(place(constrained), None, orjson.dumps(constrained))

    assert not judging.judge(texts(SPOT), write).refusals
    assert judging.judge(texts(shaped("else", **ours)), write).refusals
    assert judging.judge(texts(shaped("else", **otherwise)), write).refusals
    assert not judging.judge(texts(SPOT), against).warnings
    assert judging.judge(texts(SPOT, other), against).warnings
    assert not judging.judge(texts(shaped("spot", **ours), other), against).warnings


CLASS_NAMES = ("a", "b", "c")
classes = st.builds(
    lambda name, other, shapes: (
        stored(names.CLASS_KIND, name, complementOf=other)
        if other and other != name
        else stored(names.CLASS_KIND, name, nodes=shapes)
    ),
    st.sampled_from(CLASS_NAMES),
    st.sampled_from((None, *CLASS_NAMES)),
    st.sampled_from([[{"labels": {"k": "v"}}], EVERYTHING]),
)
wanting = st.builds(setting, st.sampled_from(CLASS_NAMES), st.sampled_from(["p", "q"]))
labelled = st.sampled_from([READS, WRITES, MARKS])
written = st.one_of(classes, wanting, labelled)


def good(there: dict[str, bytes]) -> bool:
    """Whether the set compiles."""
    try:
        load_objects(there)
    except InvalidDocuments:
        return False
    return True


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(written, st.booleans()), max_size=8))
def test_a_good_set_stays_good_whatever_is_written(writes: list[tuple[Json, bool]]) -> None:
    """If the judge lets pass only what it does not refuse; and it refuses nothing that is good.

    What it remembers of the writes before makes no difference.
    """
    there: dict[str, bytes] = {}
    judging = Judge()
    for new, deletes in writes:
        write = Write(place(new), there.get(place(new)), None if deletes else orjson.dumps(new))
        after = write.after(there)
        found = judging.judge(there, write)
        assert found == Judge().judge(there, write)
        if found.refusals:
            assert not good(after)
        else:
            assert good(after)
            there = after


@settings(max_examples=examples(120), deadline=None)
@given(
    policy_lists(most=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=6),
    st.sampled_from([OF_A_WRITE, Budget(3, 200), Budget(40, 1_000), Budget(400, 20)]),
    st.booleans(),
)
def test_what_is_remembered_changes_no_answer(
    documents: list[Json], changes: list[tuple[int, int]], budget: Budget, with_nodes: bool
) -> None:
    """Neither of what was judged before nor the order of objects, however little may be spent."""
    nodes = [Node("n1", {"pool": "a", "zone": "z"}, []), Node("n2", {"pool": "b"}, [])]
    there, judging = texts(*CLASSES), Judge()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webhook.judgement.write_judge.OF_A_WRITE", budget)
        for at, priority in changes:
            chosen = documents[at % len(documents)]
            new = {**chosen, "spec": {**chosen["spec"], "priority": priority}}
            old = there.get(place(new))
            text = None if old and priority == 2 else orjson.dumps(new)
            write = Write(place(new), old, text)
            known = nodes if with_nodes else None
            found = judging.judge(there, write, nodes=known)
            # As another replica that has just started has it.
            again = Judge().judge(dict(reversed(there.items())), write, nodes=known)
            assert found == again
            event(f"not checked: {any('not checked' in line for line in found.warnings)}")
            if not found.refusals:
                there = write.after(there)


def test_what_a_write_leaves_unchecked_is_said(wording: Wording) -> None:
    """Of policies each of which multiplies the terms of all others; without them nothing is."""
    terms = [
        {"matchExpressions": [{"key": f"k{at}", "operator": "In", "values": [f"v{at}"]}] * 9}
        for at in range(30)
    ]
    large = [policy(f"p{at}", overrides={"affinity": required_affinity(*terms)}) for at in range(4)]
    (line,) = judge(large[1:], large[0]).warnings
    mentions(line, "policy 'p0': spec: ", "not checked", "Satisfiable", "fairlead check")
    wording(line)
    (refusal,) = judge(large[1:], setting("spt")).refusals
    assert "'spt'" in refusal
    assert not judge([], large[0]).warnings


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(written, max_size=5), st.data())
def test_any_set_can_be_taken_apart_policies_first(start: list[Json], data: st.DataObject) -> None:
    """However wrong it is: nobody is ever locked out."""
    there = texts(*start)
    judging = Judge()
    policies = [each for each in there if each.startswith(names.PLACEMENT_POLICIES)]
    for at in data.draw(st.permutations(policies)):
        assert judging.judge(there, Write(at, there[at], None)).refusals == ()
        there.pop(at)
    while there:
        free = [at for at in there if not judging.judge(there, Write(at, there[at], None)).refusals]
        assert free
        there.pop(free[0])
    assert objects() == {}


def test_a_class_that_the_cluster_does_not_have_is_a_warning() -> None:
    """It may be created later; an update that names it as before says nothing new."""
    new = policy("p", defaults={"priorityClassName": "urgent", "runtimeClassName": "kata"})
    classes: Json = {"PriorityClass": {"other": {}}, "RuntimeClass": {"kata": {}}}
    found = judge([], new, classes=classes)
    assert not found.refusals
    (line,) = found.warnings
    mentions(line, "policy 'p'", "spec.defaults.priorityClassName", "no PriorityClass 'urgent'")
    later = policy("p", defaults={**new["spec"]["defaults"], "schedulerName": "s"})
    assert judge([new], later, classes=classes) == Judgement()
    assert judge([], new) == Judgement()
