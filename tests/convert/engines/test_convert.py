"""An engine's object becomes a Run, and whatever differs afterwards is a warning at its place."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.run.backends.runs import WHOLE, Json, a_run, all_rendered, model, rendered
from tests.wording import mentions
from webhook.convert.engines.convert import CONVERTIBLE, convert_object, is_engine_object
from webhook.policy.findings import Finding
from webhook.run.backends.backend import Drafts
from webhook.run.backends.batch_job import render_batch_job
from webhook.run.backends.kuberay import JOB as RAY_JOB
from webhook.run.backends.kuberay import render_ray_job
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.backends.training_operator import READ_ONLY, Kubeflow, render_job
from webhook.run.plan import drafts

Path = tuple[str | int, ...]
CASES = [(backend, run) for backend, runs in WHOLE.items() for run in runs]


def written(documents: list[Json]) -> dict[str, bytes]:
    """One file with the documents."""
    return {"job.yaml": "\n---\n".join(map(json.dumps, documents)).encode()}


def converted(*documents: Json) -> tuple[Json, list[str]]:
    """The Run, and path and text of each warning."""
    found = convert_object(written([*documents]))
    assert found.errors == ()
    assert found.document is not None
    return dict(found.document), [f"{each.path}: {each.message}" for each in found.warnings]


def warnings_in(text: str) -> list[str]:
    """The warnings about a file, as they are printed."""
    found = convert_object({"job.yaml": text.encode()})
    assert found.errors == ()
    return [str(each) for each in found.warnings]


BACKEND_OF = {
    "JobSet": "jobset",
    "DaskJob": "dask",
    "TrainJob": "trainer",
    "RayCluster": "kuberay",
    "SparkApplication": "spark",
}


def again(documents: list[Json], run: Json) -> list[Json]:
    """The Run as objects of the same kind."""
    found = model(run)
    whole = Drafts(found, {each.role: each for each in drafts(found)[0] if each.index is None})
    kinds = {(each["apiVersion"], each["kind"]) for each in documents}
    if kinds == {("batch/v1", "Job")}:
        return [dict(render_batch_job(whole))]
    if kinds == {(RAY_JOB.api_version, RAY_JOB.kind)}:
        return [dict(render_ray_job(whole))]
    for kind in READ_ONLY:
        if (kind.api_version, kind.kind) in kinds:
            return [dict(render_job(whole, kind))]
    backend = next((BACKEND_OF[kind] for _, kind in kinds if kind in BACKEND_OF), "kubeflow")
    return [*BACKENDS[backend].render(whole)]


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every scalar by its path; empty values are left out."""
    if isinstance(value, dict):
        return {k: v for key, each in value.items() for k, v in leaves(each, (*path, key)).items()}
    if isinstance(value, list):
        return {k: v for n, each in enumerate(value) for k, v in leaves(each, (*path, n)).items()}
    return {} if value in (None, "") else {path: value}


def text(path: Path) -> str:
    """A path without the brackets of `path_text`, so that both can be compared."""
    return ".".join(map(str, path))


def flat(finding: Finding) -> str:
    """The path that a finding is about, in that form; with a key that only the Run has."""
    path = finding.path.replace("[", ".").replace("]", "")
    added = re.search(r"the Run also means ([^: ]+):", finding.message)
    return f"{path}.{added.group(1)}".lstrip(".") if added else path


def stored(document: Json) -> Json:
    """The object with the one default of a definition that the Run has, too."""
    pod = document["spec"].get("job", {}).get("spec") if document["kind"] == "DaskJob" else None
    if isinstance(pod, dict) and not pod.get("restartPolicy"):
        document = copy.deepcopy(document)
        document["spec"]["job"]["spec"]["restartPolicy"] = "OnFailure"
    return document


def in_order(document: Json, found: Json) -> Json:
    """The rendered object with the jobs of a JobSet at the places of those that they are of."""
    if document["kind"] != "JobSet" or not found:
        return found
    given, jobs = document["spec"]["replicatedJobs"], found["spec"]["replicatedJobs"]
    named = {each.get("name"): n for n, each in enumerate(given)}
    places = {n: named[each["name"]] for n, each in enumerate(jobs) if each["name"] in named}
    free = [n for n in range(len(given)) if n not in places.values() and has_pods(given[n])]
    called = [n for n in free if given[n].get("name") in ("workers", "node", "nodes")]
    for n, each in enumerate(jobs):
        if n not in places and each["name"] == "worker" and called:
            places[n] = called[0]
            free.remove(called[0])
    places |= dict(zip((n for n in range(len(jobs)) if n not in places), free, strict=False))
    sorted_jobs: list[Json] = [{}] * len(given)
    for n, place in places.items():
        sorted_jobs[place] = jobs[n]
    return {**found, "spec": {**found["spec"], "replicatedJobs": sorted_jobs}}


def has_pods(job: Json) -> bool:
    """Whether a replicated job makes pods."""
    spec = job.get("template", {}).get("spec", {})
    return 0 not in (job.get("replicas"), spec.get("parallelism"), spec.get("completions"))


def unsaid(documents: list[Json]) -> list[tuple[str, Path]]:
    """The differences after a conversion that no warning is about, by kind."""
    found = convert_object(written(documents))
    if found.document is None:
        return []
    rendered_again = {each["kind"]: each for each in again(documents, dict(found.document))}
    warned = [flat(each) for each in found.warnings]
    result = []
    for document in documents:
        whole = in_order(document, rendered_again.get(document["kind"], {}))
        before, after = leaves(stored(document)), leaves(whole)
        result += [
            (document["kind"], path)
            for path in {*before, *after}
            if before.get(path) != after.get(path)
            and not any(f"{text(path)}.".startswith(f"{each}.") for each in warned)
        ]
    return result


@pytest.mark.parametrize(("backend", "run"), CASES)
def test_a_rendered_run_comes_back(backend: str, run: Json) -> None:
    """render(convert(render(run))) == render(run), without a warning."""
    first = all_rendered(backend, run)
    back, warnings = converted(*first)

    assert warnings == []
    assert all_rendered(backend, back) == first


def test_the_older_mpijob_comes_back() -> None:
    """The training operator's, of which no backend's default is."""
    replicas = {"launcher": {}, "worker": {"count": 2, "restartPolicy": "ExitCode"}}
    run = a_run(framework="mpi", replicas=replicas, mpi={"slotsPerWorker": 2}, backoffLimit=1)
    first = [dict(each) for each in render_run(model(run), Kubeflow("v1"))]
    back, warnings = converted(*first)

    assert warnings == []
    assert [dict(each) for each in render_run(model(back), Kubeflow("v1"))] == first


KEPT = ("framework", "template", "mainContainer", "replicas", "spark")


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, Json]:
    """A backend, and a Run with any of the fields that it has."""
    backend, base = draw(st.sampled_from(CASES))
    spec: Json = {
        key: draw(st.integers(0, 5)) if key == "backoffLimit" else value
        for key, value in base["spec"].items()
        if key in KEPT or draw(st.booleans())
    }
    roles: Json = {}
    for role, replica in spec["replicas"].items():
        own = {key: value for key, value in replica.items() if draw(st.booleans())}
        if "count" in replica:
            own["count"] = draw(st.integers(2, 20))
        if draw(st.booleans()):
            own["environment"] = {"nodeSelector": {"pool": draw(st.sampled_from(["a", "b"]))}}
        roles[role] = own
    spec["replicas"] = roles
    return backend, a_run(**spec)


@given(cases())
def test_any_rendered_run_comes_back(case: tuple[str, Json]) -> None:
    """Whichever fields and roles it has."""
    backend, run = case
    first = all_rendered(backend, run)
    back, warnings = converted(*first)

    assert warnings == []
    assert all_rendered(backend, back) == first


OBJECTS = [all_rendered(backend, run) for backend, run in CASES] + [
    [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "count"},
            "spec": {
                "completions": 3,
                "parallelism": 3,
                "backoffLimit": 2,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "example.invalid/none"}],
                    }
                },
            },
        }
    ],
    [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "metadata": {"name": "old"},
            "spec": {
                "mxReplicaSpecs": {
                    role: {
                        "replicas": 1,
                        "template": {"spec": {"containers": [{"name": "mxnet", "image": "mx"}]}},
                    }
                    for role in ("Scheduler", "Server", "Worker")
                }
            },
        }
    ],
]
OBJECTS += [
    [
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "metadata": {"name": "tune"},
            "spec": {
                "entrypoint": entrypoint,
                "backoffLimit": 2,
                "shutdownAfterJobFinishes": True,
                "ttlSecondsAfterFinished": 60,
                **more,
                "rayClusterSpec": {
                    "headGroupSpec": {
                        "rayStartParams": {},
                        "template": {"spec": {"containers": [{"name": "head", "image": "ray"}]}},
                    },
                    "workerGroupSpecs": [
                        {
                            "groupName": "worker",
                            **dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), 3),
                            "rayStartParams": {},
                            "template": {"spec": {"containers": [{"name": "w", "image": "ray"}]}},
                        }
                    ],
                },
            },
        }
    ]
    for entrypoint, more in (
        ("python tune.py --trials 9", {}),
        (
            "cd /app && python 'tune it.py'",
            {"submitterPodTemplate": {"spec": {"containers": [{"name": "s", "image": "cli"}]}}},
        ),
    )
]
VALUES = st.one_of(
    st.integers(0, 5), st.booleans(), st.sampled_from(["Always", "Never", "x", "None", ""])
)


def nodes(value: Any, path: Path = ()) -> list[Path]:
    """The paths of all values below metadata and spec."""
    below: list[Path] = []
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in children:
        below += [(*path, key), *nodes(each, (*path, key))]
    return below


@st.composite
def changed_objects(draw: st.DrawFn) -> list[Json]:
    """Objects in which some values are another one, missing, or new."""
    documents = copy.deepcopy(draw(st.sampled_from(OBJECTS)))
    for _ in range(draw(st.integers(1, 4))):
        document = draw(st.sampled_from(documents))
        paths = nodes(document["spec"])
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        holder: Any = document["spec"]
        for step in path[:-1]:
            holder = holder[step]
        action = draw(st.sampled_from(["change", "remove", "add"]))
        if action == "change":
            holder[path[-1]] = draw(VALUES)
        elif action == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            name = draw(st.sampled_from(["newer", "suspend", "replicas", "restartPolicy"]))
            holder[name] = draw(VALUES)
    return documents


@given(changed_objects())
def test_nothing_differs_that_no_warning_is_about(documents: list[Json]) -> None:
    """Whatever the object has; if it is no Run at all, there is an error instead."""
    assert unsaid(documents) == []


@pytest.mark.parametrize("document", [each[0] for each in OBJECTS[-2:]])
def test_a_rayjob_becomes_a_run_whose_driver_submits_it(document: Json) -> None:
    """With nothing lost; a quoted entrypoint goes through a shell."""
    run, warnings = converted(document)
    found = model(run)
    first = dict(render_ray_job(Drafts(found, {each.role: each for each in drafts(found)[0]})))

    assert warnings == []
    assert first["spec"] == document["spec"]
    driver = run["spec"]["replicas"]["driver"]["template"]["spec"]["containers"][0]
    assert driver["command"][:4] == ["ray", "job", "submit", "--"]
    assert run["spec"]["restartScope"] == "Run"


@pytest.mark.parametrize("kind", ["CronJob", "ScheduledSparkApplication", "DaskCluster"])
def test_a_kind_that_is_no_single_run_is_an_error_with_the_cure(kind: str) -> None:
    """It is not only unknown."""
    found = convert_object({"job.yaml": f"apiVersion: a/v1\nkind: {kind}\n".encode()})

    (error,) = found.errors
    assert str(error).startswith(f"job.yaml:2:7: kind: is {kind}: it ")
    assert ";" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: {}\nkind: PyTorchJob\n",
        "apiVersion: batch/v1\nkind: {}\n",
        "apiVersion: batch/v1\nkind: [Job]\n",
        (
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
            "metadata: {labels: {fairlead.dev/framework: {}}}\nspec: {replicatedJobs: [{}]}\n"
        ),
    ],
)
def test_an_object_whose_identity_is_no_text_is_an_error(text: str) -> None:
    """Nothing in a file makes the command fail."""
    assert convert_object({"job.yaml": text.encode()}).errors


def test_a_dask_job_without_a_job_is_converted() -> None:
    """Its scheduler and its workers are the Run."""
    spec = {"containers": [{"name": "main", "image": "i"}]}
    cluster = {"spec": {"scheduler": {"spec": spec}, "worker": {"spec": spec}}}
    job = {
        "apiVersion": "kubernetes.dask.org/v1",
        "kind": "DaskJob",
        "metadata": {"name": "mnist"},
        "spec": {"cluster": cluster},
    }
    run, _ = converted(job)
    assert set(run["spec"]["replicas"]) == {"scheduler", "worker"}


def test_every_kind_has_an_object_in_these_tests() -> None:
    """All but the training operator's own MPIJob, whose fields are among MPIJob's."""
    kinds = {(each["apiVersion"], each["kind"]) for some in OBJECTS for each in some}

    assert {*CONVERTIBLE} - kinds == {("kubeflow.org/v1", "MPIJob")}


TFJOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: dist, namespace: research}
spec:
  runPolicy:
    schedulingPolicy: {queue: a}
  tfReplicaSpecs:
    PS:
      replicas: 2
      restartPolicy: Never
      template: {spec: {containers: [{name: tensorflow, image: a}]}}
    Worker:
      replicas: 4
      restartPolicy: Always
      template: {spec: {containers: [{name: log, image: b}, {name: tensorflow, image: a}]}}
"""


def test_roles_with_different_templates_have_their_own() -> None:
    """And the container that the operator looks for is the main one."""
    run, _ = converted(yaml.safe_load(TFJOB))

    assert run["metadata"] == {"name": "dist", "namespace": "research"}
    assert run["spec"]["framework"] == "tensorflow"
    assert run["spec"]["mainContainer"] == "tensorflow"
    assert run["spec"]["template"] == {}
    assert [*run["spec"]["replicas"]] == ["ps", "worker"]
    assert run["spec"]["replicas"]["worker"]["count"] == 4


def test_what_is_lost_is_named_with_line_and_column() -> None:
    """And what the Run means in addition, where the object would have it."""
    spec, policy, restart = warnings_in(TFJOB)

    assert spec.startswith("job.yaml:4:1: warning: spec: ")
    assert "successPolicy: 'AllWorkers'" in spec
    assert policy.startswith("job.yaml:6:5: warning: spec.runPolicy.schedulingPolicy: is left out")
    assert restart.startswith("job.yaml:14:7: warning: spec.tfReplicaSpecs.Worker.restartPolicy: ")


def test_a_name_that_is_too_long_is_told_so() -> None:
    """It is valid; but pods need room for their own part."""
    long = TFJOB.replace("name: dist", f"name: {'a' * 63}")
    found = [each for each in warnings_in(long) if "metadata.name" in each]

    (told,) = found
    mentions(told, "has 63 characters", "the Run is called", "--name")
    assert "is not valid" not in told


@pytest.mark.parametrize("kind", ["DaskJob", "SparkApplication"])
def test_a_note_is_about_what_the_object_means(kind: str) -> None:
    """Not about what a Run would be rendered to."""
    if kind == "SparkApplication":
        document = yaml.safe_load(SPARK)
        del document["spec"]["restartPolicy"]
        words = "backoffLimit is 3 (SparkApplication: 0)"
        mentions(
            convert_object(written([document])).note,
            words,
            "restartPolicy of driver is OnFailure (SparkApplication: Never)",
        )
        return
    document = rendered("dask", WHOLE["dask"][1])
    del document["spec"]["job"]["spec"]["restartPolicy"]
    found = convert_object(written([document]))
    assert "restartPolicy" not in found.note
    assert found.warnings == ()


INDEXED = """\
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  completions: 4
  completionMode: Indexed
  backoffLimitPerIndex: 2
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}
"""


def test_a_limit_of_each_index_changes_the_default_of_all() -> None:
    """The warning about the field says so, and the note has the default of such a Job."""
    found = convert_object({"job.yaml": INDEXED.encode()})
    (text,) = [str(each) for each in found.warnings if "backoffLimitPerIndex" in str(each)]
    mentions(text, "failures of all replicas", "default 3", "no limit for all", "set backoffLimit")
    mentions(found.note, "backoffLimit is 3 (Job: no limit, because of backoffLimitPerIndex)")


SERVED = """\
apiVersion: kubernetes.dask.org/v1
kind: DaskJob
metadata: {name: a}
spec:
  job: {spec: {containers: [{name: main, image: x}]}}
  cluster:
    spec:
      worker: {replicas: 2, spec: {containers: [{name: main, image: x}]}}
      scheduler:
        spec: {containers: [{name: main, image: x}]}
        service:
          ports: [{name: tcp-comm, port: 8786}]
"""


def test_an_item_in_a_warning_is_json_to_its_last_field() -> None:
    """Not Python, and not cut."""
    (text,) = [each for each in warnings_in(SERVED) if "one more item" in each]
    item = json.loads(text.partition("one more item: ")[2])
    assert (item["name"], item["port"]) == ("http-dashboard", 8787)


DISPUTED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec:
  runPolicy: {backoffLimit: 0x2, activeDeadlineSeconds: soon, suspend: off}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
          - name: pytorch
            image: on
            args: all
            ports: [{containerPort: 0o7}]
            livenessProbe: {httpGet: {port: 0x1F}}
    Worker:
      replicas: 0b10
      template: {spec: {containers: [{name: pytorch, image: x}]}}
"""


def test_all_errors_come_at_once_and_a_number_is_not_to_be_quoted() -> None:
    """Of values that readers of YAML take differently, of the Run, and of its templates."""
    found = convert_object({"job.yaml": DISPUTED.encode()})
    errors = {each.path.rpartition(".")[2]: each.message for each in found.errors}
    assert errors.keys() == {
        *("backoffLimit", "activeDeadlineSeconds", "suspend", "image", "args"),
        *("containerPort", "port", "replicas"),
    }
    for field in ("backoffLimit", "containerPort", "replicas"):
        mentions(errors[field], "write it as a decimal number")
        assert "quote" not in errors[field]
    mentions(errors["suspend"], "off", "write it true or false")
    mentions(errors["image"], "on can be read as a boolean", "quote it: 'on'")
    mentions(errors["port"], "quote it: '0x1F', or write it as a decimal number")
    mentions(errors["activeDeadlineSeconds"], "whole number", "'soon'")
    mentions(errors["args"], "want a list", "'all'")


def test_a_note_lists_the_defaults_that_differ() -> None:
    """What the object does not set means something else in a Run."""
    found = convert_object({"job.yaml": TFJOB.encode()})

    for words in (
        "backoffLimit is 3 (TFJob: no limit)",
        "cleanPodPolicy is Running (TFJob: None)",
        "restartPolicy is OnFailure (TFJob: Never)",
    ):
        assert words in found.note
    whole = rendered("kubeflow", WHOLE["kubeflow"][0])
    del whole["spec"]["tfReplicaSpecs"]["PS"], whole["spec"]["tfReplicaSpecs"]["Evaluator"]
    assert convert_object(written([whole])).note == ""


def test_roles_of_an_operator_may_be_written_in_lower_case() -> None:
    """The operator changes them itself; nothing is lost."""
    whole = rendered("kubeflow", WHOLE["kubeflow"][0])
    written_so = whole["spec"]["tfReplicaSpecs"]
    whole["spec"]["tfReplicaSpecs"] = {key.lower(): each for key, each in written_so.items()}
    run, warnings = converted(whole)

    assert warnings == []
    assert run["spec"]["replicas"].keys() >= {"worker", "ps"}


OLDER_MPIJOB: Json = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "metadata": {"name": "mpi"},
    "spec": {
        "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{"name": "mpi", "image": "i"}]}}},
            "Worker": {
                "replicas": 2,
                "template": {"spec": {"containers": [{"name": "mpi", "image": "i"}]}},
            },
        }
    },
}


def test_the_older_mpijob_enters_its_workers_otherwise() -> None:
    """By kubectl exec; in a Run the images need SSH, and the workers run sshd."""
    document = copy.deepcopy(OLDER_MPIJOB)
    note = convert_object(written([document])).note
    mentions(note, "SSH", "kubectl exec", "workers without a command run sshd")
    mentions(note, "restartPolicy is OnFailure (MPIJob: Never)")
    (worker,) = document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    worker["command"] = ["sleep", "infinity"]
    mentions(convert_object(written([document])).note, "the command of the workers must start sshd")


def test_fields_of_the_older_mpijob_alone_are_in_the_run() -> None:
    """Its main container, and cleanPodPolicy outside runPolicy, which goes before it."""
    document = copy.deepcopy(OLDER_MPIJOB)
    document["spec"] |= {"cleanPodPolicy": "All", "mainContainer": "mpi"}
    run, warnings = converted(document)
    assert (run["spec"]["cleanPodPolicy"], warnings) == ("All", [])

    document["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
    for replica in document["spec"]["mpiReplicaSpecs"].values():
        replica["template"]["spec"]["containers"].insert(0, {"name": "log", "image": "log"})
    run, warnings = converted(document)
    assert run["spec"]["mainContainer"] == "mpi"
    assert run["spec"]["cleanPodPolicy"] == "None"
    assert not [each for each in warnings if each.startswith("spec.mainContainer")]


def test_owners_and_finalizers_of_the_object_are_not_those_of_the_run() -> None:
    """Both are written by somebody who knows the object, and not the Run."""
    document = rendered("kubeflow", WHOLE["kubeflow"][1])
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
    document["metadata"] |= {"ownerReferences": [owner], "finalizers": ["example.com/a"]}
    _, warnings = converted(document)

    for field in ("ownerReferences", "finalizers"):
        assert any(each.startswith(f"metadata.{field}: is left out") for each in warnings)


def test_an_empty_elastic_policy_makes_a_pytorchjob_elastic() -> None:
    """With as many workers as there are; with a master it is left out, and that is said."""
    worker = {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}},
    }
    document: Json = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "elastic"},
        "spec": {"elasticPolicy": {}, "pytorchReplicaSpecs": {"Worker": worker}},
    }
    run, _ = converted(document)
    assert run["spec"]["pytorch"] == {"elastic": {"minReplicas": 2}}

    document["spec"]["pytorchReplicaSpecs"]["Master"] = {**worker, "replicas": 1}
    run, warnings = converted(document)
    assert "pytorch" not in run["spec"]
    assert any(each.startswith("spec.elasticPolicy: is left out") for each in warnings)


def test_processes_that_are_computed_otherwise_are_told() -> None:
    """A PyTorchJob without a number counts CPUs, too; an MPIJob has one slot."""
    job = ported("PyTorchJob", Worker=None)
    words = "nprocPerNode is the GPUs of the main container, else 1 (PyTorchJob: auto)"
    mentions(convert_object(written([job])).note, words)
    job["spec"]["nprocPerNode"] = "4"
    assert "nprocPerNode" not in convert_object(written([job])).note
    mentions(convert_object(written([OLDER_MPIJOB])).note, "slotsPerWorker is the GPUs")


def ported(kind: str, **ports: int | None) -> Json:
    """A job whose main containers have the operator's port, by key of the replicas."""
    framework = {"TFJob": "tensorflow", "PyTorchJob": "pytorch"}[kind]
    port = f"{kind.lower()}-port"
    replicas = {
        key: {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": framework,
                            "image": "i",
                            **({"ports": [{"name": port, "containerPort": n}]} if n else {}),
                        }
                    ]
                }
            }
        }
        for key, n in ports.items()
    }
    field = {"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs"}[kind]
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "ports"},
        "spec": {field: replicas},
    }


def test_ports_that_differ_between_roles_of_a_tfjob_are_told() -> None:
    """A Run has one port for all roles, and 2222 if it is unset."""
    run, warnings = converted(ported("TFJob", Chief=3333, Worker=2222))
    assert "tensorflow" not in run["spec"]
    (about,) = [each for each in warnings if "containerPort" in each]
    mentions(about, "Chief", "is the port of chief", "have one, 2222", "spec.tensorflow.port")
    run, warnings = converted(ported("TFJob", Chief=3333, Worker=3333))
    assert run["spec"]["tensorflow"] == {"port": 3333}
    assert not [each for each in warnings if "containerPort" in each]
    run, warnings = converted(ported("TFJob", Chief=3333, Worker=None))
    assert any("is the port of chief" in each for each in warnings)


def test_the_port_of_a_pytorchjob_is_the_masters() -> None:
    """Workers have it from the master, whatever theirs is."""
    run, _ = converted(ported("PyTorchJob", Master=5000, Worker=None))
    assert run["spec"]["pytorch"] == {"port": 5000}


@pytest.mark.parametrize("field", ["replicas", "parallelism"])
def test_a_replicated_job_without_pods_takes_no_role(field: str) -> None:
    """And one with the name of a role has it, wherever it is in the list."""
    document = rendered("jobset", WHOLE["jobset"][0])
    (worker,) = document["spec"]["replicatedJobs"]
    idle = copy.deepcopy(worker)
    idle["name"] = "spare"
    (idle if field == "replicas" else idle["template"]["spec"])[field] = 0
    document["spec"]["replicatedJobs"] = [idle, worker]
    run, warnings = converted(document)

    assert run["spec"]["replicas"] == {"worker": {"count": worker["replicas"]}}
    assert warnings == [f"spec.replicatedJobs[0]: is left out: {NO_ROLE}"]
    document["spec"]["replicatedJobs"] = [{**copy.deepcopy(worker), "name": "eval"}, worker]
    run, warnings = converted(document)
    assert run["spec"]["replicas"]["worker"] == {"count": worker["replicas"]}
    assert not [each for each in warnings if each.startswith("spec.replicatedJobs[1]")]


@pytest.mark.parametrize("leaders", [1, 2])
def test_a_job_that_is_called_workers_has_the_workers(leaders: int) -> None:
    """Not the first of several, as in JobSet's own examples; a leader of one pod is the master."""
    document = rendered("jobset", WHOLE["jobset"][0])
    (worker,) = document["spec"]["replicatedJobs"]
    leader = {**copy.deepcopy(worker), "name": "leader", "replicas": leaders}
    document["spec"]["replicatedJobs"] = [leader, {**worker, "name": "workers"}]
    run, warnings = converted(document)

    assert run["spec"]["replicas"]["worker"]["count"] == worker["replicas"]
    assert ("master" in run["spec"]["replicas"]) is (leaders == 1)
    left_out = f"spec.replicatedJobs[0]: is left out: {NO_ROLE}"
    assert (left_out in warnings) is (leaders == 2)


def test_a_group_without_workers_takes_no_role() -> None:
    """The first group of a RayCluster that has some is the role worker."""
    documents = all_rendered("kuberay", WHOLE["kuberay"][0])
    groups = documents[0]["spec"]["workerGroupSpecs"]
    idle = {**copy.deepcopy(groups[0]), "groupName": "spare", "replicas": 0}
    documents[0]["spec"]["workerGroupSpecs"] = [idle, *groups]
    run, warnings = converted(*documents)

    assert run["spec"]["replicas"]["worker"]["count"] == groups[0]["replicas"]
    assert warnings == [
        "spec.workerGroupSpecs[0]: is left out: the role worker is the first group that has workers"
    ]


def test_a_jobset_of_pods_becomes_a_jobset_of_jobs() -> None:
    """A Run counts replicas; each would be a Job."""
    document = rendered("jobset", WHOLE["jobset"][0])
    job = document["spec"]["replicatedJobs"][0]
    job["name"] = "nodes"
    del job["replicas"]
    job["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    run, warnings = converted(document)

    assert run["spec"]["replicas"] == {"worker": {"count": 4}}
    assert "spec.replicatedJobs[0].name: is 'nodes', and becomes 'worker' in the Run" in warnings
    assert any("completions: is 4, and becomes 1" in each for each in warnings)


@pytest.mark.parametrize("replicas", [1.5, "2"])
def test_replicas_of_a_jobset_that_are_no_number_are_an_error_beside_completions(
    replicas: object,
) -> None:
    """They are not taken for one."""
    document = rendered("jobset", WHOLE["jobset"][0])
    job = document["spec"]["replicatedJobs"][0]
    job["replicas"] = replicas
    job["template"]["spec"] |= {"parallelism": 2, "completions": 2}
    found = convert_object(written([document]))
    assert found.document is None
    (error,) = found.errors
    assert error.path == "spec.replicatedJobs[0].replicas"


def test_the_values_of_a_trainjob_win_over_its_runtime() -> None:
    """Its image and its number of nodes."""
    runtime, job = all_rendered("trainer", WHOLE["trainer"][1])
    job["spec"]["trainer"] = {"image": "example.invalid/own", "numNodes": 9}
    run, warnings = converted(job, runtime)

    assert run["spec"]["replicas"] == {"worker": {"count": 9}}
    assert run["spec"]["template"]["spec"]["containers"][0]["image"] == "example.invalid/own"
    assert "spec.trainer.image: is left out: its image" in " ".join(warnings)


NO_ROLE = "it has no pods, or there is no role left for it"


def test_the_label_says_which_job_of_a_runtime_trains() -> None:
    """The one of the runtimes of Trainer 2.1 that fetches a dataset comes first."""
    runtime, job = all_rendered("trainer", WHOLE["trainer"][1])
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    first = {"name": "dataset-initializer", "replicas": 1, "template": {"spec": {}}}
    jobs[0]["name"] = "train"
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = [first, *jobs]
    run, warnings = converted(job, runtime)
    at = "spec.template.spec.replicatedJobs"

    main = run["spec"]["template"]["spec"]["containers"][0]
    assert main["image"] == "example.invalid/none"
    assert f"{at}[0]: is left out: {NO_ROLE}" in warnings
    assert f"{at}[1].name: is 'train', and becomes 'node' in the Run" in warnings
    del jobs[0]["template"]["metadata"]
    found = convert_object(written([job, runtime]))
    (error,) = found.errors
    mentions(str(error), at, "dataset-initializer, train", "trainjob-ancestor-step: trainer")


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("name", "other", "TrainingRuntime/other"),
        ("kind", "ClusterTrainingRuntime", "ClusterTrainingRuntime/mnist"),
        ("kind", None, "ClusterTrainingRuntime/mnist"),
    ],
)
def test_another_runtime_than_the_trainjob_names_is_an_error(
    field: str, value: str | None, wanted: str
) -> None:
    """And among several runtimes the one that it names is taken."""
    runtime, job = all_rendered("trainer", WHOLE["trainer"][1])
    job["spec"]["runtimeRef"][field] = value
    found = convert_object(written([job, runtime]))

    (error,) = found.errors
    facts = ("spec.runtimeRef", f"is {wanted}", "the runtime here is TrainingRuntime/mnist")
    mentions(str(error), *facts)


def test_a_trainjob_with_mpi_is_an_error_with_the_cure() -> None:
    """Its two jobs are not one role, and an empty policy has defaults."""
    runtime, job = all_rendered("trainer", WHOLE["trainer"][1])
    runtime["spec"]["mlPolicy"]["mpi"] = {}
    (error,) = convert_object(written([job, runtime])).errors

    mentions(str(error), "spec.mlPolicy.mpi", "framework mpi", "launcher and worker")


def test_variables_of_a_trainjob_are_those_of_its_container() -> None:
    """They replace those of the runtime with the same name."""
    runtime, job = all_rendered("trainer", WHOLE["trainer"][1])
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    template = node["template"]["spec"]["template"]
    main_of = template["spec"]["containers"][0]
    main_of["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    job["spec"]["trainer"] = {"env": [{"name": "B", "value": "3"}]}
    run, _ = converted(job, runtime)

    env = run["spec"]["template"]["spec"]["containers"][0]["env"]
    assert env == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]


SPARK = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi}
spec:
  type: Scala
  mode: cluster
  sparkVersion: 4.0.0
  image: example.invalid/spark:1
  imagePullPolicy: Always
  imagePullSecrets: [registry]
  mainApplicationFile: local:///opt/pi.jar
  restartPolicy: {type: OnFailure, onFailureRetries: 5, onFailureRetryInterval: 10}
  driver: {cores: 2, memory: 2g, serviceAccount: spark, labels: {team: a}}
  executor: {instances: 3, cores: 4}
"""


def test_a_driver_without_a_template_is_made_of_its_fields() -> None:
    """What Spark's settings say otherwise is a warning, and so is all of its executors."""
    run, warnings = converted(yaml.safe_load(SPARK))

    assert run["spec"]["spark"]["executors"] == 3
    assert run["spec"]["backoffLimit"] == 5
    template = run["spec"]["template"]
    assert template["metadata"]["labels"] == {"team": "a"}
    assert template["spec"]["serviceAccountName"] == "spark"
    assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert template["spec"]["containers"] == [
        {
            "name": "spark-kubernetes-driver",
            "image": "example.invalid/spark:1",
            "imagePullPolicy": "Always",
            "resources": {"requests": {"cpu": 2}},
        }
    ]
    for path in ("driver.memory", "executor.cores", "restartPolicy.onFailureRetryInterval"):
        assert any(each.startswith(f"spec.{path}: is left out") for each in warnings)


def test_the_fields_of_a_driver_are_in_its_template_too() -> None:
    """Spark sets them beside the template: the image, variables, tolerations and labels."""
    document = yaml.safe_load(SPARK)
    document["spec"]["driver"] |= {
        "env": [{"name": "A", "value": "1"}],
        "tolerations": [{"key": "b", "operator": "Exists"}],
        "template": {
            "metadata": {"labels": {"own": "label"}},
            "spec": {
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "containers": [
                    {"name": "log", "image": "log"},
                    {"name": "spark-kubernetes-driver", "env": [{"name": "B", "value": "2"}]},
                ],
            },
        },
    }
    run, _ = converted(document)

    template = run["spec"]["template"]
    log, main = template["spec"]["containers"]
    assert log == {"name": "log", "image": "log"}
    assert main["image"] == "example.invalid/spark:1"
    assert [each["name"] for each in main["env"]] == ["B", "A"]
    assert [each["key"] for each in template["spec"]["tolerations"]] == ["a", "b"]
    assert template["metadata"]["labels"] == {"own": "label", "team": "a"}


def test_an_object_with_a_generated_name_has_that_of_its_file() -> None:
    """It has no name yet."""
    document = rendered("jobset", WHOLE["jobset"][0])
    del document["metadata"]["name"]
    document["metadata"]["generateName"] = "train-"
    run, warnings = converted(document)

    assert run["metadata"]["name"] == "job"
    assert any(each.startswith("metadata.generateName: is left out") for each in warnings)


def test_variables_that_rendering_adds_are_not_in_the_run() -> None:
    """So Fairlead's own controller connects the replicas by its own."""
    run, _ = converted(rendered("jobset", WHOLE["jobset"][2]))

    assert "env" not in run["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: v1\nkind: TFJob\n", "of TFJob want kubeflow.org/v1"),
        ("apiVersion: kubeflow.org/v1\nkind: TFjob\n", "did you mean 'TFJob'?"),
        (f"{TFJOB}---\n{TFJOB}", "is one document more"),
        ("apiVersion: kubeflow.org/v1\nkind: [a\n", ""),
        ("kind: TFJob\nspec: {}\n", "apiVersion: is missing; of TFJob want kubeflow.org/v1"),
        ("kind: Job\nspec: {}\n", "apiVersion: is missing; of Job want batch/v1"),
        ("apiVersion: kubeflow.org/v1\n", "kind: is missing; want one of TFJob"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "it holds several objects; give one of them"),
        ("apiVersion: a\nkind: TFJobList\nitems: []\n", "several objects; give one of them"),
        (
            "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\n",
            "spec.tfReplicaSpecs: is missing or empty; it describes the pods of a TFJob",
        ),
        (TFJOB.replace("replicas: 4", "replicas: 0"), "remove the role"),
        (
            TFJOB.replace("PS:", "Chief:").replace("Worker:", "Master:"),
            "spec.tfReplicaSpecs.Chief: chief and master are names of one role; keep one",
        ),
        (
            "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n",
            "its runtime ClusterTrainingRuntime/ is not here; add it as a document of its own",
        ),
    ],
)
def test_what_is_no_object_of_an_engine_is_an_error(text: str, message: str) -> None:
    """With its place."""
    found = convert_object({"job.yaml": text.encode()})

    assert found.document is None
    assert any(message in str(each) for each in found.errors)
    assert is_engine_object({"job.yaml": b"version: 1\nkind: job\n"}) is False
