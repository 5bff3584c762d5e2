"""What each check finds in a cluster that differs from a good one: a table, and golden texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import orjson
import pytest

from certs.authority import new_authority
from certs.issue import Names, issue_server
from tests.cli.test_added_source import SOURCE
from tests.cluster.cures import PLAYS, SHOWS, UNPLAYED, commands_of
from tests.fast_yaml import load_yaml
from tests.installation.doctor.cluster_states import (
    AUTHORITY,
    BUDGET,
    DEFINITION,
    FORBIDDEN,
    LEAF,
    NOW,
    POLICIES,
    SERVER_NAME,
    SPEC,
    a_budget,
    a_definition,
    bundle,
    by_key,
    configuration,
    days,
    deployment,
    judging,
    seen,
)
from tests.judgement.together.test_warnings import policy, pool
from tests.objects import an_object
from tests.policy.test_model import an_exception
from tests.wording import Wording
from webhook import names, validating
from webhook.cluster_objects.unplaced_pods import Unplaced
from webhook.crd.definition import KEEPS_UNKNOWN
from webhook.guards import capacity_guard, run_author_guard, stamp_guard
from webhook.installation.choices import Choices
from webhook.installation.doctor.cluster_state import Kueue, ReadKind
from webhook.installation.doctor.diagnose import CHECKS
from webhook.installation.doctor.program_checks import RUNS
from webhook.installation.doctor.queue_checks import names_runs, pod_entries
from webhook.installation.manifests import CONTROLLER
from webhook.installation.probe import Probe
from webhook.installation.rights import Right
from webhook.installation.rollout import Reasons
from webhook.installation.stored_options import stored_text
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.kube.failing_writes import Write
from webhook.kube.watches import WatchState
from webhook.placement.nodes import CORDON, Node
from webhook.sources import SOURCES
from webhook.suspension import suspend
from webhook.times import to_second

Json = dict[str, Any]
Changes = Mapping[str, Any]
FIRST, SECOND = configuration()["webhooks"]
NAME = "kubernetes.io/metadata.name"
MARKED = {"team": {names.PLACE: names.PLACE_ALL}, "lab": {}}
OUTSIDE = {
    "configuration": {**configuration(), "webhooks": webhooks(url="https://192.0.2.1/mutate")}
}
TAKES_OBJECTS = deployment(names.WEBHOOK, 3)
TAKES_OBJECTS["spec"]["template"]["spec"]["containers"][0]["args"] = ["--policies-from-cluster"]
FROM_CLUSTER: Changes = {
    "judging": judging(),
    "deployments": {
        names.CONTROLLER: deployment(names.CONTROLLER, 2),
        names.WEBHOOK: TAKES_OBJECTS,
    },
}
# A leaf is renewed between 18.5 and 20 days, by its serial number.
SHORT = issue_server(AUTHORITY, "w", Names((SERVER_NAME,)), NOW, lifetime=days(30))
BY_CERT_MANAGER = configuration()
BY_CERT_MANAGER["metadata"]["annotations"] = {names.INJECTED_BY_CERT_MANAGER: "fairlead-system/x"}


def entries(*found: Json, **changes: Any) -> Changes:
    """A configuration with these entries, in a cluster with a namespace that is placed whole."""
    return {
        "configuration": {**configuration(), "webhooks": list(found)},
        "namespaces": MARKED,
        **changes,
    }


def limited(guards: Iterable[Json] = (), /, **policy_or_changes: Any) -> Changes:
    """Guards beside one policy; what is no part of a policy changes the state."""
    parts = {"requirements", "enforcement"}
    spec = {key: value for key, value in policy_or_changes.items() if key in parts}
    changes = {key: value for key, value in policy_or_changes.items() if key not in parts}
    return {"guard_objects": by_key(guards), **files(policy("limited", **spec)), **changes}


def selecting(selector: str, *added: Json) -> Json:
    """The second entry, with more expressions in a selector."""
    return {
        **SECOND,
        selector: {"matchExpressions": [*SECOND[selector]["matchExpressions"], *added]},
    }


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def judged(**changes: Any) -> Changes:
    """A cluster whose policies are objects, with changes in each entry that validates."""
    return {**FROM_CLUSTER, "judging": judging(**changes)}


def disabled(**annotations: str) -> Changes:
    """A configuration that is disabled for a day."""
    found = configuration()
    patch = suspend(found, NOW + days(1))
    metadata = {
        **found["metadata"],
        "annotations": {**patch["metadata"]["annotations"], **annotations},
    }
    return {"configuration": {"metadata": metadata, "webhooks": patch["webhooks"]}}


def files(*documents: object) -> Changes:
    """Policies in the ConfigMap."""
    return {"policies": {"policies.yaml": b"\n---\n".join(map(orjson.dumps, documents))}}


def replaced(document: Json, *path: str | int, **value: Any) -> Json:
    """A copy of a document, with members changed at a path."""
    copy: Json = json.loads(json.dumps(document))
    at: Any = copy
    for step in path:
        at = at[step]
    at.update(value)
    return copy


def exception_of(**match: Any) -> Json:
    """An exception for a label that any author may write."""
    chosen = {"podSelector": {"matchLabels": {"debug": "anna"}}, **match}
    return an_exception(policies=["p"], match=chosen, until=to_second(NOW + timedelta(days=1)))


def agent(labels: Json | None = None, **spec: Any) -> Json:
    """A DaemonSet in a namespace that is placed as a whole."""
    template = {"metadata": {"labels": labels or {"app": "x"}}, "spec": {"containers": [], **spec}}
    return {"metadata": {"namespace": "gpu", "name": "agent"}, "spec": {"template": template}}


def agents(*sets: Json, **changes: Any) -> Changes:
    """DaemonSets beside a policy that requires an architecture."""
    amd64 = policy("amd64-only", requirements={"nodeSelector": {"kubernetes.io/arch": "amd64"}})
    given = {"namespaces": {"gpu": {names.PLACE: names.PLACE_ALL}}, **files(amd64), **changes}
    return {"daemon_sets": sets, **given}


SPARED = {names.PLACE: names.PLACE_ALL, names.DAEMON_SETS: names.DAEMON_SETS_KEEP}
ARM = {"nodeSelector": {"kubernetes.io/arch": "arm64"}}
NODES = [
    Node("arm-0", {"kubernetes.io/arch": "arm64"}, [CORDON]),
    Node("arm-1", {"kubernetes.io/arch": "arm64", "pool": "b"}, []),
    Node("amd-0", {"kubernetes.io/arch": "amd64"}, []),
    Node("gpu-0", {"kubernetes.io/arch": "arm64"}, [{"key": "gpu", "effect": "NoSchedule"}]),
    Node("ppc-0", {"kubernetes.io/arch": "ppc"}, [{"key": "gpu", "effect": "NoSchedule"}]),
]
GPU = an_object(
    names.API_VERSION,
    "CapacityClass",
    "gpu",
    {"nodes": [{"labels": {"kubernetes.io/arch": "ppc"}}]},
)
ACME = seen(policies={"acme.yaml": SOURCE.encode()}).sources
ACME_ENTRIES = webhooks((*DEFAULT_SOURCES, "acme"), ca_bundle=AUTHORITY.certificate, table=ACME)
ACME_FILES: Changes = {
    "policies": {"acme.yaml": SOURCE.encode()},
    "judging": {
        "webhooks": validating.webhooks(ca_bundle=AUTHORITY.certificate, policies=False, table=ACME)
    },
}
KUBEFLOW = webhooks((*DEFAULT_SOURCES, "kubeflow-training"), ca_bundle=AUTHORITY.certificate)
IGNORES = configuration(failurePolicy="Ignore")
STAMP, *BINDINGS = stamp_guard(IGNORES["webhooks"], deny=True)
TOLERATIONS = capacity_guard(configuration()["webhooks"], ())
LIMITS = {"requirements": {"allowedTolerations": {"patterns": [{"key": "gpu"}]}}}
# As versions before 0.2 shipped it.
ONLY_SOME_KEYS = json.loads(
    json.dumps(TOLERATIONS).replace(
        "orValue([]).filter(t, !old",
        "orValue([]).filter(t, !has(t.key) || t.key in ['gpu']).filter(t, !old",
    )
)
BY_HELM = {
    name: replaced(dict(each), "metadata", labels={names.MANAGED_BY: "Helm"})
    for name, each in seen().deployments.items()
}
ONE = deployment(names.WEBHOOK, 1)
# As the chart has it on the network of the nodes.
ON_NODES = replaced(
    deployment(names.WEBHOOK, 3),
    "spec",
    "template",
    "spec",
    containers=[
        {
            "name": "webhook",
            "image": "fairlead:0.1.0",
            "ports": [
                {"name": "https", "containerPort": 9443},
                {"name": "health", "containerPort": 9081},
            ],
        }
    ],
)
CREATING = "ContainerCreating"
OUT_OF_MEMORY = {"exitCode": 137, "reason": "OOMKilled"}
AUDITED = [replaced(each, "spec", validationActions=["Audit"]) for each in BINDINGS]
_OPEN = deployment(names.CONTROLLER, 2)
FAILS_OPEN: Changes = {
    "configuration": IGNORES,
    "deployments": {
        **seen().deployments,
        names.CONTROLLER: replaced(
            _OPEN,
            "metadata",
            annotations={**_OPEN["metadata"]["annotations"], names.FAILS_OPEN: "true"},
        ),
    },
}
AUTHORS = run_author_guard({"native/": [("", "pods")]})
SHIPPED = by_key(AUTHORS)
TOLD_LATER = "2026-02-02T00:00:00Z"
OTHER_WRITES = judging()
for _entry in OTHER_WRITES["webhooks"]:
    _entry["rules"] = [{**rule, "operations": ["CREATE"]} for rule in _entry["rules"]]
    _entry["rules"][0]["resources"] = [*_entry["rules"][0]["resources"], "pods"]
WITHOUT_BUNDLE = judging()
del WITHOUT_BUNDLE["webhooks"][0]["clientConfig"]["caBundle"]
SERVICE = {"service": {"name": "other", "namespace": "x", "path": "/y"}}


def probe(words: str, *, invalid: bool = False) -> Changes:
    """A pod of a run that came back without a stamp."""
    return {"probe": Probe("default", stamped=False, words=words, invalid=invalid)}


def unready(reason: str, message: str) -> Json:
    """A definition of Runs that is not served."""
    condition = {"type": "Established", "status": "False", "reason": reason, "message": message}
    return {**DEFINITION, "status": {"conditions": [condition]}}


def controller(image: str) -> Changes:
    return {"deployments": {names.CONTROLLER: deployment(names.CONTROLLER, 2, image)}}


def trusted(*pems: bytes | None) -> Changes:
    """A configuration whose first entry has this caBundle, and none of policies."""
    found = configuration()
    for entry, pem in zip(found["webhooks"], pems, strict=False):
        entry["clientConfig"] = {"service": {}, "caBundle": pem if pem is None else bundle(pem)}
    return {"configuration": found}


OF_WEBHOOK = {"app": names.WEBHOOK}


def webhook_with(status: Json | None, *pods: Json) -> Changes:
    """A webhook whose Deployment has another status; None: it has none."""
    one = deployment(names.WEBHOOK, 3)
    one["status"] = {**one["status"], **status} if status else {}
    return {"deployments": {**seen().deployments, names.WEBHOOK: one}, "pods": pods}


def a_pod(
    *,
    phase: str = "Running",
    waiting: Json | None = None,
    metadata: Json | None = None,
    state: Json | None = None,
    lastState: Json | None = None,  # noqa: N803  (as in Kubernetes)
    **conditions: str,
) -> Json:
    """A pod of the webhook; conditions with a message are False, others are True."""
    ports = [{"name": "health", "containerPort": 81}]
    found = [
        {"type": kind, "status": "False" if text else "True", "message": text}
        for kind, text in conditions.items()
    ]
    state = state or ({"waiting": waiting} if waiting else {})
    container = {"state": state, "lastState": lastState or {}}
    return {
        "metadata": metadata or {"name": "webhook-1", "labels": {**OF_WEBHOOK, "hash": "x"}},
        "spec": {"containers": [{"name": "w", "ports": ports}]},
        "status": {"phase": phase, "conditions": found, "containerStatuses": [container]},
    }


# By check: each rule, and how the cluster differs from a good one.
LEAVES_RUNS_OUT = {"matchExpressions": [{"key": names.RUN_UID, "operator": "DoesNotExist"}]}


def kueue(queued: Iterable[str] = (), namespaces: Json | None = None, **selectors: Json) -> Changes:
    """Kueue takes new pods, and namespace `team` has a LocalQueue `default`."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]}
    entries = [
        {"name": "mpod.kb.io", "rules": [{**rule, "resources": ["pods"]}], **selectors},
        {"name": "mworkload.kb.io", "rules": [{**rule, "apiGroups": ["kueue.x-k8s.io"]}]},
    ]
    found = {"metadata": {"name": "kueue-mutating-webhook-configuration"}, "webhooks": entries}
    others = {"metadata": {"name": "other"}, "webhooks": entries[:1]}
    read = Kueue((*pod_entries([found, others]),), frozenset({"team"}), frozenset(queued))
    return {"kueue": read, "namespaces": namespaces or {"team": {NAME: "team"}}}


CASES: dict[str, dict[str, Changes]] = {
    "end to end": {
        "a policy may reject the pod": probe(
            'admission webhook "pods-0.fairlead.dev" denied the request: no'
        ),
        "a webhook that does not answer is an error": probe(
            'failed calling webhook "pods-0.fairlead.dev": no endpoints'
        ),
        "what a firewall has to let through is the port of the Deployment": {
            **probe('failed calling webhook "pods-0.fairlead.dev": no endpoints'),
            "deployments": {**seen().deployments, names.WEBHOOK: ON_NODES},
        },
        "what a firewall has to let through is the address of a webhook outside": {
            **probe('failed calling webhook "pods-0.fairlead.dev": no endpoints'),
            **OUTSIDE,
        },
        "no stamp is an error": probe(""),
        "a pod that policies make invalid is an error": probe(
            'Pod "fairlead-probe" is invalid: spec.securityContext.runAsUser: no', invalid=True
        ),
        "without rules no stamp is expected": {
            **probe(""),
            "configuration": configuration(rules=[]),
        },
        "without a configuration no stamp is expected": {**probe(""), "configuration": None},
    },
    "interception": {
        "while it is disabled, the end is shown": disabled(),
        "an end that is over is an error": {**disabled(), "now": NOW + days(2)},
        "an end that cannot be read is an error": disabled(**{names.DISABLED_UNTIL: "soon"}),
        "fail-open needs a guard": {**FAILS_OPEN},
        "fail-open with a guard is a note": {
            **FAILS_OPEN,
            "guard_objects": by_key([STAMP, *BINDINGS]),
        },
        "a source without its guard is named": {
            **FAILS_OPEN,
            "guard_objects": by_key([STAMP, *BINDINGS[:-1]]),
        },
        "guards that could not be read are not missed": {
            **FAILS_OPEN,
            "unread": {ReadKind.GUARDS: FORBIDDEN},
        },
        "fail-open that was not installed is an error": {"configuration": IGNORES},
        "an entry that is gone is an error": entries(FIRST),
        "entries of another source are as they should be": entries(*KUBEFLOW),
        "an entry of another source that is gone is an error": entries(
            *(each for each in KUBEFLOW if each["name"] != "kubeflow-training-1.fairlead.dev")
        ),
        "entries of an added source are as they should be": entries(*ACME_ENTRIES, **ACME_FILES),
        "entries of an unknown source are compared with the shipped ones": entries(*ACME_ENTRIES),
        "an added source of files without an entry has a cure": entries(
            FIRST, SECOND, **ACME_FILES
        ),
        "an added source of objects without an entry has a cure": entries(
            *(FIRST, SECOND),
            deployments=FROM_CLUSTER["deployments"],
            policies={"runsources/acme": json.dumps(load_yaml(SOURCE)).encode()},
        ),
        "conditions leave pods out": entries(
            FIRST, {**SECOND, "matchConditions": [{"name": "not-x", "expression": "false"}]}
        ),
        "a narrower objectSelector leaves pods out": entries(
            FIRST, selecting("objectSelector", expression("a", "Exists"))
        ),
        "an admin may leave a namespace out": entries(
            FIRST, selecting("namespaceSelector", expression(NAME, "NotIn", "lab"))
        ),
        "a namespace that is placed whole is not left out": entries(
            FIRST, selecting("namespaceSelector", expression(NAME, "NotIn", "team"))
        ),
        "other namespaces than one leave out one that is placed whole": entries(
            FIRST, selecting("namespaceSelector", expression(NAME, "In", "lab"))
        ),
    },
    "selectors": {
        "entries of all sources exclude each other": entries(
            *webhooks([source.name for source in SOURCES])
        ),
        "labels overlap with an entry": entries(
            FIRST, {**FIRST, "name": "other", "objectSelector": {"matchLabels": {names.RUN: "x"}}}
        ),
        "expressions overlap with an entry": entries(
            *(FIRST, {**FIRST, "name": "other"}),
            {
                **FIRST,
                "name": "third",
                "objectSelector": {"matchExpressions": [expression("app", "NotIn", "web")]},
            },
        ),
        "an empty selector overlaps with an entry": entries(
            FIRST, {**FIRST, "name": "other", "objectSelector": {}}
        ),
        "no selector overlaps with an entry": entries(
            FIRST, {**FIRST, "name": "other", "objectSelector": None}
        ),
        "two values of a label do not overlap": entries(
            *(
                {**FIRST, "name": tier, "objectSelector": {"matchLabels": {"tier": tier}}}
                for tier in "ab"
            )
        ),
        "kube-system does not wait for the webhook": entries(
            {
                **FIRST,
                "namespaceSelector": {
                    "matchExpressions": [expression(NAME, "NotIn", "fairlead-system")]
                },
            }
        ),
        "fairlead-system does not wait for the webhook": entries(
            {
                **FIRST,
                "namespaceSelector": {
                    "matchExpressions": [expression(NAME, "NotIn", "kube-system")]
                },
            }
        ),
    },
    "namespaces": {
        "a namespace is marked by one value only": {
            "namespaces": {"a": {names.PLACE: "all"}, "b": {names.PLACE: "All"}, "c": {"team": "x"}}
        },
        "so are the labels of what it keeps": {
            "namespaces": {
                "a": {names.DAEMON_SETS: "keep", names.KUEUE: "keep"},
                "b": {names.DAEMON_SETS: "true", names.KUEUE: "Keep"},
            }
        },
    },
    "guards": {
        "what ships is in force": {"expected": SHIPPED, "guard_objects": SHIPPED},
        "guards that are gone are errors": {"expected": SHIPPED, "guard_objects": {}},
        "a guard that rejects less is an error": {
            "expected": SHIPPED,
            "guard_objects": by_key(
                [replaced(AUTHORS[0], "spec", validations=[], failurePolicy="Ignore"), AUTHORS[1]]
            ),
        },
        "so is one that does not deny": {
            "expected": SHIPPED,
            "guard_objects": by_key(
                [AUTHORS[0], replaced(AUTHORS[1], "spec", validationActions=[])]
            ),
        },
        "a guard without a binding does nothing": {"guard_objects": by_key([STAMP])},
        "a binding without its guard is an error": {"guard_objects": by_key(BINDINGS)},
        "a binding that neither denies nor warns does nothing": {
            "guard_objects": by_key([STAMP, *AUDITED])
        },
    },
    "tolerations": {
        "nothing is to be guarded without a policy that limits them": limited(
            requirements={"nodeSelector": {"a": "b"}}
        ),
        "a policy that only records limits nothing": limited(enforcement="Audit", **LIMITS),
        "without a guard they can be added later": limited(**LIMITS),
        "the guard covers all of them": limited(TOLERATIONS, **LIMITS),
        "users may be exempt": limited(
            capacity_guard(
                configuration()["webhooks"], (), ["system:serviceaccount:queues:controller"]
            ),
            **LIMITS,
        ),
        "one with a list of keys does not": limited(ONLY_SOME_KEYS, **LIMITS),
        "one with a condition of its own does not": limited(
            [
                replaced(
                    TOLERATIONS[0], "spec", matchConditions=[{"name": "x", "expression": "y"}]
                ),
                *TOLERATIONS[1:],
            ],
            **LIMITS,
        ),
        "an entry without a binding is named": limited(TOLERATIONS[:-1], **LIMITS),
        "one that only warns does not": limited(
            [
                TOLERATIONS[0],
                *(replaced(each, "spec", validationActions=["Warn"]) for each in TOLERATIONS[1:]),
            ],
            **LIMITS,
        ),
        "of Helm it is a value": limited(deployments=BY_HELM, **LIMITS),
        "guards that could not be read are not missed": limited(
            unread={ReadKind.GUARDS: "forbidden"}, **LIMITS
        ),
        "wrong policies are another check's": limited(policies={"p.yaml": b"nonsense"}, **LIMITS),
    },
    "programs": {
        "no pod available is an error": webhook_with({"availableReplicas": 0}),
        "some pods available are a warning": webhook_with({"availableReplicas": 2}),
        "a Deployment that was not observed yet": webhook_with({"observedGeneration": 0}),
        "a Deployment without a status": webhook_with(None),
        "pods that are not new yet": webhook_with({"updatedReplicas": 1}),
        "a rollout that is stuck is an error": webhook_with(
            {
                "updatedReplicas": 1,
                "conditions": [
                    {"type": "Progressing", "status": "False", "message": "has timed out"}
                ],
            }
        ),
        "old pods that end": webhook_with({"replicas": 4}),
        "no replica that is wanted is an error": {
            "deployments": {
                **seen().deployments,
                names.WEBHOOK: deployment(names.WEBHOOK, 0),
            }
        },
        "pods that cannot be created": webhook_with(
            {
                "availableReplicas": 0,
                "conditions": [
                    {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
                ],
            }
        ),
        "an image that cannot be pulled is said once": webhook_with(
            {"availableReplicas": 0},
            *[a_pod(waiting={"reason": "ImagePullBackOff", "message": "no such host"})] * 2,
        ),
        "a program that ends at its start": webhook_with(
            {"availableReplicas": 0},
            a_pod(waiting={"reason": "CrashLoopBackOff"}, lastState={"terminated": OUT_OF_MEMORY}),
        ),
        "a program that has ended and is started again": webhook_with(
            {"availableReplicas": 0}, a_pod(state={"terminated": OUT_OF_MEMORY})
        ),
        "a container that cannot be made": webhook_with(
            {"availableReplicas": 0},
            a_pod(waiting={"reason": "CreateContainerConfigError", "message": "no ConfigMap"}),
        ),
        "a pod that runs and is not ready": webhook_with({"availableReplicas": 0}, a_pod()),
        "why a pod is not ready is read": {
            **webhook_with({"availableReplicas": 2}, a_pod()),
            "reasons": Reasons(
                {
                    "webhook-1": {
                        "policies": "refused: placementpolicies/new: spec.later: is not a field",
                        "handshake": "not verified for 40 s: no certificate",
                    }
                }
            ),
        },
        "an Event says why a volume is not there": {
            **webhook_with({"availableReplicas": 0}, a_pod(waiting={"reason": CREATING})),
            "reasons": Reasons(events={"webhook-1": "MountVolume.SetUp failed: no Secret x"}),
        },
        "an Event says why no container was made": {
            **webhook_with({"availableReplicas": 0}, a_pod(phase="Pending", state={})),
            "reasons": Reasons(events={"webhook-1": "Failed to create pod sandbox: no network"}),
        },
        "an Event says which probe fails": {
            **webhook_with({"availableReplicas": 0}, a_pod()),
            "reasons": Reasons(events={"webhook-1": "Readiness probe failed: refused"}),
        },
        "a pod that does not run yet": webhook_with(
            {"availableReplicas": 0}, a_pod(phase="Pending")
        ),
        "a node that several pods wait for is said once": webhook_with(
            {"availableReplicas": 0},
            *[
                a_pod(
                    PodScheduled="0/3 nodes are available",
                    metadata={"name": name, "labels": OF_WEBHOOK},
                )
                for name in ("webhook-1", "webhook-2")
            ],
        ),
        "pods of others, those that end, and those that are ready are fine": webhook_with(
            {"availableReplicas": 2},
            a_pod(metadata={"name": "other", "labels": {"app": "other"}}),
            a_pod(metadata={"name": "w", "labels": OF_WEBHOOK, "deletionTimestamp": "now"}),
            a_pod(Ready=""),
        ),
        "a webhook outside needs no Deployment": {
            **OUTSIDE,
            "deployments": {names.CONTROLLER: deployment(names.CONTROLLER, 2)},
        },
        "what runs outside is unknown": {**OUTSIDE, "deployments": {}, "leader": ""},
    },
    "watches": {
        "a replica without updates uses older data": {
            "watches": {
                ("webhook-a", "namespaces"): WatchState(age=119.0, failing=119.0),
                ("webhook-b", "namespaces"): WatchState(age=640.0, failing=700.0),
                ("controller-a", "pods"): WatchState(age=float("inf")),
            }
        },
        "a watch that fails again and again uses older data, though it hears of the server": {
            "watches": {("controller-a", "pytorchjobs"): WatchState(age=3.0, failing=640.0)}
        },
        "objects that cannot be read are counted": {
            "watches": {("controller-a", "runs"): WatchState(left_out=2, unreadable=7)}
        },
        "a watch that was restarted shows a bug": {
            "watches": {("controller-a", "pods"): WatchState(restarts=1, errors=9)}
        },
    },
    "writes": {
        "a write that fails for long is a warning": {
            "failing_writes": {
                ("controller-a", Write("PATCH", "placementpolicies/status")): 640.0,
                ("webhook-a", Write("POST", "events")): 119.0,
            }
        },
    },
    "endpoints": {
        "none is an error": {
            "endpoints": (),
            "deployments": {names.WEBHOOK: deployment(names.WEBHOOK, 3, availableReplicas=0)},
        },
        "none beside pods that are ready is the Service's fault": {"endpoints": ()},
        "none that is ready is an error": {"endpoints": (False, False)},
        "one that is ready of several is no cause to wish for more": {"endpoints": (True, False)},
        "one that is chosen is a note": {
            "endpoints": (True,),
            "deployments": {names.WEBHOOK: deployment(names.WEBHOOK, 1)},
        },
        "one that is chosen by a value has the way of Helm": {
            "endpoints": (True,),
            "deployments": {
                **BY_HELM,
                names.WEBHOOK: replaced(ONE, "metadata", labels={names.MANAGED_BY: "Helm"}),
            },
        },
        "one that is chosen by an overlay has the other overlays": {
            "endpoints": (True,),
            "deployments": {
                names.WEBHOOK: ONE,
                names.CONTROLLER: replaced(
                    deployment(names.CONTROLLER, 1),
                    "metadata",
                    annotations={
                        **_OPEN["metadata"]["annotations"],
                        names.INSTALL_OPTIONS: stored_text(
                            Choices(("development", "monitoring")), {}
                        ),
                    },
                ),
            },
        },
        "a webhook outside has none": {**OUTSIDE, "endpoints": ()},
    },
    "leader": {
        "none is an error": {"leader": ""},
        "a stranger that holds the Lease is an error": {"leader": "stranger", "leads": False},
        "of controllers that were not all asked none is missed": {"leader": "stranger"},
        "a Lease that may not be read is not called free": {
            "leader": "",
            "unread": {ReadKind.LEASE: FORBIDDEN},
        },
    },
    "versions": {
        "a cluster that is too old is an error": {"server": "v1.29.9"},
        "the oldest that works lacks a feature": {"server": "v1.30.0-gke.1"},
        "a later one has all": {"server": "v1.36.0"},
        "a version that cannot be read is not judged": {"server": ""},
        "an image of this version": controller("registry.example:5000/team/fairlead:v0.1.0"),
        "an image of this version with a digest": controller("a.example/fairlead:0.1.0@sha256:aa"),
        "an image of another version": controller("fairlead:0.2.0"),
        "an image without a tag": controller("registry.example:5000/fairlead"),
        "a tag of one's own": controller("fairlead:git-1234"),
        "two programs of two versions": {
            "deployments": {
                names.CONTROLLER: deployment(names.CONTROLLER, 2, "fairlead:a"),
                names.WEBHOOK: deployment(names.WEBHOOK, 3, "fairlead:b"),
            }
        },
    },
    "definitions": {
        "that of Runs has to be there": {"definitions": {POLICIES.name: DEFINITION}},
        "it has to be served": {
            "definitions": {RUNS.name: unready("NamesConflict", "names conflict")}
        },
        "it has to be of this version": {
            "definitions": {RUNS.name: a_definition({**SPEC, "minProperties": 1})}
        },
        "a field that is dropped is an error": {
            "definitions": {
                RUNS.name: DEFINITION,
                POLICIES.name: a_definition({"type": "object", "properties": {}}),
            }
        },
        "a field that is kept without its rules is a warning": {
            "definitions": {
                RUNS.name: DEFINITION,
                POLICIES.name: a_definition({"type": "object", KEEPS_UNKNOWN: True}),
            }
        },
    },
    "certificates": {
        "before its renewal a leaf is fine": {
            "serving": {"tls.crt": SHORT.certificate},
            "now": NOW + days(18),
        },
        "a leaf that was not renewed is a warning": {
            "serving": {"tls.crt": SHORT.certificate},
            "now": NOW + days(24),
        },
        "a leaf that has expired is an error": {
            "serving": {"tls.crt": SHORT.certificate},
            "now": NOW + days(30),
        },
        "before their time both are errors": {"now": NOW - days(1)},
        "an authority that has expired is an error": {"now": NOW + days(400)},
        "under cert-manager the cures are its own": {
            "configuration": BY_CERT_MANAGER,
            "now": NOW + days(40),
        },
        "under cert-manager a Secret that cannot be read is deleted": {
            "configuration": BY_CERT_MANAGER,
            "serving": {"tls.crt": b"garbled"},
        },
        "a Secret that cannot be read is deleted": {"serving": {"tls.crt": b"garbled"}},
        "a webhook outside has certificates of its own": {**OUTSIDE, "serving": None},
        "what may not be read is not called absent": {
            "serving": None,
            "unread": {ReadKind.SERVING: FORBIDDEN},
        },
        "a Secret without a bundle is as cert-manager writes it": {
            "serving": {"tls.crt": LEAF.certificate}
        },
    },
    "trust": {
        "an empty caBundle is an error": trusted(b""),
        "no caBundle is an error": trusted(None),
        "a garbled caBundle is an error": trusted(b"garbled"),
        "of several authorities one is enough": {
            **trusted(*[new_authority("other", NOW).certificate + AUTHORITY.certificate] * 2),
            "judging": None,
        },
        "entries that validate need it too": {**FROM_CLUSTER, "judging": WITHOUT_BUNDLE},
        "a webhook outside has certificates of its own": {
            **OUTSIDE,
            "judging": None,
            "serving": None,
        },
    },
    "policies": {
        "a set that rejects every pod is an error, though it serves": files(
            policy("one", requirements=pool("a")), policy("two", requirements=pool("b"))
        ),
        "what keeps a set from loading leaves the last good one": files(
            policy("p", defaults={"capacity": [{"class": "no", "mode": "Allow"}]})
        ),
        "warnings about policies together are reported": files(
            policy("a", match={"roles": ["worker"]}, overrides=pool("a")),
            policy("b", overrides=pool("b")),
        ),
        "what leaves no node is an error, as in check and in the status": {
            **files(policy("p", overrides=pool("a"))),
            "nodes": NODES,
        },
        "a class whose nodes' taints are not tolerated is an error": {
            **files(
                GPU, policy("p", overrides={"capacity": [{"class": "gpu", "mode": "Constrain"}]})
            ),
            "nodes": NODES,
        },
        "without a node it is unknown which policies leave one": files(
            policy("p", overrides=pool("a"))
        ),
        "a PriorityClass that does not exist is an error": {
            **files(policy("p", overrides={"priorityClassName": "hgih"})),
            "classes": {"PriorityClass": {"high": {}}},
        },
        "a PriorityClass that does not exist is a warning under Audit": {
            **files(policy("p", enforcement="Audit", overrides={"priorityClassName": "hgih"})),
            "classes": {"PriorityClass": {"high": {}}},
        },
        "an exception that any author can take is a warning": files(
            policy("p", defaults=pool("a")), exception_of()
        ),
        "an exception for a namespace is fine": files(
            policy("p", defaults=pool("a")), exception_of(namespaces=["a"])
        ),
        "an error has its place": {"policies": {"a.yaml": b"kind: PlacementPolicy\n"}},
        "many errors are counted": {
            "policies": {f"{number}.yaml": b"kind: Nothing\n" for number in range(9)}
        },
        "without the ConfigMap the webhook does not start": {"policies": None},
        "without the webhook it is unknown where policies are": {
            "policies": None,
            "deployments": {},
        },
        "none is a note": {"policies": {}},
        "without definitions the cluster has none": {**FROM_CLUSTER, "policies": None},
        "none in the cluster is a note": {**FROM_CLUSTER, "policies": {}},
        "an object with an error is named": {
            **FROM_CLUSTER,
            "policies": {
                "placementpolicies/setting": orjson.dumps(
                    an_object(
                        names.API_VERSION,
                        "PlacementPolicy",
                        "setting",
                        {"overrides": {"capacity": [{"class": "spot", "mode": "Allow"}]}},
                    )
                )
            },
        },
        "of a later version this command knows nothing": {
            **FROM_CLUSTER,
            "definitions": {
                POLICIES.name: a_definition(
                    {"type": "object", "properties": {"evenLater": {"type": "integer"}}}
                )
            },
            "policies": {
                "placementpolicies/later": orjson.dumps(
                    an_object(names.API_VERSION, "PlacementPolicy", "later", {"evenLater": 1})
                )
            },
        },
        "those of a webhook outside are unknown": OUTSIDE,
    },
    "judgement": {
        "policies from the cluster are validated": FROM_CLUSTER,
        "policies from files are not": {},
        "entries of an added source are as they should be": ACME_FILES,
        "without the configuration, policies are not validated": {**FROM_CLUSTER, "judging": None},
        "without the configuration, authors get no warnings": {"judging": None},
        "what may not be read is not called absent": {
            "judging": None,
            "unread": {ReadKind.JUDGING: FORBIDDEN},
        },
        "a missing entry is named": {
            **FROM_CLUSTER,
            "judging": {"webhooks": judging()["webhooks"][:1]},
        },
        "an entry for policies from files is an error": {"judging": judging()},
        "fail-open stores policies unjudged": judged(failurePolicy="Ignore"),
        "fail-closed stops workloads": judged(failurePolicy="Fail"),
        "without rules nothing is sent": judged(rules=[]),
        "another Service is an error": judged(clientConfig=SERVICE),
        "other writes are named": {**FROM_CLUSTER, "judging": OTHER_WRITES},
        "that no policy can be written has two cures": {
            **FROM_CLUSTER,
            "refused_policies": 'failed calling webhook "policies.fairlead.dev": no endpoints',
        },
    },
    "unplaced pods": {
        "they are counted by namespace, and some are named": {
            "unplaced": [
                *(Unplaced("b", f"p{number}", TOLD_LATER) for number in range(5)),
                Unplaced("a", "q", TOLD_LATER),
            ]
        },
        "those older than the configuration are a note": {
            "unplaced": [Unplaced("b", "p", "2026-01-01T00:00:00Z")]
        },
    },
    "permissions": {
        "missing rights are an error of a program, and a warning of the caller": {
            "missing_rights": [
                *((names.WEBHOOK, Right("list", "", f"r{number}")) for number in range(7)),
                ("", Right("list", "", "pods")),
                ("", Right("patch", "a.example", "webhooks", "fairlead", "ns")),
            ]
        },
        "the webhook's rights on nodes block nothing": {
            "missing_rights": [
                (names.WEBHOOK, Right(verb, "", "nodes")) for verb in ("list", "watch")
            ]
        },
        "the controller's rights on nodes do": {
            "missing_rights": [(names.CONTROLLER, Right("list", "", "nodes"))]
        },
    },
    "queues": {
        "without Kueue there is nothing to see": {},
        "a LocalQueue default takes the pods of runs with a queue": kueue(queued={"team"}),
        "it takes those of runs without a queue too, which start": kueue(),
        "pods of runs are left out": kueue(objectSelector=LEAVES_RUNS_OUT),
        "the namespace is left out": kueue(
            namespaceSelector={
                "matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["team"]}]
            }
        ),
        "the patch keeps what the selector has": kueue(
            objectSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
        ),
        "runs are an external framework": {"kueue": Kueue(external=True)},
        "runs are one, and Kueue may not read them": {
            "kueue": Kueue(external=True, reads_runs=False)
        },
        "in a namespace that is not asked about nothing is said": kueue(namespaces={"lab": {}}),
    },
    "objects": {
        "what is as it was installed is fine, with what the API server fills in": {
            "stored": {BUDGET: a_budget(unhealthyPodEvictionPolicy="IfHealthyBudget")}
        },
        "what is gone is said": {"stored": {}},
        "without the right nothing is called gone": {
            "stored": {},
            "unread": {ReadKind.OBJECTS: FORBIDDEN},
        },
        "what was changed, taken away and added is said": {
            "wanted": {
                BUDGET: a_budget({"a": "b"}, selector={"matchLabels": {"app": "x"}}),
                CONTROLLER: deployment(names.CONTROLLER, 2),
            },
            "stored": {
                BUDGET: {
                    **a_budget(maxUnavailable=3, minAvailable=2),
                    "metadata": {
                        "name": names.WEBHOOK,
                        "managedFields": [
                            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:minAvailable": {}}}}
                        ],
                    },
                },
                CONTROLLER: {
                    **deployment(names.CONTROLLER, 3),
                    "metadata": {"name": names.CONTROLLER},
                },
            },
        },
        "what was installed is not always known": {"wanted": {}},
    },
    "agents": {
        "a requirement that only the namespace's pods do not meet": agents(agent(**ARM), agent()),
        "the author of one with a mark of its own wants it placed": agents(
            agent({names.RUN: "r"}, **ARM), nodes=NODES
        ),
        "a namespace may spare them": agents(agent(**ARM), namespaces={"gpu": SPARED}),
        "unknown policies are another check's": agents(agent(**ARM), policies=None),
        "wrong policies are another check's": agents(
            agent(**ARM), policies={"p.yaml": b"nonsense"}
        ),
        "a DaemonSet is judged by the nodes that it runs on": agents(agent(), nodes=NODES),
        "one that runs on fitting nodes only is fine": agents(
            agent(nodeSelector={"kubernetes.io/arch": "amd64"}), nodes=NODES
        ),
        "drivers do not wait for the webhook": agents(
            *(
                agent(volumes=[{"name": "v", "hostPath": {"path": path}}])
                for path in (
                    "/etc/cni/net.d",
                    "/opt/cni/bin",
                    "/var/lib/kubelet/plugins/csi.example.com",
                    "/var/lib/kubelet/plugins_registry/",
                    "/var/log",
                )
            )
        ),
    },
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("integrations: {externalFrameworks: [Run.v1alpha1.fairlead.dev]}", True),
        ("integrations:\n  # externalFrameworks: [Run.v1alpha1.fairlead.dev]\n", False),
        ("integrations: {externalFrameworks: [Foo.v1.example.com]}", False),
        ("integrations: null", False),
        ("- Run.v1alpha1.fairlead.dev", False),
        ("{", False),
        ("", False),
    ],
)
def test_runs_are_an_external_framework_by_the_configuration_of_kueue(
    text: str, found: bool
) -> None:
    """As its installation has it."""
    assert names_runs({"data": {"controller_manager_config.yaml": text}}) == found


def findings_of_cases() -> Iterator[Any]:
    """All findings of the cases above."""
    for check in CHECKS:
        for changes in CASES[check.name].values():
            yield from check(seen(**changes))


def test_every_command_in_a_cure_is_played_in_the_state_that_it_is_printed_for() -> None:
    """By tests/cluster/test_doctor.py, except for what the sandbox's control plane cannot have.

    A command that is not in backticks shows more, and ends nothing.
    """
    cures = {each.cure for each in findings_of_cases()}
    printed = {
        re.sub(r"namespace \S+", "namespace marked", command)
        for cure in cures
        for command in commands_of(cure)
    }
    table = {*PLAYS, *UNPLAYED}
    assert {key for key in table if any(each.startswith(key) for each in printed)} == table
    assert [each for each in printed if not each.startswith((*table,))] == []
    shows = "|".join(SHOWS)
    for cure in cures:
        rest = re.sub(r"`[^`]+`", "", cure)
        found = re.findall(rf"(?:fairlead|kubectl(?: -n \S+)?) (?!{shows})([a-z]\S*)", rest)
        assert found == [], cure


ROWS = [(check, rule) for check in CHECKS for rule in CASES[check.name]]


@pytest.mark.parametrize(
    ("check", "rule"), ROWS, ids=lambda each: each if isinstance(each, str) else each.name
)
def test_findings_are_the_golden_ones(check: Any, rule: str, wording: Wording) -> None:
    """With severity, what was found, and its cure; or none."""
    found = list(check(seen(**CASES[check.name][rule])))
    lines = (f"{each.severity}: {each.what}\n  {each.cure}".rstrip() for each in found)
    wording("\n".join(lines) or "nothing")
