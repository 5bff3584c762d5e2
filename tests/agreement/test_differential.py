"""Thousands of random pods on the real API server, each with and without the webhook."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.agreement.differential import (
    NODE,
    WITH,
    WITHOUT,
    Case,
    Json,
    PolicyFile,
    apart,
    user_of,
)
from tests.agreement.dry_runs import dry_runs, examined
from tests.cluster.spaces import Running
from tests.control_planes import StartControlPlane
from tests.fuzz.additions import ODD, SOUND, at
from tests.fuzz.drawn import drawn
from tests.fuzz.pods import added, whole_pods
from tests.fuzz.policies import policy_documents, without_faults
from tests.fuzz.world import FILES
from tests.laws.strategies import CLASSES
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook

PODS = int(os.environ.get("FAIRLEAD_DIFFERENTIAL_PODS", "4000"))
ROUNDS = PODS // 80  # a policy set each


@pytest.fixture
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """An API server of this test's own."""
    return apart(start_control_plane, {WITHOUT: {}, **WITH})


def policy_files(count: int) -> Iterator[str]:
    """The policies that ship, and then random ones, each a set that the webhook takes."""
    yield "\n---\n".join(content.decode() for content in FILES.values())
    for documents in drawn(policy_documents().filter(without_faults), count - 1):
        yield "\n---\n".join(map(json.dumps, [*documents, *CLASSES]))


def cases(plane: ControlPlane, running: Running, pods: Sequence[Json]) -> Iterator[Case]:
    """All pods, a part of them under each of the sets."""
    size = len(pods) // ROUNDS
    served = list(WITH)
    for number, text in enumerate(policy_files(ROUNDS)):
        file = PolicyFile(text, running.serve(text))
        part = pods[number * size : (number + 1) * size]
        answers = dry_runs(plane, part, lambda nth: (WITHOUT, served[nth % len(served)]), user_of)
        for nth, (sent, (without, with_us)) in enumerate(zip(part, answers, strict=True)):
            yield Case(sent, served[nth % len(served)], without, with_us, file)


def test_the_api_server_refuses_no_pod_for_our_sake_unless_a_policy_means_it(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what it stores is the pod that it would have stored, with the engine's patch applied."""
    folder = tmp_path / "policies"
    folder.mkdir()
    pods = drawn(whole_pods(*SOUND, *SOUND, *ODD, most=4, run=False), PODS)
    for number, pod in enumerate(pods):
        # The API server's own to fill in.
        del pod["spec"]["priority"]
        if number % 50 == 0:
            # Half of them by their node, which is believed, half forged, which are placed.
            added(pod, (at("metadata", "annotations", names.MIRROR_POD), "m"))
            pod["spec"]["nodeName"] = "n2" if number % 100 else NODE
    running = Running(
        start_webhook(plane, folder, namespaces=tuple(WITH), options=("--poll-interval", "0.1")),
        folder,
    )
    with capsys.disabled():
        became = examined(cases(plane, running, pods))
    for result in ("placed", "unchanged", "left-alone", "rejected", "refused either way"):
        assert became[result], result
    assert became["refused either way"] + became["not asked"] < became.total() / 2
