"""The pods that the API server sends to the webhook: entries of its configuration."""

from __future__ import annotations

from base64 import b64decode, b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.dns_names import MAX_LABEL
from webhook.errors import UnreadableText
from webhook.foreign_text import annotation, parse_object
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.sources.marks import Mark, Source
    from webhook.sources.table import SourceTable

# Pods with Fairlead's own label, and namespaces that are placed as a whole. Pods of other systems
# are sent only if an admin adds their source.
DEFAULT_SOURCES: Final = ("fairlead", "namespace")
# Pods of these namespaces are not sent: Fairlead must not block what it runs on.
EXCLUDED_NAMESPACES: Final = ("kube-system", names.NAMESPACE)
PATH: Final = "/mutate"
# Seconds. With more, users see creations that hang, and the API server's own time limit ends.
LONGEST_TIMEOUT: Final = 10
# Entries of these sources keep the names that they had before other sources existed.
_NAMED: Final = {"fairlead": "pods", "namespace": "namespaces"}
# With what the names of our entries end.
OWN_SUFFIX: Final = f".{names.GROUP}"


def webhooks(
    sources: Collection[str] = DEFAULT_SOURCES,
    *,
    url: str = "",
    ca_bundle: bytes = b"",
    failure_policy: str = "Fail",
    timeout_seconds: int = 3,
    only_namespaces: Sequence[str] = (),
    namespace_labels: Sequence[Mapping[str, Any]] = (),
    table: SourceTable = SHIPPED,
) -> list[dict[str, Any]]:
    """Return the `webhooks` of a MutatingWebhookConfiguration: one entry for each mark.

    `sources` are names of rows of `table`, which decides the order. Entries exclude each other,
    because each entry that matches a pod is one more call. They call `url`, or without it the
    installation's Service. Without `ca_bundle` (PEM) the field is left out; the controller or
    cert-manager writes it. `only_namespaces` limits the entries to these namespaces, for a trial,
    and `namespace_labels` to namespaces that meet these expressions. Raises ValueError for an
    unknown name.
    """
    client = client_config(PATH, url, ca_bundle)
    reach = [of_namespaces("NotIn", EXCLUDED_NAMESPACES), *namespace_labels]
    if only_namespaces:
        reach.append(of_namespaces("In", only_namespaces))
    return [
        {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": client,
            "rules": rules(),
            "namespaceSelector": {"matchExpressions": [*of_namespace, *reach]},
            "objectSelector": {"matchExpressions": of_pod},
            "matchPolicy": "Equivalent",
            "failurePolicy": failure_policy,
            "reinvocationPolicy": "IfNeeded",
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": timeout_seconds,
        }
        for name, of_pod, of_namespace in _selections(select_sources(sources, table))
    ]


def rules() -> list[dict[str, Any]]:
    """Return the rules of every entry: creation of pods only."""
    return [
        {
            "operations": ["CREATE"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "scope": "Namespaced",
        }
    ]


def select_sources(sources: Collection[str], table: SourceTable = SHIPPED) -> list[Source]:
    """Return the rows of these names: DEFAULT_SOURCES first, then the lowest precedence first.

    A pod with the marks of several is sent by the entry of the last, whose name a rejection shows:
    an MPIJob's pod by mpi-operator's, although it has a mark of kubeflow-training, too. Raises
    ValueError for other names.
    """
    source_names = [source.name for source in table.rows]
    if unknown := sorted(set(sources) - set(source_names)):
        raise ValueError(
            f"unknown source {', '.join(map(repr, unknown))}: want some of "
            f"{', '.join(source_names)}; `fairlead policy sources` describes them"
        )
    chosen_sources = [source for source in table.rows if source.name in sources]
    first = [source for source in chosen_sources if source.name in DEFAULT_SOURCES]
    return [*first, *(source for source in reversed(chosen_sources) if source not in first)]


def entry_name(source: str, number: int) -> str:
    """Return the name of the entry for a source's mark; the first mark has the number 0."""
    if source == "namespace":
        return f"{_NAMED[source]}.{names.GROUP}"
    return f"{_NAMED.get(source, source)}-{number}.{names.GROUP}"


def present(mark: Mark) -> dict[str, Any]:
    """Return the expression that matches objects with the mark."""
    if mark.value is None:
        return {"key": mark.key, "operator": "Exists"}
    return {"key": mark.key, "operator": "In", "values": [mark.value]}


def absent(mark: Mark) -> dict[str, Any]:
    """Return the expression that matches objects without the mark."""
    if mark.value is None:
        return {"key": mark.key, "operator": "DoesNotExist"}
    return {"key": mark.key, "operator": "NotIn", "values": [mark.value]}


def _selections(
    sources: Sequence[Source],
) -> Iterator[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Yield the name of each entry, and the expressions that select pods and namespaces.

    A pod with two marks is sent by the entry of the later one. So a new entry adds one expression
    to each earlier one; the components of the manifests do the same.
    """
    marks = [
        (entry_name(source.name, number), mark)
        for source in sources
        for number, mark in enumerate(source.marks)
    ]
    for position, (name, mark) in enumerate(marks):
        # The pod's own mark takes precedence over its namespace's.
        others = marks if mark.namespace else marks[position + 1 :]
        of_pod = [absent(other) for _, other in others if not other.namespace]
        if mark.namespace:
            yield name, of_pod, [present(mark)]
        else:
            yield name, [present(mark), *of_pod], []


def of_namespaces(operator: str, namespaces: Sequence[str]) -> dict[str, Any]:
    """Return the expression that selects namespaces by name; `operator` is In or NotIn."""
    # The API server sets this label on every namespace.
    key = names.NAMESPACE_NAME
    return {"key": key, "operator": operator, "values": list(namespaces)}


def client_config(path: str, url: str, ca_bundle: bytes) -> dict[str, Any]:
    """Return how the API server calls a path of the webhook: by `url`, else by its Service."""
    client: dict[str, Any] = {"url": url} if url else {"service": service(path)}
    if ca_bundle:
        client["caBundle"] = b64encode(ca_bundle).decode()
    return client


def service(path: str) -> dict[str, Any]:
    """Return the installation's Service in the form of a webhook configuration."""
    # The port is Kubernetes' default, written out so that the applied and the stored object agree.
    return {"name": names.WEBHOOK, "namespace": names.NAMESPACE, "path": path, "port": 443}


def exclusion_reason(namespace: str) -> str:
    """Return why no installation sends pods of this namespace; empty for all other namespaces."""
    if namespace not in EXCLUDED_NAMESPACES:
        return ""
    return f"no pod of the namespace {namespace} is sent to the webhook"


def leads_to(entry: Mapping[str, Any], namespace: str, name: str) -> bool:
    """Return True if an entry of a webhook configuration calls this Service, not a url.

    The entry is in the form that the API server returns.
    """
    to = (entry.get("clientConfig") or {}).get("service") or {}
    return (to.get("namespace"), to.get("name")) == (namespace, name)


def read_ca_bundle(entry: Mapping[str, Any]) -> bytes:
    """Return the caBundle (PEM) of an entry of a webhook configuration; empty if it is invalid."""
    try:
        return b64decode((entry.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except ValueError:
        return b""


def read_ca_bundles(
    configuration: Mapping[str, Any], namespace: str, name: str
) -> dict[str, bytes]:
    """Return the caBundle of each entry of a webhook configuration for this Service, by its name.

    A missing or invalid bundle is empty. Entries that call a url or another Service are left out.
    """
    return {
        str(entry["name"]): read_ca_bundle(entry)
        for entry in configuration.get("webhooks") or ()
        if leads_to(entry, namespace, name)
    }


# The kinds of what intercepts, as an installation records them.
MUTATING: Final = "mutating"
VALIDATING: Final = "validating"
GUARD: Final = "guard"


class Record(NamedTuple):
    """What an installation has recorded that it intercepts.

    names: entries of the webhook configurations, and policies that are guards, each with its kind.
    only_namespaces: the only namespaces whose pods are sent; empty: no limit.
    namespace_labels: expressions that the labels of such namespaces meet; empty: no limit.
    url: of a webhook outside the cluster; empty: the installation's Service is called.
    fails_open: pods are created unplaced while no replica answers.
    sources: that `fairlead install` added.
    """

    names: Mapping[str, str]
    only_namespaces: tuple[str, ...] = ()
    namespace_labels: tuple[Mapping[str, Any], ...] = ()
    url: str = ""
    fails_open: bool = False
    sources: tuple[str, ...] = ()

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Return the names of one kind, sorted."""
        return tuple(
            sorted(name for name, recorded_kind in self.names.items() if recorded_kind == kind)
        )


def record_annotations(
    mutating: Iterable[str], validating: Iterable[str], guards: Iterable[str]
) -> dict[str, str]:
    """Return the annotations that record these names of entries and guards.

    A name that is too long for the key of an annotation is left out: the entry is judged while it
    is there, and not missed when it is gone.
    """
    kinds = ((MUTATING, mutating), (VALIDATING, validating), (GUARD, guards))
    pairs = ((name.removesuffix(OWN_SUFFIX), kind) for kind, some in kinds for name in some)
    return {names.INTERCEPTS + name: kind for name, kind in pairs if len(name) <= MAX_LABEL}


def read_record(deployment: Mapping[str, Any] | None) -> Record:
    """Return the record on the controller's Deployment; an empty one if there is none.

    What is recorded with an unknown kind counts as an entry for pods, and so is missed. A selector
    that cannot be read is no limit, so that live entries with a limit count as narrowed.
    """
    metadata = (deployment or {}).get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    try:
        options = parse_object(annotation(metadata, names.INSTALL_OPTIONS) or "{}")
    except UnreadableText:
        options = {}
    # `fairlead install` records it twice, so that one that is taken away is missed.
    stored = options.get("intercepts")
    recorded = {
        **(stored if isinstance(stored, dict) else {}),
        **{
            key.removeprefix(names.INTERCEPTS): kind
            for key, kind in annotations.items()
            if key.startswith(names.INTERCEPTS)
        },
    }
    kind_by_name = {}
    for name, kind in recorded.items():
        if kind == GUARD:
            kind_by_name[name] = GUARD
        else:
            kind_by_name[name + OWN_SUFFIX] = VALIDATING if kind == VALIDATING else MUTATING
    only = str(annotations.get(names.INTERCEPTED_NAMESPACES) or "")
    sources = options.get("sources")
    return Record(
        kind_by_name,
        tuple(name.strip() for name in only.split(",") if name.strip()),
        _read_expressions(str(annotations.get(names.INTERCEPTED_NAMESPACE_SELECTOR) or "{}")),
        str(options.get("url") or ""),
        annotation(metadata, names.FAILS_OPEN) == "true",
        tuple(map(str, sources)) if isinstance(sources, list) else (),
    )


def installed_since(*objects: Mapping[str, Any] | None) -> str:
    """Return when an installation was made, as the API server writes it; empty: unknown.

    That is when the oldest of these objects of it was created: others may be deleted and made again
    while pods run that were created in between.
    """
    times = [
        ((live_object or {}).get("metadata") or {}).get("creationTimestamp")
        for live_object in objects
    ]
    return str(min(filter(None, times), default=""))


def _read_expressions(text: str) -> tuple[Mapping[str, Any], ...]:
    """Return the expressions of a label selector as JSON; none of a text that is not one."""
    with suppress(UnreadableText, AttributeError, KeyError, TypeError):
        selector = parse_object(text)
        labels = (selector.get("matchLabels") or {}).items()
        requirements = [(key, "In", [value]) for key, value in labels]
        requirements += [
            (expression["key"], expression["operator"], [*(expression.get("values") or ())])
            for expression in selector.get("matchExpressions") or ()
        ]
        if all(
            isinstance(word, str) for key, *_, values in requirements for word in (key, *values)
        ):
            return tuple(
                {"key": key, "operator": operator, "values": values}
                for key, operator, values in requirements
            )
    return ()


def placed_whole(
    namespaces: Mapping[str, Mapping[str, str]],
) -> dict[str, Mapping[str, str]]:
    """Return the namespaces that are placed as a whole, with their labels, of these."""
    return {
        name: labels
        for name, labels in namespaces.items()
        if labels.get(names.PLACE) == names.PLACE_ALL
    }


def expected_entries(
    record: Record, live: Collection[str] = (), table: SourceTable = SHIPPED
) -> list[dict[str, Any]]:
    """Return the entries for pods that are to be in the configuration, as they ship.

    Every installation has those of DEFAULT_SOURCES. A source with an entry that is recorded, or is
    `live`, has all of its entries.
    """
    entry_names = {*record.of_kind(MUTATING), *live}
    sources = {
        source.name
        for source in table.rows
        if source.name in record.sources
        or any(entry_name(source.name, at) in entry_names for at in range(len(source.marks)))
    }
    return webhooks(
        {*DEFAULT_SOURCES, *sources},
        url=record.url,
        failure_policy="Ignore" if record.fails_open else "Fail",
        only_namespaces=record.only_namespaces,
        namespace_labels=record.namespace_labels,
        table=table,
    )
