"""Every replica is gone for minutes, in each of the ways to be safe."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.chaos.arena import CONFIGURATIONS, NAMESPACE, Arena, served
from tests.chaos.ledger import BEHIND, DISAGREEMENTS, REFUSED_OTHERS, UNPLACED, Ledger
from tests.chaos.stage import Scenario, Stage, Tally
from tests.fast_yaml import load_all_yaml
from webhook import names
from webhook.errors import SandboxError

OUTAGES: Final = "outages, one in each mode"
CREATIONS_DURING: Final = "matched pods asked for meanwhile"
ADMITTED: Final = "of them admitted"
FAILED_OPEN: Final = "failed open, by the audit log"
TOLD: Final = "pods that `fairlead doctor` reports"
WARNED: Final = "admitted with the warning"
NOT_RECOVERED: Final = "outages after which placement did not come back"
RECOVERY: Final = "seconds from readiness to the last trouble"
MODES: Final = ("fail-closed", "guarded-deny", "guarded-warn")

_COMPONENTS: Final = Path(__file__).parents[2] / "manifests" / "components"
_GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
_POLICIES: Final = f"{_GROUP}/validatingadmissionpolicies"
_BINDINGS: Final = f"{_GROUP}/validatingadmissionpolicybindings"


@dataclass(frozen=True)
class _Outage:
    """When it was, by the monotonic clock: all are dead, the first may answer, it was ready."""

    dead: float
    launched: float
    ready: float


def play(stage: Stage) -> Tally:
    """One outage in each mode, round after round."""
    tally = Tally()
    with served(stage) as place:
        for _ in range(stage.rounds):
            for mode in MODES:
                _switch(place, mode)
                # The pods stay, for the doctor to find them.
                with place.loaded(sweeping=False) as ledger:
                    time.sleep(1)
                    outage = _outage(place, 5 if stage.short else 120)
                    time.sleep(4 if stage.short else 10)
                    ledger.load.stop()
                    tally.count(f"`{mode}`: {TOLD}", _told_by_doctor(place))
                _judge(ledger, mode, outage, tally)
                tally.count(OUTAGES)
                stage.say(f"`{mode}`: over")
    return tally


def _outage(place: Arena, seconds: float) -> _Outage:
    for each in place.replicas:
        each.kill()
        place.endpoints.remove(each.address, place.lag())
    dead = time.monotonic()
    place.replicas.clear()
    time.sleep(seconds)
    launched = time.monotonic()
    first = [place.launch() for _ in range(3)]
    ready = min(place.admit(each) for each in first)
    return _Outage(dead, launched, ready)


def _judge(ledger: Ledger, mode: str, outage: _Outage, tally: Tally) -> None:
    own = ledger.tally()
    for what in (REFUSED_OTHERS, DISAGREEMENTS):
        tally.count(f"`{mode}`: {what}", own[what])
    tally.measure(BEHIND, *own.measures[BEHIND])
    unplaced = set(ledger.stored.unplaced)
    matched = [each for each in ledger.creations if each.matched]
    during = [
        each for each in matched if outage.dead <= each.sent < each.answered < outage.launched
    ]
    admitted = [each for each in during if not ledger.failed(each)]
    tally.count(f"`{mode}`: {CREATIONS_DURING}", len(during))
    tally.count(f"`{mode}`: {ADMITTED}", len(admitted))
    tally.count(f"`{mode}`: {UNPLACED}", len(unplaced))
    passed = [each for each in matched if (seen := ledger.audited(each)) and seen.failed_open]
    tally.count(f"`{mode}`: {FAILED_OPEN}", len(passed))
    warned = [each for each in admitted if any("no placement" in one for one in each.warnings)]
    tally.count(f"`{mode}`: {WARNED}", len(warned))
    trouble = [each for each in matched if ledger.failed(each) or each.name in unplaced]
    recovered = max((each.sent for each in trouble), default=outage.ready)
    tally.measure(f"`{mode}`: {RECOVERY}", max(0.0, recovered - outage.ready))
    tally.count(NOT_RECOVERED, bool(trouble) and trouble[-1] is matched[-1])
    for each in trouble:
        tally.example(f"`{mode}`: {each.message or 'created as it came'}")


def _switch(place: Arena, mode: str) -> None:
    """From one mode to another, with all replicas in service."""
    api = place.plane.api
    for path in (CONFIGURATIONS, _BINDINGS, _POLICIES):
        for each in api.get(path)["items"]:
            name = each["metadata"]["name"]
            if name.startswith(names.MANAGER):
                api.call("DELETE", f"{path}/{name}")

    def untouched() -> bool:
        probe = place.dry_run()
        return probe.status == 201 and not probe.placed and not probe.warnings

    place.wait("the mode before to be over", untouched)
    if mode != "fail-closed":
        # The guard is off where there is no configuration. This one sends nobody to the webhook.
        place.write_configuration(only_namespaces=["nobodys"])
        for document in _guard(mode):
            path = _BINDINGS if document["kind"].endswith("Binding") else _POLICIES
            api.create(path, document)
        place.wait("the guard to judge", lambda: not untouched())
    place.staff()
    place.configure(failure_policy="Fail" if mode == "fail-closed" else "Ignore")


def _guard(mode: str) -> list[dict[str, Any]]:
    """The ValidatingAdmissionPolicy and its bindings, as they are installed."""
    folder = _COMPONENTS / mode.replace("guarded", "guard-stamp")
    return list(load_all_yaml((folder / "stamp.yaml").read_text()))


def _told_by_doctor(place: Arena) -> int:
    """How many pods without a stamp the doctor counts."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "doctor"),
            *("--kubeconfig", place.plane.kubeconfig, "--namespace", NAMESPACE, "-o", "json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise SandboxError(f"fairlead doctor says nothing:\n{done.stderr}")
    lines = [each["message"] for each in json.loads(done.stdout)["findings"]]
    found = (re.search(r"(\d+) pods? of .*no stamp", line) for line in lines)
    return sum(int(each[1]) for each in found if each)


def _more(tally: Tally) -> list[str]:
    """Where it is only warned of, every pod is told of."""
    found = []
    during, admitted, warned = (
        tally[f"guarded-warn: {what}"] for what in (CREATIONS_DURING, ADMITTED, WARNED)
    )
    if not during == admitted == warned:
        found.append(f"guarded-warn: of {during}, {admitted} admitted, {warned} warned of")
    unplaced, passed, told = (
        tally[f"guarded-warn: {what}"] for what in (UNPLACED, FAILED_OPEN, TOLD)
    )
    if not unplaced == passed == told:
        found.append(f"guarded-warn: {unplaced} unplaced, {passed} failed open, {told} told of")
    return found


SCENARIO: Final = Scenario(
    name="outage",
    does="all replicas are gone for two minutes, in each mode",
    unit=OUTAGES,
    long=(1,),
    short=1,
    play=play,
    none=(
        *(f"`{mode}`: {what}" for mode in MODES for what in (REFUSED_OTHERS, DISAGREEMENTS)),
        *(f"`{mode}`: {what}" for mode in MODES[:2] for what in (ADMITTED, UNPLACED)),
        f"`guarded-deny`: {TOLD}",
        NOT_RECOVERED,
    ),
    more=_more,
)
