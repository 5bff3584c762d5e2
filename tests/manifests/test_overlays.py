"""What every overlay keeps to: names that meet, selectors that select, nodes that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
import pytest

from certs.issue import service_names
from tests.fast_yaml import load_all_yaml
from tests.manifests.generated import MANIFESTS, ROOT
from tests.manifests.kustomize import OVERLAYS, Json, of_kind, one, selects
from webhook import __version__, names, validating
from webhook.cli.controller import command as controller
from webhook.cli.serve import command as serve
from webhook.installation.manifests import backends, render, shipped_classes
from webhook.policy.load import load
from webhook.run.backends.engines import ENGINES, created_objects
from webhook.server.folder import is_test_file, read_folder

Build = Callable[[str], tuple[Json, ...]]
COMMANDS: Mapping[str, click.Command] = {names.WEBHOOK: serve, names.CONTROLLER: controller}
PROVIDERS = sorted(
    path
    for path in (ROOT / "policies" / "capacity").glob("*.yaml")
    if not is_test_file(path.name) and path.name != "plain.yaml"
)
# What the drain in the process waits for requests in flight, in seconds (docs/decisions/0013).
LAST_REQUESTS = 30
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


def pod_of(objects: tuple[Json, ...], name: str) -> Json:
    template: Json = one(objects, "Deployment", name)["spec"]["template"]
    return template


def container_of(objects: tuple[Json, ...], name: str) -> Json:
    """The one container of a Deployment's pods."""
    (container,) = pod_of(objects, name)["spec"]["containers"]
    return dict(container)


def given(objects: tuple[Json, ...], name: str) -> dict[str, Any]:
    """The options of a Deployment's command, defaults included, as the command reads them."""
    subcommand, *arguments = container_of(objects, name)["args"]
    command = COMMANDS[name]
    assert subcommand == command.name
    return command.make_context(subcommand, list(arguments)).params


def test_the_issues_overlays_are_there() -> None:
    """And the one that refuses."""
    wanted = {"default", "cert-manager", "fail-open-guarded", "development", "monitoring"}
    assert set(OVERLAYS) == wanted | {"fail-open-guarded-deny"}


@each_overlay
def test_every_name_leads_to_an_object(build: Build, overlay: str) -> None:
    """Accounts, roles, ConfigMaps, Services: nothing is named that is not there."""
    objects = build(overlay)
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for binding in of_kind(objects, "RoleBinding") + of_kind(objects, "ClusterRoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in there
        for subject in binding["subjects"]:
            assert (subject["kind"], subject["name"]) in there
            assert subject["namespace"] == names.NAMESPACE
    for name in COMMANDS:
        spec = pod_of(objects, name)["spec"]
        assert ("ServiceAccount", spec["serviceAccountName"]) in there
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in there
        mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]}
    for kind in CONFIGURATIONS:
        for webhook in one(objects, kind)["webhooks"]:
            service = webhook["clientConfig"]["service"]
            assert ("Service", service["name"]) in there
            assert service["namespace"] == names.NAMESPACE
    bound = of_kind(objects, "ValidatingAdmissionPolicyBinding")
    assert {("ValidatingAdmissionPolicy", each["spec"]["policyName"]) for each in bound} <= there


@each_overlay
def test_every_selector_selects_the_pods_that_it_means(build: Build, overlay: str) -> None:
    """And no others; ports that are named are there."""
    objects = build(overlay)
    pods = {name: pod_of(objects, name) for name in COMMANDS}

    def selected(selector: Json) -> set[str]:
        return {name for name, pod in pods.items() if selects(selector, pod["metadata"]["labels"])}

    for kind in ("Deployment", "PodDisruptionBudget"):
        for each in of_kind(objects, kind):
            assert selected(each["spec"]["selector"]) == {each["metadata"]["name"]}
    for policy in of_kind(objects, "NetworkPolicy"):
        assert selected(policy["spec"]["podSelector"]) == {policy["metadata"]["name"]}
    for name, pod in pods.items():
        for spread in pod["spec"].get("topologySpreadConstraints", ()):
            assert selected(spread["labelSelector"]) == {name}
    for service in of_kind(objects, "Service"):
        chosen = selected({"matchLabels": service["spec"]["selector"]})
        assert chosen == (
            set(pods) if "metrics" in service["metadata"]["name"] else {names.WEBHOOK}
        )
        for name in chosen:
            ports = {port["name"] for port in pods[name]["spec"]["containers"][0]["ports"]}
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


@each_overlay
def test_the_arguments_are_what_the_commands_take(build: Build, overlay: str) -> None:
    """Ports, folders and names are those of the manifests."""
    objects = build(overlay)
    webhook, controller = given(objects, names.WEBHOOK), given(objects, names.CONTROLLER)
    ports = {
        name: {port["name"]: port["containerPort"] for port in container_of(objects, name)["ports"]}
        for name in COMMANDS
    }
    assert ports[names.WEBHOOK] == {"https": webhook["port"], "health": webhook["health_port"]}
    assert ports[names.CONTROLLER] == {"health": controller["health_port"]}
    assert webhook["policies_from_cluster"]
    assert webhook["policies"] is None
    assert webhook["tls_secret"] == ("", names.SERVING_SECRET)
    assert webhook["webhook_configuration"] == names.WEBHOOK_CONFIGURATION
    assert webhook["service"] == ("", names.WEBHOOK)
    assert controller["webhook_configuration"] == names.WEBHOOK_CONFIGURATION
    assert controller["lease_name"] == names.CONTROLLER
    assert controller["certificates"] == (overlay != "cert-manager")


@each_overlay
def test_the_way_out_is_longer_than_all_that_happens_on_it(build: Build, overlay: str) -> None:
    """The kubelet kills when the grace period, which counts from before preStop, is over."""
    objects = build(overlay)
    pause = container_of(objects, names.WEBHOOK)["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = given(objects, names.WEBHOOK)["grace"]
    period = pod_of(objects, names.WEBHOOK)["spec"]["terminationGracePeriodSeconds"]
    assert pause + drain + LAST_REQUESTS < period


@each_overlay
def test_every_container_has_no_more_than_it_needs(build: Build, overlay: str) -> None:
    """No root, no capability, no writing but to /tmp; memory bounded, the processor not."""
    objects = build(overlay)
    for name in COMMANDS:
        spec, container = pod_of(objects, name)["spec"], container_of(objects, name)
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["limits"]) == {"memory", "ephemeral-storage"}
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert set(container) >= {"startupProbe", "livenessProbe", "readinessProbe"}
        assert container["image"] == f"fairlead:{__version__}"
        writable = [each for each in container["volumeMounts"] if not each.get("readOnly")]
        assert [each["mountPath"] for each in writable] == ["/tmp"]  # noqa: S108


@each_overlay
def test_no_overlay_publishes_an_authority(build: Build, overlay: str) -> None:
    """That field is another's: whoever keeps the certificates applies it alone."""
    for webhook in one(build(overlay), "MutatingWebhookConfiguration")["webhooks"]:
        assert "caBundle" not in webhook["clientConfig"]
        assert webhook["timeoutSeconds"] == 3
        assert webhook["failurePolicy"] == ("Ignore" if "fail-open" in overlay else "Fail")
    judging = {
        each["name"]: each
        for each in one(build(overlay), "ValidatingWebhookConfiguration")["webhooks"]
    }
    assert not any("caBundle" in each["clientConfig"] for each in judging.values())
    # Whatever is to become of pods: what nobody has judged is refused, and a workload never is.
    assert {name: each["failurePolicy"] for name, each in judging.items()} == {
        validating.POLICIES: "Fail",
        validating.WORKLOADS: "Ignore",
    }


@each_overlay
def test_only_the_controller_writes_and_secrets_have_names(build: Build, overlay: str) -> None:
    """But for the webhook's Events, and for the creation of MPI keys, which cannot be named before
    they are there."""
    objects = build(overlay)
    rules = {
        (role["kind"], role["metadata"]["name"]): role["rules"]
        for kind in ("Role", "ClusterRole")
        for role in of_kind(objects, kind)
    }
    for (_, name), each in rules.items():
        for rule in each:
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
            if name.startswith(names.WEBHOOK) and rule["resources"] == ["events"]:
                assert rule["verbs"] == ["create"]
            elif name.startswith(names.WEBHOOK):
                assert set(rule["verbs"]) <= {"get", "list", "watch"}
            if "secrets" in rule["resources"]:
                assert rule["verbs"] == ["create"] or rule["resourceNames"]
    if overlay == "cert-manager":
        assert not [name for _, name in rules if name == "fairlead-certificates"]


def test_roles_grant_only_reading_of_exceptions_and_sources() -> None:
    """It is aggregated to `view`; whoever administers the cluster writes them, and no other."""
    aggregations = []
    for path in MANIFESTS.rglob("*.yaml"):
        for each in load_all_yaml(path.read_text()):
            role = each if each and "Role" in each.get("kind", "") else {}
            for rule in role.get("rules") or ():
                if {names.PLACEMENT_EXCEPTIONS, names.RUN_SOURCES, "*"} & {
                    *rule.get("resources", ())
                }:
                    assert {*rule["verbs"]} <= {"get", "list", "watch"}, path
                    labels = each["metadata"].get("labels", {})
                    aggregations += [label for label in labels if "aggregate" in label]
    assert {*aggregations} == {"rbac.authorization.k8s.io/aggregate-to-view"}


def test_replicas_survive_a_rollout_and_a_drain(build: Build) -> None:
    """Three and two of them, one more while they are exchanged, and one at a time evicted."""
    objects = build("default")
    for name, count in ((names.WEBHOOK, 3), (names.CONTROLLER, 2)):
        spec = one(objects, "Deployment", name)["spec"]
        assert spec["replicas"] == count
        assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        assert one(objects, "PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1
        pod = spec["template"]["spec"]
        assert pod["priorityClassName"] == "system-cluster-critical"
        keys = [each["topologyKey"] for each in pod["topologySpreadConstraints"]]
        assert keys == [names.HOSTNAME_LABEL, "topology.kubernetes.io/zone"]
    quota = one(objects, "ResourceQuota")["spec"]
    (scope,) = quota["scopeSelector"]["matchExpressions"]
    assert scope["values"] == ["system-cluster-critical"]
    assert int(quota["hard"]["pods"]) >= 2 * (3 + 2)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda path: path.stem)
def test_no_spot_node_of_any_provider_is_taken(build: Build, provider: Any) -> None:
    """A node that looks like the class `spot` of its file; a node without labels is."""
    objects = build("default")
    for name in COMMANDS:
        affinity = pod_of(objects, name)["spec"]["affinity"]["nodeAffinity"]
        required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        (term,) = required["nodeSelectorTerms"]
        assert selects(term, {names.OS_LABEL: "linux"})
        spot = load(read_folder(provider)).policies.classes["spot"]
        for shape in spot.inside:
            labels = {each["key"]: each["values"][0] for each in shape["matchExpressions"]}
            assert not selects(term, {names.OS_LABEL: "linux", **labels})


@each_overlay
def test_no_overlay_has_policies(build: Build, overlay: str) -> None:
    """To apply it again would undo what an admin has made of them; and it needs one step only."""
    assert {each["apiVersion"] for each in build(overlay)}.isdisjoint({names.API_VERSION})


def test_the_classes_that_ship_are_those_of_every_provider() -> None:
    """They are those of one file of policies/, and change no pod that does not ask."""
    source = ROOT / "policies" / "capacity" / "any-provider.yaml"
    classes = [each for each in load_all_yaml(source.read_text()) if each]
    assert shipped_classes() == classes
    loaded = load({"classes.yaml": source.read_bytes()})
    assert loaded.policies.policies == ()
    assert loaded.warnings == ()


@pytest.mark.parametrize("overlay", ["default", "cert-manager", "fail-open-guarded"])
def test_policies_from_files_are_a_component(overlay: str) -> None:
    """A ConfigMap, mounted; no object, no right to see any, and nobody who judges them."""
    objects = tuple(render((overlay,), ("policies-from-files",)).values())
    arguments = given(objects, names.WEBHOOK)
    assert not arguments["policies_from_cluster"]
    (mount,) = (
        each
        for each in container_of(objects, names.WEBHOOK)["volumeMounts"]
        if each["mountPath"] == str(arguments["policies"])
    )
    volumes = {each["name"]: each for each in pod_of(objects, names.WEBHOOK)["spec"]["volumes"]}
    assert volumes[mount["name"]]["configMap"]["name"] == names.POLICIES_CONFIG_MAP
    source = ROOT / "policies" / "capacity" / "any-provider.yaml"
    config_map = one(objects, "ConfigMap", names.POLICIES_CONFIG_MAP)
    assert config_map["data"] == {"capacity.yaml": source.read_text()}


def test_nodes_are_a_component(build: Build) -> None:
    """Of all overlays none watches them: the flag, and the right to do so and nothing else."""
    assert not any(given(build(overlay), names.WEBHOOK)["nodes"] for overlay in OVERLAYS)
    objects = tuple(render(components=("nodes",)).values())
    assert given(objects, names.WEBHOOK)["nodes"]
    role = one(objects, "ClusterRole", f"{names.WEBHOOK}-nodes")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
    ]
    binding = one(objects, "ClusterRoleBinding", f"{names.WEBHOOK}-nodes")
    (subject,) = binding["subjects"]
    assert subject["name"] == pod_of(objects, names.WEBHOOK)["spec"]["serviceAccountName"]


def test_cert_managers_certificate_is_for_the_name_that_is_checked(build: Build) -> None:
    """And comes in the Secret that the webhook watches; the injector is told where from."""
    objects = build("cert-manager")
    certificate = one(objects, "Certificate", names.WEBHOOK)
    assert certificate["spec"]["secretName"] == names.SERVING_SECRET
    known = service_names(names.WEBHOOK, names.NAMESPACE)
    assert set(certificate["spec"]["dnsNames"]) <= set(known.dns)
    assert f"{names.WEBHOOK}.{names.NAMESPACE}.svc" in certificate["spec"]["dnsNames"]
    for kind in CONFIGURATIONS:
        source = one(objects, kind)["metadata"]["annotations"][names.INJECTED_BY_CERT_MANAGER]
        assert source == f"{names.NAMESPACE}/{certificate['metadata']['name']}"
    issuers = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "Issuer")}
    signed = {
        each["spec"]["secretName"]: each["spec"]["issuerRef"]["name"]
        for each in of_kind(objects, "Certificate")
    }
    authority = issuers[signed[names.SERVING_SECRET]]["ca"]["secretName"]
    assert issuers[signed[authority]] == {"selfSigned": {}}
    # Our keeper's Secret of that name holds something else.
    assert authority != names.AUTHORITY_SECRET


def test_development_asks_for_little(build: Build) -> None:
    """One replica on any node, and nothing that stands in its way."""
    objects = build("development")
    for name in COMMANDS:
        spec = one(objects, "Deployment", name)["spec"]
        assert spec["replicas"] == 1
        assert not {"affinity", "priorityClassName"} & set(spec["template"]["spec"])
    assert not of_kind(objects, "PodDisruptionBudget") + of_kind(objects, "ResourceQuota")


def test_guards_are_bound_to_the_webhooks_own_selectors(build: Build) -> None:
    """Warn in one overlay, Deny in the other; the same pods as the webhook is sent."""
    for overlay, actions in (
        ("fail-open-guarded", ["Warn", "Audit"]),
        ("fail-open-guarded-deny", ["Deny"]),
    ):
        objects = build(overlay)
        bound = {
            each["metadata"]["name"]: each["spec"]
            for each in of_kind(objects, "ValidatingAdmissionPolicyBinding")
        }
        for webhook in one(objects, "MutatingWebhookConfiguration")["webhooks"]:
            short = webhook["name"].partition(".")[0]
            spec = bound[f"{names.STAMP_GUARD}-{short}"]
            assert spec["validationActions"] == actions
            for selector in ("objectSelector", "namespaceSelector"):
                assert spec["matchResources"][selector] == webhook[selector]


def test_the_component_of_a_backend_has_the_rights_to_its_kinds(
    build: Build,
) -> None:
    """Off by default: no overlay has them; the controller gets what it does, and no more."""
    wanted: dict[str, set[str]] = {}
    for group, resource in created_objects().values():
        wanted.setdefault(group, set()).add(resource)

    def granted(objects: Iterable[Json]) -> dict[str, set[str]]:
        roles = of_kind([*objects], "ClusterRole")
        own = [each for each in roles if each["metadata"]["name"].startswith(names.CONTROLLER)]
        rules = [rule for role in own for rule in role["rules"]]
        found: dict[str, set[str]] = {}
        for rule in rules:
            for group in set(rule["apiGroups"]) & set(wanted):
                if rule["verbs"] != ["list", "watch"]:
                    found.setdefault(group, set()).update(rule["resources"])
                    assert rule["verbs"] == ["get", "list", "watch", "create", "patch", "delete"]
        return found

    assert not any(granted(build(overlay)) for overlay in OVERLAYS)
    # Kueue makes no pods; tests/operators/test_queued_runs.py has just its rights.
    engines = [name for name in backends() if name != "kueue"]
    found = [each for name in engines for each in render((), (f"backend-{name}",)).values()]
    assert granted(found) == wanted
    between = {
        (each.backend, owner.api_version.split("/")[0], owner.resource)
        for each in ENGINES.values()
        for owner in each.pods.owners
    }
    seen = {
        (name, group, resource)
        for name in engines
        for role in of_kind([*render((), (f"backend-{name}",)).values()], "ClusterRole")
        for rule in role["rules"]
        if rule["verbs"] == ["list", "watch"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert seen == between
    for binding in of_kind(found, "ClusterRoleBinding"):
        assert [each["name"] for each in binding["subjects"]] == [names.CONTROLLER]
