"""Rendered Runs beside the real operators: accepted as they are, and the pods of `preview -o pods`.

The control plane has no nodes: the tests report pods as running, and nothing ends by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from click.testing import CliRunner

from tests.cluster.manifests import Json
from tests.cluster.paths import home
from tests.cluster.spaces import NewNamespace, Space, is_stamped, stamp
from tests.cluster.webhooks import serving
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.objects import an_object
from tests.run.backends.runs import WHOLE, a_run, all_rendered, model
from webhook import names
from webhook.cli import fairlead
from webhook.errors import SandboxError
from webhook.identity import identify
from webhook.progress import Progress
from webhook.run.backends.table import render_run
from webhook.run.backends.training_operator import Kubeflow
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import plan_installations, start_operators
from webhook.sandbox.operators.table import interception_sources, select_operators

pytest_plugins = ["tests.cluster.webhook_fixtures"]

OPERATORS: Final = select_operators(
    [
        "training-operator",
        "mpi-operator",
        "jobset",
        "dask-kubernetes",
        "trainer",
        "kuberay-operator",
    ]
)
RAY_JOB: Final = next(
    run for run in WHOLE["kuberay"] if all_rendered("kuberay", run)[0]["kind"] == "RayJob"
)
CASES: Final = [
    pytest.param(backend, run, id=f"{backend}-{number}")
    for backend, runs in WHOLE.items()
    for number, run in enumerate(runs)
    if backend != "spark" and run is not RAY_JOB
]
# Not started: without Java it makes no pod.
SPARK: Final = select_operators(["spark-operator"])
POLICIES = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: leaders}
spec:
  match: {coordinator: true}
  overrides: {nodeSelector: {cloud.google.com/gke-nodepool: on-demand}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: workers}
spec:
  match: {roles: [worker]}
  overrides: {tolerations: [{key: spot, operator: Exists}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: second}
spec:
  match: {replicaIndexes: [1]}
  overrides: {tolerations: [{key: second, operator: Exists}]}
"""
# Tolerations that the API server adds.
_ADDED: Final = (names.TAINT_NOT_READY, names.TAINT_UNREACHABLE)


class Engine(NamedTuple):
    """How the pods of a kind differ from those of a Run, by the kind's own rules.

    roles: a role of the Run -> what the engine calls it. unnumbered: roles whose pods say no index.
    leads: framework, role and index of pods that lead in a Run where none leads.
    variables: those of frameworks.md that its pods have with the Run's values; None: all.
    without: roles that have none of them.
    """

    roles: Mapping[str, str] = {}
    unnumbered: Sequence[str] = ()
    leads: Sequence[tuple[str | None, str, int]] = ()
    variables: frozenset[str] | None = frozenset()
    without: Sequence[str] = ()


_TORCHRUN: Final = frozenset({"PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR"})
_PYTORCH: Final = _TORCHRUN | {"PET_MASTER_PORT", "PET_NPROC_PER_NODE"}
_STATIC: Final = frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"})
_ELASTIC: Final = frozenset(
    {
        "PET_NNODES",
        "PET_NPROC_PER_NODE",
        "PET_RDZV_BACKEND",
        "PET_RDZV_ENDPOINT",
        "PET_MAX_RESTARTS",
    }
)
ENGINES: Final[Mapping[str, Engine]] = {
    "TFJob": Engine(leads=[("tensorflow", "worker", 0)], variables=frozenset({"TF_CONFIG"})),
    "PyTorchJob": Engine(leads=[("pytorch", "worker", 0)], variables=_PYTORCH | _STATIC),
    "PaddleJob": Engine(
        {"server": "master"},
        leads=[("paddle", *each) for each in (("worker", 0), ("master", 0), ("master", 1))],
        variables=frozenset({"PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_JOB_ID"}),
    ),
    "XGBoostJob": Engine(variables=_STATIC | {"WORKER_ADDRS", "WORKER_PORT"}),
    "JAXJob": Engine(
        variables=frozenset(
            {"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"}
        )
    ),
    "MPIJob": Engine(unnumbered=("launcher",), variables=frozenset({"K_MPI_JOB_ROLE"})),
    "JobSet": Engine(leads=[(None, "worker", 0)], variables=None),
    "DaskJob": Engine(
        unnumbered=("scheduler", "worker", "driver"),
        variables=frozenset({"DASK_SCHEDULER_ADDRESS"}),
        without=("scheduler",),
    ),
    # Its port is another one; the number of processes is that of the CPUs where no GPU is.
    "TrainJob": Engine(leads=[(None, "worker", 0), ("pytorch", "worker", 0)], variables=_TORCHRUN),
    "RayCluster": Engine(
        unnumbered=("head", "worker", "driver"),
        variables=frozenset({"RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"}),
        without=("head",),
    ),
}


class Pod(NamedTuple):
    """What a pod is and where it may run, with its main container's variables.

    tolerations: their keys. own_selector: the nodeSelector before policies, of a Run's pod.
    """

    run: str
    framework: str | None
    role: str
    number: int | None
    leads: bool
    policies: frozenset[str]
    selector: Mapping[str, str]
    tolerations: Sequence[str]
    env: Mapping[str, str]
    own_selector: Mapping[str, str] = {}


@pytest.fixture(scope="module")
def control_plane(
    binaries: Mapping[str, Path],
    operators_built: Mapping[str, BuiltOperator],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """One with the operators, whose kinds no other module deletes."""
    planned = plan_installations(OPERATORS, operators_built)
    defined = [*planned, *plan_installations(SPARK, operators_built)]
    definitions = [each for one in defined for each in one.definitions]
    directory = tmp_path_factory.mktemp("rendered") / "state"
    with ControlPlane(directory, binaries, Settings(definitions=definitions)) as plane:
        start_operators(plane, planned, Progress())
        yield plane


@pytest.fixture(scope="module")
def cluster_kubectl(control_plane: ControlPlane, kubectl_path: Path) -> Kubectl:
    """The real kubectl for it."""
    return Kubectl(kubectl_path, control_plane.kubeconfig)


@pytest.fixture(scope="module")
def running(control_plane: ControlPlane, policy_folder: Path) -> Iterator[None]:
    """The webhook, for the pods of all these operators."""
    with serving(control_plane, policy_folder, sources=interception_sources(OPERATORS)):
        yield


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace with the service account that the Runs name."""
    made = new_namespace({})
    account = an_object("v1", "ServiceAccount", "trainer")
    made.create(account)
    return made


def _create(space: Space, manifest: Json) -> None:
    """Create an object; the webhook of Trainer hears of the runtime that a job names later."""

    def created() -> bool:
        try:
            space.create(manifest)
        except SandboxError as error:
            if "must be created before" not in str(error):
                raise
            return False
        return True

    eventually(f"{manifest['kind']} is taken", created)


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(("backend", "run"), CASES)
def test_the_engine_makes_the_pods_that_preview_shows(
    space: Space, policy_folder: Path, tmp_path: Path, backend: str, run: Json
) -> None:
    """Each object is valid for the strict API server, and its pods differ only as ENGINES says."""
    objects = all_rendered(backend, run)
    for each in objects:
        _create(space, each)
    for each in objects:
        _resume(space, each)
    kind = next(each["kind"] for each in objects if each["kind"] in ENGINES)
    engine = ENGINES[kind]
    if "elastic" in run["spec"].get("pytorch", {}):
        # The operator's rendezvous is at worker 0, also beside a master.
        elsewhere = {"PET_RDZV_ENDPOINT"} if "master" in run["spec"]["replicas"] else set()
        # What a Run leaves out, the engine has in its own way: docs/reference/engines.md.
        settings = run["spec"]["pytorch"]
        unset = set() if "nprocPerNode" in settings else {"PET_NPROC_PER_NODE"}
        unset |= set() if "maxRestarts" in settings["elastic"] else {"PET_MAX_RESTARTS"}
        engine = engine._replace(variables=_ELASTIC - elsewhere - unset)
    if run["spec"].get("tensorflow", {}).get("masterTaskType") == "master":
        engine = engine._replace(roles={"chief": "master"})
    shown = previewed(run, space.name, policy_folder, tmp_path)
    made = eventually("every pod is there", lambda: _made(space, len(shown)), explain=space.pods)
    pods = [read_pod(each) for each in made]

    led = any(each.leads for each in shown)
    wanted = [_as_engine(each, engine, led=led) for each in shown]
    assert sorted(map(_facts, pods)) == sorted(map(_facts, wanted))
    native = {(engine.roles.get(each.role, each.role), each.number): each for each in shown}
    for pod in pods:
        same = native[pod.role, pod.number or 0]
        if pod.leads == same.leads and pod.number == same.number:
            assert (pod.policies, pod.selector) == (same.policies, same.selector)
            assert pod.tolerations == same.tolerations
        else:
            assert pod.selector.items() >= same.own_selector.items()
        # No engine gives a number of the attempt.
        known = same.env.keys() - {names.ATTEMPT_VARIABLE}
        variables = known & (engine.variables or known)
        for name in () if pod.role in engine.without else variables:
            assert comparable(pod.env[name], engine) == comparable(same.env[name], engine), name


@pytest.mark.usefixtures("running")
def test_the_service_of_a_dask_scheduler_leads_to_its_ports(space: Space) -> None:
    """By Dask's numbers: its container names no port, and a Service finds none by a name."""
    for each in all_rendered("dask", WHOLE["dask"][1]):
        space.create(each)

    def service() -> Json | None:
        found = {each["metadata"]["name"]: each for each in space.items("services")}
        return found.get("mnist-scheduler")

    found = eventually("its Service is there", service)
    assert found is not None
    assert [each["targetPort"] for each in found["spec"]["ports"]] == [8786, 8787]
    (scheduler,) = eventually(
        "its scheduler is there",
        lambda: [
            each
            for each in space.pods()
            if found["spec"]["selector"].items() <= each["metadata"]["labels"].items()
        ],
    )
    assert not [each for each in scheduler["spec"]["containers"] if each.get("ports")]


@pytest.mark.usefixtures("running")
def test_kuberay_starts_ray_as_the_commands_of_a_run_do(space: Space) -> None:
    """Of a RayJob, with its parameters, after the command that the worker runs first."""
    (found,) = all_rendered("kuberay", RAY_JOB)
    stored = space.create(found)
    assert stored["spec"]["entrypoint"].startswith("bash -c ")

    def starts() -> dict[str, str]:
        return {
            each["metadata"]["labels"]["ray.io/node-type"]: each["spec"]["containers"][0]["args"][0]
            for each in space.items("pods", "ray.io/node-type")
        }

    head = eventually("the head is there", lambda: starts().get("head"), explain=space.pods)
    assert head is not None
    assert "ray start --head" in head
    assert "--num-cpus=0" in head
    assert "--dashboard-host=0.0.0.0" in head
    assert "--block" in head
    worker = eventually("a worker is there", lambda: starts().get("worker"), explain=space.pods)
    assert worker is not None
    assert worker.split("&&")[0].split() == ["echo", "a"]
    assert "ray start " in worker


@pytest.mark.parametrize("run", WHOLE["spark"])
def test_the_definition_of_spark_takes_a_rendered_run(space: Space, run: Json) -> None:
    """Strictly: no field is unknown. A field that is none is refused, so the check works."""
    (found,) = all_rendered("spark", run)
    stored = space.create(found)
    assert stored["spec"] == found["spec"]

    wrong = {**found, "metadata": {"name": "wrong"}, "spec": {**found["spec"], "drver": {}}}
    with pytest.raises(SandboxError, match=r"drver"):
        space.create(wrong)


def test_the_training_operator_runs_its_own_mpijob(
    start_control_plane: StartControlPlane,
    kubectl_path: Path,
    operators_built: Mapping[str, BuiltOperator],
) -> None:
    """Where the MPI operator is not: `--mpijob v1`, and the pods have the names of a Run's."""
    planned = plan_installations(select_operators(["training-operator"]), operators_built)
    definitions = [each for one in planned for each in one.definitions]
    plane = start_control_plane(Settings(definitions=definitions))
    start_operators(plane, planned, Progress())
    plane.create_namespace("research")
    space = Space(plane, Kubectl(kubectl_path, plane.kubeconfig, "research"), "research")
    run = a_run(framework="mpi", replicas={"launcher": {}, "worker": {"count": 2}})
    (found,) = render_run(model(run), Kubeflow("v1"))
    space.create({**found, "metadata": {**found["metadata"], "namespace": "research"}})

    wanted = {"mnist-launcher", "mnist-worker-0", "mnist-worker-1"}
    eventually(
        "its pods are there",
        lambda: {each["metadata"]["name"] for each in space.pods()} == wanted,
        explain=lambda: [each["metadata"]["name"] for each in space.pods()],
    )


def _resume(space: Space, manifest: Json) -> None:
    """End the object's suspension."""
    inside = "runPolicy" in manifest["spec"]
    if (manifest["spec"]["runPolicy"] if inside else manifest["spec"]).get("suspend"):
        body: Json = {"suspend": False}
        path = f"{home(manifest, space.name)}/{manifest['metadata']['name']}"
        space.plane.api.patch(path, {"spec": {"runPolicy": body} if inside else body})


def _made(space: Space, count: int) -> list[Json]:
    """The pods, once there are so many; until then those that are there are reported as ready."""
    found = space.pods()
    if len(found) == count:
        return found
    for pod in found:
        if pod["status"]["phase"] == "Pending":
            ready = [{"type": "Ready", "status": "True"}]
            status = {"phase": "Running", "conditions": ready}
            space.patch("pods", f"{pod['metadata']['name']}/status", {"status": status})
    return []


def previewed(run: Json, namespace: str, policies: Path, folder: Path) -> list[Pod]:
    """What `fairlead preview -o pods` shows, pod by pod."""
    file = folder / "run.json"
    file.write_text(json.dumps(run))
    command = ["preview", "-f", str(file), "-n", namespace, "-o", "objects"]
    alone, placed = (
        [each for each in yaml.safe_load_all(done.stdout) if each["kind"] == "Pod"]
        for options in ([], ["--policies", str(policies)])
        for done in [CliRunner().invoke(fairlead, [*command, *options])]
    )
    return [
        read_pod(pod)._replace(own_selector=before["spec"].get("nodeSelector", {}))
        for before, pod in zip(alone, placed, strict=True)
    ]


def read_pod(pod: Json) -> Pod:
    """Read a pod, with the identity that the webhook reads."""
    labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    identity = identify(labels, annotations, {})
    assert identity is not None, f"nothing marks {pod['metadata']['name']}"
    tolerations = (each for each in pod["spec"].get("tolerations", ()) if each["key"] not in _ADDED)
    containers = pod["spec"]["containers"]
    main = next(each for each in containers if each["image"] != "example.invalid/log")
    env: dict[str, str] = {}
    for each in main.get("env", ()):
        path = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        found = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
        text = pod["metadata"][found[1]][found[2]] if found else each.get("value", "")
        text = "127.0.0.1" if path == "status.podIP" else text
        env[each["name"]] = re.sub(r"\$\((\w+)\)", lambda ref: env.get(ref[1], ref[0]), text)
    return Pod(
        identity.run,
        identity.framework,
        identity.role or "",
        identity.replica_index,
        identity.coordinator,
        frozenset(stamp(pod)["policies"]) if is_stamped(pod) else frozenset(),
        pod["spec"].get("nodeSelector", {}),
        sorted(each["key"] for each in tolerations),
        env,
    )


def _facts(pod: Pod) -> tuple[Any, ...]:
    return (pod.run, str(pod.framework), pod.role, str(pod.number), pod.leads)


def _as_engine(pod: Pod, engine: Engine, *, led: bool) -> Pod:
    """Return the pod as the engine's rules have it; led: whether a pod of the Run leads."""
    role = engine.roles.get(pod.role, pod.role)
    leads = pod.leads or (not led and (pod.framework, role, pod.number) in engine.leads)
    return pod._replace(
        role=role, leads=leads, number=None if role in engine.unnumbered else pod.number
    )


def comparable(text: str, engine: Engine) -> Any:
    """Return a variable with the addresses of both systems in one form, as worker/0."""
    text = re.sub(r"mnist-node-0-(\d+)", r"mnist-worker-\1", text)
    text = re.sub(
        r"mnist-([a-z]+)(?:-svc)?(?:-(\d+))?(?:-0)?(?:\.[a-z0-9.-]*[a-z0-9])?",
        lambda found: f"{engine.roles.get(found[1], found[1])}/{found[2] or 0}",
        text,
    )
    if not text.startswith("{"):
        return text
    config: Json = json.loads(text)
    # The operator lists an evaluator, too.
    config["cluster"].pop("evaluator", None)
    return config
