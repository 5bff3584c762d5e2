"""What may stand in a pod beside its placement, and oddly in it: each a path and a value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.laws.strategies import EFFECTS, KEYS, PREFERRED, REQUIRED, TAINT_KEYS, one, pods, some
from webhook import names
from webhook.names import LAST_APPLIED
from webhook.sources import SHIPPED

Json = dict[str, Any]
Path = tuple[str | int, ...]
Addition = tuple[Path, Any]

GKE_SPOT = "cloud.google.com/gke-spot"
LONG_LABEL = "a" * 63
LONG_KEY = f"{'a.' * 126}b/{LONG_LABEL}"  # the longest of its kind: 253 and 63
TEXTS = (
    "",
    "a",
    "ü 日本 🚢",
    "a\u2028b\x7f\u0085c\t\n",
    '~0/~1 \\ "quoted" \'',
    "x" * 5000,
    "null",
)
LABEL_VALUES = ("", "a", "A.b_c-9", LONG_LABEL, "0", "true", "worker", "master", "2", "4294967296")


def at(*path: str | int) -> Path:
    return path


def additions(path: Path, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Addition]:
    return values.map(lambda value: (path, value))


def fixed(*paths_and_values: Addition) -> st.SearchStrategy[Addition]:
    return st.sampled_from(paths_and_values)


amounts = st.dictionaries(
    one("cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"),
    one("1", "2", "0", "16"),
    max_size=3,
)
containers = st.lists(
    st.fixed_dictionaries(
        {"image": one("example.invalid/i:1", "i@sha256:" + "0" * 64)},
        optional={
            "resources": amounts.map(lambda limits: {"limits": limits}) | one({}),
            "env": one(
                [{"name": "TOKEN", "value": "hunter2"}],
                [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                [{"name": "ü", "value": "$(TOKEN) \u2028"}],
            ),
            "args": one(["--x=<&>", ""], ["a" * 3000]),
            "ports": one([{"containerPort": 8080, "name": "http"}], []),
            "imagePullPolicy": one("Always", "Never", "IfNotPresent"),
            "securityContext": one({"privileged": False}, {"runAsUser": 7}, {}),
            "tty": st.booleans(),
        },
    ),
    min_size=1,
    max_size=3,
).map(lambda found: [{**one_of, "name": f"c{nth}"} for nth, one_of in enumerate(found)])

VOLUME_SOURCES: tuple[Json, ...] = (
    {"emptyDir": {}},
    {"emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
    {"configMap": {"name": "c", "optional": True}},
    {"secret": {"secretName": "s", "defaultMode": 256}},
    {"hostPath": {"path": "/x"}},
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"nfs": {"server": "s", "path": "/"}},
    {"csi": {"driver": "d.example.com", "volumeAttributes": {"a/b~c": "1"}}},
    {"projected": {"sources": [{"downwardAPI": {"items": []}}, {"secret": {"name": "s"}}]}},
    {
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            }
        }
    },
)
volumes = some(st.sampled_from(VOLUME_SOURCES), 4).map(
    lambda found: [{"name": f"v{nth}", **source} for nth, source in enumerate(found)]
)

owners = st.lists(
    st.fixed_dictionaries(
        {
            "apiVersion": one("apps/v1", "batch/v1", "example.com/v1"),
            "kind": one("DaemonSet", "Job", "ReplicaSet"),
            "name": one("o", "p"),
            "uid": one("1", "2"),
        },
        optional={"blockOwnerDeletion": st.booleans()},
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda owner: str(owner["uid"]),
).map(lambda found: [{**found[0], "controller": True}, *found[1:]])

label_maps = st.dictionaries(
    one(*sorted(SHIPPED.read_labels), "app", "a.b/c_d", LONG_KEY), one(*LABEL_VALUES), max_size=4
)
annotation_maps = st.dictionaries(
    one(*sorted(SHIPPED.read_annotations), "a", "x.y/z", LONG_KEY, names.PLACEMENT),
    one(*TEXTS),
    max_size=3,
)
capacity_requests = st.lists(
    one("spot=Allow", "on-demand=Prefer:7", "pool-b=Constrain", "old=Prevent", "spot=None", " "),
    max_size=3,
).map(",".join)

DEEP = '{{"spec": {{"affinity": {}1{}}}}}'
# Whatever a file that was applied may have said of the pod, or a text that is none.
applied = st.one_of(
    pods().map(json.dumps),
    one("", "{", "[]", "null", '{"spec": []}', '{"spec": {"tolerations": 1}}', '{"spec": {}}'),
    one(*(DEEP.format('{"a":' * deep, "}" * deep) for deep in (500, 2000))),
)

# What the API server takes, on its own at least.
SOUND: tuple[st.SearchStrategy[Addition], ...] = (
    additions(at("spec", "containers"), containers),
    additions(at("spec", "initContainers"), containers.map(lambda c: [{**c[0], "name": "init"}])),
    additions(at("spec", "volumes"), volumes),
    additions(at("metadata", "ownerReferences"), owners),
    st.sampled_from(sorted(SHIPPED.read_labels)).flatmap(
        lambda key: additions(at("metadata", "labels", key), one(*LABEL_VALUES))
    ),
    additions(at("metadata", "labels", LONG_KEY), one(*LABEL_VALUES)),
    st.sampled_from(["a", "x.y/z", names.PLACEMENT, *sorted(SHIPPED.read_annotations)]).flatmap(
        lambda key: additions(at("metadata", "annotations", key), one(*TEXTS))
    ),
    additions(at("metadata", "annotations", names.CAPACITY), capacity_requests),
    additions(at("metadata", "annotations", LAST_APPLIED), applied),
    fixed(
        (at("metadata", "finalizers"), ["example.com/x"]),
        (at("spec", "hostNetwork"), True),
        (at("spec", "hostPID"), True),
        (at("spec", "shareProcessNamespace"), True),
        (at("spec", "terminationGracePeriodSeconds"), 0),
        (at("spec", "activeDeadlineSeconds"), 2**31 - 1),
        (at("spec", "restartPolicy"), "Never"),
        (at("spec", "dnsPolicy"), "Default"),
        (at("spec", "dnsConfig"), {"options": [{"name": "ndots", "value": "1"}]}),
        (at("spec", "hostname"), "h"),
        (at("spec", "subdomain"), "s"),
        (at("spec", "enableServiceLinks"), False),
        (at("spec", "automountServiceAccountToken"), False),
        (at("spec", "imagePullSecrets"), [{"name": "s"}]),
        (at("spec", "hostAliases"), [{"ip": "127.0.0.1", "hostnames": ["h"]}]),
        (at("spec", "readinessGates"), [{"conditionType": "example.com/x"}]),
        (at("spec", "schedulingGates"), [{"name": "example.com/x"}]),
        (at("spec", "os"), {"name": "linux"}),
        (at("spec", "os"), {"name": "windows"}),
        (at("spec", "resources"), {"limits": {"cpu": "1"}}),
        (at("spec", "priorityClassName"), "system-node-critical"),
        (at("spec", "nodeName"), "n1"),
        (at("spec", "futureField"), {"a": [1, None]}),
        (at("spec", "hostUsers"), False),
    ),
    fixed(
        (at("spec", "securityContext"), {"fsGroup": 1, "fsGroupChangePolicy": "OnRootMismatch"}),
        (at("spec", "securityContext"), {"supplementalGroups": [], "runAsNonRoot": True}),
        (at("spec", "securityContext", "seccompProfile"), {"type": "RuntimeDefault"}),
        (at("spec", "securityContext", "sysctls"), [{"name": "a.b", "value": "1"}]),
        (at("spec", "securityContext", "windowsOptions"), {"runAsUserName": "u"}),
        (at("spec", "nodeSelector"), {}),
        (at("spec", "nodeSelector"), None),
        (at("spec", "nodeSelector", LONG_KEY), LONG_LABEL),
        (at("spec", "nodeSelector", "pool"), ""),
        (at("spec", "affinity"), {}),
        (at("spec", "affinity"), None),
        (at("spec", "affinity", "nodeAffinity"), {}),
        (at("spec", "affinity", "nodeAffinity", PREFERRED), []),
        (at("spec", "affinity", "podAffinity"), {REQUIRED: [], PREFERRED: None}),
        (at("spec", "tolerations"), None),
        (at("spec", "tolerations"), []),
        (at("spec", "tolerations"), [{"operator": "Exists"}]),
        (at("spec", "tolerations"), [{"operator": "", "effect": "", "key": "spot"}] * 2),
        (at("spec", "tolerations", 0, "key"), "gpu"),
        (at("spec", "topologySpreadConstraints"), []),
        (at("spec", "topologySpreadConstraints", 0, "labelSelector"), {"matchLabels": {"a": "b"}}),
        (at("spec", "topologySpreadConstraints", 0, "nodeTaintsPolicy"), "Honor"),
        (at("metadata", "annotations"), None),
    ),
    # What the policies that ship speak of.
    fixed(
        (at("spec", "nodeSelector", GKE_SPOT), "true"),
        (at("spec", "tolerations"), [{"key": GKE_SPOT, "operator": "Exists"}]),
        (
            at("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"),
            [{"matchExpressions": [{"key": GKE_SPOT, "operator": "Exists"}]}],
        ),
        (at("metadata", "annotations", names.CAPACITY), "gpu=Constrain,spot=Allow"),
        (at("metadata", "labels", names.ROLE), "ps"),
    ),
)

# What the API server's decoder takes, and so a webhook may see; mostly refused afterwards.
ODD: tuple[st.SearchStrategy[Addition], ...] = (
    additions(at("metadata", "labels"), label_maps),
    additions(at("metadata", "annotations"), annotation_maps),
    fixed(
        (at("spec", "runtimeClassName"), "absent"),
        (at("spec", "runtimeClassName"), "sandboxed"),
        (at("spec", "runtimeClassName"), ""),
        (at("spec", "overhead"), {"cpu": "1"}),
        (at("spec", "priorityClassName"), "absent"),
        (at("spec", "priority"), -1),
        (at("spec", "preemptionPolicy"), "Never"),
        (at("spec", "ephemeralContainers"), [{"name": "e", "image": "i"}]),
        (at("spec", "containers"), []),
        (at("spec", "schedulerName"), ""),
        (at("spec", "nodeName"), ""),
        (at("spec", "securityContext"), None),
        (at("metadata", "labels", "app"), "no label's value!"),
        (at("metadata", "labels", "-no key"), "a"),
        (at("metadata", "labels", names.RUN), "x" * 64),
        (at("metadata", "annotations", names.MIRROR_POD), "m"),
        (at("metadata", "annotations", names.CAPACITY), "nothing=Constrain"),
        (at("metadata", "annotations", names.CAPACITY), "spot=Prefer:101,\n\x00,ü=;"),
        (at("spec", "nodeSelector", "~/%"), "~1\x00"),
        (at("spec", "nodeSelector", ""), "a"),
        (at("spec", "affinity", "nodeAffinity", REQUIRED), {}),
        (at("spec", "affinity", "nodeAffinity", REQUIRED), {"nodeSelectorTerms": []}),
        (at("spec", "affinity", "nodeAffinity", REQUIRED), {"nodeSelectorTerms": None}),
        (at("spec", "affinity", "nodeAffinity", REQUIRED), {"nodeSelectorTerms": [{}, {}]}),
        (at("spec", "affinity", "nodeAffinity", "future"), [1]),
        (at("spec", "affinity", "podAntiAffinity", REQUIRED), [{}]),
        (at("spec", "topologySpreadConstraints"), [{"topologyKey": "zone"}] * 2),
        (at("metadata", "managedFields"), [{"operation": "Apply", "fieldsV1": {"f:spec": {}}}]),
    ),
    additions(
        at("spec", "tolerations"),
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "key": one(*TAINT_KEYS, "", None, "a/b~c"),
                    "operator": one("Lt", "Gt", "Foo", "equal", "", None),
                    "value": one("7", "-1", "", None, "no value!"),
                    "effect": one(*EFFECTS, "NoSleep", "", None),
                    "tolerationSeconds": one(0, -1, 2**62, None),
                    "future": one(1, {}),
                },
            ),
            max_size=4,
        ),
    ),
    additions(
        at("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"),
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    part: st.lists(
                        st.fixed_dictionaries(
                            {"key": one(*KEYS, "metadata.name", "")},
                            optional={
                                "operator": one("In", "NotIn", "Exists", "Gt", "Lt", "Foo", None),
                                "values": one([], None, ["a"], ["1", "2"], ["9" * 5000], ["1_0"]),
                                "future": one(None, []),
                            },
                        ),
                        max_size=2,
                    )
                    for part in ("matchExpressions", "matchFields")
                },
            ),
            max_size=4,
        ),
    ),
)
