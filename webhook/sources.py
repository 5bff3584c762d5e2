"""The table of marks: which labels say that a pod belongs to a run, and what they tell of it.

`SOURCES` is in order of precedence. First Fairlead's own labels. Then the platforms that *made*
the run (MLRun, Nuclio, Polyaxon, Katib, Kubeflow Pipelines), for they know what it is and what
its author calls it: an MLRun function on Spark is MLRun's, a Katib trial that runs as a TFJob is
Katib's. Then what only *carries* it (Trainer, MPI and training operators, KubeRay, Spark, Dask,
JobSet), for that knows each replica; of two carriers the outer one first: Trainer makes JobSets.
Last the notebooks, whose controller copies any label of its author's onto the pod, and the
namespace as a whole.

Keys and values were read in the code that `origin` names; of three we know by documentation that
pods carry them: KubeRay's replica index, Argo's workflow label, the name of a Workspace.
"""

from __future__ import annotations

from typing import Final

from webhook import names
from webhook.marks import Clause, Key, Mark, Source
from webhook.replicas import (
    COMPLETION_KEYS,
    JOB_INDEX,
    JOBSET_COORDINATOR,
    JOBSET_NAME,
    REPLICATED_JOB,
    REPLICATED_JOB_REPLICAS,
    TRAINING,
    TRAINING_INDEX,
    TRAINING_OPERATOR,
    TRAINING_ROLE,
    jobset_index,
    jobset_leads,
    training_leads,
)
from webhook.run.rendezvous.table import FRAMEWORKS, KUBEFLOW_JOBS, POLYAXON_RUNTIMES


def _same(*words: str) -> dict[str, str]:
    return dict(zip(words, words, strict=True))


def _keys(*keys: str) -> tuple[Key, ...]:
    return tuple(map(Key, keys))


_ROLES: Final = _same(*names.ROLES)
_MPI_ROLES: Final = _same("launcher", "worker")
_JOBSET_ROLES: Final = _ROLES | dict.fromkeys(("node", "nodes", "workers"), "worker")
_MLRUN_CLASS: Final = Key("mlrun/class")
_POLYAXON_KIND: Final = Key("operation.polyaxon.com/kind", annotation=True)
_POLYAXON_COMPONENT: Final = Key("app.kubernetes.io/component")

SOURCES: Final[tuple[Source, ...]] = (
    Source(
        name="fairlead",
        system="Fairlead",
        origin="the Run controller, or the pod's author",
        marks=(Mark(names.RUN),),
        run=_keys(names.RUN),
        kind=(Clause(Key(names.KIND), _same(*names.KINDS)),),
        framework=(Clause(Key(names.FRAMEWORK), _same(*FRAMEWORKS)),),
        role=(Clause(Key(names.ROLE), _ROLES),),
        index_keys=_keys(names.REPLICA_INDEX),
        note="Kind, framework, role and index refine the pods of every other row as well.",
    ),
    Source(
        name="mlrun",
        system="MLRun",
        origin="mlrun: get_resource_labels and BasePod in the API service; common/constants.py",
        marks=(Mark("mlrun/class"),),
        run=_keys("mlrun/name", "mlrun/job", "mlrun/task-name", "mlrun/function", "mlrun/uid"),
        kind=(
            Clause(
                _MLRUN_CLASS,
                _same("build", "job")
                | dict.fromkeys(("dask", "databricks", "mpijob", "remote-spark", "spark"), "job")
                | dict.fromkeys(("application", "nuclio", "remote", "serving"), "service"),
            ),
        ),
        framework=(
            Clause(
                _MLRUN_CLASS,
                {"dask": "dask", "mpijob": "mpi", "remote-spark": "spark", "spark": "spark"},
            ),
        ),
        note="Role and index come from the Spark, Dask or MPI labels beneath.",
    ),
    Source(
        name="nuclio",
        system="Nuclio",
        origin="nuclio: pkg/platform/kube/functionres/lazy.go, pkg/common/consts.go",
        marks=(Mark("nuclio.io/function-name"), Mark("nuclio.io/class", "function")),
        run=_keys("nuclio.io/function-name"),
        kind_always="service",
    ),
    Source(
        name="polyaxon",
        system="Polyaxon",
        origin="polyaxon: _k8s/converter/base/base.py, _k8s/converter/mixins.py; "
        "mloperator: controllers/managers",
        marks=(
            Mark("app.kubernetes.io/managed-by", "polyaxon"),
            Mark("operation.polyaxon.com/uuid"),
        ),
        run=(
            Key("operation.polyaxon.com/name", annotation=True),
            *_keys("operation.polyaxon.com/uuid", "app.kubernetes.io/instance"),
        ),
        kind=(
            Clause(_POLYAXON_KIND, {"builder": "build", "job": "job", "service": "service"}),
            Clause(_POLYAXON_COMPONENT, {"polyaxon-jobs": "job", "polyaxon-services": "service"}),
        ),
        framework=(
            Clause(
                _POLYAXON_KIND,
                {kind: runtime.framework for kind, runtime in POLYAXON_RUNTIMES.items()},
            ),
        ),
        note="Role and index come from the operator beneath. Notebooks and tensorboards say only "
        "that they are services: give them fairlead.dev/kind.",
    ),
    Source(
        name="katib",
        system="Kubeflow Katib",
        origin="katib: pkg/controller.v1beta1/consts/const.go, pkg/webhook/v1beta1/pod/utils.go",
        marks=(Mark("katib.kubeflow.org/trial"), Mark("katib.kubeflow.org/experiment")),
        run=_keys("katib.kubeflow.org/trial", "katib.kubeflow.org/experiment"),
        kind=(Clause(Key("katib.kubeflow.org/suggestion"), "service"),),
        kind_always="experiment",
        note="Katib's own webhook writes the trial's label; ours sees it when it is called after "
        "that, or once more (reinvocationPolicy: IfNeeded).",
    ),
    Source(
        name="kubeflow-pipelines",
        system="Kubeflow Pipelines",
        origin="pipelines: backend/src/common/util/consts.go, backend/src/v2/compiler/"
        "argocompiler/argo.go; Argo's workflow label",
        marks=(Mark("pipeline/runid"), Mark("pipelines.kubeflow.org/v2_component")),
        run=_keys("workflows.argoproj.io/workflow", "pipeline/runid"),
        note="A workflow of Argo that no pipeline made is no ML run by its labels.",
    ),
    Source(
        name="kubeflow-trainer",
        system="Kubeflow Trainer v2",
        origin="trainer: pkg/constants/constants.go, manifests/base/runtimes",
        marks=(Mark("trainer.kubeflow.org/trainjob-ancestor-step"),),
        run=_keys(JOBSET_NAME),
        role=(
            Clause(Key(REPLICATED_JOB), _JOBSET_ROLES),
            Clause(Key("trainer.kubeflow.org/trainjob-ancestor-step"), {"trainer": "worker"}),
        ),
        note="Trainer 2.0 labels the Job; only a runtime whose pod template repeats the label "
        "shows it here. All other pods of Trainer are told just as well by the row jobset.",
    ),
    Source(
        name="mpi-operator",
        system="MPI operator",
        origin="mpi-operator: defaultLabels of pkg/controller/mpi_job_controller.go (v2beta1); "
        "labelMPIJobName of the v1 and v1alpha2 controllers",
        marks=(
            Mark(TRAINING_OPERATOR, "mpi-operator"),
            Mark("mpi-job-name"),
            Mark("mpi_job_name"),
        ),
        run=_keys(f"{TRAINING}/job-name", "mpi-job-name", "mpi_job_name"),
        framework_always="mpi",
        role=tuple(
            Clause(Key(key), _MPI_ROLES) for key in (TRAINING_ROLE, "mpi-job-role", "mpi_role_type")
        ),
        index_keys=_keys(TRAINING_INDEX),
    ),
    Source(
        name="kubeflow-training",
        system="Kubeflow training operator",
        origin="training-operator: pkg/apis/kubeflow.org/v1/common_types.go, "
        "createNewPod of pkg/controller.v1/common/pod.go",
        marks=(Mark(f"{TRAINING}/job-name"), Mark(TRAINING_OPERATOR)),
        run=_keys(f"{TRAINING}/job-name"),
        framework=(
            Clause(
                Key(TRAINING_OPERATOR),
                {job.operator: name for name, job in KUBEFLOW_JOBS.items()},
            ),
        ),
        role=(
            Clause(Key(f"{TRAINING}/replica-type"), _ROLES | {"eval": "evaluator"}),
            Clause(Key(TRAINING_ROLE), _same("master")),
        ),
        index_keys=_keys(TRAINING_INDEX),
        leads_keys=_keys(TRAINING_ROLE, TRAINING_OPERATOR, TRAINING_INDEX),
        leads=training_leads,
        note="Worker 0 leads where the operator gives it job-role master: where there is no "
        "master, of a TFJob, a JAXJob and, since 1.8, a PyTorchJob. A PaddleJob's never has it, "
        "and always leads: its labels do not tell whether there is a master.",
    ),
    Source(
        name="kuberay",
        system="KubeRay",
        origin="kuberay: labelPod of ray-operator/controllers/ray/common/pod.go, utils/constant.go",
        marks=(Mark("ray.io/cluster"), Mark("ray.io/originated-from-crd")),
        run=_keys("ray.io/originated-from-cr-name", "ray.io/cluster"),
        kind=(Clause(Key("ray.io/serve"), "service"),),
        framework_always="ray",
        role=(Clause(Key("ray.io/node-type"), _same("head", "worker")),),
        index_keys=_keys("ray.io/worker-group-replica-index"),
        note="Head and workers of a RayJob or RayService have the name of the RayCluster that was "
        "made for it; ray.io/originated-from-… is on that RayCluster, on Jobs and Services, and of "
        "pods only on the one that submits a RayJob, since KubeRay 1.7. Before, that pod has no "
        "mark. ray.io/serve is on the pods of a RayService, since 1.1. The index is the replica's "
        "in its worker group, since 1.6, in 1.5 behind the gate RayMultiHostIndexing.",
    ),
    Source(
        name="spark",
        system="Spark on Kubernetes, Spark operator",
        origin="spark: resource-managers/kubernetes Constants.scala; spark-operator: pkg/common",
        marks=(
            Mark("spark-role"),
            Mark("spark-app-selector"),
            Mark("sparkoperator.k8s.io/app-name"),
        ),
        run=_keys("sparkoperator.k8s.io/app-name", "spark-app-name", "spark-app-selector"),
        framework_always="spark",
        role=(Clause(Key("spark-role"), _same("driver", "executor")),),
        index_keys=_keys("spark-exec-id"),
        note="Executors count from 1.",
    ),
    Source(
        name="dask",
        system="Dask",
        origin="dask-kubernetes: dask_kubernetes/operator/controller/controller.py",
        marks=(Mark("dask.org/cluster-name"), Mark("dask.org/component")),
        run=_keys("dask.org/cluster-name"),
        framework_always="dask",
        role=(
            Clause(
                Key("dask.org/component"),
                {"job-runner": "driver", "scheduler": "scheduler", "worker": "worker"},
            ),
        ),
    ),
    Source(
        name="jobset",
        system="JobSet",
        origin="jobset: labelAndAnnotateObject and coordinatorEndpoint of pkg/controllers/"
        "jobset_controller.go; Kubernetes' Job controller",
        marks=(Mark(JOBSET_NAME),),
        run=_keys(JOBSET_NAME),
        role=(Clause(Key(REPLICATED_JOB), _JOBSET_ROLES),),
        index_keys=(*_keys(REPLICATED_JOB_REPLICAS, JOB_INDEX), *COMPLETION_KEYS),
        index=jobset_index,
        leads_keys=(
            *_keys(JOBSET_COORDINATOR, JOBSET_NAME, REPLICATED_JOB, JOB_INDEX),
            *COMPLETION_KEYS,
        ),
        leads=jobset_leads,
        note="A replicated job of several jobs counts its jobs, of one that job's pods. The pod "
        "that spec.coordinator names leads; without one, worker 0 of pytorch, jax or no framework.",
    ),
    Source(
        name="kubeflow-notebooks",
        system="Kubeflow Notebooks, Workspaces",
        origin="notebooks: components/notebook-controller/controllers/notebook_controller.go, "
        "workspaces/controller/internal/controller/workspace_controller.go",
        marks=(Mark("notebook-name"), Mark("notebooks.kubeflow.org/workspace-name")),
        run=_keys("notebook-name", "notebooks.kubeflow.org/workspace-name"),
        kind_always="notebook",
    ),
    Source(
        name="namespace",
        system="A namespace placed as a whole",
        origin="the cluster's admin",
        marks=(Mark(names.PLACE, names.PLACE_ALL, namespace=True),),
        note="The Namespace's fairlead.dev/kind counts for pods whose own row tells no kind.",
    ),
)
