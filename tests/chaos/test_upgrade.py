"""An upgrade from the release before, and the way back: under load, and of what is stored."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos import upgraded
from tests.chaos.ledger import CREATIONS, FAILED
from tests.chaos.play_short import PlayShort
from tests.chaos.upgraded import CURRENT, Version, put_definitions
from tests.cluster.live_runs import ALONE, CONTAINER, SOON, LiveRun, create_run
from tests.cluster.paths import path
from tests.cluster.spaces import Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.progress import Progress
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
DEFINITIONS_FIRST: Final = "definitions first"
PROGRAMS_FIRST: Final = "programs first"
# One object of each other kind.
OBJECTS: Final = (
    (names.CLASS_KIND, "spot", {"nodes": [{"labels": {"lifecycle": "spot"}}]}),
    (
        names.POLICY_KIND,
        "no-spot",
        {"overrides": {"capacity": [{"class": "spot", "mode": "Prevent"}]}},
    ),
    (
        names.EXCEPTION_KIND,
        "once",
        {
            "policies": ["no-spot"],
            "match": {"namespaces": ["nowhere"]},
            "until": "2099-01-01T00:00:00Z",
            "reason": "a migration",
        },
    ),
    (
        names.SOURCE_KIND,
        "acme",
        {
            "system": "Acme",
            "identity": {
                "precedence": 650,
                "marks": [{"label": "acme.example.com/job"}],
                "run": [{"label": "acme.example.com/job"}],
            },
        },
    ),
)


def test_an_upgrade_and_its_rollback_lose_no_pod_and_no_run(play_short: PlayShort) -> None:
    """Definitions, webhook and controllers; both ways, in both orders."""
    # Before the network namespace, which has no way to the packages.
    upgraded.earlier(Progress())
    tally = play_short("upgrade")
    assert tally[upgraded.ROLLOUTS] == 2 * upgraded.SCENARIO.short
    assert tally[upgraded.CHANGES] == 2 * upgraded.SCENARIO.short
    assert tally[CREATIONS] > 100
    assert tally[FAILED] == 0


def test_the_release_before_is_that_of_its_commit() -> None:
    """By the names, modes and contents of its files, as git lists them: no history is needed."""
    with tarfile.open(upgraded.ARCHIVE) as kept:
        lines = sorted(_as_git_lists(kept, each) for each in kept if not each.isdir())
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == upgraded.LISTED


def _as_git_lists(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    """A line of `git ls-tree -r`."""
    found = archive.extractfile(member) if member.isfile() else None
    content = found.read() if found else member.linkname.encode()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    mode = "120000" if member.issym() else "100755" if member.mode & 0o100 else "100644"
    return f"{mode} blob {blob.hexdigest()}\t{member.name}\n"


@dataclass
class Cluster:
    """Runs of all sorts, and the controller of one version."""

    space: Space
    order: str

    def change(self, version: Version) -> None:
        """Upgrade the definitions and the controller, or bring them back."""
        steps: list[Callable[[], None]] = [
            lambda: put_definitions(self.space.plane.api, version.definitions),
            lambda: self.restart(version),
        ]
        for step in steps if self.order == DEFINITIONS_FIRST else reversed(steps):
            step()

    def restart(self, version: Version, *, stop: bool = True) -> None:
        """The controller of this version takes the place of the other one."""
        plane = self.space.plane
        if stop:
            plane.stop_component("controller")
        start_controller(plane, name="controller", options=(*ALONE, *SOON), python=version.python)

    def live(self, name: str) -> LiveRun:
        return LiveRun(self.space, name)

    def pods(self) -> dict[str, str]:
        """The uid of each pod of a Run, by name."""
        return {
            each["metadata"]["name"]: each["metadata"]["uid"]
            for each in self.space.items("pods", names.RUN)
        }

    def others(self) -> dict[str, str]:
        """Those but the one that fails."""
        return _others(self.pods())

    def phases(self) -> dict[str, str]:
        """The phase of each Run."""
        return {
            each["metadata"]["name"]: each.get("status", {}).get("phase", "")
            for each in self.space.items(names.RUNS)
        }

    def until_phases(self, wanted: Mapping[str, str]) -> None:
        """Wait until each Run is in its phase."""
        eventually(
            "the Runs are as they are to be",
            lambda: self.phases() == wanted,
            explain=lambda: str(self.phases()),
        )

    def accepted(self) -> dict[str, str]:
        """What the controller says of each policy object that has a status."""
        return {
            kind: condition["status"]
            for kind, name, _ in OBJECTS
            for condition in (
                self.space.plane.api.get(path(names.POLICY_RESOURCES[kind], name))
                .get("status", {})
                .get("conditions", ())
            )
            if condition["type"] == "Accepted"
        }

    def until_unseen(self, count: int) -> None:
        """Wait until it is known how many restarts the version before has not described.

        A controller that was there before the definitions finds them within half a minute.
        """
        live = self.live("runs")
        live.until("it is known what was not seen", lambda: live.status.get("unseen") == count)

    def fail_worker(self, restarts: int) -> None:
        """A worker fails, and the controller counts it: so it has looked at all Runs."""
        live = self.live("runs")
        pod = live.pods()["worker-1"]
        live.ends("worker-1", 1)
        live.until_replaced("worker-1", pod)
        live.until("it is counted", lambda: live.status["restarts"] == restarts)
        live.until_whole(2)


@pytest.fixture(params=[DEFINITIONS_FIRST, PROGRAMS_FIRST])
def cluster(
    request: pytest.FixtureRequest,
    binaries: Mapping[str, Path],
    kubectl_for: Callable[[ControlPlane], Kubectl],
    tmp_path: Path,
) -> Any:
    """A cluster of the release before, with objects of each kind, and Runs in each phase."""
    before = upgraded.earlier(Progress())
    settings = Settings(pools=read_pools(SHIPPED_NODES), definitions=before.definitions)
    with ControlPlane(tmp_path / "state", binaries, settings) as plane:
        plane.create_namespace("lab")
        made = Cluster(Space(plane, kubectl_for(plane).within("lab"), "lab"), request.param)
        made.restart(before, stop=False)
        for kind, name, spec in OBJECTS:
            document = an_object(names.API_VERSION, kind, name, dict(spec))
            plane.api.create(path(names.POLICY_RESOURCES[kind]), document)
        two = {"framework": "jax", "replicas": {"worker": {"count": 2}}, "backoffLimit": 9}
        for name in ("runs", "succeeds", "stops"):
            create_run(made.space, name, **two)
        create_run(made.space, "fails", backoffLimit=0)
        serving = {**CONTAINER, "ports": [{"containerPort": 8888}]}
        template = {"spec": {"containers": [serving]}}
        create_run(made.space, "serves", kind="notebook", template=template)
        create_run(made.space, "launches", framework="mpi", replicas=LAUNCHED)
        for name in ("runs", "succeeds", "stops"):
            made.live(name).until_whole(2)
        made.live("stops").set(suspend=True)
        for replica in ("worker-0", "worker-1"):
            made.live("succeeds").ends(replica, 0)
        made.live("fails").until_phase("Running")
        made.live("fails").ends("master-0", 3)
        made.fail_worker(restarts=1)
        made.until_phases(PHASES)
        eventually(
            "policies are judged",
            lambda: {*made.accepted().values()} == {"True"},
            explain=lambda: str(made.accepted()),
        )
        yield made


LAUNCHED: Final[Json] = {"launcher": {}, "worker": {"count": 1}}
PHASES: Final = {
    "runs": "Running",
    "succeeds": "Succeeded",
    "stops": "Suspended",
    "fails": "Failed",
    "serves": "Running",
    "launches": "Running",
}


def test_what_is_stored_outlives_the_upgrade_and_the_way_back(cluster: Cluster) -> None:
    """No pod is made again, no count is lost, and what waits in a queue does not start."""
    live, space = cluster.live("runs"), cluster.space
    words = ("run", "create", "late", "--image", "x", "--queue", "ml")
    mentions(
        space.ask(*words, "--set", "spec.suspend=true").stderr,
        "are older than this command",
        "may know no queues",
    )
    space.delete(names.RUNS, "late")
    before, judged = cluster.pods(), cluster.accepted()
    cluster.change(CURRENT)
    cluster.until_unseen(1)
    cluster.fail_worker(restarts=2)
    assert (live.status["unseen"], bool(live.status["usage"])) == (1, True)
    assert (cluster.phases(), cluster.others(), cluster.accepted()) == (
        PHASES,
        _others(before),
        judged,
    )

    queued = an_object(names.API_VERSION, names.RUN_KIND, "waits", dict(live.run()["spec"]))
    queued["metadata"]["labels"] = {names.KUEUE_QUEUE: "ml"}
    space.create(queued)
    waits = cluster.live("waits")
    waits.until("it waits", lambda: "queue ml" in waits.status.get("message", ""))
    done = space.ask("run", "suspend", "--queued", "-o", "name")
    assert done.stdout.split() == ["run.fairlead.dev/waits"]
    phases = {**PHASES, "waits": "Suspended"}
    before = cluster.pods()
    cluster.change(upgraded.earlier(Progress()))
    cluster.fail_worker(restarts=3)
    assert "usage" not in live.status
    assert (cluster.phases(), cluster.others(), cluster.accepted()) == (
        phases,
        _others(before),
        judged,
    )

    before = cluster.pods()
    cluster.change(CURRENT)
    done = space.ask("run", "resume", "--queued", "-o", "name")
    assert done.stdout.split() == ["run.fairlead.dev/waits"]
    waits.until("it waits", lambda: "queue ml" in waits.status.get("message", ""))
    cluster.until_unseen(3)
    cluster.fail_worker(restarts=4)
    assert live.status["unseen"] == 3
    assert (cluster.phases(), cluster.others()) == (phases, _others(before))


def _others(pods: Mapping[str, str]) -> dict[str, str]:
    """The pods without the one that fails."""
    return {name: uid for name, uid in pods.items() if name != "runs-worker-1"}


STARTS: Final[Json] = {"framework": "jax", "gang": {"startWithin": "1m"}}


@pytest.mark.parametrize("cluster", [DEFINITIONS_FIRST], indirect=True)
def test_runs_that_start_all_at_once_outlive_the_way_back_and_the_upgrade(
    cluster: Cluster,
) -> None:
    """The version before creates each pod by itself, and what it began is left alone afterwards.

    It fails a Run with a field that it does not know, so its definitions come first.
    """
    space, before = cluster.space, upgraded.earlier(Progress())
    cluster.change(CURRENT)
    create_run(space, "whole", **STARTS, replicas={"worker": {"count": 2}})
    large = {"worker": {"count": 2, "resources": {"requests": {"cpu": "4000"}}}}
    create_run(space, "large", **STARTS, replicas=large)
    whole, waits = cluster.live("whole"), cluster.live("large")
    whole.until("all have a node", lambda: gang_of(whole) == "Whole")
    waits.until("it knows its room", lambda: "at most 0 of 2" in waits.status.get("message", ""))
    assert waits.pods() == {}
    pods = cluster.pods()

    put_definitions(space.plane.api, before.definitions)
    eventually("the field is dropped", lambda: "gang" not in whole.run()["spec"])
    cluster.restart(before)
    waits.until("each pod is created by itself", lambda: len(waits.pods()) == 2)
    begun = cluster.pods()
    assert pods.items() <= begun.items()

    cluster.change(CURRENT)
    cluster.fail_worker(restarts=2)
    assert _others(cluster.pods()) == _others(begun)


def gang_of(live: LiveRun) -> str:
    """The state of its start."""
    return str(live.status.get("gang", {}).get("state", ""))
