"""Webhook and controller are upgraded from the release before, and rolled back.

The release before is as it was: its commit, its own definitions, its locked packages.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import threading
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
# Seconds after which definitions follow programs.
_LATE: Final = 3.0
CHANGES: Final = "changes of the controllers' version in the middle of a run"

# The commit of the release before, 0.1.0, and what its programs are: `git archive COMMIT PATHS`. It
# is kept here because a shallow clone, as CI has one, lacks the commit, and nothing is published.
# After a release, both are those of its tag (docs/guides/releasing.md).
EARLIER: Final = "cd3296bf68c4057ce1e5e1f6b690f9aa23cddcf4"
PATHS: Final = ("webhook", "certs", "manifests/crds", "requirements.lock", "LICENSE")
ARCHIVE: Final = Path(__file__).with_name("release-before.tar.xz")
# git ls-tree -r EARLIER -- PATHS | LC_ALL=C sort | sha256sum
LISTED: Final = "dbb8dd80ad9b99f41aa986f296847ad3b46cec8e5249f8fd39cbe0afbe05c6e0"
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
    """The release before, installed into the cache on the first call.

    Packages that it has locked as this version are shared with it. Raises SandboxError if another
    cannot be had.
    """
    packages = sysconfig.get_path("purelib")
    digest = hashlib.sha256(ARCHIVE.read_bytes() + packages.encode()).hexdigest()[:12]
    home = cache_directory(os.environ) / "versions" / digest
    version = Version(home / "environment" / "bin" / "python", home / "files")
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked(home.parent / "lock"):
        if not home.exists():
            with progress.step("installing the release before", about=5):
                _install(home, packages)
    return version


def _install(home: Path, packages: str) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
        made = Path(temporary) / home.name
        with tarfile.open(ARCHIVE) as packed:
            packed.extractall(made / "files", filter="data")
        # Moved afterwards: only its scripts, which are not used, name the place.
        venv.create(made / "environment", symlinks=True)
        python = made / "environment" / "bin" / "python"
        (own,) = (made / "environment").glob("lib/python*/site-packages")
        (own / "earlier.pth").write_text(f"{home / 'files'}\n{packages}\n")
        lock = made / "files" / "requirements.lock"
        pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
        command = (*pip, "install", "--require-hashes", "-r", lock)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SandboxError(f"the release before cannot be installed: {done.stderr.strip()}")
        made.rename(home)


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
            for number in range(stage.rounds):
                for version in (CURRENT, before):
                    place.python = version.python
                    if version is before:
                        _newer_policy(place.plane.api, "DELETE")
                    if number % 2:
                        codes += _replace_before_definitions(place, version)
                    else:
                        put_definitions(place.plane.api, version.definitions)
                        if version is CURRENT:
                            # While all replicas are of the version that does not know its fields.
                            _newer_policy(place.plane.api, "POST")
                        codes += replace_replicas(place, REPLICAS)
                    rollouts += 1
            time.sleep(1)
        tally = ledger.tally()
    tally.count(ROLLOUTS, rollouts)
    tally.count(UNGENTLE, sum(code != 0 for code in codes))
    return tally


def _replace_before_definitions(place: Arena, version: Version) -> list[int]:
    """Replace the replicas, and meanwhile the definitions, as two applications do it.

    A replica that starts with older definitions is not ready, so those before it serve on.
    """
    late = threading.Timer(_LATE, put_definitions, (place.plane.api, version.definitions))
    late.start()
    codes = replace_replicas(place, REPLICAS)
    late.join()
    if version is CURRENT:
        _newer_policy(place.plane.api, "POST")
    return codes


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
                if number // 2 % 2:
                    _change_version(house, version)
                put_definitions(plane.api, version.definitions)
                if not number // 2 % 2:
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
    does="upgrades from the release before, and rollbacks to it",
    unit="upgrades, each with its rollback",
    # Every second one with the programs before the definitions.
    long=(6,) * 2,
    short=2,
    play=play,
    none=(FAILED, *NEVER, UNGENTLE, MISSING, TWICE),
)
