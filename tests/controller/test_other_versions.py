"""Two versions beside each other: no field and no word of another version ends a run.

A rollback leaves what a newer controller wrote; an upgrade applies the definitions before the
programs. The documents are made from the schema, so that a new field is in here by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from tests.controller.runs import raw_pod, raw_run
from tests.controller.test_reconciler import Stage
from tests.run.other_versions import (
    DEFINITIONS,
    FIELD,
    OVER,
    STATUS,
    VALUE,
    WORD,
    Json,
    Path,
    closed_lists,
    find,
    places,
    replace_at,
    scalars,
    spec_places,
    with_field,
)
from webhook import names
from webhook.controller.reconciler import HELD_PAUSE
from webhook.lenient import Reported, Words
from webhook.policy.findings import path_text
from webhook.run.model.status import RoleStatus, RunStatus
from webhook.run.reading import read_run

SPECS = spec_places()
FIELDS = {name: each for name, each in SPECS.items() if not each[1].words}
WORDS = {name: each for name, each in SPECS.items() if each[1].words}
WHOLE: Json = {**STATUS, **OVER}
PLACES = [*places(STATUS, "RunStatus")]
REMEMBERED = ("restarts", "disruptions", "failed", "attempt", "succeededIndexes", "usage", "unseen")


def stage(status: Json, spec: Json | None = None) -> Stage:
    """Three workers run, of the attempt that the status has."""
    changes = {"framework": None, "replicas": None, **spec} if spec else {}
    made = Stage(status=status, **changes)
    made.api.answers["list", "runs"] = {"items": []}
    for index in range(3):
        metadata = raw_pod(index, annotations={names.ATTEMPT: "2"})
        pod = {**metadata, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}
        made.known.pods.put(f"lab/mnist-worker-{index}", made.known.pods.keep(pod))
    return made


def understood(status: Json) -> Json:
    """The condition."""
    [found] = [each for each in status["conditions"] if each["type"] == "Understood"]
    return dict(found)


def assert_held(made: Stage, before: Json, path: Path) -> None:
    """Nothing but the condition was written, and nothing was done."""
    assert made.look() == HELD_PAUSE
    condition, after = understood(made.status), made.status
    assert condition["status"] == "False"
    assert path_text(path) in condition["message"]
    conditions = [each for each in after["conditions"] if each != condition]
    rest = {"conditions": conditions, "message": ""}
    assert {**after, **rest} == {"conditions": [], **before, "message": ""}
    assert after["message"] == condition["message"]
    assert made.api.calls == [("replace", "mnist")]
    assert made.said == ["NotUnderstood"]
    made.look()
    assert made.api.calls == [("replace", "mnist"), ("list", "runs")]
    stored = made.known.runs.get("lab/mnist")
    assert stored is not None
    assert not stored.understood


def test_the_documents_have_every_field_and_every_closed_list() -> None:
    """A field that is added to the model is played by the tests below."""
    assert set(SPECS) == closed_lists("RunSpec")
    found = {each.definition for each in places(WHOLE, "RunStatus")}
    assert {f"{name}." for name in found} == closed_lists("RunStatus")
    for each in places(WHOLE, "RunStatus"):
        assert set(find(WHOLE, each.path)) == set(DEFINITIONS[each.definition]["properties"]) or (
            each.path == () and set(WHOLE) == set(DEFINITIONS["RunStatus"]["properties"])
        )


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_of_the_spec_that_is_not_known_holds_the_run(name: str) -> None:
    """Its pods go on, its counts stay, and the condition has the path of the field."""
    spec, place = FIELDS[name]
    later = {**with_field(spec, place.path), "suspend": False}
    for status in (STATUS, {}):
        assert_held(stage(status, later), status, ("spec", *place.path, FIELD))


@pytest.mark.parametrize("name", WORDS)
def test_a_word_of_the_spec_that_is_not_known_holds_the_run(name: str) -> None:
    """Of every closed list; even a kind or a framework that a later version has."""
    spec, place = WORDS[name]
    later = {**replace_at(spec, place.path, lambda _: WORD), "suspend": False}
    for status in (STATUS, {}):
        assert_held(stage(status, later), status, ("spec", *place.path))


def test_a_role_that_is_not_known_holds_the_run() -> None:
    """The roles of a framework are a closed list, too."""
    made = stage(STATUS, raw_run(replicas={"worker": {"count": 3}, "later": {}})["spec"])
    assert_held(made, STATUS, ("spec", "replicas", "later"))


def test_a_run_that_another_engine_has_is_held_too() -> None:
    """Before anything is asked of its engine, which goes on."""
    spec: Json = {"backend": "kubeflow", "framework": "pytorch", "ring": True}
    made = stage(STATUS, raw_run(**spec, replicas={"master": {}, "worker": {}})["spec"])
    assert_held(made, STATUS, ("spec", "ring"))


def test_a_new_run_with_a_field_that_is_not_known_waits_for_the_upgrade() -> None:
    """Pods without what the field asks for could never be made right."""
    made = Stage(ring=True)
    made.api.answers["list", "runs"] = {"items": []}
    assert_held(made, {}, ("spec", "ring"))


def test_a_run_that_is_over_is_held_too() -> None:
    """The field may say for how long its pods, or the Run, are kept."""
    done = {**WHOLE, "phase": "Succeeded"}
    made = stage(done, raw_run(ttlSecondsAfterFinished=0, keep=1)["spec"])
    assert_held(made, done, ("spec", "keep"))


def test_once_the_field_is_dropped_the_run_goes_on() -> None:
    """As the definitions of this version do, without a new version of the Run."""
    made = stage(STATUS, raw_run(ring=True)["spec"])
    made.look()
    stored = made.known.runs.get("lab/mnist")
    assert stored is not None
    raw = stored.raw()
    del raw["spec"]["ring"]
    made.api.answers["list", "runs"] = {"items": [raw]}
    made.look()
    made.look()
    assert understood(made.status)["status"] == "True"
    assert made.status["replicas"]["worker"]["restarts"] == 2
    assert made.api.named("delete") == []


def test_the_owner_of_a_run_that_is_held_can_suspend_it() -> None:
    """By a field that this version knows; and it stays unended whatever it counts."""
    made = stage(STATUS, raw_run(ring=True, suspend=True)["spec"])
    made.api.answers["delete", "*"] = {"kind": "Status"}
    made.look()
    assert made.status["phase"] == "Suspended"
    assert understood(made.status)["status"] == "False"
    made.look()
    assert len(made.api.named("delete")) == 3
    assert "create" not in {verb for verb, name in made.api.calls if name != "mnist"}


def test_no_end_is_decided_by_a_spec_that_is_not_known() -> None:
    """A suspended run that would be over by its deadline is held instead."""
    spec = raw_run(ring=True, suspend=True, activeDeadlineSeconds=1)["spec"]
    assert_held(stage(STATUS, spec), STATUS, ("spec", "ring"))


@pytest.mark.parametrize("place", PLACES, ids=lambda place: path_text(place.path) or "status")
def test_a_field_of_the_status_that_is_not_known_is_written_again(place: Any) -> None:
    """The run goes on: it is the writer's own."""
    before = with_field(STATUS, place.path)
    # What the controller has to write.
    before["replicas"]["worker"]["ready"] = 2
    made = stage(before)
    made.look()
    assert made.api.named("replace") == ["mnist"]
    assert find(made.status, (*place.path, FIELD)) == VALUE
    assert_goes_on(made, before)
    assert all(each["type"] != "Understood" for each in made.status["conditions"])


def test_a_field_that_is_not_known_survives_a_failure_and_a_restart() -> None:
    """Entries are put together again; what another version wrote in them stays."""
    before = STATUS
    for place in places(STATUS, "RunStatus"):
        before = with_field(before, place.path)
    made = stage(before)
    ended = raw_pod(1, annotations={names.ATTEMPT: "2"}, version=20)
    state = {"terminated": {"exitCode": 1, "reason": "Error"}}
    ended["spec"] = {"containers": [{"name": "main"}]}
    ended["status"] = {
        "phase": "Failed",
        "containerStatuses": [{"name": "main", "state": state}],
    }
    made.known.pods.put("lab/mnist-worker-1", made.known.pods.keep(ended), "20")
    made.look()
    worker = made.status["replicas"]["worker"]
    assert worker["restarts"] == 3
    assert worker["recovering"][0]["failures"] == 2
    kept = [
        ("replicas", "worker"),
        ("replicas", "worker", "recovering", 0),
        ("replicas", "worker", "history", 0),
        ("replicas", "worker", "history", 0, "events", 0),
        ("incidents", 0),
        ("usage", 0),
        ("conditions", 0),
    ]
    for path in kept:
        assert find(made.status, path)[FIELD] == VALUE, path_text(path)


def words_of_status() -> list[Path]:
    """The values of closed lists in the status."""
    found: list[Path] = []

    def look(value: object, at: Path) -> None:
        for name, field in type(value).model_fields.items() if isinstance(value, Reported) else ():
            part, outer = getattr(value, name), field.serialization_alias or name
            if any(isinstance(each, Words) for each in field.metadata):
                found.append((*at, outer))
            pairs: Any = part.items() if isinstance(part, Mapping) else ()
            pairs = enumerate(part) if isinstance(part, tuple) else pairs
            for key, item in [*pairs, *([(None, part)] if isinstance(part, Reported) else [])]:
                look(item, (*at, outer) if key is None else (*at, outer, key))

    look(RunStatus.read(STATUS), ())
    return found


def test_every_closed_list_of_the_status_is_played() -> None:
    """One for each model that has one."""
    kinds = {
        f"{model.__name__}.{name}"
        for model in Reported.__subclasses__()
        if model.__name__ in DEFINITIONS
        for name, field in model.model_fields.items()
        if any(isinstance(each, Words) for each in field.metadata)
    }
    assert len(words_of_status()) == len(kinds) == 4


@pytest.mark.parametrize("path", words_of_status(), ids=path_text)
def test_a_word_of_the_status_that_is_not_known_is_a_condition_and_no_end(path: Path) -> None:
    """It is kept where this version writes no other one, and no decision is based on it."""
    before = replace_at(STATUS, path, lambda _: WORD)
    made = stage(before)
    made.look()
    condition = understood(made.status)
    assert (condition["status"], condition["reason"]) == ("False", "UnknownWords")
    assert path_text(("status", *path)) in condition["message"]
    assert find(made.status, path) == ("Running" if path == ("phase",) else WORD)
    assert_goes_on(made, before)


def test_a_run_that_a_later_version_ended_in_its_own_way_stays_over() -> None:
    """A phase that is not known is an end if there is a time of completion: no pod starts again."""
    before = {**WHOLE, "phase": "Cancelled"}
    made = stage(before, raw_run(cleanPodPolicy="None")["spec"])
    made.look()
    assert (made.status["phase"], made.status["completionTime"]) == (
        "Cancelled",
        OVER["completionTime"],
    )
    assert {verb for verb, _ in made.api.calls} == {"replace"}


# All but the message, which is written anew.
VALUES = [path for path in scalars(WHOLE) if path != ("message",)]


@pytest.mark.parametrize("path", VALUES, ids=path_text)
def test_a_value_of_the_status_that_cannot_be_read_holds_the_run(path: Path) -> None:
    """It is written again as it was, and so are all the others."""
    before = replace_at(WHOLE, path, lambda _: {"later": [1]})
    made = stage(before)
    assert_held(made, before, ("status", *path))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("replicas", "worker", "activeIndexes"), "0-3000000"),
        (("replicas", "worker", "succeededIndexes"), "0-9999," * 20_000),
        (("replicas", "worker", "succeededIndexes"), "3-1"),
        (("replicas", "worker", "desired"), 2**62),
        (("replicas", "worker", "attempt"), -1),
        (("replicas", "worker", "attempt"), 2**40),
        (("replicas", "worker", "recovering", 0, "waitMilliseconds"), 2**60),
        (("startTime",), "2026-11-21T20:00:00"),
        (("startTime",), "now"),
        (("startTime",), "2026-11-21T20:15:00.00000000000000+01:00 and more"),
        (("incidents", 0, "began"), "20 minutes ago"),
        (("usage", 0, "seconds"), 2**63),
    ],
)
def test_what_is_read_of_a_status_is_bounded(path: Path, value: object) -> None:
    """By what any version can have written; the rest of the status is read."""
    before = replace_at(STATUS, path, lambda _: value)
    reading = read_run(raw_run(status=before))
    assert [each.partition(": ")[0] for each in reading.unread] == [path_text(("status", *path))]
    assert reading.status.restarts == 2
    assert_held(stage(before), before, ("status", *path))


def test_two_entries_of_one_replica_cannot_be_read() -> None:
    """Each costs as much as all replicas: thousands of them would block the controller."""
    before = replace_at(
        STATUS,
        ("replicas", "worker", "recovering"),
        lambda found: [{**found[0], "indexes": "0-9999"}] * 5_000,
    )
    assert_held(stage(before), before, ("status", "replicas", "worker", "recovering"))


@pytest.mark.parametrize(
    "path", [path for path in scalars(STATUS) if isinstance(path[-1], str)], ids=path_text
)
def test_a_status_of_an_earlier_version_is_read_with_defaults(path: Path) -> None:
    """A field that is left out means what it did before there was one."""
    *holder, field = path
    before = replace_at(
        STATUS, tuple(holder), lambda found: {key: found[key] for key in found if key != field}
    )
    reading = read_run(raw_run(status=before))
    definition = next((each.definition for each in PLACES if each.path == tuple(holder)), "")
    required = field in DEFINITIONS.get(definition, {}).get("required", ())
    assert bool(reading.unread) == required
    if not required:
        made = stage(before)
        made.look()
        assert made.status["phase"] not in ("Failed", "Succeeded")
        assert made.api.named("delete") == []


class LaterRole(RoleStatus):
    """A role's status in the next version."""

    gang: str = Field(default="none", description="The state of its gang.")


class LaterStatus(RunStatus):
    """A Run's status in the next version."""

    phase: Annotated[str, Words(("Running", "Draining"))] = Field(default="Pending", description="")
    replicas: Mapping[str, LaterRole] = Field(default_factory=dict, description="")
    drains: int = Field(default=0, description="How often it was drained.")


def test_the_next_version_finds_what_it_wrote_after_this_one_has_written() -> None:
    """An upgrade, a rollback and an upgrade lose nothing."""
    later = LaterStatus.read(STATUS)
    gangs = {"worker": later.replicas["worker"].model_copy(update={"gang": "Formed"})}
    wrote = later.model_copy(update={"drains": 3, "phase": "Draining", "replicas": gangs}).to_json()
    made = stage(wrote)
    made.look()
    again = LaterStatus.read(made.status)
    assert (again.drains, again.replicas["worker"].gang) == (3, "Formed")
    assert again.phase == "Running"
    assert_goes_on(made, wrote)


def test_the_next_version_reads_what_this_one_wrote_with_its_defaults() -> None:
    """An upgrade of a healthy run."""
    made = stage(STATUS)
    made.look()
    later = LaterStatus.read(made.status)
    assert (later.drains, later.replicas["worker"].gang, later.restarts) == (0, "none", 2)


def assert_goes_on(made: Stage, before: Json) -> None:
    """The run is not over, its pods are there, and what is remembered is as it was."""
    assert "completionTime" not in made.status
    assert made.status["phase"] not in ("Failed", "Succeeded")
    assert made.api.named("delete") == []
    assert [name for name in made.api.named("create") if name != "mnist"] == []
    old, new = before["replicas"]["worker"], made.status["replicas"]["worker"]
    assert {key: new[key] for key in old if key in REMEMBERED and old[key]} == {
        key: old[key] for key in old if key in REMEMBERED and old[key]
    }
    assert (made.status["restarts"], made.status["unseen"]) == (2, 1)
    assert made.status["usage"][0]["seconds"] == 600


def test_a_run_that_has_begun_is_held_and_not_failed_by_stricter_rules() -> None:
    """Its spec does not change: the version before found it valid."""
    made = stage(STATUS, raw_run(template={"spec": {"containers": []}})["spec"])
    assert_held(made, STATUS, ("spec", "template", "spec", "containers"))


def test_a_field_of_the_metadata_that_is_not_known_means_nothing() -> None:
    """The API server writes it, and a later Kubernetes has more of them."""
    raw = raw_run()
    raw["metadata"]["later"] = {"field": 1}
    assert read_run(raw).valid_run().name == "mnist"


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["0-9999", "9999", "0-5", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["indexes", "since", "time", "later"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _put(value: Any, _: Any) -> Any:
    return value


@given(st.lists(st.tuples(st.sampled_from([*scalars(STATUS)]), ANYTHING), min_size=1, max_size=3))
def test_no_status_makes_a_reconcile_raise(changes: list[tuple[Path, Any]]) -> None:
    """Whoever may write it: the run goes on, is held or repaired, and never fails."""
    before = STATUS
    for path, value in changes:
        before = replace_at(before, path, partial(_put, value))
    made = stage(before)
    made.api.answers["delete", "*"] = {"kind": "Status"}
    for _ in range(3):
        made.look()
        assert made.status["phase"] != "Failed"
