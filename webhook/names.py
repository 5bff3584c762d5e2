"""Every label, annotation and well-known name that Fairlead reads or writes, in one place."""

from typing import Final

GROUP: Final = "fairlead.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

# Keys under this prefix are Fairlead's own: no policy may write them.
PREFIX: Final = f"{GROUP}/"

# Labels that mark a pod as part of a run (on a pod), or all pods of a namespace (PLACE, KIND).
RUN: Final = f"{GROUP}/run"
KIND: Final = f"{GROUP}/kind"
FRAMEWORK: Final = f"{GROUP}/framework"
ROLE: Final = f"{GROUP}/role"
REPLICA_INDEX: Final = f"{GROUP}/replica-index"
PLACE: Final = f"{GROUP}/place"
PLACE_ALL: Final = "all"
# On a namespace: the nodeSelector of pods that Kueue has admitted goes before overrides.
KUEUE: Final = f"{GROUP}/kueue"
KUEUE_KEEP: Final = "keep"

# Annotations: what a pod's author asks for, and what a decision leaves behind.
CAPACITY: Final = f"{GROUP}/capacity"
PLACEMENT: Final = f"{GROUP}/placement"

# The controller's own, on what it makes for a Run: the label by which it selects, the Run's uid,
# and which attempt of its role a pod belongs to (an annotation).
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "fairlead"
RUN_UID: Final = f"{GROUP}/run-uid"
ATTEMPT: Final = f"{GROUP}/attempt"
# What a Service that is closed selects by beside: a label that no pod has.
CLOSED: Final = f"{GROUP}/closed"

# Objects of an installation, all of them in its namespace but for the cluster-wide ones. The
# manifests, the install command and the certificates' keeper mean the same ones by them.
NAMESPACE: Final = "fairlead-system"
WEBHOOK: Final = "fairlead-webhook"  # ServiceAccount, Deployment, Service, ClusterRole
CONTROLLER: Final = "fairlead-controller"  # ServiceAccount, Deployment, Lease, ClusterRole
WEBHOOK_CONFIGURATION: Final = "fairlead"
POLICIES_CONFIG_MAP: Final = "fairlead-policies"
POLICIES_VIEW: Final = "fairlead-policies-view"  # ClusterRole, for whoever may read policies
# Secrets: the authority with its key, for the controller alone; what the webhook serves with.
AUTHORITY_SECRET: Final = "fairlead-authority"  # noqa: S105 (a name)
SERVING_SECRET: Final = "fairlead-webhook-tls"  # noqa: S105 (a name)
# Who owns the field caBundle by server-side apply, and who everything else that `install` applies.
CERTIFICATES_MANAGER: Final = "fairlead-certificates"
INSTALL_MANAGER: Final = "fairlead-install"
# Annotation of a webhook configuration by which cert-manager's cainjector writes the caBundle.
INJECTED_BY_CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"
# And of a Secret that cert-manager writes: the name of its Certificate.
MADE_BY_CERT_MANAGER: Final = "cert-manager.io/certificate-name"
# Annotation of either Secret: renew what it holds. `fairlead certs rotate` sets it, to the time.
ROTATE: Final = f"{GROUP}/rotate"
# Annotations of the webhook configuration while `fairlead disable` is in force: until when
# (RFC 3339), and the rules to be put back, as a JSON object of lists by the webhook's name.
DISABLED_UNTIL: Final = f"{GROUP}/disabled-until"
DISABLED_RULES: Final = f"{GROUP}/disabled-rules"
# Annotation of the ConfigMap of policies: a digest of what `fairlead install` put into it.
POLICIES_APPLIED: Final = f"{GROUP}/policies-applied"

# ValidatingAdmissionPolicies: pods that a webhook which may be ignored let through, tolerations
# added later, and who may have the controller make pods.
GUARDS: Final = "fairlead-"  # how the names of all of them begin
STAMP_GUARD: Final = "fairlead-stamp"
TOLERATIONS_GUARD: Final = "fairlead-tolerations"
NODE_NAMES_GUARD: Final = "fairlead-node-names"
RUN_AUTHORS_GUARD: Final = "fairlead-run-authors"

# The resource of the Run kind.
RUN_KIND: Final = "Run"
RUNS: Final = "runs"
# The resources of the kinds that policies are written in; cluster-scoped.
POLICY_KIND: Final = "PlacementPolicy"
PLACEMENT_POLICIES: Final = "placementpolicies"
CLASS_KIND: Final = "CapacityClass"
CAPACITY_CLASSES: Final = "capacityclasses"
# And of the kind that says which pods policies take no part in, and until when; cluster-scoped.
EXCEPTION_KIND: Final = "PlacementException"
PLACEMENT_EXCEPTIONS: Final = "placementexceptions"
# Of each kind that a policy set is made of, the resource.
POLICY_RESOURCES: Final = {
    POLICY_KIND: PLACEMENT_POLICIES,
    CLASS_KIND: CAPACITY_CLASSES,
    EXCEPTION_KIND: PLACEMENT_EXCEPTIONS,
}

KINDS: Final = ("experiment", "job", "build", "notebook", "tensorboard", "service", "core")
DEFAULT_KIND: Final = "job"
ROLES: Final = (
    "master",
    "chief",
    "worker",
    "ps",
    "evaluator",
    "launcher",
    "scheduler",
    "server",
    "driver",
    "executor",
    "head",
)
# Roles that lead a run, whatever its framework.
COORDINATOR_ROLES: Final = frozenset({"master", "chief", "launcher", "scheduler", "driver", "head"})

# Metrics of the webhook that other parts read; counters have _total after it.
METRIC_DECISIONS: Final = "fairlead_decisions"
METRIC_REJECTIONS: Final = "fairlead_policy_rejections"
METRIC_LAST_MATCH: Final = "fairlead_policy_last_match_timestamp_seconds"
METRIC_AUDITED: Final = "fairlead_audited_decisions"
METRIC_SET: Final = "fairlead_policy_set_info"
METRIC_CACHE_AGE: Final = "fairlead_cache_age_seconds"

# Kubernetes' own names.
DEFAULT_SCHEDULER: Final = "default-scheduler"
DAEMON_SET_CONTROLLER: Final = "system:serviceaccount:kube-system:daemon-set-controller"
MIRROR_POD: Final = "kubernetes.io/config.mirror"
# Nodes are authenticated as users of such names, in this group (the node authorizer wants it so).
NODE_USERS: Final = "system:node:"
NODE_GROUP: Final = "system:nodes"
# On a pod: the container that `kubectl logs` takes; on our own pods the main container.
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
OS_LABEL: Final = "kubernetes.io/os"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
# Set by the cloud's node controller while the machine is off, and taken away once it is ready
# (k8s.io/cloud-provider, controllers/nodelifecycle).
TAINT_SHUTDOWN: Final = "node.cloudprovider.kubernetes.io/shutdown"
# Set by an administrator who knows that the machine is off: PodGC then force-deletes its pods.
TAINT_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

# Kueue's own: labels, an annotation and scheduling gates of pods. The podset is on what it has
# admitted; the gate of its topology is the one that such a pod may still have. A Job or whatever it
# knows says its queue by a label, too.
KUEUE_PREFIX: Final = "kueue.x-k8s.io/"
KUEUE_PODSET: Final = f"{KUEUE_PREFIX}podset"
KUEUE_QUEUE: Final = f"{KUEUE_PREFIX}queue-name"
KUEUE_LOCAL_QUEUE: Final = f"{KUEUE_PREFIX}local-queue-name"
KUEUE_WORKLOAD: Final = f"{KUEUE_PREFIX}workload"
KUEUE_ADMISSION_GATE: Final = f"{KUEUE_PREFIX}admission"
KUEUE_TOPOLOGY_GATE: Final = f"{KUEUE_PREFIX}topology"
