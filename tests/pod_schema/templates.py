"""Pod templates that are wrong in one field each, for tests of the pod schema."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def template(*, labels: Json | None = None, **spec: Any) -> Json:
    """A template whose container is `main`, with more fields of its spec."""
    found: Json = {"spec": {"containers": [{"name": "main", "image": "i"}], **spec}}
    return found if labels is None else {"metadata": {"labels": labels}, **found}


def in_main(**fields: Any) -> Json:
    """A template whose only container has these fields."""
    return template(containers=[{"name": "main", "image": "i", **fields}])


def asking(requests: Json, limits: Json | None = None) -> Json:
    """A template whose container asks for this."""
    sides = {"requests": requests} if limits is None else {"requests": requests, "limits": limits}
    return in_main(resources=sides)


def mounting(*names: str, volumes: tuple[str, ...] = ()) -> Json:
    """A template whose container mounts volumes of these names."""
    mounts = [{"name": name, "mountPath": f"/{number}"} for number, name in enumerate(names)]
    given = [{"name": name, "emptyDir": {}} for name in volumes]
    return template(
        containers=[{"name": "main", "image": "i", "volumeMounts": mounts}], volumes=given
    )


# The template, where it is wrong, and what the message has to mention.
UNKNOWN: list[tuple[Json, str, tuple[str, ...]]] = [
    (template(nodeSelectors={"a": "b"}), "spec.nodeSelectors", ("'nodeSelector'",)),
    (template(toleration=[]), "spec.toleration", ("'tolerations'",)),
    (template(node_selector={}), "spec.node_selector", ("'nodeSelector'",)),
    (
        in_main(imagepullPolicy="Always"),
        "spec.containers[0].imagepullPolicy",
        ("'imagePullPolicy'",),
    ),
    (in_main(volumemounts=[]), "spec.containers[0].volumemounts", ("'volumeMounts'",)),
    (in_main(resources={"limit": {}}), "spec.containers[0].resources.limit", ("'limits'",)),
    (
        in_main(ports=[{"container_port": 80}]),
        "spec.containers[0].ports[0].container_port",
        ("'containerPort'",),
    ),
    (
        template(tolerations=[{"key": "a", "operater": "Exists"}]),
        "spec.tolerations[0].operater",
        ("'operator'",),
    ),
]
MISTYPED: list[tuple[Json, str, tuple[str, ...]]] = [
    (template(labels={"a": 1}), "metadata.labels.a", ("a string", "1", "quotes")),
    (template(hostNetwork="true"), "spec.hostNetwork", ("true or false", "'true'")),
    (template(volumes={"a": {}}), "spec.volumes", ("a list", "a mapping")),
    (template(nodeSelector=["a"]), "spec.nodeSelector", ("a mapping", "a list")),
    (
        in_main(env=[{"name": "A", "value": 5}]),
        "spec.containers[0].env[0].value",
        ("a string", "5"),
    ),
    (
        in_main(imagePullPolicy="always"),
        "spec.containers[0].imagePullPolicy",
        ("'always'", "IfNotPresent", "mean 'Always'"),
    ),
    (
        in_main(ports=[{"containerPort": 80, "protocol": "HTTP"}]),
        "spec.containers[0].ports[0].protocol",
        ("'HTTP'", "SCTP, TCP, UDP"),
    ),
    (in_main(command="python"), "spec.containers[0].command", ("a list", "'python'")),
    (
        in_main(ports=[{"containerPort": "80"}]),
        "spec.containers[0].ports[0].containerPort",
        ("a whole number", "'80'"),
    ),
    (
        asking({"memory": "1 Gi"}),
        "spec.containers[0].resources.requests.memory",
        ("'1 Gi'", "quantity"),
    ),
]
MISSING: list[tuple[Json, str, tuple[str, ...]]] = [
    ({"spec": {"nodeSelector": {}}}, "spec.containers", ("required",)),
    (
        in_main(ports=[{"name": "a"}]),
        "spec.containers[0].ports[0].containerPort",
        ("required",),
    ),
    (in_main(env=[{"value": "a"}]), "spec.containers[0].env[0].name", ("required",)),
]
AGAINST_RULES: list[tuple[Json, str, tuple[str, ...]]] = [
    (
        asking({"cpu": 2}, {"cpu": "1500m"}),
        "spec.containers[0].resources.requests.cpu",
        ("2", "1500m", "limits.cpu"),
    ),
    (
        asking({"nvidia.com/gpu": 1}),
        "spec.containers[0].resources.requests[nvidia.com/gpu]",
        ("limits.nvidia.com/gpu",),
    ),
    (
        asking({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}),
        "spec.containers[0].resources.requests[nvidia.com/gpu]",
        ("1", "2", "equal"),
    ),
    (asking({"cpu": "-1"}), "spec.containers[0].resources.requests.cpu", ("-1",)),
    (
        mounting("dats", volumes=("data",)),
        "spec.containers[0].volumeMounts[0].name",
        ("'dats'", "'data'"),
    ),
    (mounting("data"), "spec.containers[0].volumeMounts[0].name", ("'data'", "none")),
    (mounting("my_vol", volumes=("my_vol",)), "spec.volumes[0].name", ("'my_vol'", "63")),
    (mounting(volumes=("a", "a")), "spec.volumes[1].name", ("'a'", "volumes[0]")),
    (
        template(volumes=[{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]),
        "spec.volumes[0].hostPath",
        ("emptyDir", "hostPath"),
    ),
    (
        template(containers=[{"name": "my_c", "image": "i"}]),
        "spec.containers[0].name",
        ("'my_c'",),
    ),
    (
        template(initContainers=[{"name": "main", "image": "i"}]),
        "spec.containers[0].name",
        ("'main'", "initContainers[0]"),
    ),
    (in_main(ports=[{"containerPort": 0}]), "spec.containers[0].ports[0].containerPort", ("0",)),
    (
        in_main(ports=[{"containerPort": 80, "name": "my_port"}]),
        "spec.containers[0].ports[0].name",
        ("'my_port'", "15"),
    ),
    (
        in_main(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
        "spec.containers[0].ports[1].name",
        ("'a'", "ports[0]"),
    ),
    (
        in_main(
            env=[
                {
                    "name": "A",
                    "value": "a",
                    "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
                }
            ]
        ),
        "spec.containers[0].env[0].valueFrom",
        ("value",),
    ),
]


def requiring(*terms: Json) -> Json:
    """A template with required node affinity."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return template(affinity={"nodeAffinity": required})


_TERMS = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)
# Each was seen to be refused by the API server.
AGAINST_SCHEDULING: list[tuple[Json, str, tuple[str, ...]]] = [
    (template(containers=[]), "spec.containers", ("empty",)),
    (template(containers=[{"name": "main", "image": ""}]), "spec.containers[0].image", ()),
    (template(nodeSelector={"pool": "a b"}), "spec.nodeSelector.pool", ("'a b'",)),
    (template(tolerations=[{"key": "a b", "operator": "Exists"}]),
     "spec.tolerations[0].key", ("'a b'",)),
    (template(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
     "spec.tolerations[0].value", ("Equal",)),
    (template(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),
     "spec.tolerations[0].tolerationSeconds", ("NoExecute",)),
    (template(tolerations=[{"effect": "NoExecute"}]), "spec.tolerations[0].operator", ("Exists",)),
    (requiring(), _TERMS, ("empty",)),
    (requiring({"matchExpressions": [{"key": "a", "operator": "In"}]}),
     f"{_TERMS}[0].matchExpressions[0].values", ("In",)),
    (template(topologySpreadConstraints=[
        {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
     "spec.topologySpreadConstraints[0].maxSkew", ("0",)),
    (template(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds", ("0",)),
    (template(nodeName="n", schedulingGates=[{"name": "a"}]), "spec.nodeName",
     ("schedulingGates",)),
    (template(hostPID=True, shareProcessNamespace=True), "spec.shareProcessNamespace",
     ("hostPID",)),
    (template(os={"name": "windows"}, securityContext={"runAsUser": 5}),
     "spec.securityContext.runAsUser", ("linux", "windows")),
]  # fmt: skip
# Taken, and hardly meant.
NEGATIVE: Json = template(terminationGracePeriodSeconds=-1)


def profiled(field: str, profile: str | None, kind: str = "Localhost") -> Json:
    """A securityContext with such a profile."""
    given = {} if profile is None else {"localhostProfile": profile}
    return {"securityContext": {field: {"type": kind, **given}}}


def annotated(key: str, value: str) -> Json:
    """A template with an annotation."""
    return {"metadata": {"annotations": {key: value}}, **template()}


_PROFILE = "seccompProfile.localhostProfile"
_APP_ARMOR = "spec.securityContext.appArmorProfile.localhostProfile"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_OF_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
# Each was seen to be refused by the API server.
AGAINST_TEXTS: list[tuple[Json, str, tuple[str, ...]]] = [
    (template(**profiled("seccompProfile", "/p")), f"spec.securityContext.{_PROFILE}", ("'/p'",)),
    (in_main(**profiled("seccompProfile", "a/../p")),
     f"spec.containers[0].securityContext.{_PROFILE}", ("'a/../p'", "..")),
    (template(**profiled("seccompProfile", None)), f"spec.securityContext.{_PROFILE}",
     ("Localhost",)),
    (template(**profiled("seccompProfile", "p", "Unconfined")), f"spec.securityContext.{_PROFILE}",
     ("Localhost",)),
    (template(**profiled("appArmorProfile", " p")), _APP_ARMOR, ("' p'",)),
    (template(**profiled("appArmorProfile", "p" * 4096)), _APP_ARMOR, ("4096", "4095")),
    (annotated("kubernetes.io/config.mirror", "x"),
     "metadata.annotations[kubernetes.io/config.mirror]", ("nodeName",)),
    (annotated(_COST, "+1"), f"metadata.annotations[{_COST}]", ("'+1'",)),
    (annotated(_COST, "007"), f"metadata.annotations[{_COST}]", ("'007'",)),
    (annotated(_COST, str(2**31)), f"metadata.annotations[{_COST}]", (str(2**31),)),
    (annotated(f"{_OF_CONTAINER}main", "p"), f"metadata.annotations[{_OF_CONTAINER}main]",
     ("'p'", "unconfined")),
    (annotated(f"{_OF_CONTAINER}other", "unconfined"),
     f"metadata.annotations[{_OF_CONTAINER}other]", ("'other'",)),
]  # fmt: skip
# An object's own metadata.
NAMES: list[tuple[Json, str, tuple[str, ...]]] = [
    ({"name": "My_Pod"}, "metadata.name", ("'My_Pod'", "a-z")),
    ({"name": "a" * 254}, "metadata.name", ("253",)),
    ({"generateName": "My_Pod-"}, "metadata.generateName", ("'My_Pod-'",)),
]
WRONG = (*UNKNOWN, *MISTYPED, *MISSING, *AGAINST_RULES, *AGAINST_SCHEDULING, *AGAINST_TEXTS)
EVERYTHING: Json = template(
    labels={"a": "1"},
    nodeSelector={"a": "b"},
    hostNetwork=True,
    terminationGracePeriodSeconds=30,
    tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": None}],
    initContainers=[{"name": "first", "image": "i", "restartPolicy": "Always"}],
    containers=[
        {
            "name": "main",
            "image": "i",
            "command": ["python"],
            "env": [
                {"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ],
            "ports": [{"containerPort": 80, "hostPort": 80, "name": "http"}],
            "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
            "readinessProbe": {"tcpSocket": {"port": 80}},
            "resources": {
                "requests": {"cpu": 0.5, "memory": "1Gi", "nvidia.com/gpu": 1},
                "limits": {"memory": "1Gi", "nvidia.com/gpu": "1"},
            },
            "volumeMounts": [
                {"name": "data", "mountPath": "/data"},
                {"name": "data", "mountPath": "/more", "subPath": "more"},
            ],
        }
    ],
    volumes=[{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "b"}],
)
# Beside it, texts that the API server reads, and takes.
TAKEN: list[Json] = [
    template(**profiled("seccompProfile", "a/..p")),
    in_main(**profiled("appArmorProfile", "/p/../q")),
    annotated(_COST, "-5"),
    annotated(_COST, "0"),
    annotated("scheduler.alpha.kubernetes.io/tolerations", "[]"),
    annotated(_SECCOMP, "localhost/p.json"),
    annotated(f"{_OF_CONTAINER}main", "localhost//p"),
]
