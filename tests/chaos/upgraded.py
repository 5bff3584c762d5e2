"""Webhook and controller are upgraded from an earlier version, and rolled back.

The earlier version is that of a commit, with its own definitions and locked packages.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from tests.bench.policies import files
from tests.chaos.arena import REPLICAS, Arena, served
from tests.chaos.births import Births
from tests.chaos.ledger import FAILED, NEVER
from tests.chaos.rolling import UNGENTLE, replace_replicas
from tests.chaos.runs import CONTROLLERS, MISSING, NAMESPACE, TWICE, WORKERS, House, count_replicas
from tests.chaos.stage import Scenario, Stage, Tally
from tests.cluster import etcd
from webhook import names
from webhook.errors import SandboxError
from webhook.progress import Progress
from webhook.sandbox.api import Api, install_definitions
from webhook.sandbox.cache_folder import cache_directory, locked
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

ROLLOUTS: Final = "rollouts of the webhook to the other version"
CHANGES: Final = "changes of the controllers' version in the middle of a run"

# Before the first release. A release that changes what is stored takes the commit of the one before
# it, so that objects of that version are what the upgrade meets.
EARLIER: Final = "e1d14f9253c93ac343847e9b963297a08c37934d"
_ROOT: Final = Path(__file__).parents[2]
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Version:
    """An installed version: its interpreter, and a checkout of its files."""

    python: Path
    files: Path

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Its CustomResourceDefinitions."""
        texts = [each.read_text() for each in sorted((self.files / "manifests/crds").iterdir())]
        documents = [document for text in texts for document in yaml.safe_load_all(text)]
        return [each for each in documents if each["kind"] == "CustomResourceDefinition"]


CURRENT: Final = Version(Path(sys.executable), _ROOT)


def earlier(progress: Progress) -> Version:
    """The version of EARLIER, installed into the cache on the first call.

    Raises SandboxError if this clone lacks the commit, or if a package cannot be had.
    """
    home = cache_directory(os.environ) / "versions" / EARLIER[:12]
    version = Version(home / "environment" / "bin" / "python", home / "files")
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked(home.parent / "lock"):
        if not home.exists():
            with progress.step(f"installing the version of {EARLIER[:8]}", about=40):
                _install(home)
    return version


def _install(home: Path) -> None:
    archive = subprocess.run(
        ["git", "-C", _ROOT, "archive", EARLIER], capture_output=True, check=False
    )
    if archive.returncode:
        words = archive.stderr.decode().strip()
        raise SandboxError(f"commit {EARLIER} is not in this clone ({words}): git fetch it")
    with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
        made = Path(temporary) / home.name
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
            packed.extractall(made / "files", filter="data")
        wheels = made / "wheels"
        alone = ("--no-build-isolation", "--no-deps", "-w", wheels, made / "files")
        _pip(sys.executable, "wheel", *alone)
        # Moved afterwards: only its scripts, which are not used, name the place.
        venv.create(made / "environment", with_pip=True, symlinks=True)
        python = made / "environment" / "bin" / "python"
        _pip(python, "install", "--require-hashes", "-r", made / "files" / "requirements.lock")
        _pip(python, "install", "--no-deps", "--no-index", *wheels.glob("*.whl"))
        made.rename(home)


def _pip(python: str | Path, *arguments: str | Path) -> None:
    command = [python, "-m", "pip", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(f"the earlier version cannot be installed: {done.stderr.strip()}")


def put_definitions(api: Api, wanted: Sequence[dict[str, Any]]) -> None:
    """Put the definitions in the place of those before, as `kubectl apply --server-side` does."""
    for each in wanted:
        path = f"{_DEFINITIONS}/{each['metadata']['name']}?fieldManager=chaos&force=true"
        status, answer = api.call("PATCH", path, each, content_type="application/apply-patch+yaml")
        if status not in (200, 201):
            raise SandboxError(f"the definition cannot be changed: {answer}")


def play(stage: Stage) -> Tally:
    """As many upgrades as rounds, each with its rollback: first of the webhook, then of Runs."""
    before = earlier(Progress())
    tally = _play_webhook(stage, before)
    tally.add(_play_runs(stage, before))
    return tally


def _play_webhook(stage: Stage, before: Version) -> Tally:
    """Definitions, then replicas one by one, as `fairlead install` and a Deployment do it."""

    def prepare(place: Arena) -> None:
        api = place.plane.api
        install_definitions(api, before.definitions)
        for content in files(20, 3).values():
            document = orjson.loads(content)
            api.create(
                f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[document['kind']]}", document
            )
        place.python = before.python
        place.options = ("--policies-from-cluster", "--grace", str(stage.terms.grace))

    codes: list[int] = []
    rollouts = 0
    with served(stage, prepare=prepare) as place:
        with place.loaded() as ledger:
            time.sleep(1)
            for _ in range(stage.rounds):
                for version in (CURRENT, before):
                    if version is before:
                        _newer_policy(place.plane.api, "DELETE")
                    put_definitions(place.plane.api, version.definitions)
                    if version is CURRENT:
                        # While all replicas are of the version that does not know its fields.
                        _newer_policy(place.plane.api, "POST")
                    place.python = version.python
                    codes += replace_replicas(place, REPLICAS)
                    rollouts += 1
            time.sleep(1)
        tally = ledger.tally()
    tally.count(ROLLOUTS, rollouts)
    tally.count(UNGENTLE, sum(code != 0 for code in codes))
    return tally


def _newer_policy(api: Api, verb: str) -> None:
    """Write or delete a policy with fields that the earlier version does not know."""
    fallback = {"class": "spot", "mode": "Constrain", "fallback": {"afterPending": "1m"}}
    policy = {
        "apiVersion": names.API_VERSION,
        "kind": "PlacementPolicy",
        "metadata": {"name": "newer"},
        "spec": {"match": {"namespaces": ["nowhere"]}, "overrides": {"capacity": [fallback]}},
    }
    path = f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES['PlacementPolicy']}"
    status, answer = (
        api.call(verb, path, policy) if verb == "POST" else api.call(verb, f"{path}/newer")
    )
    if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
        raise SandboxError(f"{verb} of a policy: {answer}")


def _play_runs(stage: Stage, before: Version) -> Tally:
    """In the middle of each run the controllers' version changes; older runs stay as they are."""
    tally = Tally()
    settings = Settings(pools=read_pools(SHIPPED_NODES), extra_arguments=etcd.KEEP_HISTORY)
    with ControlPlane(stage.directory / "runs", stage.binaries, settings) as plane:
        install_definitions(plane.api, before.definitions)
        plane.create_namespace(NAMESPACE)
        with Births(plane, NAMESPACE) as births:
            house = House(plane, births)
            for name in CONTROLLERS:
                house.start(name, before.python)
            for number in range(2 * stage.rounds):
                version = before if number % 2 else CURRENT
                house.create(f"run-{number}")
                house.wait_begun(f"run-{number}", stage.chance.randrange(0, WORKERS))
                put_definitions(plane.api, version.definitions)
                _change_version(house, version)
                tally.count(CHANGES)
                house.wait_whole(f"run-{number}")
                stage.say(f"run {number + 1} of {2 * stage.rounds}")
            for number in range(2 * stage.rounds):
                count_replicas(house, f"run-{number}", tally)
    return tally


def _change_version(house: House, version: Version) -> None:
    for name in CONTROLLERS:
        os.kill(house.controllers[name].pid, signal.SIGTERM)
        house.plane.stop_component(name)
        house.start(name, version.python)


SCENARIO: Final = Scenario(
    name="upgrade",
    does="upgrades from an earlier version, and rollbacks to it",
    unit="upgrades, each with its rollback",
    long=(5,) * 2,
    short=1,
    play=play,
    none=(FAILED, *NEVER, UNGENTLE, MISSING, TWICE),
)
