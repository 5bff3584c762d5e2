"""The values of the Helm chart: one table, from which values.yaml and its schema are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tests.manifests.generated import OTHERS
from tests.manifests.kustomize import Json, one
from tests.manifests.program_values import program_values
from tests.manifests.value_rows import Place, Value, narrowing, on_deployment, on_pods
from tests.manifests.value_schemas import (
    ANNOTATIONS,
    FLAG,
    LABELS,
    NAME_OR_EMPTY,
    NETWORK_PEERS,
    NETWORK_PORTS,
    OBJECT_NAME,
    TEXT,
    TEXTS,
    field_of,
    list_of,
    one_of,
)
from webhook import names, validating
from webhook.installation.manifests import backends
from webhook.interception import LONGEST_TIMEOUT

# The grammar of image names: github.com/distribution/reference, reference.go.
_PART: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final[Json] = {
    "type": "string",
    "pattern": rf"^(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*$",
}
_TAG: Final[Json] = {"type": "string", "pattern": r"^(?:[\w][\w.-]{0,127})?$"}
_DIGEST: Final[Json] = {"type": "string", "pattern": "^(?:sha256:[0-9a-f]{64})?$"}
_POLICY_FILE: Final = r"^[-\w][-.\w]{0,247}\.([yY][aA]?[mM][lL]|[jJ][sS][oO][nN])$"
_TEST_FILE: Final = r"\.[tT][eE][sS][tT]\.[yY][aA]?[mM][lL]$"
_SECRET: Final[Json] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": OBJECT_NAME},
}
_CONFIGURATIONS: Final = "(Mutating|Validating)WebhookConfiguration"
# The controller reads certificates and counters of the webhook's replicas.
_READS_REPLICAS: Final[Json] = {
    "podSelector": {
        "matchLabels": {
            "app.kubernetes.io/name": "fairlead",
            "app.kubernetes.io/component": "controller",
        }
    }
}


def chart_values(base: Sequence[Json]) -> list[Value]:
    """Every value, in the order of values.yaml; defaults are those of the base's objects."""
    webhook = one(base, "Deployment", names.WEBHOOK)
    pod = webhook["spec"]["template"]["spec"]
    return [
        *_image(pod["containers"][0]),
        Value(
            "certificates",
            "Who makes the webhook's certificate: controller (Fairlead's own), or cert-manager, "
            "which then has to be in the cluster.",
            one_of("controller", "cert-manager"),
            "controller",
        ),
        Value(
            "failurePolicy",
            "While the webhook does not answer: Fail rejects pods of runs, Ignore creates them "
            "unplaced. Set guards.stamp with Ignore.",
            one_of("Fail", "Ignore"),
            "Fail",
            (
                Place("MutatingWebhookConfiguration", "webhooks/*/failurePolicy"),
                Place(
                    "Deployment",
                    "metadata/annotations",
                    "merge",
                    name=names.CONTROLLER,
                    item={names.FAILS_OPEN: "true"},
                ),
            ),
        ),
        # Before the labels of some objects, which count more: the last of two rows counts.
        Value(
            "commonLabels",
            "More labels of every object, without the pods.",
            LABELS,
            {},
            (Place(".*", "metadata/labels", "merge"),),
        ),
        *_configurations(one(base, "MutatingWebhookConfiguration")["webhooks"][0]),
        Value(
            "guards.stamp",
            "What the API server does with a run's pod without Fairlead's stamp: `off`, `warn` or "
            "`deny`.",
            one_of("off", "warn", "deny"),
            "off",
        ),
        Value("guards.nodeNames", "Forbid nodeName in pods of runs.", FLAG, False),
        Value("guards.tolerations", "Forbid to add tolerations to a run's pod later.", FLAG, False),
        Value(
            "guards.tolerationsExempt",
            "Users who may: system:serviceaccount:kueue-system:kueue-controller-manager for Kueue.",
            TEXTS,
            [],
        ),
        Value(
            "sources",
            "Systems whose pods are sent to the webhook beside those of runs (docs/sources.md).",
            {**list_of(one_of(*sorted(each.name for each in OTHERS))), "uniqueItems": True},
            [],
        ),
        Value(
            "backends",
            "Engines to which the controller may give Runs, and kueue for its queues.",
            {**list_of(one_of(*backends())), "uniqueItems": True},
            [],
        ),
        Value(
            "nodes",
            "Warn about pods that no node admits; reads nodes.",
            FLAG,
            False,
            (on_deployment(names.WEBHOOK, "container/args", "append", item="--nodes"),),
        ),
        Value(
            "policyReports",
            "Write a PolicyReport in each namespace with pods of runs; needs policies as objects.",
            FLAG,
            False,
            (on_deployment(names.CONTROLLER, "container/args", "append", item="--policy-reports"),),
        ),
        Value(
            "pages",
            "A pod with the pages of `fairlead ui cluster`, for who may forward a port to it.",
            FLAG,
            False,
        ),
        Value(
            "doctor",
            "Run `fairlead doctor` every 15 minutes in a CronJob; a Job fails if it finds errors.",
            FLAG,
            False,
        ),
        Value(
            "monitoring",
            "ServiceMonitor, alerts and dashboard; needs the Prometheus operator.",
            FLAG,
            False,
        ),
        Value(
            "monitoringLabels",
            "More labels of ServiceMonitor and PrometheusRule. kube-prometheus-stack reads only "
            "those with the label `release`, whose value is the name of its own Helm release.",
            LABELS,
            {},
            (Place("ServiceMonitor|PrometheusRule", "metadata/labels", "merge"),),
        ),
        Value(
            "policyFiles",
            "Policies as files (*.yaml, *.yml, *.json), by name, in a ConfigMap. If any is given, "
            "the webhook reads no policy objects and validates none.",
            {
                "type": "object",
                # What the webhook reads of a ConfigMap (webhook/server/folder.py). Helm reports
                # `propertyNames` at a wrong path.
                "patternProperties": {_POLICY_FILE: TEXT, _TEST_FILE: False},
                "additionalProperties": False,
            },
            {},
        ),
        Value(
            "crds.install",
            "Create and upgrade the CRDs. They stay after an uninstall, with every Run and policy.",
            FLAG,
            True,
        ),
        Value(
            "namespace.create",
            "The chart creates the namespace: for `helm template` and GitOps. `helm install "
            "--create-namespace` fails if it is true.",
            FLAG,
            False,
        ),
        Value(
            "criticalPodsQuota",
            "ResourceQuota without which GKE admits no critical pods outside kube-system.",
            FLAG,
            True,
        ),
        *_network_policy(one(base, "NetworkPolicy", names.WEBHOOK)["spec"]["egress"]),
        *_service(),
        *_every_object(pod),
        *program_values("webhook", webhook),
        *program_values("controller", one(base, "Deployment", names.CONTROLLER)),
    ]


def _image(container: Json) -> Iterator[Value]:
    yield Value(
        "image.repository", "Image of both programs, without its tag.", _REPOSITORY, "fairlead"
    )
    yield Value("image.tag", "Empty: the chart's appVersion.", _TAG, "")
    yield Value("image.digest", "sha256:…, instead of the tag.", _DIGEST, "")
    yield Value(
        "image.pullPolicy",
        "When nodes pull it.",
        field_of("Container", "imagePullPolicy"),
        container["imagePullPolicy"],
        on_pods("spec/containers/*/imagePullPolicy"),
    )
    yield Value(
        "image.pullSecrets",
        "Secrets as {name: …}, in the namespace.",
        list_of(_SECRET),
        [],
        on_pods("spec/imagePullSecrets"),
    )


def _configurations(entry: Json) -> Iterator[Value]:
    yield Value(
        "webhookConfigurations.timeoutSeconds",
        "How long the creation of a pod waits for the webhook.",
        {"type": "integer", "minimum": 1, "maximum": LONGEST_TIMEOUT},
        entry["timeoutSeconds"],
        (Place("MutatingWebhookConfiguration", "webhooks/*/timeoutSeconds"),),
    )
    yield Value(
        "webhookConfigurations.namespaceSelector",
        "Namespaces whose pods are sent, by their labels; empty: all except kube-system and "
        "fairlead-system. Guards, warnings on workloads and `fairlead doctor` follow it.",
        field_of("PodAffinityTerm", "namespaceSelector"),
        {},
        (
            *narrowing("MutatingWebhookConfiguration", "webhooks/*/namespaceSelector"),
            *narrowing(
                "ValidatingWebhookConfiguration",
                f"webhooks/{validating.WORKLOADS}/namespaceSelector",
            ),
            # The bindings of other guards are made of the entries.
            *narrowing(
                "ValidatingAdmissionPolicyBinding",
                "spec/matchResources/namespaceSelector",
                name=f"{names.NODE_NAMES_GUARD}-.*",
            ),
        ),
    )
    yield Value(
        "webhookConfigurations.labels",
        "More labels of both configurations, such as admissions.enforcer/disabled on AKS.",
        LABELS,
        {},
        (Place(_CONFIGURATIONS, "metadata/labels", "merge"),),
    )
    yield Value(
        "webhookConfigurations.annotations",
        "Annotations of both configurations.",
        ANNOTATIONS,
        {},
        (Place(_CONFIGURATIONS, "metadata/annotations", "merge"),),
    )


def _network_policy(egress: Sequence[Json]) -> Iterator[Value]:
    dns, api_server = egress
    yield Value(
        "networkPolicy.enabled",
        "Create NetworkPolicies for all pods of the chart; false: the network is yours to limit.",
        FLAG,
        True,
    )
    yield Value(
        "networkPolicy.dnsPorts",
        "Ports of the cluster's DNS, as its pods have them: 5353 on OpenShift.",
        NETWORK_PORTS,
        dns["ports"],
        (Place("NetworkPolicy", "spec/egress/0/ports"),),
    )
    yield Value(
        "networkPolicy.apiServerPorts",
        "Ports of the API servers: those of the endpoints of the Service kubernetes.",
        NETWORK_PORTS,
        api_server["ports"],
        (Place("NetworkPolicy", "spec/egress/1/ports"),),
    )
    yield Value(
        "networkPolicy.apiServers",
        "Where the API servers are, such as {ipBlock: {cidr: …}}; empty: any address.",
        NETWORK_PEERS,
        [],
        (Place("NetworkPolicy", "spec/egress/1/to"),),
    )
    yield Value(
        "networkPolicy.callers",
        "Who may reach the webhook's HTTPS port, beside the controller: the API servers, by the "
        "addresses from which they call; empty: any address.",
        NETWORK_PEERS,
        [],
        _admitted(names.WEBHOOK, 0),
    )
    yield Value(
        "networkPolicy.scrapers",
        "Who may reach the ports of metrics and probes: Prometheus, and the API servers for "
        "`fairlead doctor`; empty: any address. With controller.hostNetwork, include the nodes "
        "here and in callers.",
        NETWORK_PEERS,
        [],
        (*_admitted(names.WEBHOOK, 1), *_admitted(names.CONTROLLER, 0)),
    )


def _admitted(name: str, rule: int) -> tuple[Place, ...]:
    at = f"spec/ingress/{rule}/from"
    return (
        Place("NetworkPolicy", at, "append", name, item=_READS_REPLICAS),
        Place("NetworkPolicy", at, "append", name),
    )


def _service() -> Iterator[Value]:
    yield Value(
        "service.ipFamilyPolicy",
        "Empty: the API server's default, which is SingleStack.",
        one_of("SingleStack", "PreferDualStack", "RequireDualStack"),
        "",
        (Place("Service", "spec/ipFamilyPolicy"),),
    )
    yield Value(
        "service.ipFamilies",
        "IPv4, IPv6 or both, in order; empty: the cluster's own.",
        {**list_of(one_of("IPv4", "IPv6")), "uniqueItems": True},
        [],
        (Place("Service", "spec/ipFamilies"),),
    )


def _every_object(pod: Json) -> Iterator[Value]:
    (container,) = pod["containers"]
    yield Value(
        "podLabels",
        "More labels of all pods of the chart.",
        LABELS,
        {},
        on_pods("metadata/labels", "merge"),
    )
    yield Value(
        "podAnnotations",
        "More annotations of all pods of the chart.",
        ANNOTATIONS,
        {},
        on_pods("metadata/annotations", "merge"),
    )
    yield Value(
        "podSecurityContext",
        "Security context of all pods. null leaves a field to the platform "
        "(docs/guides/openshift.md).",
        field_of("PodSpec", "securityContext"),
        pod["securityContext"],
        on_pods("spec/securityContext"),
    )
    yield Value(
        "containerSecurityContext",
        "Security context of all containers. null leaves a field to the platform.",
        field_of("Container", "securityContext"),
        container["securityContext"],
        on_pods("spec/containers/*/securityContext"),
    )
    yield Value(
        "runtimeClassName",
        "RuntimeClass of all pods; empty: the cluster's default.",
        NAME_OR_EMPTY,
        "",
        on_pods("spec/runtimeClassName"),
    )
