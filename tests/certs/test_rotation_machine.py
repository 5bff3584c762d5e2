"""Whoever crashes, lags or interferes: no leaf is served that a client does not trust."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from certs.kept import Authority, Serving
from certs.rotation import Wait, phase
from tests.certs.world import SETTLE, SKEW, Cluster
from tests.examples import examples

NUMBERS = st.integers(0, 2)
CONTROLLERS = st.integers(0, 1)
GARBAGE = {"tls.crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}


class Rotation(RuleBasedStateMachine):
    """Two controllers that are not aware of each other, each stopped and killed between calls."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.controllers: list[Generator[str, None, Wait] | None] = [None, None]
        self.skews = [timedelta(0), timedelta(0)]

    @initialize(served=st.booleans(), skew=st.sampled_from([-SKEW, timedelta(0), SKEW]))
    def begin(self, served: bool, skew: timedelta) -> None:
        """From nothing, or from a cluster that serves; the second one's clock may go wrong."""
        self.skews[1] = skew
        if served:
            self._settle()

    @rule(number=CONTROLLERS, calls=st.integers(1, 6) | st.integers(7, 80), killed=st.booleans())
    def a_controller_goes_on(self, number: int, calls: int, killed: bool) -> None:
        """For some calls, until it waits; and perhaps it is killed there."""
        for _ in range(calls):
            running = self.controllers[number] or self.cluster.controller(self.skews[number])
            self.controllers[number] = running
            if next(running, None) is None:
                self.controllers[number] = None
                return
        if killed:
            self.controllers[number] = None

    @rule(number=st.integers(0, 1))
    def an_api_server_sees_the_bundle(self, number: int) -> None:
        self.cluster.api_server_sees(number)

    @rule(number=NUMBERS)
    def a_replica_sees_the_leaf(self, number: int) -> None:
        if self.cluster.replicas[number].state != "down":
            self.cluster.replica_reads(number)

    @rule()
    def every_replica_sees_the_leaf(self) -> None:
        for number in range(3):
            self.a_replica_sees_the_leaf(number)

    @rule(number=NUMBERS, ends=st.booleans())
    def a_replica_starts_or_is_ready_or_ends(self, number: int, ends: bool) -> None:
        state = self.cluster.replicas[number].state
        if state == "down":
            self.cluster.replica_starts(number)
        elif state == "starting":
            self.cluster.replica_is_ready(number)
        elif ends:
            self.cluster.replica_ends(number)

    @rule(time=st.sampled_from([1, 10, 21, 31, 31, 12 * 86400]))
    def time_passes(self, time: int) -> None:
        self.cluster.passes(timedelta(seconds=time))

    @rule(authority=st.booleans())
    def somebody_asks_for_new_ones(self, authority: bool) -> None:
        stored = self.cluster.authority if authority else self.cluster.serving
        stored.write(stored.data, asked=True)

    @rule(fault=st.sampled_from(["authority", "serving", "bundles", "bundle"]), half=st.booleans())
    def something_is_lost(self, fault: str, half: bool) -> None:
        """But not the last place that tells whom clients trust: nobody could find that out."""
        cluster = self.cluster
        bundles = cluster.configuration.bundles
        remembered = cluster.authority.remembers + cluster.serving.remembers + any(bundles)
        if fault == "bundle" and bundles[half]:
            cluster.publish([bundles[half], b""] if half else [b"", bundles[half]])
        elif fault == "bundles" and remembered > any(bundles):
            cluster.publish([b"", b""])
        elif fault in {"authority", "serving"}:
            stored = cluster.authority if fault == "authority" else cluster.serving
            if remembered > stored.remembers:
                stored.write(GARBAGE if half else None)

    @precondition(lambda self: self.controllers == [None, None])
    @rule()
    def somebody_puts_back_the_bundle_of_before(self) -> None:
        """As whoever applies an old file does. Nothing that is served yet is refused for it."""
        authority = Authority.read(self.cluster.authority.data or {})
        if authority and authority.signing and authority.staged and not authority.retiring:
            before = Authority(signing=authority.signing).bundle
            self.cluster.publish([before, before])

    @invariant()
    def every_client_trusts_every_leaf_that_is_served(self) -> None:
        assert self.cluster.refused() == []

    def teardown(self) -> None:
        """Left in peace, it comes to an end: one authority, its leaf everywhere, no step more."""
        if not hasattr(self, "cluster"):
            return
        self._settle()
        cluster = self.cluster
        authority = Authority.read(cluster.authority.data or {})
        serving = Serving.read(cluster.serving.data or {})
        assert authority is not None
        assert serving is not None
        assert phase(authority) == "steady"
        assert cluster.configuration.bundles == [authority.bundle] * 2
        assert serving.bundle == authority.bundle
        assert {replica.state for replica in cluster.replicas} == {"serving"}
        leaf = serving.leaf.check()
        assert all(replica.leaf == leaf for replica in cluster.replicas)

    def _settle(self) -> None:
        cluster = self.cluster
        quiet = 0
        for _ in range(60):
            before = len(cluster.writes)
            for _ in cluster.controller():
                assert cluster.refused() == []
            for number, replica in enumerate(cluster.replicas):
                if replica.state == "down":
                    cluster.replica_starts(number)
                cluster.replica_reads(number)
                cluster.replica_is_ready(number)
            cluster.passes(SETTLE)
            quiet = quiet + 1 if len(cluster.writes) == before else 0
            if quiet > 2:
                return
        raise AssertionError(f"it never comes to an end: {cluster.writes[-12:]}")


TestRotation = Rotation.TestCase
TestRotation.settings = settings(max_examples=examples(150), stateful_step_count=60, deadline=None)


def test_a_controller_with_old_reads_does_not_forget_what_clients_trust() -> None:
    """It reads that nothing is published, another one sets all up, and the authority is lost."""
    cluster = Cluster()
    late = cluster.controller()
    for _ in ("configuration", "replicas", "serving"):
        next(late)
    for _ in cluster.controller():
        pass
    cluster.replica_starts(0)
    cluster.replica_is_ready(0)
    cluster.authority.write(None)
    for _ in late:
        cluster.api_server_sees(0)
        assert cluster.refused() == []
