"""The admission policies and bindings of a policy set.

One MutatingAdmissionPolicy holds the whole set, for the API server applies several of them in no
order that could be chosen: which policies match, and which of them wins a key, are variables of
it. One ValidatingAdmissionPolicy with the same variables rejects what the webhook would reject.
Source: k8s.io/api/admissionregistration/v1. Fields that the API server would fill in are written
out, so that what is applied is what is stored.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook import guards, names
from webhook.errors import NotExported
from webhook.exported import (
    capacity_cel,
    cel,
    inexpressible,
    matching,
    node_conditions,
    plain_fields_cel,
    tolerations_cel,
)
from webhook.exported.cel import Check, Piece, text
from webhook.exported.positioned_settings import positioned_settings, with_parts_apart
from webhook.placement.fields import PLAIN_MAPS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webhook.exported.positioned_settings import Placed
    from webhook.placement.shapes import JsonObject

NAME: Final = "fairlead-exported"
_COMPONENT: Final = "exported"
# cel-go parses no more code points than this in one expression.
_EXPRESSION_MAX_CHARACTERS: Final = 100_000
# An API server stores an object of 1.5 MiB at most, and `kubectl apply` keeps it a second time.
_LARGEST: Final = 250_000
_OWN: Final = {
    **{
        f"own_{field.name}": f"object.{field.holder}.?{field.name}.orValue({{}})"
        for field in PLAIN_MAPS
    },
    "namespace_labels": "namespaceObject.metadata.?labels.orValue({})",
    "os": "object.spec.?os.?name.orValue('')",
    "bound": "object.spec.?nodeName.orValue('') != ''",
    "daemon_set": (
        f"request.userInfo.username == {text(names.DAEMON_SET_CONTROLLER)} && "
        "object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'DaemonSet' && "
        "o.?controller.orValue(false) && o.apiVersion.startsWith('apps/'))"
    ),
}
_CONDITIONS: Final = {
    "not-a-mirror-pod-of-its-node": (
        f"!({text(names.MIRROR_POD)} in object.metadata.?annotations.orValue({{}}) && "
        f"request.userInfo.username.startsWith({text(names.NODE_USERS)}) && "
        f"{text(names.NODE_GROUP)} in request.userInfo.?groups.orValue([]))"
    ),
}


def documents(placed: Placed, entries: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """Return the two policies, each with a binding for each of the webhook's entries, whose pods
    they get.

    Raises NotExported with every setting that cannot be exported.
    """
    settings = positioned_settings(placed)
    seconds = dict.fromkeys(
        (names.TAINT_NOT_READY, names.TAINT_UNREACHABLE), placed.default_toleration_seconds
    )
    problems = [
        *inexpressible.gaps(placed, settings, seconds),
        *inexpressible.unsatisfiable(settings),
    ]
    if problems:
        raise NotExported(problems)
    placed = with_parts_apart(placed)
    settings = positioned_settings(placed)
    taken, applies, chosen = capacity_cel.choose(settings)
    set_hash = placed.set_hash[:16]
    stamp = f'{{"exported":true,"set":"{set_hash}"}}'
    steps = tolerations_cel.steps(settings, chosen, placed.classes, seconds)
    pieces = [
        Piece(_OWN),
        matching.identity_pieces(placed.sources),
        matching.policy_pieces(placed.policies),
        plain_fields_cel.maps(settings, stamp),
        plain_fields_cel.scalars(settings, placed.default_priority_class),
        node_conditions.pieces(settings, taken, applies, chosen),
        plain_fields_cel.lists(settings, chosen),
        plain_fields_cel.spread(settings),
        Piece(steps.variables, steps.rest, [*tolerations_cel.allowed(settings, chosen, seconds)]),
        Piece(checks=[_no_request(set_hash), *plain_fields_cel.contradictions(settings)]),
    ]
    variables = {name: text for piece in pieces for name, text in piece.variables.items()}
    operations = [operation for piece in pieces for operation in piece.operations]
    affinity = cel.parent(
        "has(object.spec.affinity)", _any_affinity(variables), "/spec/affinity", "{}"
    )
    node_affinity = cel.parent(
        "object.spec.?affinity.?nodeAffinity.hasValue()",
        _any_affinity({"list0", "result"} & variables.keys()),
        "/spec/affinity/nodeAffinity",
        "{}",
    )
    removal = [steps.removal] if variables["prevented"] != "[]" else []
    mutations = [*removal, *steps.order, _one([affinity, node_affinity, *operations])]
    checks = [check for piece in pieces for check in piece.checks]
    patches = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": mutation}} for mutation in mutations
    ]
    validations = [
        {"expression": check.expression, "message": check.message, "reason": "Forbidden"}
        for check in checks
    ]
    policy = partial(
        guards.policy,
        NAME,
        group="",
        version="v1",
        resource="pods",
        operations=("CREATE",),
        conditions=_CONDITIONS,
        component=_COMPONENT,
    )
    patching = _needed(variables, mutations)
    checking = _needed(variables, [check.expression for check in checks])
    manifests = [
        policy(variables=patching, mutations=patches),
        *guards.bindings(NAME, entries, (), component=_COMPONENT),
        policy(variables=checking, validations=validations),
        *guards.bindings(NAME, entries, ("Deny",), component=_COMPONENT),
    ]
    _check_sizes(manifests)
    return manifests


def _no_request(set_hash: str) -> Check:
    """Reject pods that request capacity, because exported policies ignore it; name the set."""
    return Check(
        f"variables.daemon_set || "
        f"variables.own_annotations[?{text(names.CAPACITY)}].orValue('').trim() == ''",
        f"fairlead: annotation {names.CAPACITY}: the policies of this cluster are exported "
        f"(set {set_hash}), and do not read it; remove it, and select nodes with "
        "nodeSelector, affinity and tolerations",
    )


def _any_affinity(variables: Collection[str]) -> str:
    """Return CEL for whether a list of affinity gets longer, or required node affinity changes."""
    wants = [f"size({cel.var(f'list{n}')}) > 0" for n in range(5) if f"list{n}" in variables]
    if "result" in variables:
        wants.append(f"({cel.var('apply')} && {cel.var('result')} != {cel.var('own_terms')})")
    return cel.some(wants)


def _one(operations: Sequence[str]) -> str:
    """Return one list of the lists, each on a line of its own."""
    return "[" + ",\n ".join(operations) + "].flatten()"


def _needed(variables: Mapping[str, str], expressions: Sequence[str]) -> dict[str, str]:
    """Return the variables that the expressions read, directly or by others, in their order."""
    wanted_text = "\n".join(expressions)
    used_variables: dict[str, str] = {}
    for name in reversed([*variables]):
        if re.search(rf"variables\.{name}(?![0-9A-Za-z_])", wanted_text):
            used_variables = {name: variables[name], **used_variables}
            wanted_text += f"\n{variables[name]}"
    return used_variables


def _check_sizes(manifests: Sequence[JsonObject]) -> None:
    for document in manifests:
        spec = document["spec"]
        expressions = [v["expression"] for v in spec.get("variables", ())]
        expressions += [m["jsonPatch"]["expression"] for m in spec.get("mutations", ())]
        what = ""
        if len(str(document)) > _LARGEST:
            what = f"its {document['kind']} would have over {_LARGEST} characters, more than "
            what += "`kubectl apply` can keep"
        elif any(len(expression) > _EXPRESSION_MAX_CHARACTERS for expression in expressions):
            what = (
                f"an expression would have over {_EXPRESSION_MAX_CHARACTERS} characters, more than "
                "CEL takes"
            )
        if what:
            raise NotExported([f"the set: {what}: export fewer policies, or run the webhook"])
