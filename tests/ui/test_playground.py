"""The playground gives the answers of the commands, marks at their places, and the nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from http import HTTPStatus
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.fake_clusters import paths_of
from tests.cli.run.scripted_cluster import Cluster
from tests.cli.run.scripted_cluster import served as serving
from tests.kube.fake_api import answering
from tests.ui.served_pages import Page, page
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.demo.show import DATA
from webhook.policy import policy_documents
from webhook.ui.playground import (
    MOST_BYTES,
    MOST_SHOWN,
    Answer,
    Details,
    Group,
    Question,
    Texts,
    answer,
)
from webhook.ui.pools import MOST_ASKED

POLICIES = "\n---\n".join(
    (DATA / "policies" / name).read_text() for name in ("capacity.yaml", "policies.yaml")
)
PODS = (DATA / "pods.yaml").read_text()
NODES = (DATA / "nodes.yaml").read_text()
HOSTILE = "<img src=x onerror=alert(1)> \" ' & \x1b[31m"


@pytest.fixture(scope="module")
def served() -> Iterator[Page]:
    """The page, entered."""
    with page() as found:
        found.enter()
        yield found


def answered(texts: Texts, before: str | None = None, part: str = "") -> Answer:
    """The answer, by default without other policies before, and with the first groups open."""
    question = Question(texts, texts.policies if before is None else before, part=part)
    if part:
        return answer(question)
    subjects = tuple(group.subject for group in answer(question).groups)
    return answer(question._replace(opened=subjects))


def only(found: Answer, subject: str) -> tuple[Group, Details]:
    """The group of one object, with its details."""
    (group,) = [each for each in found.groups if subject in each.subject]
    assert group.details is not None
    return group, group.details


def test_the_example_has_a_pod_on_spot_with_its_nodes() -> None:
    """Its policy, the change of its template, and each node with the reason if it is shut."""
    group, details = only(answered(Texts(POLICIES, PODS, NODES)), "mnist-worker-0")
    assert group.word == "placed"
    mentions(group.answer, "workers-on-spot", "can run on ")
    assert any(sign == "+" and "gke-spot" in line for sign, line in details.diff)
    squares = {square.name: square.why for pool in details.pools for square in pool.squares}
    assert len(squares) == 9
    assert squares["spot-a-1"] == ""
    mentions(squares["on-demand-a"], "gke-spot")
    admitted = sum(pool.admitted for pool in details.pools)
    mentions(group.answer, f"can run on {admitted} of 9 nodes")
    titles = [pool.title for pool in details.pools]
    assert len(set(titles)) == len(titles)
    assert any(title.startswith("spot, ") for title in titles)


def test_it_is_the_answer_of_the_command(served: Page) -> None:
    """The page shows verdict, warnings and reasons of `fairlead preview`."""
    found = answered(Texts(POLICIES, PODS, NODES))
    reply = served.evaluate(POLICIES, PODS, NODES)
    assert reply.status == 200
    html = reply.json["html"]
    for group in found.groups:
        assert f"<b>{group.subject}</b>" in html
        assert f": {group.answer}</summary>" in unescape(html)
    assert html.count("<details") == len(found.groups)
    assert reply.json["marks"] == []


@pytest.mark.parametrize(
    ("texts", "editor", "line", "says"),
    [
        (Texts("kind: PlacementPolicy\n", "", ""), "policies", 1, "apiVersion"),
        (Texts(POLICIES.replace("roles:", "rules:"), "", ""), "policies", None, "rules"),
        (Texts("", "a: [\n", ""), "manifests", None, ""),
        (Texts("", "a: 1\n", ""), "manifests", 1, "kind"),
        (Texts("", "", "kind: Pod\nmetadata: {name: p}\n"), "nodes", 1, "want Nodes"),
        (
            Texts(
                "", "kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {containers: 3}\n", ""
            ),
            "manifests",
            4,
            "containers",
        ),
    ],
)
def test_a_fault_is_marked_at_its_place(
    texts: Texts, editor: str, line: int | None, says: str
) -> None:
    """In the editor that has it, with the text of the commands."""
    found = [each for each in answered(texts).marks if each.editor == editor]
    assert found
    assert any(says in each.text and line in (None, each.line) for each in found)
    assert all(each.severity == "error" for each in found)


def test_a_set_with_an_error_is_not_evaluated_and_one_with_a_warning_is() -> None:
    """Nodes that no policy reaches are an error of the nodes, not of the set."""
    assert not answered(Texts("kind: PlacementPolicy\n", PODS, "")).groups
    without_spot = "\n---\n".join(part for part in NODES.split("---\n") if "gke-spot" not in part)
    found = answered(Texts(POLICIES, PODS, without_spot))
    assert any(each.severity == "error" for each in found.marks)
    assert found.groups


def test_nothing_is_an_answer_too(served: Page) -> None:
    """Empty texts are a set without policies, and no objects."""
    mentions(served.evaluate().json["html"], "No object makes pods")


def test_hostile_texts_are_shown_and_do_nothing(served: Page) -> None:
    """Names, labels and messages come from everywhere."""
    name = json.dumps(HOSTILE)
    manifest = f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {name}, labels: {{fairlead.dev/run: r, a: {name}}}}}
spec: {{nodeSelector: {{a: {name}}}, containers: [{{name: c, image: {name}}}]}}
"""
    policy = f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: p}}
spec: {{description: {name}, match: {{}}, defaults: {{annotations: {{note: {name}}}}}}}
"""
    reply = served.evaluate(policy, manifest, f"kind: Node\nmetadata: {{name: {name}}}\n")
    assert reply.status == 200
    html = reply.json["html"]
    assert "<img" not in html
    assert "\x1b" not in html


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b'{"policies": 1, "manifests": "", "nodes": ""}', 400),
        (b'{"policies": ""}', 400),
        (b'{"policies": "' + b"x" * MOST_BYTES + b'", "manifests": "", "nodes": ""}', 400),
    ],
)
def test_what_is_no_question_is_refused_with_the_reason(
    served: Page, body: bytes, status: int
) -> None:
    """As JSON, which the page shows."""
    reply = served.ask("POST", "/playground/answer", body)
    assert reply.status == status
    assert reply.json["error"]


def test_many_pods_and_nodes_are_cut_and_counted(served: Page) -> None:
    """The rest is named, with the command that shows it."""
    pods = "\n---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p{at}, labels: {{fairlead.dev/run: r}}}}\n"
        "spec: {containers: [{name: c, image: i}]}\n"
        for at in range(MOST_SHOWN + 20)
    )
    nodes = "\n---\n".join(
        f"kind: Node\nmetadata: {{name: n{at}}}\n" for at in range(MOST_SHOWN + 7)
    )
    found = answered(Texts("", pods, nodes))
    assert (len(found.groups), found.more) == (MOST_SHOWN, 20)
    details = found.groups[0].details
    assert details is not None
    (pool,) = details.pools
    more = MOST_SHOWN + 7 - MOST_ASKED
    assert (len(pool.squares), pool.total, pool.more) == (MOST_ASKED, MOST_SHOWN + 7, (more, 0))
    html = served.evaluate("", pods, nodes).json["html"]
    mentions(html, "20 more groups", f"and {more} that admit the pod")


def test_files_are_the_first_texts(tmp_path: Path) -> None:
    """Folders are joined, each file below its name."""
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.yaml").write_text("kind: A\n")
    (folder / "b.yaml").write_text("kind: B\n")
    job = tmp_path / "job.yaml"
    job.write_text("kind: Job\n")
    with page("--policies", str(folder), "-f", str(job)) as found:
        found.enter()
        text = found.ask("GET", "/playground").text
    assert "a.yaml\nkind: A\n---\n# " in text
    assert "b.yaml\nkind: B\n" in text
    assert ">kind: Job\n" in text


def test_policies_and_nodes_of_a_cluster_are_read_beside_files(tmp_path: Path) -> None:
    """Without its pages of Runs, which only `fairlead ui cluster` has."""
    paths = paths_of({"/api/v1/nodes": [{"metadata": {"name": "n7", "labels": {"a": "b"}}}]})
    cluster = Cluster()
    cluster.answers |= dict.fromkeys(paths, answering(paths))
    job = tmp_path / "job.yaml"
    job.write_text("kind: Job\n")
    of_cluster = ("--policies", "cluster", "--nodes", "cluster", "-f", str(job))
    with (
        serving(cluster, tmp_path),
        page(*of_cluster, "--kubeconfig", str(tmp_path / "kubeconfig")) as found,
    ):
        found.enter()
        text = found.ask("GET", "/playground").text
        assert found.ask("GET", "/runs").status == HTTPStatus.NOT_FOUND
    assert "The one node counts" in text
    assert "kind: PlacementPolicy\n" in text
    assert ">kind: Job\n" in text


def test_the_question_is_a_policy_test_that_passes(tmp_path: Path) -> None:
    """Saved beside the policies, with the pods as they come and the nodes that admit them."""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: research, labels: {a: b}}\n---\n"
    found = answered(Texts(POLICIES, namespace + PODS, NODES))
    (tmp_path / "policies.yaml").write_text(POLICIES)
    test = answered(Texts(POLICIES, namespace + PODS, NODES), part="test").test
    (tmp_path / "policies.test.yaml").write_text(test)
    done = CliRunner().invoke(fairlead, ["test", str(tmp_path)])
    assert done.exit_code == 0, done.output
    mentions(done.output, f"{len(found.groups)} passed")
    assert test.count("runsOn") == sum(
        each.details is not None and each.details.result.result not in ("rejected", "not-a-run")
        for each in found.groups
    )


def test_a_copied_test_has_cordons_classes_and_defaults(tmp_path: Path) -> None:
    """All that decides, and is in the manifests or on the nodes: the copied test passes."""
    objects = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
globalDefault: true
value: 7
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: fast}
handler: fast
scheduling: {nodeSelector: {topology.kubernetes.io/zone: europe-west4-a}}
---
"""
    pods = PODS.replace("spec:", "spec:\n  runtimeClassName: fast", 1)
    cordoned = NODES.replace("taints:", "unschedulable: true\n  taints:", 1)
    assert cordoned != NODES
    test = answered(Texts(POLICIES, objects + pods, cordoned), part="test").test
    mentions(test, "unschedulable: true", "kind: RuntimeClass", "defaultPriorityClass: usual")
    (tmp_path / "policies.yaml").write_text(POLICIES)
    (tmp_path / "policies.test.yaml").write_text(test)
    done = CliRunner().invoke(fairlead, ["test", str(tmp_path)])
    assert done.exit_code == 0, done.output


def test_a_node_that_cannot_be_read_is_left_out(served: Page) -> None:
    """Of the picture and of the policy test; its place is marked."""
    broken = "kind: Pod\n---\nkind: Node\nmetadata: {name: b, labels: 3}\n---\n" + NODES
    found = answered(Texts(POLICIES, PODS, broken))
    assert [(each.editor, each.line) for each in found.marks] == [("nodes", 1), ("nodes", 3)]
    test = answered(Texts(POLICIES, PODS, broken), part="test").test
    assert test.count("- name: on-demand-a\n") == 1
    assert "- name: b\n" not in test
    assert served.evaluate(POLICIES, PODS, broken).status == 200


def test_the_change_against_the_policies_at_the_start_is_that_of_diff() -> None:
    """Who is moved, and by which field; nothing without a change, or with a set that is broken."""
    texts = Texts(POLICIES, PODS, NODES)
    assert answered(texts, part="change").change is None
    assert not answered(texts).differs
    changed = POLICIES.replace("{class: spot, mode: Constrain}", "{class: spot, mode: Prevent}")
    assert changed != POLICIES
    assert answered(texts, changed).differs
    change = answered(texts, changed, "change").change
    assert change is not None
    mentions(change.answer, "placed differently")
    (part,) = [each for each in change.parts if "mnist-worker-0" in str(each.names)]
    assert part.change.change == "moved"
    assert any("capacity[spot]" in text for _, _, text in part.rows)
    assert answered(texts, "kind: 1", "change").change is None


def test_the_page_shows_the_change(tmp_path: Path) -> None:
    """Against the files that the command was given."""
    file = tmp_path / "p.yaml"
    file.write_text(POLICIES)
    with page("--policies", str(file)) as found:
        found.enter()
        changed = POLICIES.replace("{class: spot, mode: Constrain}", "{class: spot, mode: Allow}")
        assert found.evaluate(changed, PODS, NODES).json["differs"]
        html = found.evaluate(changed, PODS, NODES, part="change").json["html"]
        mentions(html, "Against the policies at the start", "placed differently")
        assert "at the start" not in found.evaluate(POLICIES, PODS, NODES, part="change").text


@pytest.mark.parametrize(
    "nodes", ["a: 1", "# nothing\n", "kind: List\napiVersion: v1\nitems: []\n"]
)
def test_a_text_without_a_node_is_not_a_cluster_without_nodes(nodes: str) -> None:
    """Which nodes admit the pods is not known then, and said."""
    found = answered(Texts(POLICIES, PODS, nodes))
    mentions(" ".join(found.notes), "not known")
    assert not any("of the 0 nodes" in mark.text for mark in found.marks)
    admitted = [group.answer for group in found.groups if group.word != "rejected"]
    assert admitted
    assert all("; nodes not checked" in each for each in admitted)


def test_a_pod_that_no_node_admits_is_not_called_placed() -> None:
    """With the reasons by the number of nodes."""
    changed = NODES.replace("gke-spot", "gke-none")
    found = answered(Texts(POLICIES, PODS, changed))
    group, details = only(found, "mnist-worker-0")
    assert group.word == "no node"
    assert sum(count for _, count in details.shut) == 9
    words = [each.word for each in found.groups]
    assert words.index("rejected") < words.index("no node") < words.index("placed")
    assert dict(found.verdict)["no node"] == words.count("no node")


def test_what_is_folded_is_not_sent(served: Page) -> None:
    """The first group, the worst, is open; of others no element is sent until they are opened."""
    first = served.evaluate(POLICIES, PODS, NODES).json["html"]
    assert first.count("<table") > 0
    closed = served.evaluate(POLICIES, PODS, NODES, opened=[]).json["html"]
    assert "<table" not in closed
    assert "squares" not in closed
    subject = "Pod/mnist-worker-0 in research"
    assert "squares" in served.evaluate(POLICIES, PODS, NODES, opened=[subject]).json["html"]


def test_nodes_beside_the_texts_count_unless_the_text_has_nodes() -> None:
    """Those of a cluster stay on the server, however many they are."""
    beside = json.dumps(
        [{"kind": "Node", "metadata": {"name": f"n{at}", "labels": {"a": "b"}}} for at in range(9)]
    ).encode()
    texts = Texts("", PODS, "# here\n")
    with_given = answer(Question(texts, "", beside))
    assert all("of 9 nodes" in group.answer for group in with_given.groups)
    own = answer(Question(texts._replace(nodes="kind: Node\nmetadata: {name: a}\n"), "", beside))
    assert all("of 1 nodes" in group.answer for group in own.groups)


def test_a_large_set_is_answered_first_and_checked_after() -> None:
    """What a key does not wait for has the findings of the whole check."""
    documents = [
        f"""apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: p{at}}}
spec: {{match: {{}}, overrides: {{nodeSelector: {{a: "{at % 2}"}}}}}}
"""
        for at in range(24)
    ]
    texts = Texts("---\n".join(documents), PODS, NODES)
    texts = texts._replace(
        nodes="\n---\n".join(f"kind: Node\nmetadata: {{name: n{at}}}" for at in range(400))
    )
    first = answered(texts)
    assert not first.whole
    assert first.groups
    assert not any("not checked" in mark.text for mark in first.marks)
    after = answered(texts, part="findings")
    assert after.whole
    assert set(first.marks) < set(after.marks)


@given(
    st.lists(
        st.sampled_from(["kind: A\n", "a: [\n", "# c\n", "", "x: |\n  text\n", "\n\n"]), max_size=6
    )
)
def test_parts_of_a_text_are_read_as_the_whole_is(parts: list[str]) -> None:
    """Each document at its line: with findings at the same places."""
    text = "---\n".join(parts)
    whole = policy_documents.parse({"policies.yaml": text.encode()})
    places = {(finding.line, finding.column) for finding in whole.findings}
    found = answered(Texts(text, "", ""))
    marks = {(mark.line, mark.column) for mark in found.marks if mark.editor == "policies"}
    # What follows a broken document is read, too.
    assert places <= marks or not places
