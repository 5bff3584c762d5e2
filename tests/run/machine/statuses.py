"""What must hold of a status that is written, by the one before it and by what truly happened."""

from __future__ import annotations

from math import inf

from tests.run.machine.books import (
    OVER,
    Books,
    attempt,
    collateral,
    gang_of,
    gave_way,
    indexes,
    restarts,
    role_of,
    uncharged,
)
from tests.run.machine.ledger import Fate
from tests.run.machine.things import Json, seconds
from webhook.run.model import RunSpec
from webhook.run.restarts import MOST_REFUSALS

SCOPE_COUNTS = ("restarts", "disruptions", "failed", "attempt")


def check_deletion(old: Json, new: Json) -> None:
    """The status of a Run that is being deleted tells what is there, and charges nothing."""
    told = {
        "observedGeneration",
        "replicas",
        "replicasReady",
        "message",
        "conditions",
        "usage",
        "repeated",
    }
    assert {k: v for k, v in old.items() if k not in told and v} == {
        k: v for k, v in new.items() if k not in told and v and (v, old) != ("Pending", {})
    }
    for role, after in new["replicas"].items():
        before = role_of(old, role)
        for name in before.keys() - {"desired", "active", "ready", "ending"}:
            assert before[name] == after.get(name), f"{role}: {name}"


def check(books: Books, spec: RunSpec, old: Json, new: Json, now: float) -> None:
    """Raise AssertionError where a status breaks a law."""
    _run_wide(old, new, now)
    _gang(spec, old, new)
    bumped = []
    ended = [
        fate
        for role in spec.roles
        for fate in books.newly_ended(role_of(old, role), role_of(new, role))
    ]
    for role in spec.roles:
        _history(books, spec, role, role_of(old, role), role_of(new, role), now)
    used = set(books.used)
    for role in spec.roles:
        before, after = role_of(old, role), role_of(new, role)
        for count in SCOPE_COUNTS:
            if count == "failed" and _taken_back(old, new):
                continue
            assert after.get(count, 0) >= before.get(count, 0), f"{role}: {count} ran backwards"
        _gauges(role, spec, after)
        _successes(books, spec, role, old, new)
        if after.get("attempt", 0) > before.get("attempt", 0):
            bumped.append(role)
        elif not books.alone:
            # Of two that write at once each may count an end: that is what a leader is elected for.
            continue
        elif new.get("phase") in OVER:
            _at_the_end(books, role, before, after, _waiting(old, role))
        else:
            finishing = spec.elastic_from and any(
                role_of(new, each).get("succeededIndexes") for each in spec.roles
            )
            _one_by_one(books, spec, role, before, after, finishing=bool(finishing))
    if books.alone:
        missed = [books.ledger.fates[uid] for uid in books.used - used]
        _charged_once(books, spec, old, new, ended, missed)
    if bumped and books.alone:
        _anew(books, spec, old, new, bumped)
    for count in ("restarts", "disruptions"):
        total = sum(role.get(count, 0) for role in new.get("replicas", {}).values())
        assert new.get(count, 0) == total, f"{count} of the run are not those of its roles"
    _budgets(books, spec, old, new, now)


def _taken_back(old: Json, new: Json) -> bool:
    """Whether a charge was taken back: a disruption came to light, and explains it."""
    before, after = (
        [each["message"] for each in status.get("incidents", ()) if each["cause"] == "Failure"]
        for status in (old, new)
    )
    return len(after) < len(before) and collateral(old, new) > 0


def _run_wide(old: Json, new: Json, now: float) -> None:
    phase = new.get("phase")
    assert old.get("phase") not in OVER or phase == old["phase"], "a run that was over goes on"
    assert (phase in OVER) == ("completionTime" in new), f"{phase} and completionTime do not agree"
    for time in ("startTime", "completionTime"):
        assert time not in new or seconds(new[time]) <= now + 0.001, f"{time} is still to come"
    if "completionTime" in old:
        assert new["completionTime"] == old["completionTime"], "the end moved"
    if phase == "Suspended":
        assert "startTime" not in new, "the time of a run at rest goes on"
    elif "startTime" in old:
        assert new.get("startTime") == old["startTime"], "the beginning moved"
    known = {condition["type"]: condition for condition in old.get("conditions", ())}
    types = [condition["type"] for condition in new.get("conditions", ())]
    assert len(set(types)) == len(types), f"conditions {types}"
    for condition in new.get("conditions", ()):
        since, before = condition["lastTransitionTime"], known.get(condition["type"])
        assert seconds(since) <= now + 0.001
        if before and before["status"] == condition["status"]:
            assert since == before["lastTransitionTime"], f"{condition['type']} has not changed"
    assert new.get("observedGeneration", 0) >= old.get("observedGeneration", 0)


def _gang(spec: RunSpec, old: Json, new: Json) -> None:
    """A run that was whole is left alone, unless all of it restarts or it is suspended."""
    before, after = gang_of(old), gang_of(new)
    if before == "Whole" and after != "Whole" and new.get("phase") != "Suspended":
        more = [restarts(role_of(new, each)) > restarts(role_of(old, each)) for each in spec.roles]
        again = [attempt(new, each) > attempt(old, each) for each in spec.roles]
        assert spec.restart_scope == "Run", f"it was whole, and is {after}"
        assert any(more) or all(again), f"nothing restarts it, and it is {after}"
    if gave_way(old, new):
        disruptions = new.get("disruptions", 0) - old.get("disruptions", 0)
        told = len(new.get("incidents", ())) - len(old.get("incidents", ()))
        assert disruptions <= 0 or told > 0, f"{disruptions} disruptions of a start given up"
    if after == "Waiting" and before == "Waiting":
        assert new.get("phase") == "Pending" or new.get("phase") in OVER, new.get("phase")
    tries = [(each.get("gang") or {}).get("tries", 0) for each in (old, new)]
    if (before, after) == ("Waiting", "Starting"):
        assert tries[1] == tries[0] + 1


def _gauges(role: str, spec: RunSpec, after: Json) -> None:
    count = spec.roles[role].count
    assert after.get("desired", 0) == count, f"{role}: desired"
    assert after.get("active", 0) <= count, f"{role}: active"
    done = indexes(after.get("succeededIndexes", ""))
    if not spec.serving:
        # Of a Deployment that was scaled down the pod may still be ready.
        assert after.get("ready", 0) <= after.get("active", 0), f"{role}: more ready than active"
        assert after.get("succeeded", 0) == len(done), f"{role}: succeeded"
    assert done <= set(range(count)), f"{role}: indexes that there are not"


def _one_by_one(
    books: Books, spec: RunSpec, role: str, before: Json, after: Json, *, finishing: bool
) -> None:
    """Each end is counted once, as what it was, and nothing that has not happened.

    finishing: of an elastic run, of which one has finished: what comes late does not count.
    """
    ends = books.newly_ended(before, after)
    finished = indexes(before.get("succeededIndexes", ""))
    for fate in ends:
        what = f"{fate.pod.name} ({fate.pod.uid}, {fate.word})"
        assert fate.pod.index not in finished, f"{what} is counted, and its replica had finished"
        assert fate.pod.uid not in books.counted | books.used, f"{what} is counted again"
        assert fate.pod.role == role, f"{what} is counted for {role}"
        assert fate.pod.attempt == after.get("attempt", 0), f"{what} is of an earlier attempt"
        given_up = books.ledger.given_up(fate)
        assert given_up or fate.word in ("program", "disruption", "success"), f"{what} is counted"
    active = len(indexes(after.get("activeIndexes", "")))
    assert spec.serving or active >= after.get("active", 0), f"{role}: only {active} are remembered"
    if finishing:
        return
    missed = restarts(after) - restarts(before) - len(ends)
    gone = books.newly_missed(before, after)
    assert missed == len(gone), (
        f"{role}: {missed} pods that vanished are counted, and {gone} are not there any more"
    )
    for index in gone:
        found = books.vanished(role, index)
        assert found, f"{role}-{index} is counted as vanished, and is not"
        books.used.add(found[-1].pod.uid)


def _history(books: Books, spec: RunSpec, role: str, before: Json, after: Json, now: float) -> None:
    """A node was lost for each loss that a history tells of, and each wait was as long as it says.

    So what a person deletes never counts.
    """
    unit = list(spec.roles) if spec.restart_scope == "Run" else [role]
    for entry in after.get("history", ()):
        assert seconds(entry["asOf"]) <= now + 0.001, "a start is still to come"
        some = indexes(entry["indexes"]) if spec.restart_scope == "Replica" else (None,)
        told = [each for each in entry["events"] if "waitedSeconds" not in each]
        for index in some:
            lives = [fate for each in unit for fate in books.fates(each, index)]
            lost = [fate for fate in lives if books.ledger.lost_its_node(fate)]
            assert len(told) <= len(lost), (
                f"{role}-{index}: {told}, and {len(lost)} nodes were lost"
            )
    for fate in books.moved(before, after):
        pod, since = fate.pod, fate.pod.unscheduled
        assert pod.fallback or pod.avoid, f"{pod} waits for nothing"
        waits = [most for _, most in pod.fallback if most is not None]
        if spec.gang and since is not None:
            # It goes on waiting over the tries of its start, until the class is given up.
            given_up = [
                seconds(event["time"])
                for entry in before.get("history", ())
                if pod.index in indexes(entry["indexes"])
                for event in entry["events"]
                if "waitedSeconds" in event
            ]
            times = [one.pod.unscheduled for one in books.fates(role, pod.index)]
            since = min(at for at in times if at is not None and at >= max(given_up, default=-inf))
        # It avoids a node that is well again, or has waited for a class; else a peer has.
        least = 0.0 if pod.avoid else min(waits, default=inf)
        waited = since is not None and now - since >= least - 1
        assert waited or spec.restart_scope != "Replica", f"{pod} has not waited"


def _charged_once(
    books: Books, spec: RunSpec, old: Json, new: Json, ended: list[Fate], missed: list[Fate]
) -> None:
    """Every failure is charged, or waits for it, or belongs to a disruption; and just once.

    missed: pods that are gone, and whose last state may have been seen, or not.
    """
    roles = list(spec.roles)
    before, after = ([role_of(each, role) for role in roles] for each in (old, new))
    failed = sum(each.get("failed", 0) for each in after)
    failed -= sum(each.get("failed", 0) for each in before)
    disruptions = sum(each.get("disruptions", 0) for each in after)
    disruptions -= sum(each.get("disruptions", 0) for each in before)
    assert disruptions <= 1, f"{disruptions} disruptions are charged at once"
    causes = [each["cause"] for each in new.get("incidents", ())]
    known = {each["began"] for each in old.get("incidents", ()) if each["cause"] == "Disruption"}
    fresh = [
        each
        for each in new.get("incidents", ())
        if each["cause"] == "Disruption" and each["began"] not in known
    ]
    assert len(fresh) == disruptions, f"{disruptions} disruptions are charged for {fresh}"
    if any(fate.word == "disruption" for fate in ended):
        assert "Disruption" in causes, f"a disruption belongs to no incident: {ended}"
    if new.get("phase") in OVER or new.get("phase") == "Suspended" or gave_way(old, new):
        return
    told = failed + uncharged(new) - uncharged(old) + collateral(old, new)
    programs = [fate for fate in ended if fate.word == "program"]
    certain = [fate for fate in programs if not books.ledger.may_be_the_nodes(fate)]
    if gang_of(old) == "Starting":
        # Their peers had no node yet.
        assert told <= 0, f"{told} failures are told of while not all have a node"
        certain = []
    if spec.restart_scope == "Replica":
        most = len(programs) + sum(fate.word == "program" for fate in missed)
        assert len(certain) <= told <= most, f"{told} failures are told of, and there were {most}"
        permanent = any(_permanent(spec, fate) for fate in certain)
        waits = any(each.get("permanent") for each in new.get("incidents", ()))
        excused = collateral(old, new) > 0
        assert not permanent or waits or excused, "a failure was permanent, and the run goes on"
    else:
        begun = sum(map(restarts, after)) - sum(map(restarts, before))
        assert 0 <= told <= begun, f"{told} failures are told of in {begun} restarts"


def _successes(books: Books, spec: RunSpec, role: str, old: Json, new: Json) -> None:
    before = indexes(role_of(old, role).get("succeededIndexes", ""))
    after = indexes(role_of(new, role).get("succeededIndexes", ""))
    anew = books.anew(spec.restart_scope, role, old, new)
    assert anew or before <= after, f"{role}: {sorted(before - after)} had finished"
    epoch = attempt(new, role) if anew else books.epochs.get(role, 0)
    for index in after - before:
        assert any(
            fate.word == "success" and fate.pod.attempt >= epoch
            for fate in books.fates(role, index)
        ), f"{role}-{index} has not finished"


def _anew(books: Books, spec: RunSpec, old: Json, new: Json, bumped: list[str]) -> None:
    """Whole roles begin again: one end of one pod is the reason, or the run is suspended."""
    charged = {
        role: restarts(role_of(new, role)) - restarts(role_of(old, role)) for role in spec.roles
    }
    if new.get("phase") == "Suspended":
        assert sorted(bumped) == sorted(spec.roles), "a suspension leaves a role's pods"
        if spec.restart_scope == "Replica":
            for role in bumped:
                _at_the_end(
                    books, role, role_of(old, role), role_of(new, role), _waiting(old, role)
                )
            return
    elif gave_way(old, new):
        assert sorted(bumped) == sorted(spec.roles), "a start that is given up leaves a role's pods"
        assert spec.restart_scope == "Replica" or not any(charged.values()), f"charged: {charged}"
        for role in bumped:
            before, after = role_of(old, role), role_of(new, role)
            _at_the_end(books, role, before, after, _waiting(old, role))
        return
    else:
        assert spec.restart_scope != "Replica", f"{bumped} begin anew"
    if spec.restart_scope == "Run":
        assert sorted(bumped) == sorted(spec.roles), "restartScope Run begins only some roles anew"
        assert sum(charged.values()) <= 1, f"one restart is charged {charged}"
    for role in bumped:
        before = role_of(old, role)
        assert charged[role] <= 1, f"one restart is charged {charged}"
        if charged[role]:
            _cause(books, role, before)
    if new.get("phase") != "Suspended":
        why = {role: charged[role] or _unseen(books, role, role_of(old, role)) for role in bumped}
        assert any(why.values()), "roles begin anew for nothing"
        assert all(why.values()) or spec.restart_scope == "Run", f"{bumped} begin anew for nothing"


def _unseen(books: Books, role: str, before: Json) -> bool:
    """Whether a pod of a role was planned that is not there: it may have been."""
    there = {fate.pod.index for fate in books.fates(role) if fate.gone_at is None}
    return bool(indexes(before.get("creatingIndexes", "")) - there)


def _waiting(status: Json, role: str) -> int:
    """Failures of a role that wait for their charge."""
    waiting = (each for each in status.get("incidents", ()) if each["cause"] == "Unknown")
    return sum(each["failures"].get(role, 0) for each in waiting)


def _at_the_end(books: Books, role: str, before: Json, after: Json, waiting: int) -> None:
    """What went down before a suspension or the end may be counted with it, without its uid."""
    ends = [f for f in books.fates(role) if _countable(books, f, before.get("attempt", 0))]
    program = [fate for fate in ends if fate.word == "program"]
    failed = after.get("failed", 0) - before.get("failed", 0)
    most = len(program) + waiting
    assert failed <= most, f"{role}: {failed} failures, and there were {most}"
    assert restarts(after) - restarts(before) <= len(ends), f"{role}: more ends than there were"


def _cause(books: Books, role: str, before: Json) -> None:
    ends = [f for f in books.fates(role) if _countable(books, f, before.get("attempt", 0))]
    # What ended unseen, and is gone, has vanished.
    causes = [f for f in ends if f.word != "success" or f.gone_at is not None]
    assert causes, f"{role} begins anew, and no pod of it went down"


def _countable(books: Books, fate: Fate, attempt: int) -> bool:
    if fate.pod.uid in books.counted | books.used or fate.pod.attempt != attempt:
        return False
    return fate.word not in ("own", "lives") or books.ledger.given_up(fate)


def _budgets(books: Books, spec: RunSpec, old: Json, new: Json, now: float) -> None:
    roles = new.get("replicas", {}).values()
    failed = sum(role.get("failed", 0) for role in roles)
    too_many = failed > spec.backoff_limit
    limit = spec.disruption_limit
    too_many = too_many or (limit is not None and new.get("disruptions", 0) > limit)
    if new.get("phase") not in OVER:
        assert not too_many, f"the run goes on after {failed} failures"
    elif old.get("phase") not in OVER and new["phase"] == "Failed":
        started = old.get("startTime")
        deadline = spec.active_deadline_seconds
        late = started and deadline and now + 0.001 >= seconds(started) + deadline
        permanent = any(_permanent(spec, fate) for role in spec.roles for fate in books.fates(role))
        refused = [fate for fate in books.every_fate() if fate.pod.reason == "OutOfcpu"]
        # Of two controllers each may count a refusal, and so one of them may be many.
        bound = len(refused) >= (MOST_REFUSALS if books.alone else 1)
        assert too_many or late or permanent or bound, "the run failed for no reason"
    elif old.get("phase") not in OVER and not spec.serving:
        _truly_succeeded(spec, new)


def _permanent(spec: RunSpec, fate: Fate) -> bool:
    policy, pod = spec.roles[fate.pod.role].restart_policy, fate.pod
    if fate.word != "program" or policy == "OnFailure":
        return False
    if policy == "Never" or pod.word == "OOMKilled":
        return True
    return pod.code is not None and pod.code <= 127


def _truly_succeeded(spec: RunSpec, new: Json) -> None:
    """Master, chief, launcher, driver or scheduler ends a run; else all workers do."""
    if spec.elastic_from is not None:
        # Beside the first that finished, no other may be left that works on: good_end looks at it.
        assert any(role_of(new, role).get("succeededIndexes") for role in spec.roles)
        return
    leading = [role for role in ("master", "chief", "launcher", "driver") if role in spec.roles]
    if spec.framework == "dask" and not leading:
        leading = ["scheduler"]
    for role in leading or ["worker"]:
        done = indexes(role_of(new, role).get("succeededIndexes", ""))
        assert len(done) == spec.roles[role].count, f"the run succeeded before its {role}"
