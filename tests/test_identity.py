"""Who belongs to a run: precedence, refinement, namespaces, and what holds for any labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marked_pods import KATIB, MLRUN, RUN, SPARK, jobset, training, who
from tests.wording import Wording, mentions
from webhook import names
from webhook.frameworks.table import FRAMEWORKS
from webhook.identity import (
    Identity,
    identify,
    misread,
    unknown_keys,
)
from webhook.sources import SHIPPED, SOURCES

PLACE_ALL = {"fairlead.dev/place": "all"}


def test_a_pod_without_any_mark_belongs_to_no_run() -> None:
    """Labels that many pods have mark nothing, nor do ours that only refine."""
    common = {"app": "web", "app.kubernetes.io/managed-by": "Helm", "nuclio.io/class": "service"}
    argo = {"workflows.argoproj.io/workflow": "ci-x1"}
    refining = {names.KIND: "experiment", names.ROLE: "worker"}
    assert [identify(labels, {}, {}) for labels in (common, argo, refining, {})] == [None] * 4


def test_our_own_mark_wins_and_the_others_fill_in() -> None:
    """fairlead.dev/run names run and source; what it leaves open the operator's labels tell."""
    pod = who(RUN | training("tfjob", "ps", 2) | KATIB)
    assert pod == Identity("mnist", "experiment", "tensorflow", "ps", 2, "fairlead", False)


def test_who_made_the_run_comes_before_who_carries_it() -> None:
    """Katib before the training operator, MLRun before Spark, Trainer before JobSet."""
    trainer = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pods = (
        KATIB | training("tfjob", "worker", 1),
        MLRUN | SPARK,
        trainer | jobset("node", pod=1),
        KATIB | {"pipeline/runid": "b1c6"},
        {"notebook-name": "iris"} | SPARK,
    )
    sources = ["katib", "mlrun", "kubeflow-trainer", "katib", "spark"]
    assert [who(pod).source for pod in pods] == sources


def test_our_refining_labels_correct_another_systems_pod() -> None:
    """An author adds fairlead.dev/kind to a Kubeflow pod: the run stays Kubeflow's, refined."""
    pod = training("pytorchjob", "worker", 1) | {
        "fairlead.dev/kind": "experiment",
        "fairlead.dev/role": "evaluator",
        "fairlead.dev/replica-index": "7",
    }
    expected = Identity(
        "mnist", "experiment", "pytorch", "evaluator", 7, "kubeflow-training", False
    )
    assert who(pod) == expected


def test_an_unknown_refining_value_counts_as_missing() -> None:
    """A slip neither crashes, nor hides the pod from its run, nor hides what another row tells."""
    slips = {
        "fairlead.dev/kind": "expriment",
        "fairlead.dev/framework": "lightgbm",
        "fairlead.dev/role": "boss",
        "fairlead.dev/replica-index": "-1",
    }
    assert who(RUN | slips) == who(RUN)
    assert who(training("tfjob", "ps", 2) | slips) == who(training("tfjob", "ps", 2))


def test_the_author_is_warned_of_each_refining_value_that_was_not_read(wording: Wording) -> None:
    """misread names label and value in under 120 characters, and is silent on good ones."""
    pod = RUN | {"fairlead.dev/kind": "expriment", "fairlead.dev/replica-index": "x" * 63}
    warnings = misread(pod, {})
    kind, index = warnings
    mentions(kind, "label fairlead.dev/kind", "'expriment'")
    mentions(index, "label fairlead.dev/replica-index", "'xxx")
    wording("\n".join(warnings))
    assert all(len(warning) < 120 for warning in warnings)
    good = RUN | {"fairlead.dev/kind": "build", "fairlead.dev/replica-index": "3"}
    assert misread(good, {names.CAPACITY: "spot"}) == ()


def test_the_author_is_warned_about_unknown_fairlead_keys(wording: Wording) -> None:
    """The nearest that is read is the cure; keys of others are theirs."""
    labels = {"fairlead.dev/knd": "build", "fairlead.dev/capacity": "spot", "app": "x"}
    annotations = {"fairlead.dev/capcity": "spot", "fairlead.dev/qqqqqq": "x", "a.b/c": "d"}
    warnings = misread(RUN | labels, annotations)
    knd, capacity, capcity, other = warnings
    mentions(knd, "label fairlead.dev/knd", "did you mean fairlead.dev/kind")
    mentions(capacity, "label fairlead.dev/capacity", "annotation")
    mentions(capcity, "annotation fairlead.dev/capcity", "did you mean fairlead.dev/capacity")
    mentions(other, "annotation fairlead.dev/qqqqqq", "remove")
    wording("\n".join(warnings))
    many = {f"fairlead.dev/{'x' * 50}{number}": "" for number in range(1000)}
    few = misread(many, many)
    assert 1 < len(few) < 20
    assert all(len(warning) < 160 for warning in few)


@pytest.mark.parametrize("key", ["Run", "RUN", "runs", "rnu"])
def test_a_misspelt_run_label_is_reported_though_the_pod_has_no_run(key: str) -> None:
    """It is the reason that the pod has none. Values of other labels count for no such pod."""
    labels = {f"fairlead.dev/{key}": "a", "fairlead.dev/kind": "expriment"}
    assert identify(labels, {}, {}) is None
    (warning,) = unknown_keys(labels, {})
    mentions(warning, f"label fairlead.dev/{key}:", "did you mean fairlead.dev/run?")
    (warning,) = unknown_keys({}, {"fairlead.dev/run": "a"})
    mentions(warning, "annotation fairlead.dev/run", "as a label")


def test_any_number_of_unread_keys_costs_little() -> None:
    """An author writes them. Compared, each takes 0.3 ms, and a long one its square: minutes,
    until the test is stopped.
    """
    labels = {f"fairlead.dev/placemen{number}": "" for number in range(1_000_000)}
    assert len(misread(labels, {})) == 10
    (warning,) = misread({}, {"fairlead.dev/" + "placement" * 20_000: ""})
    mentions(warning, "annotation fairlead.dev/placement", "remove")


def test_letter_case_makes_no_difference() -> None:
    """Some operators wrote Worker and PS, and an author may write Experiment."""
    pod = training("tfjob", "PS", 0) | {"fairlead.dev/kind": "Experiment"}
    assert (who(pod).role, who(pod).kind) == ("ps", "experiment")


def test_an_empty_mark_is_still_a_mark() -> None:
    """The label's presence makes the pod belong, as it makes the API server call the webhook."""
    assert who({"fairlead.dev/run": ""}).source == "fairlead"
    assert who({"fairlead.dev/run": ""} | KATIB).run == "random-x7k2"


def test_in_a_namespace_placed_as_a_whole_every_pod_belongs() -> None:
    """A pod without a mark is told by its namespace; our refining labels on it still count."""
    assert who({"app": "web"}, namespace=PLACE_ALL) == Identity(
        "", "job", None, None, None, "namespace", False
    )
    refined = who({"fairlead.dev/role": "master"}, namespace=PLACE_ALL | {names.KIND: "core"})
    assert refined == Identity("", "core", None, "master", None, "namespace", True)


@pytest.mark.parametrize("namespace", [{}, {"fairlead.dev/place": "some"}, {names.KIND: "core"}])
def test_another_namespace_matches_no_pod(namespace: dict[str, str]) -> None:
    """Only the value all marks the namespace; its kind alone says nothing."""
    assert identify({"app": "web"}, {}, namespace) is None
    assert who(RUN, namespace=namespace).kind == "job"


def test_a_namespaces_kind_counts_only_where_the_pods_rows_tell_none() -> None:
    """A marked pod keeps its own kind; one whose marks tell no kind takes the namespace's."""
    core = PLACE_ALL | {names.KIND: "core"}
    assert who({"notebook-name": "iris"}, namespace=core).kind == "notebook"
    assert who(RUN | {names.KIND: "build"}, namespace=core).kind == "build"
    assert who(RUN, namespace=core) == Identity(
        "mnist", "core", None, None, None, "fairlead", False
    )
    assert who(RUN, namespace=PLACE_ALL | {names.KIND: "kernel"}).kind == "job"


class Recording(Mapping[str, str]):
    """A mapping that remembers which keys' values were asked for."""

    def __init__(self, content: Mapping[str, str]) -> None:
        self.content = content
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return self.content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.content)

    def __len__(self) -> int:
        return len(self.content)


WORDS = (
    *names.KINDS,
    *FRAMEWORKS,
    *names.ROLES,
    *("0", "1", "polyaxon", "mpi-operator", "function", "tfjob-controller", "node", "spark"),
)
VALUES = st.sampled_from(WORDS) | st.text(max_size=70)
LABELS = st.dictionaries(
    st.sampled_from(sorted(SHIPPED.read_labels)) | st.text(max_size=20), VALUES
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(sorted(SHIPPED.read_annotations)) | st.text(max_size=20), VALUES
)
NAMESPACES = st.dictionaries(
    st.sampled_from((names.PLACE, names.KIND, "team")), VALUES | st.just("all")
)
# What makes a pod belong whatever else it carries: one mark of one row.
MARKS = st.sampled_from([mark for source in SOURCES for mark in source.marks if not mark.namespace])


@given(LABELS, ANNOTATIONS, NAMESPACES)
def test_whatever_the_strings_the_answer_is_well_formed(
    labels: dict[str, str], annotations: dict[str, str], namespace: dict[str, str]
) -> None:
    """No labels raise, and every field keeps to its words."""
    identity = identify(labels, annotations, namespace)
    misread(labels, annotations)
    if identity is None:
        return
    assert identity.kind in names.KINDS
    assert identity.framework is None or identity.framework in FRAMEWORKS
    assert identity.role is None or identity.role in names.ROLES
    assert identity.replica_index is None or 0 <= identity.replica_index < 2**31
    assert identity.source in {source.name for source in SOURCES}
    assert identity.coordinator or identity.role not in names.COORDINATOR_ROLES


@given(LABELS, ANNOTATIONS, NAMESPACES, MARKS, VALUES)
def test_a_marked_pod_always_belongs(
    labels: dict[str, str],
    annotations: dict[str, str],
    namespace: dict[str, str],
    mark: tuple[str, str | None, bool],
    value: str,
) -> None:
    """A mark is never lost among other labels, whatever they are."""
    key, wanted, _ = mark
    marked = labels | {key: value if wanted is None else wanted}
    assert identify(marked, annotations, namespace) is not None


@given(LABELS, ANNOTATIONS, NAMESPACES)
def test_only_the_keys_of_the_table_are_read(
    labels: dict[str, str], annotations: dict[str, str], namespace: dict[str, str]
) -> None:
    """What the table does not list neither is looked up nor matters."""
    recorded, noted, around = Recording(labels), Recording(annotations), Recording(namespace)
    identity = identify(recorded, noted, around)
    assert recorded.asked <= SHIPPED.read_labels
    assert noted.asked <= SHIPPED.read_annotations
    assert around.asked <= {names.PLACE, names.KIND}
    within = {key: value for key, value in labels.items() if key in SHIPPED.read_labels}
    beside = {key: value for key, value in annotations.items() if key in SHIPPED.read_annotations}
    assert identify(within, beside, namespace) == identity


def test_the_read_keys_are_exactly_the_used_ones() -> None:
    """Each key that the sets list is looked up for some pod: policies may not write those."""
    asked = {mark.key for source in SOURCES for mark in source.marks}
    noted: set[str] = set()
    alone = [{mark.key: mark.value or ""} for source in SOURCES for mark in source.marks]
    for pod in (*alone, jobset("node", pod=0)):
        labels, annotations = Recording(pod), Recording({})
        identify(labels, annotations, {})
        asked |= labels.asked
        noted |= annotations.asked
    assert asked >= SHIPPED.read_labels
    assert noted == SHIPPED.read_annotations


def test_a_key_that_cannot_be_printed_is_escaped() -> None:
    """It is part of a warning, and so of a header."""
    (line,) = unknown_keys({}, {"fairlead.dev/\ufeffcapacity": "x"})
    assert line.isprintable()
    assert "ufeff" in line
