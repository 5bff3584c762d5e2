"""The chart and kustomize come to the same objects, for each overlay and each component."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_all_yaml, load_yaml
from tests.go_programs import KUSTOMIZES, obtain_program
from tests.helm.conftest import Template
from tests.manifests.chart import CHART, with_components
from tests.manifests.generated import MANIFESTS, OTHERS, ROOT
from tests.manifests.kustomize import OVERLAYS, Json, kustomized, of_kind, one, overlay
from tests.wording import mentions
from webhook import names
from webhook.cli.install_options import files_of
from webhook.guards import capacity_guard
from webhook.installation.choices import Choices, adapted
from webhook.installation.manifests import CONFIG_MAP, CONTROLLER, backends
from webhook.installation.object_kinds import in_order
from webhook.interception import DEFAULT_SOURCES, select_sources, webhooks

SMALL: Mapping[str, Any] = {
    "replicas": 1,
    "priorityClassName": "",
    "keepOffSpotNodes": False,
    "spread": False,
    "podDisruptionBudget": False,
    # Helm merges values: what the default limits, null takes away.
    "resources": {"requests": {"cpu": "10m", "memory": "96Mi", "ephemeral-storage": None}},
}
FILES = {"capacity.yaml": (ROOT / "policies" / "capacity" / "any-provider.yaml").read_text()}
FAIL_OPEN = {"failurePolicy": "Ignore"}
# The values for an overlay.
VALUES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "cert-manager": {"certificates": "cert-manager"},
    "development": {"webhook": SMALL, "controller": SMALL, "criticalPodsQuota": False},
    "fail-open-guarded": {**FAIL_OPEN, "guards": {"stamp": "warn"}},
    "fail-open-guarded-deny": {**FAIL_OPEN, "guards": {"stamp": "deny"}},
    "monitoring": {"monitoring": True},
}
SOURCES = tuple(source.name for source in OTHERS)
# The order in which docs/guides/customize.md has components listed: the highest precedence last.
IN_ORDER = SOURCES[::-1]
GUARDED = [part for name in IN_ORDER for part in (f"source-{name}", f"source-{name}/guard-stamp")]
# Components, and the values for them.
COMPONENTS: Sequence[tuple[Sequence[str], Mapping[str, Any]]] = [
    (["nodes"], {"nodes": True}),
    (["policy-reports"], {"policyReports": True}),
    (["ui"], {"pages": True}),
    (["doctor"], {"doctor": True}),
    (["guard-node-names"], {"guards": {"nodeNames": True}}),
    (["guard-tolerations"], {"guards": {"tolerations": True}}),
    (["guard-stamp-warn"], {"guards": {"stamp": "warn"}}),
    (["guard-stamp-deny"], {"guards": {"stamp": "deny"}}),
    (["fail-open"], FAIL_OPEN),
    (["monitoring"], {"monitoring": True}),
    *(([f"backend-{name}"], {"backends": [name]}) for name in backends()),
    ([f"backend-{name}" for name in backends()], {"backends": list(backends())}),
    (["policies-from-files"], {"policyFiles": FILES}),
    (["nodes", "policies-from-files"], {"nodes": True, "policyFiles": FILES}),
    *(([f"source-{name}"], {"sources": [name]}) for name in SOURCES),
    # In another order than the table's, which decides.
    ([f"source-{name}" for name in IN_ORDER], {"sources": sorted(SOURCES)}),
    (
        ["fail-open", "guard-stamp-deny", *GUARDED],
        {**FAIL_OPEN, "guards": {"stamp": "deny"}, "sources": list(SOURCES)},
    ),
]


def by_name(objects: Sequence[Json]) -> dict[tuple[str, str, str], Json]:
    """The objects by kind, namespace and name. None is there twice."""
    found = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in objects
    }
    assert len(found) == len(objects)
    return found


def without_policy(objects: Sequence[Json]) -> list[Json]:
    """The chart's objects without what only Helm reads: each definition is kept on uninstall."""
    changed = deepcopy(list(objects))
    for each in of_kind(changed, "CustomResourceDefinition"):
        assert each["metadata"]["annotations"].pop("helm.sh/resource-policy") == "keep"
        if not each["metadata"]["annotations"]:
            del each["metadata"]["annotations"]
    return changed


def whole(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values, with the namespace as one of the objects."""
    return {**values, "namespace": {"create": True}}


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_is_a_set_of_values(template: Template, name: str) -> None:
    """No object more or less, and none that differs."""
    found = by_name(without_policy(template(whole(VALUES[name]))))
    wanted = by_name(overlay(name))
    assert set(found) == set(wanted)
    for key, each in wanted.items():
        assert found[key] == each, key


@pytest.mark.parametrize(
    ("components", "values"), COMPONENTS, ids=[" ".join(names[:3]) for names, _ in COMPONENTS]
)
def test_a_component_is_a_value(
    template: Template, kubectl_path: Path, components: Sequence[str], values: Mapping[str, Any]
) -> None:
    """Alone and with others, in the default overlay."""
    found = by_name(without_policy(template(whole(values))))
    wanted = by_name(with_components(kubectl_path, "default", *components))
    assert set(found) == set(wanted)
    for key, each in wanted.items():
        assert found[key] == each, key


def test_the_guard_of_tolerations_is_that_of_the_chosen_sources(template: Template) -> None:
    """As `fairlead generate guard tolerations` prints it for them and for these users."""
    exempt = ["system:serviceaccount:kueue-system:kueue-controller-manager", "a<b"]
    guards = {"tolerations": True, "tolerationsExempt": exempt}
    found = by_name(template({"guards": guards, "sources": list(SOURCES)}))
    chosen = (*DEFAULT_SOURCES, *SOURCES)
    marks = [mark for source in select_sources(chosen) for mark in source.marks]
    wanted = capacity_guard(webhooks(chosen), marks, exempt)
    for each in wanted:
        made = found[each["kind"], "", each["metadata"]["name"]]
        if each["kind"] == "ValidatingAdmissionPolicy":
            (condition,) = made["spec"]["matchConditions"]
            text = condition["expression"].replace('","', '", "').replace("\\u003c", "<")
            condition["expression"] = text
        assert made == each
    named = [key for key in found if key[2].startswith(names.TOLERATIONS_GUARD)]
    assert len(named) == len(wanted)


def test_users_are_exempt_by_the_patch_of_the_page(kubectl_path: Path, tmp_path: Path) -> None:
    """What docs/guides/fail-open.md has of kustomize is what the command prints."""
    page = (ROOT / "docs" / "guides" / "fail-open.md").read_text()
    (block,) = [each for each in page.split("```yaml\n") if "/spec/matchConditions" in each]
    document = load_yaml(block.partition("```")[0])
    paths = {"resources": ["default"], "components": ["components/guard-tolerations"]}
    for field, names_of in paths.items():
        document[field] = [os.path.relpath(MANIFESTS / each, tmp_path) for each in names_of]
    (tmp_path / "kustomization.yaml").write_text(json.dumps(document))
    found = one(
        kustomized(kubectl_path, tmp_path), "ValidatingAdmissionPolicy", names.TOLERATIONS_GUARD
    )
    marks = [mark for source in select_sources(DEFAULT_SOURCES) for mark in source.marks]
    kueue = "system:serviceaccount:kueue-system:kueue-controller-manager"
    assert found["spec"] == capacity_guard((), marks, [kueue])[0]["spec"]


@pytest.mark.parametrize("version", KUSTOMIZES)
def test_policies_from_files_by_the_page_are_those_of_the_command(
    version: str, tmp_path: Path
) -> None:
    """The two files of docs/guides/customize.md, with an old kustomize and a new one."""
    page = (ROOT / "docs" / "guides" / "customize.md").read_text()
    section = page.partition("## Read policies from files")[2].partition("\n## ")[0]
    blocks = re.findall(r"```yaml\n# (\S+\.yaml).*\n((?s:.*?))```", section)
    assert [name for name, _ in blocks] == [
        "mine/installation/kustomization.yaml",
        "mine/kustomization.yaml",
    ]
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    for name, text in blocks:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    mine = tmp_path / "mine" / "policies"
    mine.mkdir()
    for name in load_yaml(blocks[1][1])["configMapGenerator"][0]["files"]:
        (source,) = (ROOT / "policies").rglob(Path(name).name)
        shutil.copy(source, mine)
    done = subprocess.run(
        [obtain_program(KUSTOMIZES[version]), "build", tmp_path / "mine"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = in_order(load_all_yaml(done.stdout))
    wanted = adapted(Choices(components=("policies-from-files",), policies=files_of(mine)))
    assert made[CONFIG_MAP]["data"] == wanted[CONFIG_MAP]["data"]
    for objects in (made, wanted):
        objects[CONFIG_MAP] = objects[CONTROLLER]["metadata"]["annotations"] = {}
    assert made == wanted


def test_every_component_has_a_value() -> None:
    """A new folder of manifests/components needs its case here."""
    there = {path.name for path in (MANIFESTS / "components").iterdir()}
    assert there == {
        *("certificates", *(name for parts, _ in COMPONENTS for name in parts if "/" not in name))
    }


def test_the_namespace_is_left_to_helm(template: Template) -> None:
    """`--create-namespace` makes it, and refuses a chart that has it."""
    assert of_kind(template({}), "Namespace") == []


def test_values_of_one_program_reach_that_program_alone(template: Template) -> None:
    """Image, secrets, nodes, options: each in its place."""
    own = {
        "extraArgs": ["--log-level=debug"],
        "nodeSelector": {"example.com/pool": "system"},
        "tolerations": [{"key": "example.com/pool", "operator": "Exists"}],
    }
    digest = "sha256:" + "0" * 64
    image = {"repository": "example.invalid/fairlead", "digest": digest}
    objects = template({"webhook": own, "image": {**image, "pullSecrets": [{"name": "pull"}]}})
    for name in (names.WEBHOOK, names.CONTROLLER):
        pod = one(objects, "Deployment", name)["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert container["image"] == f"example.invalid/fairlead@{digest}"
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        chosen = name == names.WEBHOOK
        assert ("--log-level=debug" in container["args"]) == chosen
        assert (pod.get("nodeSelector") == own["nodeSelector"]) == chosen
        assert (pod.get("tolerations") == own["tolerations"]) == chosen


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--set", "sources={mlrum}"], ["sources", "mlrun"]),
        (["--set", "failurePolicy=Maybe"], ["failurePolicy", "Ignore"]),
        (["--set", "webhook.replica=2"], ["webhook", "replica"]),
        (["--set", "guards=null"], ["guards"]),
        (["--set", "image.repository="], ["/image/repository"]),
        (["--set", "image.repository=a:1.0"], ["/image/repository", "a:1.0"]),
        (["--set", "image.repository=https://a/b"], ["/image/repository"]),
        (["--set", "image.tag=1.0+2"], ["/image/tag", "1.0+2"]),
        (["--set", "image.digest=abc"], ["/image/digest", "sha256"]),
        (["--set", "webhook.nodeSelector.a=true"], ["/webhook/nodeSelector/a", "string"]),
        (["--set", "webhook.tolerations[0].bogus=x"], ["/webhook/tolerations/0", "bogus"]),
        (["--set", "webhook.affinity.nodeAfinity.a=x"], ["/webhook/affinity", "nodeAfinity"]),
        (["--set", "webhook.extraVolumes[0].config=x"], ["/webhook/extraVolumes/0", "config"]),
        (["--set", "webhook.strategy.type=Fast"], ["/webhook/strategy/type", "RollingUpdate"]),
        (["--set", "webhook.port=70000"], ["/webhook/port", "65,535"]),
        (["--set", "podSecurityContext.runAsUser=me"], ["/podSecurityContext/runAsUser"]),
        (["--set", r"podLabels.app\.kubernetes\.io/name=x"], ["/podLabels", "fairlead"]),
        (["--set", r"commonLabels.app\.kubernetes\.io/component=x"], ["/commonLabels"]),
        (["--set", "webhookConfigurations.timeoutSeconds=30"], ["/timeoutSeconds", "10"]),
        (["--set", "networkPolicy.callers[0].ipBlock.cidr=here"], ["/callers/0", "here"]),
        (["--set", "networkPolicy.callers[0].cidr=192.0.2.0/24"], ["/callers/0", "cidr"]),
        (["--set", "service.ipFamilyPolicy=Dual"], ["/service/ipFamilyPolicy", "SingleStack"]),
        (["--set", "policyFiles.a/b=x"], ["/policyFiles", "a/b"]),
        (["--set", "webhook.resources.limits.memory=1Gib"], ["/limits/memory", "1Gib"]),
        (["--set", "webhook.strategy.rollingUpdate.maxSurge=abc"], ["/maxSurge", "abc"]),
        (["--set", "webhook.nodeSelector.a b=x"], ["/webhook/nodeSelector", "a b"]),
        (["--set", "webhook.nodeSelector.a=x y"], ["/webhook/nodeSelector/a", "x y"]),
        (["--set", "podLabels.a=x y"], ["/podLabels/a", "x y"]),
        (["--set", "podAnnotations.a b=x"], ["/podAnnotations", "a b"]),
        (["--set", "webhook.priorityClassName=a b"], ["/webhook/priorityClassName", "a b"]),
        (["--set", "runtimeClassName=a b"], ["/runtimeClassName", "a b"]),
        (["--set", "image.pullSecrets[0].name=A b"], ["/image/pullSecrets/0/name", "A b"]),
        (["--set", "service.ipFamilies={IPv6,IPv6}"], ["/service/ipFamilies", "equal"]),
        (["--set", "networkPolicy.dnsPorts[0].port=0"], ["/networkPolicy/dnsPorts/0/port"]),
        (
            ["--set", "networkPolicy.callers[0].ipBlock.cidr=192.0.2.400/24"],
            ["/callers/0/ipBlock/cidr", "192.0.2.400/24"],
        ),
        (
            [
                "--set-json",
                'webhookConfigurations.namespaceSelector.matchExpressions=[{"key":"a","operator":"in"}]',
            ],
            ["/namespaceSelector/matchExpressions/0/operator", "NotIn"],
        ),
        (["--namespace", "elsewhere"], ["elsewhere", names.NAMESPACE]),
    ],
    ids=lambda each: each[-1],
)
def test_a_wrong_value_is_refused(helm: Path, options: list[str], facts: list[str]) -> None:
    """With its path and what is allowed; so is another namespace."""
    options = ["--namespace", names.NAMESPACE, *options]
    done = subprocess.run(
        [helm, "template", "fairlead", CHART, *options], capture_output=True, text=True
    )
    assert done.returncode != 0
    mentions(done.stderr, *facts)


def test_helm_finds_no_fault_in_the_chart(helm: Path) -> None:
    """`helm lint --strict`."""
    options = ["--strict", "--namespace", names.NAMESPACE]
    done = subprocess.run([helm, "lint", CHART, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
