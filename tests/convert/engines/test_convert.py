"""An engine's object becomes a Run, and whatever differs afterwards is a warning at its place."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yaml import YAMLError

from tests.fast_yaml import load_all_yaml, load_yaml
from tests.run.backends.runs import WHOLE, Json, a_run, all_rendered, model
from webhook.convert.engines.convert import CONVERTIBLE, convert_object, is_engine_object
from webhook.errors import InvalidRun
from webhook.policy.findings import Finding
from webhook.run.backends.backend import Backend, Drafts
from webhook.run.backends.batch_job import render_batch_job
from webhook.run.backends.kuberay import JOB as RAY_JOB
from webhook.run.backends.kuberay import KIND as RAY_CLUSTER
from webhook.run.backends.kuberay import render_ray_cluster, render_ray_job
from webhook.run.backends.table import BACKENDS, render_run
from webhook.run.backends.training_operator import READ_ONLY, Kubeflow, render_job
from webhook.run.plan import drafts

Steps = tuple[str | int, ...]
CASES = [(backend, run) for backend, runs in WHOLE.items() for run in runs]
FILES = sorted((Path(__file__).parents[2] / "golden" / "engines").glob("*.yaml"))
# Objects with what becomes of them: `rule`, the text of the `file`, `findings`, `note` and `run`.
# `respelt`: the Run's own object has other keys or places, which mean the same.
GOLDEN: list[Json] = [case for file in FILES for case in load_yaml(file.read_text())]


def written(documents: list[Json]) -> dict[str, bytes]:
    return {"job.yaml": "\n---\n".join(map(json.dumps, documents)).encode()}


def converted(*documents: Json) -> tuple[Json, list[str]]:
    """The Run, and path and text of each warning."""
    found = convert_object(written([*documents]))
    assert found.errors == ()
    assert found.document is not None
    return dict(found.document), [f"{each.path}: {each.message}" for each in found.warnings]


BACKEND_OF = {
    "JobSet": "jobset",
    "DaskJob": "dask",
    "TrainJob": "trainer",
    "RayCluster": "kuberay",
    "RayJob": "kuberay",
    "SparkApplication": "spark",
}


def backend_of(documents: list[Json]) -> Backend:
    """The backend that renders Runs to objects of these kinds."""
    if ("kubeflow.org/v1", "MPIJob") in {(each["apiVersion"], each["kind"]) for each in documents}:
        return Kubeflow("v1")
    kinds = [BACKEND_OF[each["kind"]] for each in documents if each["kind"] in BACKEND_OF]
    return BACKENDS[next(iter(kinds), "kubeflow")]


def again(documents: list[Json], run: Json) -> list[Json]:
    """The Run as objects of the same kind, whatever its backend says of it."""
    found = model(run)
    whole = Drafts(found, {each.role: each for each in drafts(found)[0] if each.index is None})
    kinds = {(each["apiVersion"], each["kind"]) for each in documents}
    if kinds == {("batch/v1", "Job")}:
        return [dict(render_batch_job(whole))]
    if kinds == {(RAY_JOB.api_version, RAY_JOB.kind)}:
        return [dict(render_ray_job(whole))]
    if (RAY_CLUSTER.api_version, RAY_CLUSTER.kind) in kinds:
        return [*map(dict, render_ray_cluster(whole))]
    for kind in READ_ONLY:
        if (kind.api_version, kind.kind) in kinds:
            return [dict(render_job(whole, kind))]
    return [*backend_of(documents).render(whole)]


def leaves(value: Any, path: Steps = ()) -> dict[Steps, Any]:
    """Every scalar by its path; empty values are left out."""
    if isinstance(value, dict):
        return {k: v for key, each in value.items() for k, v in leaves(each, (*path, key)).items()}
    if isinstance(value, list):
        return {k: v for n, each in enumerate(value) for k, v in leaves(each, (*path, n)).items()}
    return {} if value in (None, "") else {path: value}


def text(path: Steps) -> str:
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


def unsaid(documents: list[Json]) -> list[tuple[str, Steps]]:
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
        own = {k: value for k, value in replica.items() if k == "template" or draw(st.booleans())}
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


# Those that a Run has as they are.
SAME = [
    [*load_all_yaml(case["file"])]
    for case in GOLDEN
    if "run" in case and not {"respelt", "findings"} & case.keys()
]
OBJECTS = [all_rendered(backend, run) for backend, run in CASES] + SAME
VALUES = st.one_of(
    st.integers(0, 5), st.booleans(), st.sampled_from(["Always", "Never", "x", "None", ""])
)


def nodes(value: Any, path: Steps = ()) -> list[Steps]:
    """The paths of all values below metadata and spec."""
    below: list[Steps] = []
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
    documents: list[Json] = copy.deepcopy(draw(st.sampled_from(OBJECTS)))
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


RAY_STARTED_BY_ARGUMENTS: Json = {
    "apiVersion": "ray.io/v1",
    "kind": "RayCluster",
    "metadata": {"name": "ray", "annotations": {"ray.io/overwrite-container-cmd": "true"}},
    "spec": {
        "headGroupSpec": {
            "rayStartParams": {},
            "template": {
                "spec": {
                    "containers": [
                        {"name": "head", "image": "ray", "args": ["$KUBERAY_GEN_RAY_START_CMD"]}
                    ]
                }
            },
        }
    },
}
"""A head without a command, whose arguments are what KubeRay replaces by its own command."""


@example([RAY_STARTED_BY_ARGUMENTS])
@given(changed_objects())
def test_nothing_differs_that_no_warning_is_about(documents: list[Json]) -> None:
    """Whatever the object has; if it is no Run at all, there is an error instead."""
    assert unsaid(documents) == []


@pytest.mark.parametrize("case", GOLDEN, ids=[case["rule"] for case in GOLDEN])
def test_a_golden_object_becomes_this_run(case: Json) -> None:
    """With its findings and its note; and no difference is left that no warning is about."""
    files = {"job.yaml": case["file"].encode()}
    found = convert_object(files)
    findings = [str(each).removeprefix("job.yaml:") for each in found.findings]
    assert findings == case.get("findings", [])
    assert found.note == case.get("note", "")
    wanted = case.get("run")
    assert (found.document is None) is (wanted is None) is bool(found.errors)
    if wanted is not None and found.document is not None:
        identity = {key: found.document[key] for key in ("apiVersion", "kind")}
        assert found.document == {**identity, **wanted}
        assert "respelt" in case or unsaid([*load_all_yaml(case["file"])]) == []


TESTS = Path(__file__).parents[2]
# Files with objects of engines, at any depth, and in texts.
CORPORA = sorted(
    [
        *(TESTS / "golden" / "engines").glob("*.yaml"),
        *(TESTS / "golden" / "workloads").glob("*.yaml"),
        *(TESTS / "golden" / "sessions").glob("**/*.yaml"),
        *(TESTS / "operators" / "files").glob("*.yaml"),
    ]
)


def is_object(value: Any) -> bool:
    """Whether it has an apiVersion and a kind, which are texts."""
    named = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else ()
    return bool(named) and all(isinstance(each, str) for each in named)


def documents_in(value: Any) -> Iterator[list[Json]]:
    """The objects that can be converted; those of one text belong together."""
    if isinstance(value, str) and "apiVersion:" in value:
        with suppress(YAMLError):
            yield list(filter(is_object, load_all_yaml(value)))
    elif is_object(value):
        yield [value]
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from documents_in(each)


# What a kind's definition or its operator requires; some files have only what makes pods.
REQUIRED = {"RayJob": "entrypoint", "SparkApplication": "type", "DaskJob": "job"}


def converted_objects() -> dict[str, tuple[list[Json], Json]]:
    """By a short name: the objects of one Run, and the Run."""
    result: dict[str, tuple[list[Json], Json]] = {}
    for file in CORPORA:
        for documents in documents_in([*load_all_yaml(file.read_text())]):
            kinds = {(each["apiVersion"], each["kind"]) for each in documents}
            whole = all(
                REQUIRED.get(d["kind"], "") in ("", *(d.get("spec") or ())) for d in documents
            )
            if whole and kinds & CONVERTIBLE.keys():
                found = convert_object(written(documents))
                if found.document is not None:
                    name = f"{file.stem} {len(result)} {documents[0]['kind']}"
                    result[name] = (documents, dict(found.document))
    return result


CONVERTED = converted_objects()
# Kinds that no backend renders, or not to themselves.
NOT_RENDERED = {"MXJob": "MXJob was removed", "Job": "no framework has no kind of Kubeflow"}


@pytest.mark.parametrize("name", CONVERTED)
def test_what_was_converted_is_rendered_to_the_kind_that_it_was(name: str) -> None:
    """No backend refuses what a conversion wrote, and it renders what warnings are made from."""
    documents, run = CONVERTED[name]
    backend = backend_of(documents)
    kinds = {each["kind"] for each in documents}
    if refused := [NOT_RENDERED[kind] for kind in NOT_RENDERED.keys() & kinds if len(kinds) == 1]:
        with pytest.raises(InvalidRun, match=refused[0]):
            render_run(model(run), backend)
        return
    made = [dict(each) for each in render_run(model(run), backend)]
    assert made == again(documents, run)
    assert {each["kind"].removeprefix("Cluster") for each in documents} <= {
        each["kind"] for each in made
    }


def test_every_kind_makes_the_round_trip() -> None:
    """So that a new kind has an object among these files."""
    kinds = {(d["apiVersion"], d["kind"]) for documents, _ in CONVERTED.values() for d in documents}
    assert {*CONVERTIBLE} <= kinds


def test_a_file_without_an_api_version_is_no_object_of_an_engine() -> None:
    """As no Polyaxonfile has one; every golden object is one."""
    assert not is_engine_object({"job.yaml": b"version: 1\nkind: job\n"})
    for case in GOLDEN:
        assert is_engine_object({"job.yaml": case["file"].encode()}) or "not YAML" in case["rule"]


def test_every_kind_has_an_object_in_these_tests() -> None:
    """So no kind is left out of the properties."""
    kinds = {(each["apiVersion"], each["kind"]) for some in OBJECTS for each in some}

    assert {*CONVERTIBLE} <= kinds
