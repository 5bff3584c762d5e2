"""Election over a Lease of a real API server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.kube.fake_api import until
from webhook.kube.client import connect
from webhook.kube.election import Election
from webhook.kube.lease import Terms
from webhook.sandbox.control_plane import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.control_planes import StartControlPlane
    from webhook.kube.client import Client
    from webhook.sandbox.control_plane import ControlPlane
    from webhook.sandbox.kubectl import Kubectl

SMALL = Settings(components=("etcd", "kube-apiserver"))
TERMS = Terms(lease_duration=6.0, renew_deadline=4.0, retry_period=0.5)
# A process that leads until it is killed.
LEADER = """
import asyncio, sys
from pathlib import Path
from webhook.kube.client import connect
from webhook.kube.election import Election
from webhook.kube.lease import Terms

async def work():
    print("leading", flush=True)
    await asyncio.sleep(1000)

async def main():
    async with connect(Path(sys.argv[1])) as client:
        terms = Terms(lease_duration=6.0, renew_deadline=4.0, retry_period=0.5)
        await Election(client, sys.argv[2], "the-lease", "killed", terms).run(work)

asyncio.run(main())
"""


class Candidate:
    """One that stands for election, and whether its work is being done."""

    def __init__(self, client: Client, namespace: str, name: str, *, terms: Terms = TERMS) -> None:
        self.election = Election(client, namespace, "the-lease", name, terms)
        self.working = False
        self.begun = 0

    async def work(self) -> None:
        self.working = True
        self.begun += 1
        try:
            await asyncio.sleep(1000)
        finally:
            self.working = False


@asynccontextmanager
async def standing(candidate: Candidate) -> AsyncIterator[asyncio.Task[None]]:
    """Stand for election; leave at the end."""
    task = asyncio.create_task(candidate.election.run(candidate.work))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def spec(kubectl: Kubectl) -> dict[str, Any]:
    lease: dict[str, Any] = kubectl.json("get", "lease", "the-lease")
    return dict(lease["spec"])


def test_one_leads_and_when_it_leaves_the_other_has_the_lease_at_once(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    """`kubectl get lease` shows who; the count of transitions goes on."""

    async def run() -> None:
        async with connect(control_plane.kubeconfig) as client:
            # Nothing has to expire here, were the machine to stand still for a while.
            one, two = (
                Candidate(client, namespace, name, terms=Terms(60.0, 50.0, 0.5))
                for name in ("one", "two")
            )
            async with standing(one) as first:
                await until(lambda: one.working)
                async with standing(two):
                    await until(lambda: two.election.holder == "one")
                    assert not two.election.may_write()
                    shown = await asyncio.to_thread(kubectl.run, "get", "lease")
                    assert ["the-lease", "one"] in [
                        line.split()[:2] for line in shown.stdout.splitlines()
                    ]
                    first.cancel()
                    await asyncio.wait([first])
                    assert not one.working
                    await until(lambda: two.working)
                    held = await asyncio.to_thread(spec, kubectl)
                    assert (held["holderIdentity"], held["leaseTransitions"]) == ("two", 1)
        last = await asyncio.to_thread(spec, kubectl)
        assert last.get("holderIdentity", "") == ""

    asyncio.run(run())


def test_a_leader_that_was_killed_is_followed_once_its_lease_has_expired(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    """Nobody gives the Lease back then."""
    arguments = (str(control_plane.kubeconfig), namespace)
    with subprocess.Popen(
        [sys.executable, "-c", LEADER, *arguments], stdout=subprocess.PIPE, text=True
    ) as leader:
        assert leader.stdout is not None
        assert leader.stdout.readline() == "leading\n"

        async def run() -> None:
            async with connect(control_plane.kubeconfig) as client:
                other = Candidate(client, namespace, "other")
                async with standing(other):
                    await until(lambda: other.election.holder == "killed")
                    leader.kill()
                    assert not other.election.may_write()
                    await until(lambda: other.working)
                    assert (await asyncio.to_thread(spec, kubectl))["holderIdentity"] == "other"

        asyncio.run(run())


def test_while_the_api_server_is_unreachable_no_process_writes(
    start_control_plane: StartControlPlane,
) -> None:
    """The work stops by itself, and begins again when the server is back."""
    plane = start_control_plane(SMALL)

    async def run() -> None:
        async with connect(plane.kubeconfig) as client:
            one, two = (Candidate(client, "default", name) for name in ("one", "two"))
            async with standing(one), standing(two):
                await until(lambda: one.working or two.working)
                await asyncio.to_thread(plane.stop_component, "kube-apiserver")
                await until(lambda: not one.working and not two.working)
                assert not one.election.may_write()
                assert not two.election.may_write()
                assert one.election.last_error is not None
                await asyncio.to_thread(plane.start_component, "kube-apiserver")
                await asyncio.to_thread(plane.wait_for_api_server)
                await until(lambda: one.working or two.working)
                assert one.election.may_write() != two.election.may_write()

    asyncio.run(run())
