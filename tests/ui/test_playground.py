"""The playground gives the answers of the commands, marks at their places, and the nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from http import HTTPStatus
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.fake_clusters import paths_of
from tests.cli.run.scripted_cluster import Cluster
from tests.cli.run.scripted_cluster import served as serving
from tests.kube.fake_api import answering
from tests.ui.served_pages import Page, page
from tests.wording import mentions
from webhook.cli import fairlead
from webhook.cli.demo.show import DATA
from webhook.ui.playground import MOST_BYTES, MOST_SHOWN, Answer, Question, Texts, answer

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


def answered(texts: Texts, before: str | None = None) -> Answer:
    """The answer, by default without other policies before."""
    return answer(Question(texts, texts.policies if before is None else before))


def only(found: Answer, subject: str) -> Answer:
    """The answer with the groups of one object."""
    return found._replace(groups=[each for each in found.groups if subject in each.subject])


def test_the_example_has_a_pod_on_spot_with_its_nodes() -> None:
    """Its policy, the change of its template, and each node with the reason if it is shut."""
    (group,) = only(answered(Texts(POLICIES, PODS, NODES)), "mnist-worker-0").groups
    assert group.word == "placed"
    mentions(group.result.answer, "workers-on-spot", "can run on ")
    assert any(line.startswith("+") and "gke-spot" in line for line in group.diff)
    squares = {square.name: square.why for pool in group.pools for square in pool.squares}
    assert len(squares) == 9
    assert squares["spot-a-1"] == ""
    mentions(squares["on-demand-a"], "gke-spot")
    assert sum(pool.admitted for pool in group.pools) == len(
        group.result.nodes.after.admitted if group.result.nodes and group.result.nodes.after else ()
    )
    titles = [pool.title for pool in group.pools]
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
        assert f": {group.result.answer}</summary>" in unescape(html)
    assert html.count('class="group"') == len(found.groups)
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
    (pool,) = found.groups[0].pools
    assert (len(pool.squares), pool.total, pool.more) == (MOST_SHOWN, MOST_SHOWN + 7, (7, 0))
    html = served.evaluate("", pods, nodes).json["html"]
    mentions(html, "20 more groups", "and 7 that admit the pod")


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
    assert "  name: n7\n" in text
    assert "kind: PlacementPolicy\n" in text
    assert ">kind: Job\n" in text


def test_the_question_is_a_policy_test_that_passes(tmp_path: Path) -> None:
    """Saved beside the policies, with the pods as they come and the nodes that admit them."""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: research, labels: {a: b}}\n---\n"
    found = answered(Texts(POLICIES, namespace + PODS, NODES))
    (tmp_path / "policies.yaml").write_text(POLICIES)
    (tmp_path / "policies.test.yaml").write_text(found.test)
    done = CliRunner().invoke(fairlead, ["test", str(tmp_path)])
    assert done.exit_code == 0, done.output
    mentions(done.output, f"{len(found.groups)} passed")
    assert found.test.count("runsOn") == sum(
        each.result.result not in ("rejected", "not-a-run") for each in found.groups
    )


def test_a_node_that_cannot_be_read_is_left_out(served: Page) -> None:
    """Of the picture and of the policy test; its place is marked."""
    broken = "kind: Pod\n---\nkind: Node\nmetadata: {name: b, labels: 3}\n---\n" + NODES
    found = answered(Texts(POLICIES, PODS, broken))
    assert [(each.editor, each.line) for each in found.marks] == [("nodes", 1), ("nodes", 3)]
    assert found.test.count("- name: on-demand-a\n") == 1
    assert "- name: b\n" not in found.test
    assert served.evaluate(POLICIES, PODS, broken).status == 200


def test_the_change_against_the_policies_at_the_start_is_that_of_diff() -> None:
    """Who is moved, and by which field; nothing without a change, or with a set that is broken."""
    texts = Texts(POLICIES, PODS, NODES)
    assert answered(texts).change is None
    changed = POLICIES.replace("{class: spot, mode: Constrain}", "{class: spot, mode: Prevent}")
    assert changed != POLICIES
    change = answered(texts, changed).change
    assert change is not None
    mentions(change.answer, "placed differently")
    (part,) = [each for each in change.parts if "mnist-worker-0" in str(each.names)]
    assert part.change.change == "moved"
    assert any("capacity[spot]" in text for _, _, text in part.rows)
    assert answered(texts, "kind: 1").change is None


def test_the_page_shows_the_change(tmp_path: Path) -> None:
    """Against the files that the command was given."""
    file = tmp_path / "p.yaml"
    file.write_text(POLICIES)
    with page("--policies", str(file)) as found:
        found.enter()
        changed = POLICIES.replace("{class: spot, mode: Constrain}", "{class: spot, mode: Allow}")
        html = found.evaluate(changed, PODS, NODES).json["html"]
        mentions(html, "Against the policies at the start", "placed differently")
        assert "at the start" not in found.evaluate(POLICIES, PODS, NODES).json["html"]


@pytest.mark.parametrize(
    "nodes", ["a: 1", "# nothing\n", "kind: List\napiVersion: v1\nitems: []\n"]
)
def test_a_text_without_a_node_is_not_a_cluster_without_nodes(nodes: str) -> None:
    """Which nodes admit the pods is not known then, and said."""
    found = answered(Texts(POLICIES, PODS, nodes))
    mentions(" ".join(found.notes), "not known")
    assert not any("of the 0 nodes" in mark.text for mark in found.marks)
    admitted = [e.result.answer for e in found.groups if e.result.result != "rejected"]
    assert admitted
    assert all("; nodes not checked" in each for each in admitted)


def test_a_pod_that_no_node_admits_is_not_called_placed() -> None:
    """With the reasons by the number of nodes."""
    changed = NODES.replace("gke-spot", "gke-none")
    (group,) = only(answered(Texts(POLICIES, PODS, changed)), "mnist-worker-0").groups
    assert group.word == "no node"
    assert sum(count for _, count in group.shut) == 9
