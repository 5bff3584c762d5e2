"""The values of the Helm chart: one table, from which values.yaml and its schema are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.manifests.generated import OTHERS
from tests.manifests.kustomize import Json, one
from webhook import names
from webhook.installation.manifests import backends

_PROGRAMS: Final = {"webhook": names.WEBHOOK, "controller": names.CONTROLLER}
_TEXT: Final[Json] = {"type": "string"}
_FLAG: Final[Json] = {"type": "boolean"}
_OBJECT: Final[Json] = {"type": "object"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
# The grammar of image names: github.com/distribution/reference, reference.go.
_PART: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final[Json] = {
    "type": "string",
    "pattern": rf"^(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*$",
}
_TAG: Final[Json] = {"type": "string", "pattern": r"^(?:[\w][\w.-]{0,127})?$"}
_DIGEST: Final[Json] = {"type": "string", "pattern": "^(?:sha256:[0-9a-f]{64})?$"}
_SECRET: Final[Json] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string", "minLength": 1}},
}
# v1.Toleration.
_TOLERATION: Final[Json] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "key": _TEXT,
        "operator": {"enum": ["Exists", "Equal", "Lt", "Gt"]},
        "value": _TEXT,
        "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        "tolerationSeconds": {"type": "integer"},
    },
}


@dataclass(frozen=True)
class Value:
    """One value: its path with dots, what it does, its JSON schema, and its default."""

    path: str
    about: str
    schema: Json
    default: Any


def chart_values(base: Sequence[Json]) -> list[Value]:
    """Every value, in the order of values.yaml; defaults are those of the base's objects."""
    return [
        Value(
            "image.repository", "Image of both programs, without its tag.", _REPOSITORY, "fairlead"
        ),
        Value("image.tag", "Empty: the chart's appVersion.", _TAG, ""),
        Value("image.digest", "sha256:…, instead of the tag.", _DIGEST, ""),
        Value(
            "image.pullSecrets", "Secrets as {name: …}, in the namespace.", _list_of(_SECRET), []
        ),
        Value(
            "certificates",
            "Who makes the webhook's certificate: controller (Fairlead's own), or cert-manager, "
            "which then has to be in the cluster.",
            {"enum": ["controller", "cert-manager"]},
            "controller",
        ),
        Value(
            "failurePolicy",
            "While no replica answers: Fail rejects pods of runs, Ignore creates them unplaced. "
            "Set guards.stamp with Ignore.",
            {"enum": ["Fail", "Ignore"]},
            "Fail",
        ),
        Value(
            "guards.stamp",
            "What the API server does with a run's pod without Fairlead's stamp: off, warn, deny.",
            {"enum": ["off", "warn", "deny"]},
            "off",
        ),
        Value("guards.nodeNames", "Forbid nodeName in pods of runs.", _FLAG, False),
        Value(
            "guards.tolerations", "Forbid to add tolerations to a run's pod later.", _FLAG, False
        ),
        Value(
            "guards.tolerationsExempt",
            "Users who may: system:serviceaccount:kueue-system:kueue-controller-manager for Kueue.",
            _TEXTS,
            [],
        ),
        Value(
            "sources",
            "Systems whose pods are sent to the webhook beside those of runs (docs/sources.md).",
            {
                "type": "array",
                "uniqueItems": True,
                "items": {"enum": sorted(source.name for source in OTHERS)},
            },
            [],
        ),
        Value(
            "backends",
            "Engines to which the controller may give Runs, and kueue for its queues.",
            {"type": "array", "uniqueItems": True, "items": {"enum": list(backends())}},
            [],
        ),
        Value("nodes", "Warn about pods that no node admits; reads nodes.", _FLAG, False),
        Value(
            "policyReports",
            "Write a PolicyReport in each namespace with pods of runs; needs policies as objects.",
            _FLAG,
            False,
        ),
        Value(
            "pages",
            "A pod with the pages of `fairlead ui cluster`, for who may forward a port to it.",
            _FLAG,
            False,
        ),
        Value(
            "doctor",
            "Run `fairlead doctor` every 15 minutes in a CronJob; a Job fails if it finds errors.",
            _FLAG,
            False,
        ),
        Value(
            "monitoring",
            "ServiceMonitor, alerts and dashboard; needs the Prometheus operator.",
            _FLAG,
            False,
        ),
        Value(
            "policyFiles",
            "Policies as files, by name, in a ConfigMap. If any is given, the webhook reads no "
            "policy objects and validates none.",
            {
                "type": "object",
                # The keys of a ConfigMap. Helm reports `propertyNames` at a wrong path.
                "patternProperties": {r"^[-.\w]{1,253}$": _TEXT},
                "additionalProperties": False,
            },
            {},
        ),
        Value(
            "crds.install",
            "Create and upgrade the definitions. They stay after an uninstall, with every Run "
            "and policy.",
            _FLAG,
            True,
        ),
        Value(
            "namespace.create",
            "The chart creates the namespace. Helm creates it itself with --create-namespace, and "
            "then refuses a chart that has it: true is for `helm template` and GitOps.",
            _FLAG,
            False,
        ),
        Value(
            "criticalPodsQuota",
            "ResourceQuota without which GKE admits no critical pods outside kube-system.",
            _FLAG,
            True,
        ),
        *(
            value
            for program, deployment in _PROGRAMS.items()
            for value in _program(program, one(base, "Deployment", deployment))
        ),
    ]


def _program(program: str, deployment: Json) -> list[Value]:
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    replicas = deployment["spec"]["replicas"]
    return [
        Value(f"{program}.replicas", "Pods.", {"type": "integer", "minimum": 1}, replicas),
        Value(f"{program}.extraArgs", "More options, such as --log-level=debug.", _TEXTS, []),
        Value(f"{program}.resources", "Requests and limits.", _OBJECT, container["resources"]),
        Value(
            f"{program}.priorityClassName",
            "Empty: the cluster's default.",
            _TEXT,
            pod["priorityClassName"],
        ),
        Value(
            f"{program}.nodeSelector",
            "Labels that its nodes have.",
            {"type": "object", "additionalProperties": _TEXT},
            {},
        ),
        Value(f"{program}.tolerations", "Taints that it admits.", _list_of(_TOLERATION), []),
        Value(
            f"{program}.keepOffSpotNodes",
            "Never run on spot nodes, and only on Linux; false: on any node.",
            _FLAG,
            True,
        ),
        Value(f"{program}.spread", "Spread the pods over hosts and zones.", _FLAG, True),
        Value(f"{program}.podDisruptionBudget", "A drain evicts one pod at a time.", _FLAG, True),
    ]


def _list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def values_text(values: Sequence[Value]) -> str:
    """values.yaml: each value under its description."""
    lines = ["# Made by `make manifests` from tests/manifests/chart_values.py; do not edit."]
    open_group = ""
    for value in values:
        group, _, key = value.path.rpartition(".")
        if group and group != open_group:
            lines.append(f"{group}:")
        open_group = group
        indent = "  " if group else ""
        lines.append(f"{indent}# {value.about}")
        dumped = yaml.safe_dump({key: value.default}, sort_keys=True, width=90)
        lines += [f"{indent}{line}" for line in dumped.splitlines()]
    return "\n".join(lines) + "\n"


def values_schema(values: Sequence[Value]) -> Json:
    """values.schema.json: no key that is not in the table."""
    schema = _closed({"$schema": "http://json-schema.org/draft-07/schema#", "title": "fairlead"})
    for value in values:
        group, _, key = value.path.rpartition(".")
        into = schema["properties"]
        if group:
            into = into.setdefault(group, _closed({}))["properties"]
        into[key] = {"description": value.about, **value.schema}
    # values.yaml has them all, so only a null takes one away.
    for each in (schema, *schema["properties"].values()):
        if "properties" in each:
            each["required"] = list(each["properties"])
    # Helm gives every chart this key.
    schema["properties"]["global"] = _OBJECT
    return schema


def _closed(more: Json) -> Json:
    return {**more, "type": "object", "additionalProperties": False, "properties": {}}
