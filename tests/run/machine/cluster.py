"""What happens to pods without the controller: scheduler, kubelet, nodes, collectors, people."""

from __future__ import annotations

from dataclasses import dataclass

from tests.run.machine.ledger import LOST
from tests.run.machine.server import Server
from tests.run.machine.things import GRACE, Node, Pod, RunThing, Thing
from webhook.run.queue import CANNOT_CREATE, PLACEMENT_CHANGED

NODES = ("node-a", "node-b")
OWN_EVICTIONS = (CANNOT_CREATE, PLACEMENT_CHANGED)
STRANGER = "a stranger"


@dataclass
class Cluster:
    """Everything around the controller. Every method is one thing that can happen, or nothing."""

    server: Server

    def __post_init__(self) -> None:
        for name in NODES:
            self._register(name)

    @property
    def lost(self) -> set[str]:
        """Nodes whose kubelets reach nobody."""
        return self.server.ledger.silent

    def start(self, pod: Pod) -> None:
        """One step of a pod's way: bound, running, ready."""
        if pod.over or not self._kubelet_reaches(pod) or pod.name not in self.server.pods:
            return
        if not pod.node and pod.fallback and self.server.sold_out:
            if pod.unscheduled is None:
                self._change(pod, unscheduled=self.server.now)
        elif not pod.node:
            there = self.server.nodes
            nodes = [
                node
                for node in NODES
                if node not in self.lost and node in there and there[node].ready == "True"
                if node not in pod.avoid and self._has_place(node)
            ]
            waits = pod.avoid or self.server.places is not None
            if not nodes and waits and pod.unscheduled is None:
                self._change(pod, unscheduled=self.server.now)
            if nodes:
                self._change(pod, node=nodes[pod.index % len(nodes)], bound=self.server.now)
        elif pod.phase == "Pending" and pod.going is None:
            self._change(pod, phase="Running", started=self.server.now)
        elif pod.phase == "Running":
            self._change(pod, ready=True)

    def _has_place(self, node: str) -> bool:
        here = sum(pod.node == node and not pod.over for pod in self.server.pods.values())
        return self.server.places is None or here < self.server.places

    def exit(self, pod: Pod, code: int, word: str = "") -> None:
        """The program ends by itself. The word is the runtime's: Completed, Error, OOMKilled."""
        if pod.phase == "Running" and self._kubelet_reaches(pod):
            word = word or ("Error" if code else "Completed")
            phase = "Failed" if code else "Succeeded"
            now = self.server.now
            self._change(pod, phase=phase, ready=False, ended=now, code=code, word=word)

    def fail(self, pod: Pod, reason: str, code: int | None, *, target: bool) -> None:
        """The kubelet ends a pod, and says why in status.reason."""
        if pod.over or not pod.node or not self._kubelet_reaches(pod):
            return
        now = self.server.now
        mark = ("TerminationByKubelet", now) if target else pod.target
        code = code if pod.phase == "Running" else None
        ended = {"phase": "Failed", "ready": False, "ended": now, "reason": reason, "target": mark}
        self._change(pod, **ended, code=code, word="Error" if code is not None else "")

    def target(self, pod: Pod, reason: str) -> None:
        """Scheduler or eviction API mark a pod that they are about to delete."""
        if not pod.over and pod.target is None:
            self._change(pod, target=(reason, self.server.now))

    def spare(self, pod: Pod) -> None:
        """A mark that no deletion followed is taken back after some minutes."""
        if not pod.over and pod.going is None:
            self._change(pod, target=None)

    def delete(self, pod: Pod, *, force: bool) -> None:
        self.server.delete_pod(pod.name, pod.uid, STRANGER, force=force)

    def strip(self, pod: Pod) -> None:
        """Its author takes its labels."""
        self._change(pod, bare=True)

    def finish_going(self, pod: Pod, code: int | None) -> None:
        """The kubelet ends a pod that was asked to go: its last word may be seen, or not."""
        if pod.going is None or not self._kubelet_reaches(pod):
            return
        if pod.over or code is None or pod.started is None:
            self.server.remove("pods", pod.name)
        else:
            self.exit(pod, code)

    def lose(self, node: str) -> None:
        """A node is not heard of any more; its programs go on."""
        self.lost.add(node)
        self._was_away(node)

    def turn_off(self, node: str) -> None:
        """A machine is off. Nobody is told."""
        self.server.ledger.turned_off(node)
        self._was_away(node)

    def notice(self, node: str) -> None:
        """The node controller has heard nothing of a node for too long.

        A mistake of the cloud about a machine that is on does not last until then: no evidence
        would tell it from a shutdown.
        """
        there = self.server.nodes.get(node)
        if node in self.lost and there and there.ready != "Unknown":
            off = there.shut_down and node in self.server.ledger.off
            self._change_node(node, ready="Unknown", since=self.server.now, shut_down=off)

    def not_ready(self, node: str) -> None:
        """A kubelet that is alive says that its node is not ready; the cloud takes that wrong."""
        if node not in self.lost and node in self.server.nodes:
            self._change_node(node, ready="False", since=self.server.now, shut_down=True)
            self._was_away(node)

    def fall_ill(self, node: str) -> None:
        """A condition of the node says so; its kubelet and its pods go on."""
        there = self.server.nodes.get(node)
        if there and there.ill is None:
            self._change_node(node, ill=self.server.now)
            self.server.ledger.ill.add(node)

    def get_well(self, node: str) -> None:
        """The condition is gone."""
        there = self.server.nodes.get(node)
        if there and there.ill is not None:
            self._change_node(node, ill=None)

    def register_again(self, node: str) -> None:
        """Somebody deletes the Node of a live kubelet, which makes another. Its pods go on."""
        if node not in self.lost and node in self.server.nodes:
            self.server.remove("nodes", node)
            self._register(node)
            self._was_away(node)

    def restart(self, node: str) -> None:
        """A machine is off and on again, so fast that its Node was never silent."""
        self.turn_off(node)
        self.recover(node)

    def shut_down(self, node: str) -> None:
        """The cloud's node controller says that a machine is off that is not ready."""
        self.notice(node)
        if node in self.server.ledger.off and node in self.server.nodes:
            self._change_node(node, shut_down=True)

    def forget(self, node: str) -> None:
        """The cloud has no such machine any more, and its Node is deleted."""
        self.turn_off(node)
        if node in self.server.nodes:
            self.server.remove("nodes", node)

    def recover(self, node: str) -> None:
        """It is there again, and says how the pods are. The taint of a shutdown is taken later."""
        was_off = node in self.server.ledger.off
        there = self.server.nodes.get(node)
        since = there.since if there else None
        if node in self.lost or not there or there.ready != "True":
            self._was_away(node)
            since = self.server.now
        self.server.ledger.heard_again(node)
        if there is None:
            self._register(node)
        else:
            self._change_node(node, ready="True", since=since)
        for pod in list(self.server.pods.values()) if was_off else ():
            if pod.node == node and not pod.over:
                self._not_found(pod)

    def untaint(self, node: str) -> None:
        """The cloud's node controller sees a node ready."""
        there = self.server.nodes.get(node)
        if there and there.ready == "True":
            self._change_node(node, shut_down=False)

    def _not_found(self, pod: Pod) -> None:
        """A kubelet whose machine was restarted does not find the pod's containers.

        A pod that is to go fails first, and goes after that.
        """
        if pod.started is None:
            self.server.remove("pods", pod.name)
            return
        word, code = LOST[pod.index % len(LOST)]
        ended = {"phase": "Failed", "ready": False, "ended": self.server.now, "code": code}
        self._change(pod, **ended, word=word)

    def taint(self, pod: Pod) -> None:
        """The taint manager deletes what runs on a lost node; nobody there hears of it."""
        if pod.node in self.lost and not pod.over and pod.going is None:
            now = self.server.now
            marked = self._change(pod, target=("DeletionByTaintManager", now), ready=False)
            self.server.delete_pod(marked.name, marked.uid, STRANGER)

    def collect_pods(self) -> None:
        """PodGC takes every pod whose Node is gone; those that had not ended fail first."""
        for pod in list(self.server.pods.values()):
            if pod.node and pod.node not in self.server.nodes:
                if not pod.over:
                    now = self.server.now
                    mark = pod.target or ("DeletionByPodGC", now)
                    self._change(pod, phase="Failed", ready=False, ended=now, target=mark)
                self.server.remove("pods", pod.name)

    def out_of_service(self, node: str) -> None:
        """An administrator knows that a machine is off, and says so: PodGC takes its pods."""
        self.turn_off(node)
        self.notice(node)
        for pod in list(self.server.pods.values()):
            if pod.node == node and not pod.over:
                self.server.delete_pod(pod.name, pod.uid, "PodGC", force=True)

    def admit(self) -> None:
        """Kueue gives its quota, which is enough for one Run, to the first that waits."""
        everyone = self.server.workloads.values()
        if not any(each.has("QuotaReserved") and not each.has("Finished") for each in everyone):
            # After an eviction by its owner, it is made again.
            waiting = (
                each
                for each in everyone
                if not each.has("Finished")
                and each.conditions.get("Evicted", (False, ""))[1] not in OWN_EVICTIONS
            )
            if first := next(waiting, None):
                given = {
                    "QuotaReserved": (True, "QuotaReserved"),
                    "Admitted": (True, "Admitted"),
                    "Evicted": (False, "QuotaReserved"),
                }
                self.server.change(
                    "workloads", first.name, **first.reported(given, self.server.now)
                )

    def evict(self, reason: str) -> None:
        """Kueue wants its quota back. It has it when the owner says so."""
        for each in list(self.server.workloads.values()):
            if each.has("Admitted") and not each.has("Finished"):
                said = each.reported({"Evicted": (True, reason)}, self.server.now)
                self.server.change("workloads", each.name, **said)

    def collect_garbage(self) -> None:
        """Deletes what a Run owned that is not there any more, or waits for them to go."""
        there = {run.uid for run in self.server.runs.values() if run.going is None}
        for pod in list(self.server.pods.values()):
            if pod.run_uid not in there and pod.run_uid and pod.going is None:
                self.server.delete_pod(pod.name, pod.uid, "the collector")
        for kind in ("services", "configmaps", "secrets", "deployments", "workloads"):
            for thing in list(self.server.stored[kind].values()):
                if thing.run_uid not in there and thing.run_uid:
                    self.server.remove(kind, thing.name)
        owned = {pod.run_uid for pod in self.server.pods.values()}
        for run in list(self.server.runs.values()):
            if run.going is not None and run.uid not in owned:
                self.server.remove("runs", run.name)

    def deploy(self) -> None:
        """The Deployment controller and all behind it do what each Deployment asks."""
        for name, thing in list(self.server.stored["deployments"].items()):
            fields = {"observed": thing.generation, "available": thing.replicas}
            self.server.change("deployments", name, **fields)

    def occupy(self, name: str) -> None:
        """Somebody else's pod takes a name."""
        free = not self.server.quota_used_up and self.server.answers_lost is None
        if name not in self.server.pods and free:
            pod = Pod(name, "", "", "", 0, 0, self.server.now)
            self.server.create("pods", pod)

    def vacate(self) -> None:
        """Somebody else's pods go."""
        for pod in list(self.server.pods.values()):
            if not pod.run_uid:
                self.server.remove("pods", pod.name)

    def all_is_well(self, finishing: dict[str, str]) -> None:
        """One step in a world without faults: nodes are back, pods go on, and end if they may.

        finishing: the role whose pods come to an end, by uid of the run; empty for all.
        """
        for node in NODES:
            self.recover(node)
            self.untaint(node)
            self.get_well(node)
        self.vacate()
        self.admit()
        self.server.quota_used_up = False
        self.server.most_pods = None
        if self.server.places is not None:
            # Enough for any run alone, and not for two.
            self.server.places = 2
        self.server.answers_lost = None
        self.server.excluded = False
        # Nodes of the class never come if all give it up. A pod waits as the policy said when it
        # was created.
        waits = self.server.rule is not None and self.server.rule.pending is not None
        there = (most for pod in self.server.pods.values() for _, most in pod.fallback)
        self.server.sold_out = self.server.sold_out and waits and None not in there
        # What a run that is over leaves behind ends, too.
        over = {
            run.uid
            for run in self.server.runs.values()
            if run.status.get("phase") in ("Succeeded", "Failed")
        }
        for pod in list(self.server.pods.values()):
            if pod.going is not None:
                self.finish_going(pod, None)
            elif (pod.ready and pod.run_uid in over) or (
                pod.ready and finishing.get(pod.run_uid) in (pod.role, "")
            ):
                self.exit(pod, 0)
            elif not pod.over:
                self.start(pod)
        self.deploy()
        self.collect_garbage()

    def _register(self, name: str) -> None:
        """A kubelet makes its Node. Those of the second name are never interrupted."""
        node = Node(name, self.server.now, interruptible=name != NODES[1])
        self.server.create("nodes", node)

    def _was_away(self, node: str) -> None:
        self.server.ledger.away[node] = self.server.now

    def _change_node(self, name: str, **fields: object) -> None:
        self.server.change("nodes", name, **fields)

    def _kubelet_reaches(self, pod: Pod) -> bool:
        return pod.node not in self.lost

    def _change(self, pod: Pod, **fields: object) -> Pod:
        return self.server.change("pods", pod.name, **fields)  # type: ignore[no-any-return]


__all__ = ["GRACE", "NODES", "STRANGER", "Cluster", "RunThing", "Thing"]
