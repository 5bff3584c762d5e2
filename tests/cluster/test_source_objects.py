"""A made-up system, added by one object of the cluster, is known to every part of Fairlead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_added_source import POLICY, SOURCE, TRAINING
from tests.cluster.cures import commands_of
from tests.cluster.manifests import open_definition
from tests.cluster.paths import path
from tests.cluster.sites import NAMESPACE, Site, build
from tests.cluster.spaces import is_stamped, metric
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.fast_yaml import load_yaml
from tests.objects import an_object
from tests.server.serving import get
from tests.wording import line_with, mentions
from webhook import metric_names, names
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
REQUIRED = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: required}
spec:
  match: {roles: [master], frameworks: [pytorch]}
  requirements: {nodeSelector: {pool: bosses}}
"""
HAND = {"acme.example.com/job": "mnist", "acme.example.com/part": "hand"}
CONTROLLER = (
    *("--lease-namespace", NAMESPACE, "--policy-status-interval", "0.4"),
    *("--webhook-configuration", "fairlead"),
)


class Led(Site):
    """A site with a controller that leads."""

    controller: SandboxController

    def metric(self, name: str, **labels: str) -> float:
        """A metric of the controller."""
        return metric(self.controller.health_port, name, **labels)


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Led:
    """A cluster with Fairlead, a webhook, a controller, and the definition of the system's kind."""
    settings = Settings(pools=read_pools(SHIPPED_NODES))
    plane = start_module_plane(settings)
    built = build(plane, Kubectl(kubectl_path, plane.kubeconfig))
    made = Led(built.plane, built.kubectl, built.port, built.health_port)
    made.install()
    object.__setattr__(made, "controller", start_controller(plane, options=CONTROLLER))
    install_definitions(plane.api, [open_definition("acme.example.com", "Training")])
    plane.create_namespace("research")
    return made


@pytest.fixture
def with_source(site: Led) -> Iterator[Led]:
    """The same, with the source and a policy for its pods as objects, and nothing else of them."""
    for text in (SOURCE, POLICY):
        assert site.apply(load_yaml(text)) == ""
    until_condition(site, "Accepted", "True", "Accepted")
    yield site
    for resource in (names.RUN_SOURCES, names.PLACEMENT_POLICIES):
        site.plane.api.delete(f"/apis/{names.API_VERSION}/{resource}")


def condition(site: Site, kind: str, name: str = "acme") -> Json:
    """A condition of a source; empty if it has none."""
    found = site.plane.api.get(path(names.RUN_SOURCES, name)) or {}
    conditions = found.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), {})


def until_condition(site: Site, kind: str, status: str, reason: str, name: str = "acme") -> Json:
    eventually(
        f"{kind} of {name} is {status}, {reason}",
        lambda: (
            (condition(site, kind, name).get("status"), condition(site, kind, name).get("reason"))
            == (status, reason)
        ),
        explain=lambda: json.dumps(site.plane.api.get(path(names.RUN_SOURCES, name)), indent=1),
    )
    return condition(site, kind, name)


def dry_run(site: Site, labels: Mapping[str, str] = HAND) -> Json:
    """What would become of a pod with these labels."""
    container = {"name": "main", "image": "example.invalid/none"}
    pod = an_object(
        "v1", "Pod", {"name": "dry", "labels": dict(labels)}, {"containers": [container]}
    )
    where = path("pods", namespace="research")
    created: Json = site.plane.api.create(f"{where}?dryRun=All", pod)
    return created


def test_a_source_alone_does_not_have_its_pods_sent(with_source: Site) -> None:
    """Status, doctor and columns say so, with the cure; the pods are not placed."""
    told = until_condition(with_source, "Intercepted", "False", "NotSelected")
    cure = "fairlead install --source acme"
    mentions(told["message"], "acme.example.com/job", cure)
    (found,) = [each for each in with_source.findings() if "RunSource acme" in each["message"]]
    assert found["severity"] == "warning"
    mentions(found["cure"], cure)
    assert not is_stamped(dry_run(with_source))
    (_, row) = with_source.kubectl("get", "rsrc").splitlines()
    mentions(row, "acme", "Acme training", "650", "acme.example.com/job", "True", "False")


def test_install_by_its_name_has_its_pods_and_workloads_sent(with_source: Site) -> None:
    """The pods are placed, their authors warned, and an installation without it undoes it."""
    with_source.install("--source", "acme")
    until_condition(with_source, "Intercepted", "True", "Selected")
    placed = dry_run(with_source)
    assert is_stamped(placed)
    assert placed["spec"]["nodeSelector"]["pool"] == "hands"
    assert not [each for each in with_source.findings() if "acme" in each["message"]]
    assert with_source.apply(load_yaml(REQUIRED)) == ""
    training = {**load_yaml(TRAINING)}
    training["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "other"}

    def warned() -> bool:
        told = with_source.kubectl.run(
            "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(training)
        )
        return "policy required" in told.stderr

    eventually("whoever applies a Training is warned", warned)
    with_source.install()
    until_condition(with_source, "Intercepted", "False", "NotSelected")
    assert not is_stamped(dry_run(with_source))


def test_a_source_that_is_deleted_while_its_pods_are_sent_is_missed(with_source: Led) -> None:
    """By whoever deletes it, gauge, condition and doctor, whose cure ends it."""
    site, entry = with_source, "acme-0.fairlead.dev"
    site.install("--source", "acme")
    of = {"entry": entry, "reason": ""}
    eventually("it is in force", lambda: site.metric(metric_names.INTERCEPTING, **of) == 1)
    deleted = site.kubectl.run("delete", "runsource", "acme")
    mentions(deleted.stderr, "source 'acme'", "acme.example.com/job", "not placed from now on")
    eventually("the webhook knows it no more", lambda: not is_stamped(dry_run(site)))
    container = {"name": "main", "image": "example.invalid/none"}
    metadata = {"name": "lost", "labels": HAND}
    slipped = an_object("v1", "Pod", metadata, {"containers": [container]})
    site.plane.api.create(path("pods", namespace="research"), slipped)
    eventually(
        "it is not in force",
        lambda: "NoSource" in reasons(site, entry),
        explain=lambda: reasons(site, entry),
    )
    exposed = get(site.controller.health_port, "/metrics")[1].decode()
    wrong = re.findall(
        rf'^{metric_names.INTERCEPTING}{{entry="(.*?)".*}} 0.0', exposed, re.MULTILINE
    )
    assert wrong == [entry]
    eventually("its pod is counted", lambda: site.metric(metric_names.UNPLACED_PODS) == 1)
    line_with(site.run("doctor", "--check", "unplaced pods").stdout, "research", "lost")
    found = site.findings("--check", "interception")
    (missed,) = [each for each in found if each["severity"] != "note"]
    mentions(missed["message"], entry, "there is no RunSource")
    again = site.run("install", "--yes")
    assert again.exit_code == 2
    mentions(again.output, "acme", "--reset")
    (cure,) = commands_of(missed["cure"])
    assert "acme" not in cure
    # The certificate of a webhook outside the cluster is in no command.
    words = [*cure.split()[2:], "--webhook-ca", str(site.authority), "--yes"]
    assert site.run("install", *words).exit_code == 0
    assert not [each for each in site.findings() if "acme" in each["message"]]
    assert entry not in [each["name"] for each in site.configuration()["webhooks"]]
    site.plane.api.delete(f"{path('pods', namespace='research')}?gracePeriodSeconds=0")


def reasons(site: Led, entry: str) -> list[str]:
    """The reasons of an entry in the gauge."""
    exposed = get(site.controller.health_port, "/metrics")[1].decode()
    return re.findall(rf'{metric_names.INTERCEPTING}{{entry="{entry}",reason="(.*?)"}}', exposed)


def test_commands_read_it_from_the_cluster(with_source: Site, tmp_path: Path) -> None:
    """sources, mutate, explain, check and diff; also that its pods are not sent yet."""
    file = tmp_path / "training.yaml"
    file.write_text(TRAINING)
    given = ("-f", str(file), "--policies", "cluster")
    listed = json.loads(
        with_source.run("policy", "sources", "--policies", "cluster", "-o", "json").stdout
    )
    assert "acme" in [row["name"] for row in listed["sources"]]
    told = with_source.run("preview", *given, "-o", "text").stdout
    mentions(told, "boss", "hand × 3", "not sent to the webhook")
    with_source.install("--source", "acme")
    told = with_source.run("preview", *given, "-o", "text").stdout
    mentions(told, "boss", "hand × 3", "placed", "hands")
    mentions(with_source.run("explain", *given).stdout, "mnist", "pytorch", "worker")
    checked = with_source.run("check", "cluster")
    assert checked.exit_code == 0, checked.output
    empty = tmp_path / "policies"
    empty.mkdir()
    (empty / "hands.yaml").write_text(POLICY)
    changed = with_source.run("diff", "cluster", str(empty), "--pods", str(file))
    mentions(changed.stdout, "hand × 3")
    with_source.install()


def _other(**changes: object) -> Json:
    """A second source, with labels and a kind of its own."""
    found: Json = load_yaml(SOURCE.replace("acme.example.com", "other.example.com"))
    found["metadata"]["name"] = "other"
    found["spec"].update(changes)
    return found


def _same_kind() -> Json:
    return _other(kinds=load_yaml(SOURCE)["spec"]["kinds"])


def _shipped_name() -> Json:
    return {**_other(), "metadata": {"name": "jobset"}}


def _two_keys() -> Json:
    found = _other()
    found["spec"]["identity"]["run"] = [{"label": "a", "annotation": "b"}]
    return found


def _unknown_field() -> Json:
    return _other(sytem="x")


@pytest.mark.parametrize(
    ("broken", "facts"),
    [
        (_same_kind, ["spec.kinds[0]", "acme", "Training"]),
        (_shipped_name, ["metadata.name", "'jobset'"]),
        (_two_keys, ["spec.identity.run[0]", "label", "annotation"]),
        (_unknown_field, ["sytem"]),
        (lambda: _other(system="x" * 300), ["spec.system"]),
    ],
)
def test_a_source_with_errors_is_refused_on_write(
    with_source: Site, broken: Callable[[], Json], facts: list[str]
) -> None:
    """By the schema, or by the webhook beside the others, with field and cure."""
    mentions(with_source.apply(broken()), *facts)


def test_a_source_in_use_is_deleted_like_any_other(with_source: Site) -> None:
    """A policy that matches its pods matches none, and says nothing of sources."""
    with_source.plane.api.delete(path(names.RUN_SOURCES, "acme"))
    eventually(
        "it is gone from the set",
        lambda: "acme" not in with_source.run("policy", "sources", "--policies", "cluster").stdout,
    )
    assert with_source.dry_run(run="r")["metadata"]["annotations"]


def test_a_broken_source_that_is_stored_stops_no_pod(with_source: Site) -> None:
    """Nobody judged it; the last good set stays in force, and status and check name it."""
    judging = with_source.configuration("ValidatingWebhookConfiguration")
    (at,) = [n for n, each in enumerate(judging["webhooks"]) if "policies" in each["name"]]
    where = ("validatingwebhookconfigurations", "fairlead")
    rules = judging["webhooks"][at]["rules"]
    with_source.change(*where, {"op": "replace", "path": f"/webhooks/{at}/rules", "value": []})
    try:
        eventually("no write is judged", lambda: with_source.apply(_two_keys(), dry_run=True) == "")
        assert with_source.apply(_two_keys()) == ""
        told = until_condition(with_source, "Accepted", "False", "InvalidSource", "other")
        mentions(told["message"], "spec.identity.run[0]", "last good set")
        checked = with_source.run("check", "cluster")
        assert checked.exit_code == 1
        line_with(checked.stdout + checked.stderr, "runsources/other", "spec.identity.run[0]")
        assert is_stamped(with_source.dry_run(run="r"))
    finally:
        put_back = {"op": "replace", "path": f"/webhooks/{at}/rules", "value": rules}
        with_source.change(*where, put_back)
    with_source.plane.api.delete(path(names.RUN_SOURCES, "other"))
    eventually("the set loads again", lambda: with_source.run("check", "cluster").exit_code == 0)
