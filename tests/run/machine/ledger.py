"""What truly became of every pod: the truth that statuses are held against."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.run.machine.things import Pod

# status.reason of a failed pod that tells of its node, as far as the world makes use of them.
LOST_CONTAINER = "ContainerStatusUnknown"
# Reasons and exit codes of containers that did not outlive a restart of their machine.
LOST = ((LOST_CONTAINER, 137), ("Unknown", 255))
NODE_REASONS = ("NodeLost", "Shutdown", "Preempting", "OutOfcpu")


@dataclass
class Fate:
    """One pod's life.

    pod: as it was last seen.
    asked_by: who first asked for its deletion while it lived: "controller", another, or nobody.
    gone_at: when it was gone.
    """

    pod: Pod
    asked_by: str = ""
    gone_at: float | None = None

    @property
    def word(self) -> str:
        """How it ended.

        "lives"; "success", "program" or "disruption"; "own", if the controller took it; and
        "vanished", if it went without a word.
        """
        pod = self.pod
        if self.asked_by == "controller":
            return "own"
        touched = bool(self.asked_by) or pod.target is not None
        if pod.phase == "Succeeded":
            return "disruption" if touched else "success"
        if pod.phase == "Failed":
            touched = touched or (pod.word, pod.code) in LOST
            return "disruption" if touched or pod.reason in NODE_REASONS else "program"
        if self.gone_at is not None:
            return "vanished"
        return "disruption" if self.asked_by else "lives"


@dataclass
class Ledger:
    """Fates by uid, in the order of creation.

    silent: nodes whose kubelets reach nobody; off: those whose machine is off.
    dead: uids of pods whose programs ended with their machine, or by somebody's word.
    orphans: uids of pods that are not stored any more, and whose programs go on all the same.
    away: when each node was last not what it should be.
    ill: nodes that were ever ill: a controller may hear late that one is well again.
    """

    fates: dict[str, Fate] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    orphans: set[str] = field(default_factory=set)
    away: dict[str, float] = field(default_factory=dict)
    ill: set[str] = field(default_factory=set)

    def created(self, pod: Pod) -> None:
        self.fates[pod.uid] = Fate(pod)

    def changed(self, pod: Pod) -> None:
        self.fates[pod.uid].pod = pod

    def asked(self, pod: Pod, by: str, *, force: bool = False) -> None:
        """Somebody asked for the deletion of a pod that lives.

        Who forces it, and is not the controller, gives his word that its program has ended.
        """
        fate = self.fates[pod.uid]
        fate.asked_by = fate.asked_by or by
        if force and by != "controller":
            self.dead.add(pod.uid)

    def gone(self, pod: Pod, now: float) -> None:
        """A pod is not stored any more."""
        self.fates[pod.uid].gone_at = now
        if pod.node in self.silent - self.off and pod.started is not None and not pod.over:
            self.orphans.add(pod.uid)

    def turned_off(self, node: str) -> None:
        """A machine is off: what ran on it has ended."""
        self.silent.add(node)
        self.off.add(node)
        here = {uid for uid, fate in self.fates.items() if fate.pod.node == node}
        self.dead |= here
        self.orphans -= here

    def heard_again(self, node: str) -> None:
        """A kubelet reaches the API server: it ends what is not stored any more."""
        self.silent.discard(node)
        self.off.discard(node)
        self.orphans -= {uid for uid in self.orphans if self.fates[uid].pod.node == node}

    def may_be_the_nodes(self, fate: Fate) -> bool:
        """Whether a program's own end may be taken for its node's: that was away while it ran."""
        pod = fate.pod
        away = pod.started is not None and self.away.get(pod.node, -1.0) >= pod.started - 1
        return away or self.given_up(fate)

    def given_up(self, fate: Fate) -> bool:
        """Whether a controller may count it while it runs, as far as that knows: for its node."""
        return fate.pod.uid in self.dead or fate.pod.node in self.ill

    def lost_its_node(self, fate: Fate) -> bool:
        """Whether a node took a pod away, or was lost or away while it was there."""
        pod = fate.pod
        by_node = ("TerminationByKubelet", "DeletionByTaintManager", "DeletionByPodGC")
        return (
            pod.reason in ("NodeLost", "Shutdown")
            or (pod.target is not None and pod.target[0] in (*by_node, "EvictionByEvictionAPI"))
            or self.given_up(fate)
            or (bool(pod.node) and self.away.get(pod.node, -1.0) >= pod.created)
        )

    def living(self) -> list[Pod]:
        """Pods whose programs run, whether they are stored or not."""
        return [
            fate.pod
            for uid, fate in self.fates.items()
            if fate.pod.started is not None
            and not fate.pod.over
            and uid not in self.dead
            and (fate.gone_at is None or uid in self.orphans)
        ]

    def of(self, run_uid: str, role: str, index: int | None = None) -> list[Fate]:
        """Fates of a role's pods, or of one replica's."""
        return [
            fate
            for fate in self.fates.values()
            if fate.pod.run_uid == run_uid
            and fate.pod.role == role
            and (index is None or fate.pod.index == index)
        ]
