"""A policy is in force if its own pods are sent, whatever is the case of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.judgement.reporting.objects import POOL, exception, policy
from tests.judgement.test_entry_states import FIRST, SECOND, WHOLE, configured, recorded
from tests.policy.test_matched_pods import selectors, several, subjects
from tests.wording import Wording, mentions
from webhook import names
from webhook.interception import DEFAULT_SOURCES, expected_entries, webhooks
from webhook.judgement import entry_states
from webhook.judgement.entry_states import EntryState, pod_entries, unread
from webhook.judgement.reporting.in_force import SentPods
from webhook.placement.label_values import expressions, selects
from webhook.policy import conditions
from webhook.policy.match_model import Match
from webhook.policy.subject import Subject
from webhook.sources import SHIPPED

Json = dict[str, Any]
ENTRIES = webhooks({*DEFAULT_SOURCES, "mlrun"})
MLRUN = "mlrun-0.fairlead.dev"
ABOUT_MLRUN = {"podSelector": {"matchLabels": {"mlrun/class": "job"}}}


def narrowed(entry: Json, key: str, operator: str, *values: str, selector: str = "") -> Json:
    """The entry with one expression more, about namespaces unless `selector` says else."""
    selector = selector or "namespaceSelector"
    more = {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
    return {**entry, selector: {"matchExpressions": [*expressions(entry[selector]), more]}}


def judged(*live: Json) -> list[EntryState]:
    """The states of the entries of an installation, of which these are live."""
    return pod_entries(recorded(ENTRIES), configured(*live), SHIPPED, WHOLE, {})


def said(states: Sequence[EntryState], **spec: Any) -> tuple[str, str, str]:
    """Status, reason and message of a policy with this spec."""
    found = SentPods(states).condition(policy("p", {**POOL, **spec}).text)
    return found.status, found.reason, found.message


def in_namespaces(*listed: str) -> Json:
    return {"match": {"namespaces": [*listed]}}


def test_what_is_installed_is_in_force_for_all() -> None:
    states = judged(*ENTRIES)
    for spec in ({}, in_namespaces("team-*"), {"match": ABOUT_MLRUN}):
        assert said(states, **spec) == ("True", "Intercepted", "")


def test_an_entry_that_is_gone_concerns_the_policies_of_its_pods() -> None:
    """That of another system does not concern a policy for Fairlead's own pods, and so on."""
    states = judged(*ENTRIES[:2])
    ours = {
        "podSelector": {"matchExpressions": [{"key": "mlrun/class", "operator": "DoesNotExist"}]}
    }
    assert said(states, match=ours)[0] == "True"
    for spec in ({}, {"match": ABOUT_MLRUN}, in_namespaces("team-a")):
        status, reason, message = said(states, **spec)
        assert (status, reason) == ("False", "NotIntercepted")
        mentions(message, MLRUN)
    assert (
        said(
            states,
            exclude=[
                {
                    "podSelector": {
                        "matchExpressions": [{"key": "mlrun/class", "operator": "Exists"}]
                    }
                }
            ],
        )[0]
        == "True"
    )


def test_namespaces_that_are_left_out_on_purpose_concern_their_policies_alone(
    wording: Wording,
) -> None:
    """A policy with other namespaces beside them is in force there, and has a note."""
    left = [narrowed(each, names.NAMESPACE_NAME, "NotIn", "team-a", "team-b") for each in ENTRIES]
    states = judged(*left)
    assert {each.reason for each in states} == {""}
    assert said(states, **in_namespaces("team-c")) == ("True", "Intercepted", "")
    assert said(states, **in_namespaces("other-*")) == ("True", "Intercepted", "")
    for listed in (("team-a", "team-c"), ("team-*",)):
        status, _, message = said(states, **in_namespaces(*listed))
        assert status == "True"
        mentions(message, FIRST, "NotIn team-a, team-b")
    for spec in (
        in_namespaces("team-a"),
        in_namespaces("team-b", "team-a"),
        {"rollout": {"namespaces": ["team-a"]}},
        {"match": {"namespaceSelector": {"matchLabels": {names.NAMESPACE_NAME: "team-a"}}}},
    ):
        status, reason, message = said(states, **spec)
        assert (status, reason) == ("False", "NotSelected"), spec
    wording(message)


def test_a_limit_to_some_namespaces_concerns_the_policies_of_others() -> None:
    """What it leaves is in force there."""
    states = judged(*(narrowed(each, names.NAMESPACE_NAME, "In", "lab") for each in ENTRIES))
    assert {each.reason for each in states} == {entry_states.NARROWED}
    assert said(states, **in_namespaces("lab"))[0] == "True"
    for spec in ({}, in_namespaces("lab", "team"), in_namespaces("team"), in_namespaces("l*")):
        assert said(states, **spec)[:2] == ("False", "NotIntercepted")


def test_a_recorded_limit_leaves_policies_without_a_pod() -> None:
    """Nothing is narrowed: an installation for a trial is as it was installed."""
    entries = webhooks(only_namespaces=["lab"])
    record = recorded(entries, **{names.INTERCEPTED_NAMESPACES: "lab"})
    states = pod_entries(record, configured(*entries), SHIPPED, WHOLE, {})
    assert said(states, **in_namespaces("team"))[:2] == ("False", "NotSelected")
    assert said(states, **in_namespaces("lab"))[0] == "True"


def test_policies_for_what_no_installation_sends_are_not_in_force() -> None:
    assert said(judged(*ENTRIES), **in_namespaces("kube-system"))[:2] == ("False", "NotSelected")


def test_what_could_not_be_read_is_unknown_for_whom_it_concerns() -> None:
    """If something else is certain, that is said."""
    states = unread([each["name"] for each in ENTRIES], "mutating", "forbidden", ENTRIES)
    assert said(states)[:2] == ("Unknown", "NotRead")
    assert said([*states[:-1], *judged(*ENTRIES[:2])[-1:]])[0] == "False"
    only = judged(*ENTRIES[:2])[:2] + states[-1:]
    assert [each.entry for each in only] == [FIRST, SECOND, MLRUN]
    ours = {
        "podSelector": {"matchExpressions": [{"key": "mlrun/class", "operator": "DoesNotExist"}]}
    }
    assert said(only, match=ours)[0] == "True"
    assert said(only)[0] == "Unknown"


def test_an_entry_of_no_known_source_concerns_all() -> None:
    record = recorded(webhooks(), **{f"{names.INTERCEPTS}acme-0": "mutating"})
    states = pod_entries(record, configured(*webhooks()), SHIPPED, WHOLE, {})
    for spec in ({}, in_namespaces("a")):
        status, _, message = said(states, **spec)
        assert status == "False"
        mentions(message, "acme-0.fairlead.dev")


@pytest.mark.parametrize("text", [b"", b"[]", b'{"spec": {"match": {"namespaces": 5}}}'])
def test_what_cannot_be_read_is_concerned_by_every_entry(text: bytes) -> None:
    """Another version wrote it; nothing is proved of it."""
    assert SentPods(judged(*ENTRIES)).condition(text).status == "True"
    assert SentPods(judged(*ENTRIES[:2])).condition(text).status == "False"


def test_an_exception_is_about_the_pods_that_it_matches() -> None:
    """Its namespace is lab."""
    lab, team = (
        judged(*(narrowed(each, names.NAMESPACE_NAME, "In", name) for each in ENTRIES))
        for name in ("lab", "team")
    )
    text = exception("e", "2026-03-01T12:00:00Z").text
    assert SentPods(lab).condition(text).status == "True"
    assert SentPods(team).condition(text).status == "False"


def test_entries_that_validate_and_guards_do_not_count() -> None:
    others = [
        EntryState("x", kind, entry_states.ABSENT, "gone") for kind in ("validating", "guard")
    ]
    assert said([*judged(*ENTRIES), *others])[0] == "True"


narrowings = st.one_of(
    st.none(),
    st.tuples(
        st.sampled_from(["namespaceSelector", "objectSelector"]),
        st.sampled_from([("a", "In", "1"), ("a", "Exists"), ("b", "DoesNotExist")]),
    ),
    st.tuples(
        st.just("namespaceSelector"),
        st.sampled_from(
            [(names.NAMESPACE_NAME, "In", "ml", "ml-a"), (names.NAMESPACE_NAME, "NotIn", "ml")]
        ),
    ),
)
# Of few conditions, so that many pods match.
matches = st.fixed_dictionaries(
    {},
    optional={
        "namespaces": several("ml", "ml-*", "*", "m?"),
        "namespaceSelector": selectors,
        "podSelector": selectors,
    },
)
marks = st.sampled_from([{names.RUN: "r"}, {"mlrun/class": "job"}])


def is_sent(subject: Subject, entries: Sequence[Json]) -> bool:
    """Whether the API server sends the pod by one of the entries."""
    return any(
        selects(each, "objectSelector", subject.labels)
        and selects(each, "namespaceSelector", subject.namespace_labels)
        for each in entries
    )


@settings(max_examples=examples(300), deadline=None)
@given(
    st.tuples(*(narrowings for _ in ENTRIES)),
    matches,
    st.lists(st.tuples(subjects, marks), min_size=5, max_size=10),
)
def test_no_policy_is_said_to_be_in_force_whose_pods_are_not_sent(
    drawn: Sequence[Any], match: Json, pods: list[tuple[Subject, Json]]
) -> None:
    """Of any pod that it matches: it is sent, or left out by the name of its namespace."""
    live = [
        narrowed(each, *more[1], selector=more[0]) if more else each
        for each, more in zip(ENTRIES, drawn, strict=True)
    ]
    states = judged(*live)
    status, _, message = said(states, match=match)
    wanted = expected_entries(recorded(ENTRIES))
    block = conditions.block(Match.model_validate(match))
    for pod, mark in pods:
        subject = pod._replace(
            labels={**pod.labels, **mark},
            namespace_labels={**pod.namespace_labels, names.NAMESPACE_NAME: pod.namespace},
        )
        if block.holds(subject) and is_sent(subject, wanted) and not is_sent(subject, live):
            assert status == "False" or names.NAMESPACE_NAME in message
