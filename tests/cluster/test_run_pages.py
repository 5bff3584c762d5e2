"""The pages of Runs beside the real API server, scheduler and controller, as a browser asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.cluster.accounts import account, grant_everywhere
from tests.cluster.live_runs import CONTAINER, create_run
from tests.cluster.manifests import pod
from tests.cluster.policy_plane import cluster_kubectl, control_plane, run_api  # noqa: F401
from tests.cluster.spaces import Space
from tests.eventually import eventually
from tests.manifests.kustomize import of_kind
from tests.objects import an_object
from tests.ui.served_pages import Page, page
from tests.wording import mentions
from webhook import names
from webhook.installation.manifests import render

pytest_plugins = ["tests.cluster.run_fixtures"]


@pytest.fixture
def served(run_space: Space) -> Iterator[Page]:
    """The pages of the Runs in the test's namespace."""
    where = ("--kubeconfig", str(run_space.plane.kubeconfig), "-n", run_space.name)
    with page("cluster", *where) as found:
        found.enter()
        yield found


SPOT = "cloud.google.com/gke-spot"


@pytest.fixture
def spot_class(run_space: Space) -> Iterator[str]:
    """A class of the sandbox's spot nodes, at a third of the price."""
    spec = {"nodes": [{"labels": {SPOT: "true"}}], "relativePrice": 0.33}
    name = f"spot-of-{run_space.name}"
    run_space.create(an_object(names.API_VERSION, names.CLASS_KIND, name, spec))
    yield name
    run_space.kubectl("delete", "capacityclass", name)


class Live:
    """A part of a page as a window keeps it current: lines, of which it gets what differs."""

    def __init__(self, served: Page, path: str) -> None:
        self._served = served
        self._path = path
        self._lines: list[str] = []
        self._version = ""
        self.sizes: list[int] = []

    def look(self) -> str:
        """Ask as the page does, and return the HTML."""
        headers = {"if-none-match": self._version} if self._version else {}
        answer = self._served.ask("GET", self._path, headers=headers)
        if answer.status == HTTPStatus.OK:
            self.sizes.append(len(answer.text))
            self._lines = [] if answer.json["whole"] else self._lines
            for begin, end, lines in answer.json["parts"]:
                self._lines[begin:end] = lines
            self._version = answer.headers["etag"]
        else:
            assert answer.status == HTTPStatus.NOT_MODIFIED
        return "\n".join(self._lines)


def test_a_page_gets_what_differs(run_space: Space, served: Page) -> None:
    """However many windows ask, of one version or another; nothing if nothing differs."""
    live = create_run(run_space, "large", framework="pytorch", replicas={"worker": {"count": 60}})
    live.until_phase("Running")
    first, second = (Live(served, f"/runs/{run_space.name}/large/live") for _ in range(2))
    eventually("all are ready", lambda: "60 / 60" in first.look())
    live.ends("worker-2", 1, message="no")
    eventually("it is seen", lambda: "no</pre>" in first.look())
    assert second.look() == first.look()
    whole, *changes = first.sizes
    assert changes
    assert max(changes) < whole / 2


def test_a_run_is_seen_from_its_creation_to_its_end(run_space: Space, served: Page) -> None:
    """In the list, which changes by itself, and on its page: replicas, incident, timeline."""
    assert served.ask("GET", "/").headers["location"] == "/runs"
    mentions(served.ask("GET", "/runs").text, "No Runs")
    listed = Live(served, "/runs/live?")
    listed.look()
    live = create_run(
        run_space, "mnist", framework="pytorch", replicas={"master": {}, "worker": {"count": 3}}
    )
    eventually("it runs", lambda: all(text in listed.look() for text in ("Running", "4/4")))
    mentions(listed.look(), f"/runs/{run_space.name}/mnist", "job, pytorch")
    live.until_phase("Running")
    shown = served.ask("GET", f"/runs/{run_space.name}/mnist").text
    assert len(re.findall(r'<li class="firm "', shown)) == 4
    assert f'<a href="/runs/{run_space.name}/mnist/worker/2"' in shown
    mentions(shown, "worker</b>: 3 of 3 ready", "active", "<svg", "4 / 4")
    details = Live(served, f"/runs/{run_space.name}/mnist/live")
    details.look()
    live.ends("worker-1", 1, message="epoch 3 <b>loss is NaN</b>")
    eventually("it is seen", lambda: "loss is NaN" in details.look())
    mentions(details.look(), "Failure", "worker-1", "exit code 1", "&lt;b&gt;loss")
    assert "<b>loss" not in details.look()
    live.until_phase("Running")
    text = served.ask("GET", f"/runs/{run_space.name}/mnist").text
    assert re.search(r'<path d="M[0-9.]+ 4l10 10', text), "the failure is marked in the timeline"
    mentions(served.ask("GET", f"/runs/{run_space.name}/mnist/cost").text, "1 failure: ")


def test_what_a_replica_waits_for_is_shown(run_space: Space, served: Page) -> None:
    """The scheduler's words, beside the replica and on its square."""
    create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}})

    def shown() -> str:
        return served.ask("GET", f"/runs/{run_space.name}/stuck").text

    eventually("the scheduler has said so", lambda: "nodes are available" in shown())
    mentions(shown(), 'class="firm waits"', ": Pending")


def test_runs_are_found_by_words_and_phase(run_space: Space, served: Page) -> None:
    """All words count, and each phase has its number."""
    create_run(run_space, "alpha").until_phase("Running")
    create_run(run_space, "beta", environment={"nodeSelector": {"no": "such-node"}})

    def found(query: str) -> list[str]:
        return re.findall(rf">{run_space.name}/(\w+)</a>", served.ask("GET", f"/runs?{query}").text)

    eventually("both are listed", lambda: sorted(found("")) == ["alpha", "beta"])
    eventually("by phase", lambda: found("phase=Running") == ["alpha"])
    assert found("words=ALP") == ["alpha"]
    assert found("words=alpha+nothing") == []
    assert found("page=99999999999&words=beta") == ["beta"]


def test_a_run_that_is_not_there_is_said(served: Page, run_space: Space) -> None:
    """With the cure of the command; the page stays."""
    answer = served.ask("GET", f"/runs/{run_space.name}/nosuch")
    assert answer.status == 200
    mentions(answer.text, "nosuch")


def test_the_cluster_has_its_pools_and_what_waits(run_space: Space, served: Page) -> None:
    """Nodes without a class are said to be so; a pod with a stamp that has no node is listed."""
    stamp = {names.PLACEMENT: "{}"}
    waiting = pod("waits", annotations=stamp, nodeSelector={"no": "such-node"})
    run_space.create(waiting)

    def shown() -> str:
        return served.ask("GET", "/cluster").text

    eventually("the scheduler has said so", lambda: "nodes are available" in shown())
    nodes = run_space.plane.api.get("/api/v1/nodes")["items"]
    mentions(served.ask("GET", "/playground").text, f"{len(nodes):,} nodes count")
    mentions(shown(), f"{run_space.name}/waits", "1 pod of runs waits for a node", "0 of ")
    counts = re.findall(r">(\d+) nodes?, (?:\d+ cordoned, )?\d+ pods? of runs", shown())
    assert sum(map(int, counts)) == len(nodes)
    assert len(re.findall(r'title="[^"]* of runs"', shown())) == len(nodes)
    # No webhook is here.
    mentions(shown(), "placement: error", "Fairlead is not in this cluster")
    assert "placement in force" not in shown()


def test_a_run_for_which_nodes_have_no_room_is_listed(run_space: Space, served: Page) -> None:
    """With the part of its message that the commands show, and in the first sentence."""
    container = {**CONTAINER, "resources": {"requests": {"cpu": "100000"}}}
    create_run(run_space, "huge", template={"spec": {"containers": [container]}})

    def shown() -> str:
        return served.ask("GET", "/cluster").text

    eventually("the controller has looked", lambda: "nodes have no room for 1 run" in shown())
    mentions(shown(), f'href="/runs/{run_space.name}/huge"', "at most 0 of 1 replicas can")


def test_the_log_of_an_earlier_attempt_is_said_to_be_gone(run_space: Space, served: Page) -> None:
    """Once its pod is."""
    live = create_run(run_space, "again", framework="pytorch", replicas={"worker": {"count": 2}})
    live.until_phase("Running")
    live.ends("worker-1", 1, message="loss is NaN")
    path = f"/runs/{run_space.name}/again/worker/1"
    said = "The logs of earlier attempts are gone"
    eventually("it is said", lambda: said in served.ask("GET", path).text)
    assert said not in served.ask("GET", path.replace("worker/1", "worker/0")).text


def test_a_run_has_its_classes_its_cost_and_its_environment(
    run_space: Space, served: Page, spot_class: str
) -> None:
    """The price of a class is part of the sum; a variable from a Secret has no value."""
    run_space.create(an_object("v1", "Secret", "s", stringData={"key": "very-secret"}))
    env = [
        {"name": "SEED", "value": "<7>"},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
    ]
    container = {**CONTAINER, "env": env, "envFrom": [{"secretRef": {"name": "s"}}]}
    tolerations = {"tolerations": [{"operator": "Exists"}]}
    live = create_run(
        run_space,
        "costly",
        framework="pytorch",
        template={"spec": {"containers": [container], **tolerations}},
        environment={"nodeSelector": {SPOT: "true"}},
        replicas={"worker": {"count": 2}},
    )
    live.until_phase("Running")

    def page_of(path: str) -> str:
        return served.ask("GET", f"/runs{path}").text

    eventually("its class is listed", lambda: f"{spot_class} 2" in page_of(""))
    one = f"/{run_space.name}/costly"
    mentions(page_of(one), f"<b>{spot_class} 2</b>", f"{one}/cost")
    eventually("time passes", lambda: "estimate: " in page_of(f"{one}/cost"))
    cost = page_of(f"{one}/cost")
    mentions(cost, spot_class, "replicas", "of a replica on demand", " %")
    assert re.search(r'data-label="cost, as on demand" class="[^"]*">\d', cost)
    replica = page_of(f"{one}/worker/0")
    mentions(replica, "SEED", "&lt;7&gt;", "from secretKeyRef: s key", "from secretRef: s", "RANK")
    assert "very-secret" not in replica


def test_the_component_may_read_all_that_the_pages_show_and_no_more(
    run_space: Space, tmp_path: Path
) -> None:
    """As its ServiceAccount, and without a token; no Secret is among its rights."""
    (role,) = of_kind(tuple(render((), ("ui",)).values()), "ClusterRole")
    kubeconfig = account(run_space.kubectl, "pages", tmp_path / "kubeconfig")
    grant_everywhere(run_space.kubectl, "pages", f"pages-{run_space.name}", *role["rules"])
    assert not [each for each in role["rules"] if "secrets" in each["resources"]]
    verbs = {verb for each in role["rules"] for verb in each["verbs"]}
    assert verbs <= {"get", "list", "watch"}
    create_run(run_space, "seen").until_phase("Running")
    where = ("--kubeconfig", str(kubeconfig))
    with page("cluster", "--no-token", *where) as found:
        assert "token" not in found.address
        one = f"/runs/{run_space.name}/seen"
        paths = ("/runs", one, f"{one}/cost", f"{one}/worker/0", "/cluster", "/playground")
        for path in paths:
            text = eventually(path, partial(_current, found, path))
            assert "forbidden" not in text, path
        form = urlencode({"old": "cluster", "new": "cluster"}).encode()
        answer = found.ask("POST", "/change", form)
        mentions(found.ask("GET", answer.headers["location"]).text, "no change")
        mentions(found.ask("GET", "/findings").text, "by fairlead doctor", "policy reports")
        assert found.ask("GET", "/runs", headers={"host": "evil.example"}).status == 403


def _current(found: Page, path: str) -> str:
    """The page, once what it shows is read."""
    text = found.ask("GET", path).text
    return "" if "is not read yet" in text else text


def test_findings_have_their_cures(served: Page) -> None:
    """Those of doctor: this cluster has no webhook."""
    text = served.ask("GET", "/findings").text
    mentions(text, "error", "Cure: ", "fairlead install")
