"""Every label, annotation and well-known name that Fairlead reads or writes."""

from typing import Final

GROUP: Final = "fairlead.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

# The releases in their order; the last one is this one. And the one that a cluster may be rolled
# back to by default: the one before, but none before 0.2.0 is published (decision 137).
RELEASES: Final = ("0.1.0", "0.2.0")
ROLLBACK_TO: Final = "0.2.0"

# Keys under this prefix are Fairlead's own: no policy may write them.
PREFIX: Final = f"{GROUP}/"

# Labels that mark a pod as part of a run (on a pod), or all pods of a namespace (PLACE, KIND).
RUN: Final = f"{GROUP}/run"
KIND: Final = f"{GROUP}/kind"
FRAMEWORK: Final = f"{GROUP}/framework"
ROLE: Final = f"{GROUP}/role"
REPLICA_INDEX: Final = f"{GROUP}/replica-index"
REPLICAS: Final = f"{GROUP}/replicas"
# Of a StatefulSet's controller: the pod's ordinal.
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
PLACE: Final = f"{GROUP}/place"
PLACE_ALL: Final = "all"
# The label that every namespace has, with its name.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
# On a namespace: the nodeSelector of pods that Kueue has admitted takes precedence over overrides.
KUEUE: Final = f"{GROUP}/kueue"
KUEUE_KEEP: Final = "keep"
# On a namespace that is placed as a whole: requirements skip the pods of DaemonSets without a mark
# of their own.
DAEMON_SETS: Final = f"{GROUP}/daemonsets"
DAEMON_SETS_KEEP: Final = "keep"

# Annotations: the capacity that a pod's author requests, and the record of a decision.
CAPACITY: Final = f"{GROUP}/capacity"
PLACEMENT: Final = f"{GROUP}/placement"

# The field manager of a dry run that asks about a pod as decided, which the webhook leaves so; and
# the value of PLACEMENT in that pod, which no decision leaves.
AS_DECIDED: Final = "fairlead-as-decided"
# The answer to such a dry run.
LEFT_AS_DECIDED: Final = "a dry run about the pod as it is: no policy was applied"

# The controller's metadata on objects of a Run: the label that it selects by, the Run's uid, and
# the attempt of its role to which a pod belongs (an annotation).
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
# The annotation of each object that helm writes, with the name of its release.
HELM_RELEASE: Final = "meta.helm.sh/release-name"
MANAGER: Final = "fairlead"
RUN_UID: Final = f"{GROUP}/run-uid"
ATTEMPT: Final = f"{GROUP}/attempt"
# Variable of a replica's main container: a number that each later pod of the replica exceeds.
ATTEMPT_VARIABLE: Final = "FAIRLEAD_ATTEMPT"
# Of a Run that is another try of one that is over: annotations with the name of the Run before, and
# with the number of its first pods, above those of all tries before; a label with the name of the
# first of them.
RETRY_OF: Final = f"{GROUP}/retry-of"
START_NOW: Final = f"{GROUP}/start-now"
FIRST_ATTEMPT: Final = f"{GROUP}/first-attempt"
FIRST_TRY: Final = f"{GROUP}/first-try"
# Annotation of a pod of a Run: what happened to its replica before. Only the controller's own user
# may write it.
HISTORY: Final = f"{GROUP}/history"
AVOID_NODES: Final = f"{GROUP}/avoid-nodes"
# Of a Run's pods, the annotations that only the controller sets: it acts on them later.
OF_CONTROLLER: Final = (HISTORY, AVOID_NODES)
# Annotation of the template of a pod set, in the Workload of a Run: which replicas are of it, and
# which policies placed them.
POD_SET: Final = f"{GROUP}/pod-set"
# Label of a Run: by which command it was suspended, so that the same one resumes exactly those.
SUSPENDED: Final = f"{GROUP}/suspended"
SUSPENDED_IN_QUEUE: Final = "queued"
# A label that no pod has; a closed Service selects it in addition.
CLOSED: Final = f"{GROUP}/closed"
# Annotation of a JobSet that a Run was rendered to: the framework's settings, as a JSON object.
SETTINGS: Final = f"{GROUP}/settings"

# Objects of an installation, in its namespace unless they are cluster-scoped. Manifests, the
# install command and the certificate keeper use the same names.
NAMESPACE: Final = "fairlead-system"
WEBHOOK: Final = "fairlead-webhook"  # ServiceAccount, Deployment, Service, ClusterRole
UI: Final = "fairlead-ui"  # ServiceAccount, Deployment, ClusterRole
CONTROLLER: Final = "fairlead-controller"  # ServiceAccount, Deployment, Lease, ClusterRole
WEBHOOK_CONFIGURATION: Final = "fairlead"
POLICIES_CONFIG_MAP: Final = "fairlead-policies"
POLICIES_VIEW: Final = "fairlead-policies-view"  # ClusterRole, the right to read policies
# Secrets: the authority with its key, only for the controller; the webhook's serving certificate.
AUTHORITY_SECRET: Final = "fairlead-authority"  # noqa: S105 (a name)
SERVING_SECRET: Final = "fairlead-webhook-tls"  # noqa: S105 (a name)
# Field managers for server-side apply: of the caBundle, and of all else that `install` applies.
CERTIFICATES_MANAGER: Final = "fairlead-certificates"
INSTALL_MANAGER: Final = "fairlead-install"
# Annotation of the controller's Deployment: the options of `fairlead install`, as a JSON object.
INSTALL_OPTIONS: Final = f"{GROUP}/install-options"
# Annotation of a webhook configuration that makes cert-manager's cainjector write the caBundle.
INJECTED_BY_CERT_MANAGER: Final = "cert-manager.io/inject-ca-from"
# Annotation of a Secret that cert-manager writes: the name of its Certificate.
MADE_BY_CERT_MANAGER: Final = "cert-manager.io/certificate-name"
# Annotation of either Secret that requests a renewal, from `fairlead webhook rotate`: the time.
ROTATE: Final = f"{GROUP}/rotate"
# Annotations of the webhook configuration while `fairlead webhook disable` is in force: the end
# time (RFC 3339), and the rules to restore, as a JSON object of lists by the webhook's name.
DISABLED_UNTIL: Final = f"{GROUP}/disabled-until"
DISABLED_RULES: Final = f"{GROUP}/disabled-rules"
# The record of what an installation intercepts: annotations of the controller's Deployment, so that
# it outlives the webhook configurations. One for each entry and guard (INTERCEPTS and its name; the
# value is its kind), and two for a limit to some namespaces, by name and by a label selector.
INTERCEPTS: Final = f"intercepts.{GROUP}/"
INTERCEPTED_NAMESPACES: Final = f"{GROUP}/intercepted-namespaces"
INTERCEPTED_NAMESPACE_SELECTOR: Final = f"{GROUP}/intercepted-namespace-selector"
# Annotation of the same object: "true" if pods are to be created unplaced while no replica answers.
FAILS_OPEN: Final = f"{GROUP}/fails-open"
# Annotation of the ConfigMap of policies: a digest of the content that `fairlead install` wrote.
POLICIES_APPLIED: Final = f"{GROUP}/policies-applied"

# ValidatingAdmissionPolicies: for pods that bypassed a webhook that fails open, for tolerations
# that are added later, for nodeName, for authors of Runs, for labels of namespaces, and for the
# account of doctor.
GUARDS: Final = "fairlead-"  # how the names of all of them begin
STAMP_GUARD: Final = "fairlead-stamp"
TOLERATIONS_GUARD: Final = "fairlead-tolerations"
NODE_NAMES_GUARD: Final = "fairlead-node-names"
RUN_AUTHORS_GUARD: Final = "fairlead-run-authors"
NAMESPACE_LABELS_GUARD: Final = "fairlead-namespace-labels"
DOCTOR: Final = "fairlead-doctor"

# The resource of the Run kind.
RUN_KIND: Final = "Run"
RUNS: Final = "runs"
# What `kubectl apply` was given last, on the object itself.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# The resources of the policy kinds; cluster-scoped.
POLICY_KIND: Final = "PlacementPolicy"
PLACEMENT_POLICIES: Final = "placementpolicies"
CLASS_KIND: Final = "CapacityClass"
CAPACITY_CLASSES: Final = "capacityclasses"
# A team's own defaults, in its namespace. Read from files only.
TEAM_KIND: Final = "NamespacedPlacementPolicy"
# The resource of exceptions, which set policies aside for pods until a given time; cluster-scoped.
EXCEPTION_KIND: Final = "PlacementException"
PLACEMENT_EXCEPTIONS: Final = "placementexceptions"
# The resource of systems that an admin adds; cluster-scoped.
SOURCE_KIND: Final = "RunSource"
RUN_SOURCES: Final = "runsources"
# The resource of each kind in a policy set.
POLICY_RESOURCES: Final = {
    POLICY_KIND: PLACEMENT_POLICIES,
    CLASS_KIND: CAPACITY_CLASSES,
    EXCEPTION_KIND: PLACEMENT_EXCEPTIONS,
    SOURCE_KIND: RUN_SOURCES,
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
# Roles that lead a run in any framework.
COORDINATOR_ROLES: Final = frozenset({"master", "chief", "launcher", "scheduler", "driver", "head"})

# Seconds without an event after which a watch counts as silent. A watch has a bookmark per minute,
# and is reopened if that is late.
SILENT: Final = 120.0

# Kubernetes' own names.
DEFAULT_SCHEDULER: Final = "default-scheduler"
# The phases that a pod, or a Run, never leaves.
TERMINAL_PHASES: Final = ("Succeeded", "Failed")
CONTROLLER_USER: Final = f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
DAEMON_SET_CONTROLLER: Final = "system:serviceaccount:kube-system:daemon-set-controller"
MIRROR_POD: Final = "kubernetes.io/config.mirror"
# PriorityClasses of every cluster.
SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
# Annotations of pods for older API servers, with a container's name at the end.
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
# Nodes authenticate as users with this prefix, in this group (required by the node authorizer).
NODE_USERS: Final = "system:node:"
NODE_GROUP: Final = "system:nodes"
# On a pod: the default container of `kubectl logs`; on Fairlead's own pods the main container.
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
OS_LABEL: Final = "kubernetes.io/os"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
# Set by the cloud's node controller while the machine is off, and removed once it is ready
# (k8s.io/cloud-provider, controllers/nodelifecycle).
TAINT_SHUTDOWN: Final = "node.cloudprovider.kubernetes.io/shutdown"
# By which clouds and autoscalers announce that they take a node away, before its kubelet is silent:
# a cordon, Karpenter, the cluster autoscaler, AWS' node termination handler, AKS' remediator, GKE.
TAINTS_LEAVING: Final = frozenset(
    {
        "node.kubernetes.io/unschedulable",
        "karpenter.sh/disrupted",
        "ToBeDeletedByClusterAutoscaler",
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/rebalance-recommendation",
        "aws-node-termination-handler/scheduled-maintenance",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "remediator.kubernetes.azure.com/unschedulable",
        "cloud.google.com/impending-node-termination",
    }
)
# Set by an administrator who knows that the machine is off: PodGC then force-deletes its pods.
TAINT_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"

# The uid of what is not stored, where one is required.
NO_UID: Final = "00000000-0000-0000-0000-000000000000"

# Kueue's labels, annotation and scheduling gates of pods. An admitted pod has the podset, and may
# still have the topology gate. A Job or another supported kind also names its queue by a label.
KUEUE_PREFIX: Final = "kueue.x-k8s.io/"
KUEUE_PODSET: Final = f"{KUEUE_PREFIX}podset"
KUEUE_QUEUE: Final = f"{KUEUE_PREFIX}queue-name"
KUEUE_PRIORITY_CLASS: Final = f"{KUEUE_PREFIX}priority-class"
KUEUE_JOB_UID: Final = f"{KUEUE_PREFIX}job-uid"
KUEUE_LONGEST: Final = f"{KUEUE_PREFIX}max-exec-time-seconds"
KUEUE_LOCAL_QUEUE: Final = f"{KUEUE_PREFIX}local-queue-name"
KUEUE_WORKLOAD: Final = f"{KUEUE_PREFIX}workload"
KUEUE_ADMISSION_GATE: Final = f"{KUEUE_PREFIX}admission"
KUEUE_TOPOLOGY_GATE: Final = f"{KUEUE_PREFIX}topology"
