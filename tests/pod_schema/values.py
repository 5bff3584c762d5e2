"""Pod templates with values and objects that the API server refuses, one each, or takes."""

from __future__ import annotations

from tests.pod_schema.templates import Json, in_main, template

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def in_volume(**source: Json) -> Json:
    """A template with a volume of this source."""
    mount = {"name": "v", "mountPath": "/v"}
    main = {"name": "main", "image": "i", "volumeMounts": [mount]}
    return template(containers=[main], volumes=[{"name": "v", **source}])


def mounted(**mount: object) -> Json:
    """A template with such a mount of a volume."""
    main = {"name": "main", "image": "i", "volumeMounts": [{"name": "v", **mount}]}
    return template(containers=[main], volumes=[{"name": "v", "emptyDir": {}}])


# The template, where it is wrong, and what the message has to mention.
REFUSED: list[tuple[Json, str, tuple[str, ...]]] = [
    (in_main(resources={"limits": {"gpu": 1}}), "spec.containers[0].resources.limits.gpu",
     ("'gpu'",)),
    (in_main(resources={"limits": {"nvidia.com/gpu": "0.5"}}),
     "spec.containers[0].resources.limits[nvidia.com/gpu]", ()),
    (in_main(resources={"limits": {"hugepages-2Mi": "4Mi"},
     "requests": {"hugepages-2Mi": "4Mi"}}), "spec.containers[0].resources", ()),
    (in_main(resources={"limits": {"hugepages-2Mi": "3Mi", "cpu": 1, "memory": "1Gi"}}),
     "spec.containers[0].resources.limits[hugepages-2Mi]", ()),
    (in_main(resources={"limits": {"nvidia.com/": 1}}),
     "spec.containers[0].resources.limits[nvidia.com/]", ("'nvidia.com/'",)),
    (in_main(resources={"limits": {"nvidia_gpu": 1}}),
     "spec.containers[0].resources.limits.nvidia_gpu", ("'nvidia_gpu'",)),
    (in_main(resources={"limits": {"requests.nvidia.com/gpu": 1}}),
     "spec.containers[0].resources.limits[requests.nvidia.com/gpu]",
     ("'requests.nvidia.com/gpu'",)),
    (in_main(env=[{"name": "", "value": "x"}]), "spec.containers[0].env[0].name", ()),
    (in_main(env=[{"name": "A", "valueFrom": {}}]), "spec.containers[0].env[0].valueFrom", ()),
    (in_main(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"},
     "secretKeyRef": {"name": "a", "key": "b"}}}]),
     "spec.containers[0].env[0].valueFrom.secretKeyRef", ()),
    (in_main(envFrom=[{}]), "spec.containers[0].envFrom[0]", ()),
    (in_main(envFrom=[{"secretRef": {"name": "a"}, "configMapRef": {"name": "a"}}]),
     "spec.containers[0].envFrom[0].secretRef", ()),
    (in_main(livenessProbe={}), "spec.containers[0].livenessProbe", ()),
    (in_main(livenessProbe={"exec": {"command": ["a"]}, "httpGet": {"port": 80}}),
     "spec.containers[0].livenessProbe.httpGet", ()),
    (in_main(livenessProbe={"exec": {"command": ["a"]}, "periodSeconds": -1}),
     "spec.containers[0].livenessProbe.periodSeconds", ()),
    (in_main(livenessProbe={"exec": {"command": ["a"]}, "successThreshold": 2}),
     "spec.containers[0].livenessProbe.successThreshold", ()),
    (in_main(livenessProbe={"httpGet": {"port": 0}}),
     "spec.containers[0].livenessProbe.httpGet.port", ()),
    (in_main(livenessProbe={"httpGet": {"port": "WebUI"}}),
     "spec.containers[0].livenessProbe.httpGet.port", ("'WebUI'",)),
    (in_main(livenessProbe={"exec": {}}), "spec.containers[0].livenessProbe.exec.command", ()),
    (in_main(readinessProbe={"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 10}),
     "spec.containers[0].readinessProbe.terminationGracePeriodSeconds", ()),
    (in_main(lifecycle={"preStop": {}}), "spec.containers[0].lifecycle.preStop", ()),
    (in_main(lifecycle={"preStop": {"sleep": {"seconds": -1}}}),
     "spec.containers[0].lifecycle.preStop.sleep.seconds", ()),
    (in_main(lifecycle={"preStop": {"sleep": {"seconds": 100}}}),
     "spec.containers[0].lifecycle.preStop.sleep.seconds", ()),
    (in_main(image=" i"), "spec.containers[0].image", ("' i'",)),
    (in_main(restartPolicy="Sometimes"), "spec.containers[0].restartPolicy", ("'Sometimes'",)),
    (mounted(mountPath=""), "spec.containers[0].volumeMounts[0].mountPath", ()),
    (mounted(mountPath="/v", subPath="../a"), "spec.containers[0].volumeMounts[0].subPath",
     ("'../a'",)),
    (mounted(mountPath="/v", subPath="/a"), "spec.containers[0].volumeMounts[0].subPath",
     ("'/a'",)),
    (in_volume(persistentVolumeClaim={"claimName": ""}),
     "spec.volumes[0].persistentVolumeClaim.claimName", ()),
    (in_volume(configMap={}), "spec.volumes[0].configMap.name", ()),
    (in_volume(secret={}), "spec.volumes[0].secret.secretName", ()),
    (template(hostname="A_b"), "spec.hostname", ("'A_b'",)),
    (template(subdomain="a.b"), "spec.subdomain", ("'a.b'",)),
    (template(serviceAccountName="My_SA"), "spec.serviceAccountName", ("'My_SA'",)),
    (template(nodeName="Node_1"), "spec.nodeName", ("'Node_1'",)),
    (template(os={"name": "macos"}), "spec.os.name", ("'macos'",)),
    (template(affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]}]}}}),
     f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]",
     ("'x y'",)),
    (template(affinity={"nodeAffinity": {_PREFERRED: [{"weight": 0,
     "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}),
     f"spec.affinity.nodeAffinity.{_PREFERRED}[0].weight", ()),
    (template(affinity={"podAntiAffinity": {_REQUIRED: [{"topologyKey": "a",
     "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]}}),
     f"spec.affinity.podAntiAffinity.{_REQUIRED}[0].labelSelector.matchExpressions[0].values",
     ()),
    (template(affinity={"podAntiAffinity": {_REQUIRED: [{"topologyKey": "a",
     "namespaces": ["A_b"]}]}}), f"spec.affinity.podAntiAffinity.{_REQUIRED}[0].namespaces[0]",
     ("'A_b'",)),
    (template(affinity={"podAntiAffinity": {_REQUIRED: [{"topologyKey": "a",
     "matchLabelKeys": ["x"]}]}}), f"spec.affinity.podAntiAffinity.{_REQUIRED}[0].matchLabelKeys",
     ()),
    (template(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a",
     "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}, "minDomains": 2}]),
     "spec.topologySpreadConstraints[0].minDomains", ()),
    (template(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a",
     "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}, {"maxSkew": 1,
     "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]),
     "spec.topologySpreadConstraints[1].topologyKey", ()),
    (template(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a",
     "whenUnsatisfiable": "DoNotSchedule", "labelSelector": None, "matchLabelKeys": ["x"]}]),
     "spec.topologySpreadConstraints[0].matchLabelKeys", ()),
    (template(resources={"limits": {"nvidia.com/gpu": "1"}}),
     "spec.resources.limits[nvidia.com/gpu]", ("'nvidia.com/gpu'",)),
    (template(initContainers=[{"name": "i", "image": "i",
     "livenessProbe": {"exec": {"command": ["a"]}}}]), "spec.initContainers[0].livenessProbe",
     ()),
    (template(initContainers=[{"name": "i", "image": "i",
     "lifecycle": {"preStop": {"exec": {"command": ["a"]}}}}]),
     "spec.initContainers[0].lifecycle", ()),
    (template(hostNetwork=True, securityContext={"sysctls": [
        {"name": "net.ipv4.ip_local_port_range", "value": "1024 65000"}]}),
     "spec.securityContext.sysctls[0].name", ("hostNetwork",)),
    (template(hostIPC=True, securityContext={"sysctls": [
        {"name": "kernel/shmmax", "value": "1"}]}),
     "spec.securityContext.sysctls[0].name", ("hostIPC",)),
    (template(securityContext={"sysctls": [{"name": "a b", "value": "1"}]}),
     "spec.securityContext.sysctls[0].name", ("'a b'",)),
    (in_main(resources={"limits": {"storage": "1Gi"}}),
     "spec.containers[0].resources.limits.storage", ("'storage'",)),
    ({**template(), "metadata": {"annotations": {"a b": "c"}}}, "metadata.annotations[a b]",
     ("'a b'",)),
]  # fmt: skip


def reading(path: str) -> Json:
    """A template whose container reads this field of its pod."""
    return in_main(env=[{"name": "a.b-c D", "valueFrom": {"fieldRef": {"fieldPath": path}}}])


def spreading(when: str, **more: object) -> Json:
    """A constraint over zones."""
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, **more}


# What is next to it, and right.
ACCEPTED: list[Json] = [
    *map(reading, ("metadata.uid", "metadata.labels['a.b/c']", "metadata.annotations['x']",
                   "spec.nodeName", "status.hostIPs")),
    in_main(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": each}}}
                 for each in ("limits.cpu", "requests.hugepages-2Mi")]),
    in_main(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b.."}}}]),
    in_main(envFrom=[{"prefix": "A_", "configMapRef": {"name": "a", "optional": True}}]),
    in_main(resources={"limits": {"nvidia.com/gpu": "2000m", "kubernetes.io/foo": 1}}),
    in_main(resources={"limits": {"hugepages-2Mi": "4Mi", "cpu": 1}}),
    in_main(resources={"requests": {"cpu": "0.0001", "ephemeral-storage": "1Gi"}}),
    template(resources={"limits": {"cpu": 1, "memory": "1Gi"}}),
    template(resourceClaims=[{"name": "gpu", "resourceClaimName": "x"},
                             {"name": "b", "resourceClaimTemplateName": "x"}],
             containers=[{"name": "main", "image": "i", "resources": {"claims": [
                 {"name": "gpu"}]}}]),
    in_main(image="img: 1", restartPolicy="OnFailure"),
    in_main(livenessProbe={"exec": {"command": ["a"]}, "successThreshold": 0, "periodSeconds": 0},
            readinessProbe={"httpGet": {"port": "http"}, "successThreshold": 3},
            startupProbe={"grpc": {"port": 5}, "terminationGracePeriodSeconds": 1},
            lifecycle={"preStop": {"sleep": {"seconds": 30}}, "postStart": {"tcpSocket": {
                "port": 80}}}),
    template(terminationGracePeriodSeconds=200, containers=[{"name": "main", "image": "i",
             "lifecycle": {"preStop": {"sleep": {"seconds": 200}}}}]),
    in_main(ports=[{"containerPort": 53, "hostPort": 53},
                   {"containerPort": 53, "hostPort": 53, "protocol": "UDP"},
                   {"containerPort": 54, "hostPort": 53, "hostIP": "10.0.0.1"}]),
    template(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet", containers=[
        {"name": "main", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]),
    in_main(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
    mounted(mountPath="/v", subPath="a/..b", readOnly=True, recursiveReadOnly="Enabled"),
    mounted(mountPath="v", subPathExpr="$(A)/b", recursiveReadOnly="Disabled"),
    template(volumes=[{"name": "v", "emptyDir": {}}], containers=[
        {"name": "main", "image": "i", "securityContext": {"privileged": True}, "volumeMounts": [
            {"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]}]),
    in_volume(configMap={"name": "A_b", "defaultMode": 511, "items": [
        {"key": "a", "path": "a/..b", "mode": 0}]}),
    in_volume(persistentVolumeClaim={"claimName": "c"}),
    in_volume(hostPath={"path": "x/..y"}),
    in_volume(nfs={"server": "a", "path": "/x"}),
    in_volume(emptyDir={"sizeLimit": 0}),
    in_volume(projected={"sources": [{"downwardAPI": {"items": [
        {"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "b", "fieldRef": {"fieldPath": "metadata.annotations['x']"}}]}}]}),
    in_volume(ephemeral={"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}),
    in_volume(image={"reference": "i"}),
    template(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], containers=[
        {"name": "main", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/v"}]}]),
    template(dnsPolicy="None", dnsConfig={"nameservers": ["::1", "1.1.1.1"]}),
    template(hostAliases=[{"ip": "fe80::1", "hostnames": ["a.b"]}]),
    template(hostname="a", subdomain="b", os={"name": "linux"}),
    template(hostUsers=False),
    template(securityContext={"sysctls": [{"name": "kernel/shm_rmid_forced", "value": "1"}]}),
    template(schedulingGates=[{"name": "a.b/C"}, {"name": "b"}],
             readinessGates=[{"conditionType": "a.b/C"}]),
    template(initContainers=[
        {"name": "a", "image": "i", "restartPolicy": "Always", "livenessProbe": {
            "tcpSocket": {"port": 5}}, "lifecycle": {"preStop": {"exec": {"command": ["a"]}}}},
        {"name": "b", "image": "i"}]),
    template(topologySpreadConstraints=[
        spreading("DoNotSchedule", minDomains=2, labelSelector={}, matchLabelKeys=["x"]),
        spreading("ScheduleAnyway")]),
    template(affinity={
        "nodeAffinity": {
            _REQUIRED: {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]},
            _PREFERRED: [{"weight": 100, "preference": {"matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": [""]}]}}]},
        "podAntiAffinity": {
            _REQUIRED: [{"topologyKey": "zone", "namespaces": ["ml"], "labelSelector": {
                "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
                "mismatchLabelKeys": ["x"]}],
            _PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}}),
    {**template(), "metadata": {"annotations": {"A.B/c": "c"}, "finalizers": ["a.b/c", "orphan"]}},
]  # fmt: skip
