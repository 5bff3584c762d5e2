"""`--dry-run=server`: what only the API server knows of a pod is part of each answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cluster.manifests import policy_text
from tests.cluster.spaces import NewNamespace, Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.placement.fields import BY_NAME
from webhook.questions import dry_run

pytest_plugins = ["tests.cluster.webhook_fixtures", "tests.cluster.run_fixtures"]

Json = dict[str, Any]
POLICIES = policy_text("as-root", "overrides: {securityContext: {runAsUser: 0}}") + policy_text(
    "pinned",
    "match: {podSelector: {matchLabels: {zone: pinned}}}",
    "requirements: {nodeSelector: {zone: a}}",
)
HARMLESS = POLICIES.replace("runAsUser: 0", "runAsUser: 1000").replace("zone: a", "zone: b")
STRICT = {"pod-security.kubernetes.io/enforce": "restricted"}
WHOLE = {names.PLACE: names.PLACE_ALL}
SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "runAsNonRoot": True,
}
TEMPLATE: Json = {
    "metadata": {"labels": {names.RUN: "r"}},
    "spec": {
        "containers": [{"name": "main", "image": "example.invalid/a", "securityContext": SECURITY}],
        "restartPolicy": "Never",
    },
}
JOB: Json = an_object("batch/v1", "Job", "train", {"template": TEMPLATE})
LABELS = {names.RUN: "r", "zone": "pinned"}
PINNED: Json = an_object(
    "batch/v1", "Job", "train", {"template": {**TEMPLATE, "metadata": {"labels": LABELS}}}
)
RUN: Json = an_object(
    "fairlead.dev/v1alpha1",
    "Run",
    "train",
    {
        "kind": "experiment",
        "framework": "pytorch",
        "template": {"spec": {"containers": TEMPLATE["spec"]["containers"]}},
        "replicas": {"worker": {"count": 2}},
    },
)


@pytest.fixture
def strict(new_namespace: NewNamespace) -> Space:
    """A namespace whose Pod Security standard admits the pods below, but not as root."""
    return new_namespace(STRICT)


@pytest.fixture
def whole(new_namespace: NewNamespace) -> Space:
    """One of that kind, all pods of which are sent to the webhook."""
    return new_namespace({**STRICT, **WHOLE})


def files(folder: Path, words: Iterable[str], policies: str = POLICIES) -> list[str]:
    """The words, of which DIR/… are files of the folder."""
    (folder / "policies.yaml").write_text(policies)
    (folder / "job.yaml").write_text(json.dumps(JOB))
    (folder / "run.yaml").write_text(json.dumps(RUN))
    return [word.replace("DIR", str(folder)) for word in words]


def call(space: Space, folder: Path, *words: str, policies: str = POLICIES) -> Result:
    """Call a command with --dry-run=server."""
    return space.ask(*files(folder, words, policies), "--dry-run=server")


TWO = {"parallelism": 2, "completions": 2}
ASKING = [
    ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml"),
    ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml", "-o", "text"),
    ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml", "-o", "yaml"),
    ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml", "-o", "patch"),
    ("explain", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml"),
    ("explain", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml", "-o", "json"),
    ("preview", "-f", "DIR/run.yaml", "--policies", "DIR/policies.yaml", "-o", "pods"),
    ("preview", "-f", "DIR/run.yaml", "--policies", "DIR/policies.yaml", "-o", "objects"),
    ("diff", "/dev/null", "DIR/policies.yaml", "--pods", "DIR/job.yaml", "--fail-on", "rejected"),
]


@pytest.mark.parametrize("words", ASKING, ids=[" ".join(each) for each in ASKING])
def test_a_refusal_is_part_of_the_answer(
    strict: Space, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Pod Security refuses what the policy sets, and every command says so in every form."""
    found = call(strict, tmp_path, *words)
    assert found.exit_code == 1, found.output
    mentions(found.output, "PodSecurity", "runAsUser=0", "without what policies set")
    taken = call(strict, tmp_path, *words, policies=HARMLESS)
    assert taken.exit_code == 0, taken.output
    assert "PodSecurity" not in taken.output


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("words", ASKING, ids=[" ".join(each) for each in ASKING])
def test_where_a_namespace_is_placed_as_a_whole_the_pods_of_given_policies_are_asked_about(
    whole: Space, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The webhook there does not decide on them again by the policies that it serves."""
    taken = call(whole, tmp_path, *words, policies=HARMLESS)
    assert taken.exit_code == 0, taken.output
    found = call(whole, tmp_path, *words)
    assert found.exit_code == 1, found.output
    mentions(found.output, "PodSecurity", "runAsUser=0", "it takes the pod without what policies")


@pytest.mark.usefixtures("running")
def test_a_changed_requirement_is_no_rejection_by_the_one_that_the_webhook_serves(
    new_namespace: NewNamespace, tmp_path: Path
) -> None:
    """The old one rejects what the new one sets."""
    space = new_namespace(WHOLE)
    served = ["diff", "DIR/served.yaml", "DIR/policies.yaml", "--pods", "DIR/job.yaml"]
    (tmp_path / "served.yaml").write_text(POLICIES)
    words = files(tmp_path, served, HARMLESS)
    (tmp_path / "job.yaml").write_text(json.dumps(PINNED))
    found = space.ask(*words, "--fail-on", "rejected", "--dry-run=server")
    assert found.exit_code == 0, found.output
    mentions(found.output, "zone")
    assert "admission webhook" not in found.output


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize(
    ("labels", "job"),
    [({}, JOB), (STRICT, JOB), ({}, PINNED)],
    ids=["taken", "refused by another after it", "rejected by it"],
)
def test_an_older_webhook_decides_again_and_that_is_said(
    new_namespace: NewNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, str],
    job: Json,
) -> None:
    """It does not know the mark, as the webhook here does not know another one."""
    monkeypatch.setattr(names, "AS_DECIDED", "another")
    monkeypatch.setattr(dry_run, "_AS_DECIDED", {"dryRun": "All", "fieldManager": "another"})
    space = new_namespace({**WHOLE, **labels})
    words = ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml")
    for more, code in ((), 0), (("--fail-on", "unknown"), 2):
        asked = files(tmp_path, (*words, *more), HARMLESS)
        (tmp_path / "job.yaml").write_text(json.dumps(job))
        found = space.ask(*asked, "--dry-run=server")
        assert found.exit_code == code, found.output
        mentions(found.output, "unknown whether the API server", "older than this command")


@pytest.mark.usefixtures("running")
def test_the_mark_counts_in_a_dry_run_only_and_skips_nothing_else(whole: Space) -> None:
    """A pod that is created is decided on, whatever manager its request names."""
    made = an_object("v1", "Pod", "p", TEMPLATE["spec"])
    made["metadata"]["annotations"] = {names.PLACEMENT: names.AS_DECIDED}

    def create(*query: str) -> tuple[int, Any]:
        path = f"{whole.path('pods')}?{'&'.join(query)}"
        return whole.plane.api.call("POST", path, made)

    mark, asks = f"fieldManager={names.AS_DECIDED}", "dryRun=All"
    assert create(mark, asks)[0] == 201
    for query in (mark,), (asks,), ():
        status, answer = create(*query)
        assert status == 403, answer
        mentions(answer["message"], "PodSecurity", "runAsUser=0")


@pytest.mark.usefixtures("running")
def test_live_objects_are_asked_about_too(strict: Space, tmp_path: Path) -> None:
    """As new pods of theirs would be; nothing is created."""
    strict.create(JOB)
    words = ("job/train", "--policies", "DIR/policies.yaml")
    for command in ("preview", "explain"):
        found = call(strict, tmp_path, command, *words)
        assert found.exit_code == 1, found.output
        mentions(found.output, "PodSecurity", "runAsUser=0")


def test_a_quota_refuses_the_pod_without_policies_too(strict: Space, tmp_path: Path) -> None:
    """So the policies are not to blame, and it is said."""
    quota = {"hard": {"pods": "0"}}
    strict.create(an_object("v1", "ResourceQuota", "none", quota))
    words = ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml")

    def refused() -> Result:
        return call(strict, tmp_path, *words, policies=HARMLESS)

    found = refused()
    assert found.exit_code == 1, found.output
    mentions(found.output, "exceeded quota: none", "also refuses the pod without")
    # No policies are needed to ask.
    found = call(strict, tmp_path, "preview", "-f", "DIR/run.yaml", "-o", "pods")
    assert found.exit_code == 1, found.output
    mentions(found.output, "exceeded quota: none")


def forbid(space: Space, expression: str, message: str) -> None:
    """Create a rule of others: pods of runs in the namespace must meet the CEL expression."""
    api = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    name = f"{message.replace(' ', '-')}-{space.name}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    policy = {
        "matchConstraints": {
            "resourceRules": [{**rule, "resources": ["pods"]}],
            "objectSelector": {"matchExpressions": [{"key": names.RUN, "operator": "Exists"}]},
            "namespaceSelector": {"matchLabels": {names.NAMESPACE_NAME: space.name}},
        },
        "validations": [{"expression": expression, "message": message}],
    }
    space.plane.api.create(api, {"metadata": {"name": name}, "spec": policy})
    bound = {"policyName": name, "validationActions": ["Deny"]}
    space.plane.api.create(f"{api[:-3]}ybindings", {"metadata": {"name": name}, "spec": bound})


@pytest.mark.usefixtures("running")
def test_a_rule_of_others_about_pods_of_runs_is_asked(strict: Space, tmp_path: Path) -> None:
    """The pod keeps the label by which the rule selects it."""
    forbid(strict, "'cost' in object.metadata.labels", "no cost")
    words = ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml")
    eventually(
        "the rule is asked",
        lambda: "no cost" in call(strict, tmp_path, *words, policies=HARMLESS).output,
    )
    found = call(strict, tmp_path, *words, policies=HARMLESS)
    assert found.exit_code == 1
    mentions(found.output, "another name and no owner and you as its creator")


@pytest.mark.usefixtures("running")
def test_a_pod_is_asked_about_by_its_own_name(strict: Space, tmp_path: Path) -> None:
    """Also if a pod of that name exists; one of a Run has its owner, too."""
    forbid(strict, "object.metadata.name.startsWith('good')", "bad name")
    forbid(
        strict,
        "object.metadata.name.startsWith('good-pod') || has(object.metadata.ownerReferences)",
        "no owner",
    )
    words = ("preview", "--policies", "DIR/policies.yaml", "-o", "text", "-f")

    def ask(made: Json) -> Result:
        (tmp_path / "asked.yaml").write_text(json.dumps(made))
        return call(strict, tmp_path, *words, "DIR/asked.yaml", policies=HARMLESS)

    good, bad = (
        an_object("v1", "Pod", f"{each}-pod", TEMPLATE["spec"]) for each in ("good", "bad")
    )
    for made in (good, bad):
        made["metadata"]["labels"] = {names.RUN: "r"}
    # The API server says one of the two, in an order of its own.
    rules = ("bad name", "no owner")
    eventually("a rule is asked", lambda: any(rule in ask(bad).output for rule in rules))
    assert ask(bad).exit_code == 1
    strict.create(an_object("v1", "Pod", "good-pod", TEMPLATE["spec"]))
    found = ask(good)
    assert found.exit_code == 0, found.output
    assert "creator" not in found.output
    run = ask({**RUN, "metadata": {"name": "good-run"}})
    assert run.exit_code == 0, run.output
    mentions(run.output, "a pod with you as its creator")


def test_what_the_api_server_does_not_say_is_unknown(strict: Space, tmp_path: Path) -> None:
    """A namespace that is not there; it is no refusal, and no consent."""
    words = ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml", "-n", "nowhere")
    for more, code in ((), 0), (("--fail-on", "unknown"), 2):
        found = call(strict, tmp_path, *words, *more)
        assert found.exit_code == code, found.output
        mentions(found.output, "unknown whether the API server", "nowhere")


def test_without_an_api_server_there_is_no_answer(tmp_path: Path) -> None:
    """It is usage that fails, not a pod."""
    (tmp_path / "kubeconfig").write_text("{}")
    words = ("preview", "-f", "DIR/job.yaml", "--policies", "DIR/policies.yaml")
    where = ("--dry-run=server", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert CliRunner().invoke(fairlead, [*files(tmp_path, words), *where]).exit_code == 2


# What a policy sets of a pod, beside a pod that Pod Security's level restricted admits.
CONTEXTS: list[Json] = [
    {"runAsUser": 0},
    {"runAsUser": 1000},
    {"runAsNonRoot": False},
    {"runAsGroup": 0},
    {"fsGroup": 0},
    {"supplementalGroups": [0]},
    *({"seccompProfile": {"type": each}} for each in ("Unconfined", "RuntimeDefault")),
    *({"appArmorProfile": {"type": each}} for each in ("Unconfined", "RuntimeDefault")),
    *(
        {"seLinuxOptions": {"type": each}}
        for each in ("spc_t", "container_t", "container_engine_t")
    ),
    *({"seLinuxOptions": {each: "x"}} for each in ("user", "role", "level")),
    *(
        {"sysctls": [{"name": each, "value": "1"}]}
        for each in ("kernel.shm_rmid_forced", "net.ipv4.tcp_wmem", "kernel.msgmax", "net.core.x")
    ),
]


def test_what_check_calls_weaker_is_what_pod_security_forbids(strict: Space) -> None:
    """Each value, and no other, by the API server's own judgement."""
    container = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    good = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    for context in CONTEXTS:
        spec = {
            "containers": [{"name": "m", "image": "a.invalid/a", "securityContext": container}],
            "securityContext": {**good, **context},
        }
        made = an_object("v1", "Pod", "p", spec)
        path = f"/api/v1/namespaces/{strict.name}/pods?dryRun=All"
        status, answer = strict.plane.api.call("POST", path, made)
        ((key, value),) = context.items()
        how = BY_NAME["securityContext"].weakens(key, value, is_default=False)
        assert (status == 403) is bool(how), (context, how, answer)
        assert status in (201, 403)


def test_of_equal_pods_one_is_asked_and_that_is_said(strict: Space, tmp_path: Path) -> None:
    """A quota that takes one pod and not both is not seen."""
    strict.create(an_object("v1", "ResourceQuota", "one", {"hard": {"pods": "1"}}))
    files(tmp_path, (), HARMLESS)
    (tmp_path / "job.yaml").write_text(json.dumps({**JOB, "spec": {**JOB["spec"], **TWO}}))
    words = ("-f", f"{tmp_path}/job.yaml", "--policies", f"{tmp_path}/policies.yaml")
    for command in ("preview", "explain"):
        found = strict.ask(command, *words, "--dry-run=server")
        assert found.exit_code == 0, found.output
        mentions(found.output, "takes one of these 2 pods", "quota")
