"""The cures of `fairlead doctor` that are commands, each with the state that it is printed for."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from certs.authority import new_authority
from certs.issue import Names, issue_server
from certs.kept import CERTIFICATE
from tests.cluster.paths import path
from tests.cluster.sites import NAMESPACE, WEBHOOK, Site
from tests.eventually import eventually
from tests.objects import an_object
from webhook import names

Json = dict[str, Any]
_CONFIGURATION: Final = path("mutatingwebhookconfigurations", "fairlead")
_POLICIES: Final = path("placementpolicies")
_SERVICE: Final = {"namespace": NAMESPACE, "name": names.WEBHOOK, "path": "/mutate"}


def commands_of(cure: str) -> list[str]:
    """The commands in a cure that end what was found."""
    return re.findall(r"`([^`]+)`", cure)


class Play(NamedTuple):
    """A state with a cure that is a command.

    check, words: the check that finds it, and words of what was found
    make:   brings a good installation into the state
    ended:  whether the command has ended it, if it only ends a consequence; else nothing is found
    after:  what else makes the installation good again, beside `fairlead install`
    """

    check: str
    words: str
    make: Callable[[Site], object]
    ended: Callable[[Site], bool] | None = None
    after: Callable[[Site], object] = lambda _site: None


def _entry(field: str, value: object) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        change = {"op": "add", "path": f"/webhooks/0/{field}", "value": value}
        site.change("mutatingwebhookconfigurations", "fairlead", change)

    return make


def _unrecord(site: Site) -> None:
    name = f"{names.INTERCEPTED_NAMESPACES}-"
    site.kubectl("-n", NAMESPACE, "annotate", "deployment", names.CONTROLLER, name)


def _labelled(value: str, key: str = names.PLACE) -> Callable[[Site], None]:
    return lambda site: site.plane.create_namespace("marked", {key: value})


def _unmark(site: Site) -> None:
    site.kubectl("delete", "namespace", "marked", "--wait=true")


def _daemon_set(site: Site, **pod: Any) -> None:
    labels = {"app": "agent"}
    containers = [{"name": "agent", "image": "example.invalid/agent"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **pod}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    where = "/apis/apps/v1/namespaces/marked/daemonsets"
    site.plane.api.create(where, an_object("apps/v1", "DaemonSet", "agent", spec))


def _driver(site: Site) -> None:
    _labelled(names.PLACE_ALL)(site)
    volumes = [{"name": "v", "hostPath": {"path": "/etc/cni/net.d"}}]
    _daemon_set(site, nodeSelector={"none": "such"}, volumes=volumes)


def _elsewhere(site: Site) -> None:
    """A DaemonSet does not meet a requirement of its namespace."""
    _labelled(names.PLACE_ALL)(site)
    spec = {
        "description": "Pods of the namespace run on one architecture.",
        "match": {"namespaces": ["marked"]},
        "requirements": {"nodeSelector": {"kubernetes.io/arch": "amd64"}},
    }
    policy = an_object(names.API_VERSION, names.POLICY_KIND, "one-architecture", spec)
    site.plane.api.create(_POLICIES, policy)
    _daemon_set(site, nodeSelector={"kubernetes.io/arch": "arm64"})


def _free(site: Site) -> None:
    site.plane.api.delete(f"{_POLICIES}/one-architecture")
    _unmark(site)


def _limited(site: Site) -> None:
    """A policy limits tolerations, and no guard rejects those that are added later."""
    spec = {
        "description": "Pods of the namespace tolerate nothing of their own.",
        "match": {"namespaces": ["marked"]},
        "requirements": {"allowedTolerations": {"patterns": [{"key": "example.com/none"}]}},
    }
    policy = an_object(names.API_VERSION, names.POLICY_KIND, "few-tolerations", spec)
    site.plane.api.create(_POLICIES, policy)


def _unlimited(site: Site) -> None:
    site.plane.api.delete(f"{_POLICIES}/few-tolerations")


def _behind_its_service(replicas: int) -> Callable[[Site], None]:
    """The webhook of the Deployment is called, of which kwok says that its pods are ready."""

    def make(site: Site) -> None:
        for at in range(2):
            client = {"service": _SERVICE}
            change = {"op": "replace", "path": f"/webhooks/{at}/clientConfig", "value": client}
            site.change("mutatingwebhookconfigurations", "fairlead", change)
        site.kubectl(
            "-n", NAMESPACE, "scale", "deployment", names.WEBHOOK, f"--replicas={replicas}"
        )

    return make


def _unregister(site: Site) -> None:
    # Server-side apply of an address leaves the Service beside it.
    site.plane.api.delete(_CONFIGURATION)


def _creates_pods(site: Site) -> bool:
    pod = an_object(
        "v1",
        "Pod",
        {"name": "dry", "labels": {names.RUN: "r"}},
        {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    )
    where = f"{path('pods', namespace='default')}?dryRun=All"
    return bool(site.plane.api.call("POST", where, pod)[0] == HTTPStatus.CREATED)


def _without_definitions(site: Site) -> None:
    kinds = names.POLICY_RESOURCES.values()
    defined = [f"{each}.{names.GROUP}" for each in kinds]
    site.kubectl("delete", "crd", "--ignore-not-found", *defined)


def _restart(site: Site) -> None:
    # A webhook remembers objects that vanished with their definition.
    site.plane.stop_component(WEBHOOK)
    site.start_webhook()


def _expire_and_seal(site: Site) -> None:
    """The leaf has expired, in a Secret that nobody may change: the controller cannot renew it."""
    _behind_its_service(1)(site)
    secret = path("secrets", names.SERVING_SECRET, namespace=NAMESPACE)
    eventually(
        "the controller has issued it",
        lambda: site.plane.api.call("GET", secret)[0] == HTTPStatus.OK,
    )
    then = datetime.now(UTC) - timedelta(days=60)
    authority = new_authority("fairlead", then)
    server = f"{names.WEBHOOK}.{NAMESPACE}.svc"
    leaf = issue_server(authority, "w", Names((server,)), then, lifetime=timedelta(days=30))
    data = {CERTIFICATE: b64encode(leaf.certificate).decode()}
    status, answer = site.plane.api.call(
        "PATCH",
        secret,
        {"data": data, "immutable": True},
        content_type="application/merge-patch+json",
    )
    assert status == HTTPStatus.OK, answer


def _is_certified(site: Site) -> bool:
    return not site.findings("--check", "certificates")


# By the beginning of the command.
PLAYS: Final[Mapping[str, Play]] = {
    "fairlead webhook enable": Play("interception", "no rules", _entry("rules", [])),
    "kubectl patch mutatingwebhookconfiguration": Play(
        "interception",
        "matchConditions",
        _entry("matchConditions", [{"name": "not-x", "expression": "true"}]),
    ),
    "kubectl -n fairlead-system annotate deployment": Play(
        "interception",
        "and are not placed",
        _entry(
            "namespaceSelector",
            {
                "matchExpressions": [
                    {"key": names.NAMESPACE_NAME, "operator": "In", "values": ["default"]}
                ]
            },
        ),
        after=_unrecord,
    ),
    "kubectl label namespace marked --overwrite": Play(
        "namespaces", "means nothing", _labelled("All"), after=_unmark
    ),
    "kubectl label namespace marked fairlead.dev/place-": Play(
        "agents", "is a driver", _driver, after=_unmark
    ),
    f"kubectl label namespace marked {names.DAEMON_SETS}=": Play(
        "agents", "which rejects its pods", _elsewhere, after=_free
    ),
    f"kubectl label namespace marked {names.DAEMON_SETS}-": Play(
        "namespaces", "means nothing", _labelled("true", names.DAEMON_SETS), after=_unmark
    ),
    f"kubectl label namespace marked {names.KUEUE}-": Play(
        "namespaces", "means nothing", _labelled("Keep", names.KUEUE), after=_unmark
    ),
    "fairlead generate guard tolerations": Play(
        "tolerations", "checked when a pod is created", _limited, after=_unlimited
    ),
    "fairlead webhook disable": Play(
        "endpoints",
        "no ready endpoint",
        _behind_its_service(0),
        ended=_creates_pods,
        after=_unregister,
    ),
    "kubectl delete validatingwebhookconfiguration": Play(
        "judgement",
        "no policy can be written",
        lambda site: site.plane.stop_component(WEBHOOK),
        after=lambda site: site.start_webhook(),
    ),
    "kubectl -n fairlead-system delete secret": Play(
        "certificates", "expired on", _expire_and_seal, ended=_is_certified, after=_unregister
    ),
    "kubectl apply --server-side": Play(
        "policies", "no definitions", _without_definitions, after=_restart
    ),
}
# What the sandbox's control plane cannot have, and why.
UNPLAYED: Final[Mapping[str, str]] = {
    "kubectl -n fairlead-system delete lease": "the scenario `install` of tests/chaos plays it",
    "kubectl patch mutatingwebhookconfiguration kueue": "tests/operators/test_queued_runs.py does",
}
# Subcommands that show more, and end nothing; `fairlead install` is the cure of an installation.
SHOWS: Final[Sequence[str]] = (
    *(
        "install",
        "doctor",
        "check",
        "explain",
        "preview",
        "webhook certs",
        "generate",
        "logs",
        "get",
    ),
    "describe",
)
