"""Why a request to the API server failed: one sentence, with the cure."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final, NamedTuple

from webhook import names

# A group and version, a namespace, a resource, the name of an object, and a subresource.
_PATH: Final = re.compile(
    r"/api(?:s/([^/]+))?/[^/]+(?:/namespaces/([^/]+)(?=/))?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?"
)
# How the API server words a missing right (k8s.io/apiserver, responsewriters, ForbiddenError). A
# quota, a webhook or a namespace that ends answers 403 too, about one object.
NO_RIGHT: Final = re.compile(
    r'(?:User "(?P<user>[^"]*)" )?cannot (?P<verb>\w+) resource "(?P<resource>[^"/]+)'
    r'(?:/(?P<subresource>[^"]+))?" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)"| at the cluster scope)?(?P<more>.*)',
    re.DOTALL,
)
# k8s.io/apimachinery, errors.NewAlreadyExists, NewNotFound; k8s.io/apiserver, registry, Create; and
# registry/generic/registry, OptimisticLockErrorMsg.
_EXISTS: Final = re.compile(r'"([^"]*)" already exists')
_BEING_DELETED: Final = "object is being deleted"
_CHANGED: Final = "the object has been modified"
_NO_NAMESPACE: Final = re.compile(r'namespaces "([^"]*)" not found')
_NO_RESOURCE: Final = "could not find the requested resource"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
# A watch is a GET, with a name of its own for messages.
_VERBS: Final = {
    "POST": "create",
    "PUT": "change",
    "PATCH": "change",
    "DELETE": "delete",
    "WATCH": "watch",
}
_BY_STATUS: Final[dict[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "the API server does not accept the credentials: log in again, or "
    "give another --kubeconfig or --context",
    HTTPStatus.GONE: "the API server has dropped the state from which to {call}: try again",
    HTTPStatus.TOO_MANY_REQUESTS: "the API server is too busy to {call}: try again",
}
_IS_IT_ONE: Final = "is this a Kubernetes API server?"


class Target(NamedTuple):
    """What a path is of: a collection, an object, or a subresource of it; empty for what it lacks.

    Its text is `pods in namespace lab`, `pod a in namespace lab`, `log of pod a in namespace lab`.
    """

    group: str
    namespace: str
    resource: str
    name: str
    subresource: str

    def __str__(self) -> str:
        part = f"{self.subresource} of " if self.subresource else ""
        what = f"{self.kind} {self.name}" if self.name else self.resource
        return f"{part}{what}{_where(self.namespace)}"

    @property
    def kind(self) -> str:
        """The word for one of the resource, by the rule that makes plurals of kinds.

        Source: apimachinery, meta.UnsafeGuessKindToResource.
        """
        if self.resource.endswith("ies"):
            return f"{self.resource[:-3]}y"
        return self.resource.removesuffix("es" if self.resource.endswith("sses") else "s")


class Call(NamedTuple):
    """A request. Its text is what it asks for: `list pods in namespace lab`."""

    method: str
    path: str

    def __str__(self) -> str:
        target = target_of(self.path)
        usual = "list" if target and not target.name else "read"
        return f"{_VERBS.get(self.method, usual)} {target or self.path}"


def target_of(path: str) -> Target | None:
    """Return what a path is of; None for discovery, and what is not of the API's resources."""
    match = _PATH.fullmatch(path)
    return Target(*(part or "" for part in match.groups())) if match else None


class Refusal(NamedTuple):
    """Why the API server refused a call: the whole sentence, and the reason alone."""

    text: str
    why: str


def describe_refusal(call: Call, status: int, words: str) -> Refusal:
    """Return why the API server refused a call. words: the Status object's own, or empty."""
    target = target_of(call.path)
    explanation = _describe_target(target, status, words) if target else ""
    if explanation := explanation or _BY_STATUS.get(status, "").format(call=call):
        return Refusal(explanation, explanation)
    if not words:
        text = f"cannot {call}: HTTP status {status}, and no reason; {_IS_IT_ONE}"
        return Refusal(text, text)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Refusal(
            f"the API server failed to {call}, with HTTP status {status}: {words}", words
        )
    return Refusal(f"the API server refuses to {call}: {words}", words)


def _describe_target(target: Target, status: int, words: str) -> str:
    """Return why what is read or written is refused; empty if its words do not show it."""
    match status:
        case HTTPStatus.FORBIDDEN if right := NO_RIGHT.search(words):
            return _no_right(right)
        case HTTPStatus.NOT_FOUND if name_match := _NO_NAMESPACE.match(words):
            return (
                f"there is no namespace {name_match[1]}: kubectl create namespace {name_match[1]}"
            )
        case HTTPStatus.NOT_FOUND if f'"{target.name}" not found' in words:
            return f"there is no {target}"
        case HTTPStatus.NOT_FOUND if "." in target.group and (not words or _NO_RESOURCE in words):
            cure = (
                "Is it the right cluster? Check with: kubectl config current-context"
                if target.group == names.GROUP
                else f"Only what uses {target.group} needs it"
            )
            return (
                f"this cluster has no {target.resource}: the CustomResourceDefinition "
                f"{target.resource}.{target.group} is not installed. {cure}"
            )
        case HTTPStatus.CONFLICT if name_match := _EXISTS.search(words):
            what = f"{target.kind} {name_match[1]}{_where(target.namespace)}"
            within = f" -n {target.namespace}" if target.namespace else ""
            state, cure = (
                "exists already",
                f"delete it: kubectl delete {target.kind} {name_match[1]}",
            )
            if _BEING_DELETED in words:
                wait = f"kubectl wait --for=delete {target.kind}/{name_match[1]}"
                state, cure = "is being deleted", f"wait until it is gone: {wait}"
            return f"{what} {state}: choose another name, or {cure}{within}"
        case HTTPStatus.CONFLICT if _CHANGED in words:
            return f"another client has changed {target} meanwhile: try again"
    return ""


def _no_right(right: re.Match[str]) -> str:
    """Return who may not do what, and how to check it."""
    user, verb, subresource, namespace = right.group("user", "verb", "subresource", "namespace")
    resource = ".".join(filter(None, right.group("resource", "group")))
    part = f"{subresource} of " if subresource else ""
    check = f"kubectl auth can-i {verb} {resource}"
    if subresource:
        check += f" --subresource={subresource}"
    check += f" -n {namespace}" if namespace else " -A"
    if (user or "").startswith(_SERVICE_ACCOUNT):
        check += f" --as={user}"
    more = right["more"].strip(" :")
    return (
        f"{user or 'you'} may not {verb} {part}{resource}{_where(namespace)}"
        f"{f' ({more})' if more else ''}: ask an admin for the right; check it with: {check}"
    )


def _where(namespace: str | None) -> str:
    return f" in namespace {namespace}" if namespace else ""
