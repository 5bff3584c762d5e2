"""A real Prometheus scrapes both programs under load: every panel has data, every rule is run."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from tests.cluster.live_runs import CONTAINER, SOON, TEMPLATE, create_run
from tests.cluster.spaces import LOOK, Json, Space
from tests.cluster.webhooks import serving_objects
from tests.control_planes import build_before_tests
from tests.eventually import eventually
from tests.fast_yaml import load_all_yaml
from tests.go_programs import PROMETHEUS, obtain_program
from tests.manifests.kustomize import one, overlay
from tests.manifests.monitoring import alerts, dashboard
from tests.objects import an_object
from tests.server.serving import get
from webhook import metric_names, names
from webhook.interception import record_annotations
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import free_ports

OBJECTS: Final = overlay("monitoring")
TARGETS: Final = {
    f"{panel['title']} {target['refId']}": target
    for panel in dashboard(OBJECTS)["panels"]
    for target in panel["targets"]
}
ALERTS: Final = {each["alert"]: each["expr"] for each in alerts(OBJECTS)}
# Seconds: Grafana's, for the dashboard's six hours on 1,080 pixels and a scrape every second.
RANGE: Final = 6 * 3600
INTERVAL: Final = 20
VARIABLES: Final = {
    "$__rate_interval": f"{INTERVAL + 1}s",
    "$__interval": f"{INTERVAL}s",
    "$__range": f"{RANGE}s",
    "$namespace": names.NAMESPACE,
}
# Zero at nearly every scrape: requests and Runs wait for milliseconds. The certificate is loaded
# before the first scrape. Nothing fails, is refused or is not in force.
MAY_BE_ZERO: Final = (
    *("Requests in flight A", "Queue A", "Queue B", "Loaded and refused B"),
    "Age of caches B",
    *("Not in force as installed A", "Not in force as installed B", "Pods without a placement A"),
    *("Placement in force A", "Pods rejected a second by policy A"),
    *(f"Admitted without a node, and labels left out {each}" for each in "AB"),
    *("Has failed for A", "Has failed for B", "Has failed for C"),
    *(f"Refused, outdated or not understood {each}" for each in "ABCDEF"),
    *("Objects with a condition that is not True A", "Certificates B", "Runs by phase B"),
)
# This webhook is given a certificate, and no bundle to verify it with.
NO_HANDSHAKE: Final = "Certificates C"
USAGE: Final = f'{metric_names.RUN_USAGE}{{resource="nvidia.com/gpu"}}'
GPU: Final = {"containers": [{**CONTAINER, "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
POLICIES: Final = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: gpu}
spec: {nodes: [{labels: {cloud.google.com/gke-nodepool: gpu}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: gpus}
spec:
  match: {resources: [nvidia.com/gpu]}
  defaults:
    nodeSelector: {cloud.google.com/gke-nodepool: gpu}
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
"""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build Prometheus before the first test, on the first run ever."""
    build_before_tests(session, "prometheus", lambda: obtain_program(PROMETHEUS))


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus at a port of loopback."""

    port: int

    def ask(self, path: str, **query: object) -> Any:
        """Return the data of an answer of its HTTP API."""
        answer = json.loads(get(self.port, f"/api/v1/{path}?{urlencode(query)}")[1])
        assert answer["status"] == "success", answer
        return answer["data"]

    def draw(self, expression: str) -> list[tuple[Json, list[float]]]:
        """Return the labels of each series, and its points, as Grafana asks for them."""
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        end = math.ceil(time.time() / INTERVAL) * INTERVAL
        when = {"start": end - RANGE, "end": end, "step": INTERVAL}
        result = self.ask("query_range", query=expression, **when)["result"]
        drawn = [(each["metric"], [float(value) for _, value in each["values"]]) for each in result]
        return [
            (labels, finite)
            for labels, points in drawn
            if (finite := [*filter(math.isfinite, points)])
        ]

    def selectors(self, expression: str) -> Iterator[str]:
        """Yield the selectors of an expression, with their labels."""
        pending = [self.ask("parse_query", query=expression)]
        while pending:
            node = pending.pop()
            if isinstance(node, list):
                pending += node
            elif isinstance(node, dict) and "matchers" in node:
                each = [f"{m['name']}{m['type']}{json.dumps(m['value'])}" for m in node["matchers"]]
                yield f"{{{','.join(each)}}}"
            elif isinstance(node, dict):
                pending += node.values()


@pytest.fixture(scope="module")
def prometheus(control_plane: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[Prometheus]:
    """Prometheus with the alerts, which scrapes a webhook and a controller under load."""
    program = obtain_program(PROMETHEUS)
    install_definitions(control_plane.api, [*custom_resource_definitions().values()])
    lease = ("--lease-namespace", "default")
    looks = ("--webhook-configuration", names.WEBHOOK_CONFIGURATION)
    options = (*SOON, *lease, *looks, "--certificates", "--certificate-settle", "0")
    create_record(control_plane)
    with serving_objects(control_plane) as running:
        controller = start_controller(control_plane, options=options)
        webhook = running.webhook.health_url.removeprefix("http://")
        targets = {"webhook": webhook, "controller": f"127.0.0.1:{controller.health_port}"}
        found = start_prometheus(control_plane, program, targets)
        control_plane.create_namespace("load")
        create_load(found, Space(control_plane, cluster_kubectl.within("load"), "load"))
        yield found
        for name in ("prometheus", controller.name):
            control_plane.stop_component(name)


def create_record(plane: ControlPlane) -> None:
    """Create the controller's Deployment with what is intercepted, and without pods."""
    labels = {"app": names.CONTROLLER}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    about = {"name": names.CONTROLLER, "annotations": record_annotations(["pods-0"], [], [])}
    plane.api.create(
        "/apis/apps/v1/namespaces/default/deployments",
        an_object("apps/v1", "Deployment", about, spec),
    )


def start_prometheus(plane: ControlPlane, program: Path, targets: Mapping[str, str]) -> Prometheus:
    """Start Prometheus, with the labels that the ServiceMonitor gives; wait for a scrape of all."""
    folder = plane.layout.directory / "prometheus"
    folder.mkdir()
    scraped = [
        {
            "targets": [address],
            "labels": {"component": name, "namespace": names.NAMESPACE, "pod": f"fairlead-{name}"},
        }
        for name, address in targets.items()
    ]
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yaml"],
        "scrape_configs": [{"job_name": "fairlead-metrics", "static_configs": scraped}],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(configuration))
    (folder / "alerts.yaml").write_text(json.dumps(one(OBJECTS, "PrometheusRule")["spec"]))
    port = free_ports(["prometheus"])["prometheus"]
    options = {
        "config.file": folder / "prometheus.yaml",
        "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    arguments = [f"--{option}={value}" for option, value in options.items()]
    process = plane.start_process("prometheus", [program, *arguments])
    found = Prometheus(port)

    def up() -> int:
        assert process.exit_code is None, process.log.read_text()
        # Before it listens, and while it is not ready, there is no answer in JSON.
        with suppress(ConnectionError, ValueError):
            return len(found.ask("query", query="up == 1")["result"])
        return 0

    eventually("all targets are scraped", lambda: up() == len(targets), period=LOOK)
    return found


def create_load(prometheus: Prometheus, space: Space) -> None:
    """Create what the panels show: a policy, replicas with GPUs that fail, a refused pod."""
    space.kubectl.create(*load_all_yaml(POLICIES))
    probe = an_object("v1", "Pod", {"name": "probe", "labels": {names.RUN: "probe"}}, GPU)
    eventually(
        "the webhook serves the policy",
        lambda: "nodeSelector" in space.create(probe, dry_run=True)["spec"],
        period=LOOK,
    )
    two = {"worker": {"count": 2}}
    training = create_run(space, "training", framework="jax", replicas=two, template={"spec": GPU})
    before = training.until_running("worker-0", "worker-1")["worker-1"]

    def useful() -> int:
        (cost,) = json.loads(space.ask("run", "cost", "training", "-o", "json").stdout)["runs"]
        seconds: int = cost["useful"]
        return seconds

    # Of each worker, because usage is counted in whole seconds.
    training.until("two seconds are used", lambda: useful() >= 4)
    eventually("what is used has a series", lambda: prometheus.draw(USAGE), period=LOOK)
    training.ends("worker-1", 1)
    training.until_replaced("worker-1", before)
    invalid = {"spec": {**TEMPLATE["spec"], "activeDeadlineSeconds": -1}}
    refused = create_run(space, "refused", template=invalid)
    refused.until("its pod is refused", lambda: "message" in refused.condition("Created"))


@pytest.mark.parametrize("panel", [each for each in TARGETS if each != NO_HANDSHAKE])
def test_a_panel_has_data(prometheus: Prometheus, panel: str) -> None:
    """A number, and not only zeros, in a series with every label of the legend."""
    expression, legend = TARGETS[panel]["expr"], TARGETS[panel]["legendFormat"]
    labels = set(re.findall(r"{{(\w+)}}", legend))

    def shows() -> bool:
        return any(
            labels <= found.keys() and (any(points) or panel in MAY_BE_ZERO)
            for found, points in prometheus.draw(expression)
        )

    eventually("it shows something", shows, explain=lambda: prometheus.draw(expression))


def test_every_alert_is_loaded_and_evaluated(prometheus: Prometheus) -> None:
    """Prometheus does not start with an expression or a template that it cannot parse."""

    def health() -> dict[str, str]:
        groups = prometheus.ask("rules")["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    wanted = dict.fromkeys(ALERTS, "ok")
    eventually("all are evaluated", lambda: health() == wanted, explain=health)


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_selects_series_that_exist(prometheus: Prometheus, alert: str) -> None:
    """By name and labels, while nothing is wrong: rate() does not see the first event otherwise.

    Those of the API server are in tests/cluster/test_interception.py, which has its calls fail.
    """
    selectors = [
        each for each in prometheus.selectors(ALERTS[alert]) if '__name__="apiserver_' not in each
    ]
    assert selectors
    eventually(f"there are {selectors}", lambda: all(map(prometheus.draw, selectors)))
