"""ValidatingAdmissionPolicies beside the webhook, one function for each guard, with values in CEL.

Source: k8s.io/api/admissionregistration/v1. The API server's defaults are written explicitly, so
that the applied object equals the stored one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.sources.marks import Mark

_API_VERSION: Final = "admissionregistration.k8s.io/v1"


def policy(
    name: str,
    *,
    group: str = "",
    version: str = "v1",
    resource: str = "pods",
    scope: str = "Namespaced",
    operations: Sequence[str],
    validations: Sequence[JsonObject] = (),
    mutations: Sequence[JsonObject] = (),
    variables: Mapping[str, str] | None = None,
    conditions: Mapping[str, str] | None = None,
    parameter_kind: str = "",
    component: str = "",
) -> JsonObject:
    """Return a policy for pods, or the objects of another resource, without subresources if they
    are namespaced.

    `variables` and `conditions` are CEL by name. An expression that fails counts as false, so the
    guard rejects on errors. `parameter_kind` belongs to this API group. With `mutations` it is a
    MutatingAdmissionPolicy, which after another change of the object is evaluated again.
    """
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        # A write of a cluster-scoped object's status may change its labels, too.
        "resources": [resource] if scope == "Namespaced" else [resource, f"{resource}/*"],
        "scope": scope,
    }
    spec: JsonObject = {
        "failurePolicy": "Fail",
        **({"reinvocationPolicy": "IfNeeded"} if mutations else {}),
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [rule],
        },
    }
    if parameter_kind:
        spec["paramKind"] = {"apiVersion": _API_VERSION, "kind": parameter_kind}
    if conditions:
        spec["matchConditions"] = _to_variables(conditions)
    if variables:
        spec["variables"] = _to_variables(variables)
    spec |= {"mutations": [*mutations]} if mutations else {"validations": [*validations]}
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{'Mutating' if mutations else 'Validating'}AdmissionPolicy",
        "metadata": _metadata(name, component),
        "spec": spec,
    }


def binding(policy_name: str, actions: Sequence[str], component: str = "") -> JsonObject:
    """Return the binding of a policy to everything it matches, with the policy's name.

    A MutatingAdmissionPolicy has no actions.
    """
    validates = {"validationActions": [*actions]} if actions else {}
    return {
        "apiVersion": _API_VERSION,
        "kind": f"{'Validating' if actions else 'Mutating'}AdmissionPolicyBinding",
        "metadata": _metadata(policy_name, component),
        "spec": {"policyName": policy_name, **validates},
    }


def bindings(
    policy_name: str,
    entries: Sequence[Mapping[str, Any]],
    actions: Sequence[str],
    parameter: str = "",
    component: str = "",
) -> list[JsonObject]:
    """Return one binding per entry of a MutatingWebhookConfiguration, with its selectors.

    So a guard covers exactly the pods that the API server sends to the webhook, each once. If the
    object that `parameter` names does not exist, the guard denies. A policy without parameter_kind
    ignores the parameter.
    """
    bound = []
    for entry in entries:
        entry_binding = binding(policy_name, actions, component)
        entry_binding["metadata"]["name"] = f"{policy_name}-{entry['name'].partition('.')[0]}"
        entry_binding["spec"]["matchResources"] = {
            "matchPolicy": "Equivalent",
            "namespaceSelector": entry["namespaceSelector"],
            "objectSelector": entry["objectSelector"],
        }
        if parameter:
            entry_binding["spec"]["paramRef"] = {
                "name": parameter,
                "parameterNotFoundAction": "Deny",
            }
        bound.append(entry_binding)
    return bound


def literal(value: object) -> str:
    """Return a string, or a list of strings, as a CEL literal."""
    return json.dumps(value, ensure_ascii=False)


def _metadata(policy_name: str, component: str = "") -> JsonObject:
    """Return metadata with the labels by which kustomize and uninstallers select a guard."""
    labels = {
        "app.kubernetes.io/name": names.MANAGER,
        "app.kubernetes.io/part-of": names.MANAGER,
        "app.kubernetes.io/component": component or policy_name.replace(names.MANAGER, "guard"),
    }
    return {"name": policy_name, "labels": labels}


def _to_variables(expressions: Mapping[str, str]) -> list[JsonObject]:
    return [{"name": name, "expression": text} for name, text in expressions.items()]


# `o` is on the pod, `t` is added: o admits every taint that t admits, as in
# placement.tolerations.covers. No effect means all effects, no key (with Exists) every key.
_COVERS: Final = (
    "(!has(o.effect) || o.effect == t.?effect.orValue(''))"
    " && (!has(o.key) || o.key == t.?key.orValue(''))"
    " && (o.?operator.orValue('Equal') == 'Exists'"
    " || (o.?operator.orValue('Equal') == t.?operator.orValue('Equal')"
    " && o.?value.orValue('') == t.?value.orValue('')))"
)


_NOT_EXEMPT: Final = "not-exempt"


def capacity_guard(
    entries: Sequence[Mapping[str, Any]],
    marks: Sequence[Mark],
    exempt: Collection[str] = (),
) -> list[JsonObject]:
    """No toleration may be added to a pod of a run later.

    In Kubernetes, users who may update a pod may add tolerations to it, and so undo what a policy
    enforced at creation. A pod without its mark would escape the guard, so a mark cannot be removed
    either. Returns the policy, and a binding for each of the webhook's `entries`. They deny.

    marks:  of the pods that the entries select; a namespace's own mark is its admin's concern
    exempt: names of users who are exempt, such as a queue's controller
    """
    before = "oldObject.spec.?tolerations.orValue([])"
    variables = {
        "added": f"object.spec.?tolerations.orValue([]).filter(t, !{before}.exists(o, {_COVERS}))",
        "labels": "object.metadata.?labels.orValue({})",
        "before": "oldObject.metadata.?labels.orValue({})",
    }
    validations: list[JsonObject] = [
        {
            "expression": "size(variables.added) == 0",
            "messageExpression": "'a toleration of ' + "
            "variables.added[0].?key.orValue('every taint') + ' cannot be added to an existing pod "
            "of a run: create the pod again with it, or with the capacity class in the annotation "
            f"{names.CAPACITY}; your admins can exempt a user, such as a queue'",
            "reason": "Forbidden",
        }
    ]
    kept = [keeps_mark(mark) for mark in marks if not mark.namespace]
    if kept:
        listed = ", ".join(str(mark) for mark in marks if not mark.namespace)
        validations.append(
            {
                "expression": " && ".join(kept),
                "message": f"a pod keeps the labels that mark it as part of a run: {listed}; "
                "create the pod again without them",
                "reason": "Forbidden",
            }
        )
    guard = policy(
        names.TOLERATIONS_GUARD,
        operations=["UPDATE"],
        variables=variables,
        conditions=_unless_exempt(exempt),
        validations=validations,
    )
    return [guard, *bindings(names.TOLERATIONS_GUARD, entries, ["Deny"])]


def _unless_exempt(users: Collection[str]) -> dict[str, str]:
    named = f"request.userInfo.username in {literal(sorted(users))}"
    return {_NOT_EXEMPT: f"!({named})"} if users else {}


def is_exemption(condition: Mapping[str, Any]) -> bool:
    """Return whether a condition of a stored guard is that of exempt users, and nothing else."""
    begin, end = "!(request.userInfo.username in ", ")"
    text = str(condition.get("expression"))
    if condition.get("name") != _NOT_EXEMPT or not text.startswith(begin) or text[-1:] != end:
        return False
    try:
        users = json.loads(text[len(begin) : -len(end)])
    except ValueError:
        return False
    return isinstance(users, list) and all(isinstance(user, str) for user in users)


def keeps_mark(mark: Mark) -> str:
    """Return CEL for whether a pod that has the mark keeps it, with the guard's variables."""
    key = literal(mark.key)
    if mark.value is None:
        return f"(!({key} in variables.before) || {key} in variables.labels)"
    value = literal(mark.value)
    marked = f"{{}}[?{key}].orValue('') == {value}"
    was, is_ = (marked.format(f"variables.{variable}") for variable in ("before", "labels"))
    return f"(!({was}) || {is_})"


_NOT_A_NODE: Final = (
    f"!(request.userInfo.username.startsWith({literal(names.NODE_USERS)}) && "
    f"{literal(names.NODE_GROUP)} in request.userInfo.?groups.orValue([]))"
)
_NODE_NAME_MESSAGE: Final = (
    "'spec.nodeName: ' + object.spec.nodeName + ': not allowed for a pod of a run; remove it, and "
    "use nodeSelector, required node affinity or a capacity class'"
)


def node_name_guard(
    entries: Sequence[Mapping[str, Any]], exempt: Collection[str] = ()
) -> list[JsonObject]:
    """Return the guard by which a pod of a run may not name its node.

    Such a pod bypasses the scheduler, taints, and all defaults and overrides about nodes. Nodes are
    exempt, because they create mirror pods. Returns the policy, and a binding for each of the
    webhook's `entries`. They deny.

    `exempt` are names of users who are exempt, such as a scheduler that creates pods.
    """
    guard = policy(
        names.NODE_NAMES_GUARD,
        operations=["CREATE"],
        conditions={"not-a-node": _NOT_A_NODE, **_unless_exempt(exempt)},
        validations=[
            {
                "expression": "object.spec.?nodeName.orValue('') == ''",
                "messageExpression": _NODE_NAME_MESSAGE,
                "reason": "Forbidden",
            }
        ],
    )
    return [guard, *bindings(names.NODE_NAMES_GUARD, entries, ["Deny"])]


# Pods depend on the spec. Other clients write metadata: the garbage collector removes its
# finalizer, and may not create pods.
_SPEC_WRITTEN: Final = "request.operation == 'CREATE' || object.spec != oldObject.spec"
_PAIR_MESSAGE: Final = (
    "'spec.backend: ' + variables.backend + ' does not run framework ' + "
    "(variables.framework == '' ? 'none' : variables.framework) + "
    "'; use backend native'"
)


def run_author_guard(created: Mapping[str, Sequence[tuple[str, str]]]) -> list[JsonObject]:
    """Return the guard by which a Run's author must have the right to create what it becomes.

    The controller creates pods and other objects, or the object of another engine, in the namespace
    of a Run, with its own rights. Without this policy, the right to create Runs would imply the
    right to create these. Returns the policy and its binding. They deny.

    created: groups and resources by backend and framework (`kubeflow/jax`, `native/`), or by
    backend and kind (`native/notebook`), which comes first. Any other Run is denied.
    """
    table = ", ".join(
        f"{literal(key)}: [{', '.join(literal([*pair]) for pair in objects)}]"
        for key, objects in sorted(created.items())
    )
    variables = {
        "backend": "object.spec.?backend.orValue('native')",
        "framework": "object.spec.?framework.orValue('')",
        "kind": "object.spec.?kind.orValue('')",
        "created": f"{{{table}}}",
        "made": "variables.created[?(variables.backend + '/' + variables.kind)].or("
        "variables.created[?(variables.backend + '/' + variables.framework)]).orValue([])",
    }
    guard = policy(
        names.RUN_AUTHORS_GUARD,
        group=names.GROUP,
        version="*",
        resource=names.RUNS,
        operations=["CREATE", "UPDATE"],
        conditions={"spec-written": _SPEC_WRITTEN},
        variables=variables,
        validations=[
            {
                "expression": "size(variables.made) > 0",
                "messageExpression": _PAIR_MESSAGE,
                "reason": "Forbidden",
            },
            *(_may_create(at) for at in range(max(map(len, created.values())))),
        ],
    )
    return [guard, binding(names.RUN_AUTHORS_GUARD, ["Deny"])]


def _may_create(at: int) -> JsonObject:
    """Return the validation of one of the objects.

    Each has one of its own, because an expression may ask the authorizer twice only: a question
    costs 350,000 of the 1,000,000 of an expression (k8s.io/apiserver, pkg/cel/library/cost.go and
    pkg/apis/cel/config.go).
    """
    group, resource = f"variables.made[{at}][0]", f"variables.made[{at}][1]"
    return {
        "expression": f"size(variables.made) <= {at} || authorizer.group({group})"
        f".resource({resource}).namespace(request.namespace).check('create').allowed()",
        "messageExpression": f"request.userInfo.username + ' may not create ' + {resource} + "
        f"({group} == '' ? '' : ' of ' + {group}) + ' in namespace ' + request.namespace + "
        "', and so no Run that needs them (backend ' + variables.backend + "
        "(variables.framework == '' ? '' : ', framework ' + variables.framework) + "
        f"'): ask its admins for the right to create ' + {resource} + "
        "(variables.backend == 'native' ? ' (the ClusterRole edit has it)' : '')",
        "reason": "Forbidden",
    }


def namespace_label_guard(labels: Collection[str]) -> list[JsonObject]:
    """Return the guard of labels of namespaces from which policies take values.

    Who may write PlacementPolicies may change them, and nobody else. Returns the policy and its
    binding. They deny.
    """
    before = "(oldObject == null ? {} : oldObject.metadata.?labels.orValue({}))"
    variables = {
        "labels": "object.metadata.?labels.orValue({})",
        "before": before,
        "changed": f"{literal(sorted(labels))}.filter(k, "
        "variables.labels[?k] != variables.before[?k])",
    }
    may_write = (
        f"authorizer.group({literal(names.GROUP)}).resource({literal(names.PLACEMENT_POLICIES)})"
        ".check('update').allowed()"
    )
    guard = policy(
        names.NAMESPACE_LABELS_GUARD,
        resource="namespaces",
        scope="Cluster",
        operations=["CREATE", "UPDATE"],
        variables=variables,
        validations=[
            {
                "expression": f"size(variables.changed) == 0 || {may_write}",
                "messageExpression": "'policies take values from namespace label ' + "
                "variables.changed[0] + ', and ' + request.userInfo.username + "
                f"' may not update {names.PLACEMENT_POLICIES}.{names.GROUP}: ask an admin of "
                "policies to change it'",
                "reason": "Forbidden",
            }
        ],
    )
    return [guard, binding(names.NAMESPACE_LABELS_GUARD, ["Deny"])]


WARN: Final = ("Warn", "Audit")
DENY: Final = ("Deny",)
# During `fairlead webhook disable`, pods of runs are intentionally created without placement: the
# guard that denies admits them.
_ENABLED: Final = (
    f"!({literal(names.DISABLED_UNTIL)} in params.metadata.?annotations.orValue({{}}))"
)
# The API server may cut warnings of more than 256 characters, and adds names in front.
_STAMP_MESSAGE: Final = (
    "no placement: Fairlead's webhook did not answer, or is disabled or removed. Ask your "
    "cluster's admins to run `fairlead doctor`, then create the pod again"
)


def stamp_guard(
    entries: Sequence[Mapping[str, Any]],
    *,
    deny: bool,
    configuration: str = names.WEBHOOK_CONFIGURATION,
) -> list[JsonObject]:
    """Return the guard by which a pod of a run must have a stamp, for a webhook that fails open.

    With `failurePolicy: Ignore` a pod is created without placement while no replica answers. This
    policy checks the pod just before it is stored. It protects against outages, not against
    authors: a user who writes the annotation can bypass it. Returns the policy, and a binding for
    each of the webhook's `entries` (see interception).

    Without `deny` such a pod is created, with a warning to its author and an audit annotation,
    whatever the reason. With `deny` it is rejected, also while the webhook's `configuration` does
    not exist; the guard admits every pod while it is disabled. A parameter that does not exist can
    only be ignored or denied (k8s.io/apiserver, ParameterNotFoundAction), so the guard that warns
    has none.
    """
    stamped = f"{literal(names.PLACEMENT)} in object.metadata.?annotations.orValue({{}})"
    guard = policy(
        names.STAMP_GUARD,
        operations=["CREATE"],
        parameter_kind="MutatingWebhookConfiguration" if deny else "",
        conditions={"enabled": _ENABLED} if deny else {},
        validations=[{"expression": stamped, "message": _STAMP_MESSAGE, "reason": "Forbidden"}],
    )
    actions = DENY if deny else WARN
    return [guard, *bindings(names.STAMP_GUARD, entries, actions, configuration)]


_DOCTORS_USER: Final = f"system:serviceaccount:{names.NAMESPACE}:{names.DOCTOR}"


def doctor_guard() -> list[JsonObject]:
    """Return the guard by which the account of `fairlead doctor` in a cluster creates nothing.

    It tries a pod and a class by dry run, for which RBAC has no word. Returns the policy and its
    binding. They deny.
    """
    component = "doctor"
    guard = policy(
        names.DOCTOR,
        operations=["CREATE"],
        conditions={"by-doctor": f"request.userInfo.username == {literal(_DOCTORS_USER)}"},
        validations=[
            {
                "expression": "request.?dryRun.orValue(false)",
                "message": f"the ServiceAccount {names.NAMESPACE}/{names.DOCTOR} may create objects"
                " by dry run only",
                "reason": "Forbidden",
            }
        ],
        component=component,
    )
    (rule,) = guard["spec"]["matchConstraints"]["resourceRules"]
    of_class = {
        "apiGroups": [names.GROUP],
        "apiVersions": ["*"],
        "resources": [names.CAPACITY_CLASSES],
        "scope": "Cluster",
    }
    guard["spec"]["matchConstraints"]["resourceRules"] = [rule, {**rule, **of_class}]
    return [guard, binding(names.DOCTOR, DENY, component)]
