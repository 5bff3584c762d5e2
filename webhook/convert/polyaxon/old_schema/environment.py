"""The environment of the old schema: of a run's only pod, of its master, and of every pod.

Read in polyaxon-schemas 0.6 (`ops/environments/pods.py`, `specs/experiment.py`) and polyaxon 0.x
(`scheduler/spawners/experiment_spawner.py`). Resources and placement at the top of environment are
the master's alone; what the pods mount and who they are is the same for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.old_schema.replicas import FIELDS
from webhook.convert.polyaxon.old_schema.resources import resources
from webhook.convert.polyaxon.placement import OLD, placement
from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.values import want_list, want_text, want_whole

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

# Where the other replicas stand: under their framework's name, since 0.4 under replicas, and before
# there was another framework than TensorFlow beside the master's resources.
FRAMEWORKS: Final = ("tensorflow", "mxnet", "pytorch", "horovod", "mpi")
_TWICE: Final = "a run has one set of replicas, and environment has one already; keep one"
_STORES: Final = (
    "Fairlead mounts no stores of data or outputs; give the pods a volume in spec.template of "
    "the Run"
)
_MEANINGLESS: Final = {
    "persistence": _STORES,
    "outputs": _STORES,
    "data_refs": _STORES,
    "artifact_refs": _STORES,
}
_REFERENCES: Final = (
    ("config_map_refs", "configMapRef", "ConfigMap"),
    ("configmap_refs", "configMapRef", "ConfigMap"),
    ("secret_refs", "secretRef", "Secret"),
)
_CATALOGUE: Final = (
    "names of Polyaxon's catalogue are taken for those of {kind}s in the run's namespace; mend "
    "spec.template of the Run if they differ"
)


@dataclass
class Environment:
    """What an experiment, a job or a notebook asks for.

    resources, placement: of the only pod, or of the master.
    pod: fields of every pod's spec. env_from: of every main container.
    replicas: the section with the other replicas, and the framework that it is spelt under.
    """

    resources: dict[str, Draft] = field(default_factory=dict)
    placement: dict[str, Draft] = field(default_factory=dict)
    pod: dict[str, Draft] = field(default_factory=dict)
    env_from: list[Draft] = field(default_factory=list)
    max_restarts: Item | None = None
    replicas: Item | None = None
    spelt_under: str = "replicas"


def environment(item: Item | None, notes: Notes, *, distributable: bool) -> Environment:
    """The environment section. Only experiments are `distributable`."""
    if item is None:
        return Environment()
    section = Section(item, notes)
    result = Environment(resources(section.given("resources"), notes), placement(section, OLD))
    section.ignore("index")
    section.leave(_MEANINGLESS)
    if account := section.given("service_account"):
        result.pod["serviceAccountName"] = account
    if secrets := section.given("image_pull_secrets"):
        result.pod["imagePullSecrets"] = [{"name": name} for name in _names(secrets, notes)]
    for name, source, kind in _REFERENCES:
        if references := section.given(name):
            notes.warning(references, _CATALOGUE.format(kind=kind))
            result.env_from += [{source: {"name": name}} for name in _names(references, notes)]
    restarts = section.given("max_restarts")
    if restarts is not None and want_whole(restarts, notes) is not None:
        result.max_restarts = restarts.holding(want_whole(restarts, notes))
    if distributable:
        _replicas(section, result)
    section.close()
    return result


def _replicas(section: Section, result: Environment) -> None:
    oldest = {name: item for name in FIELDS if (item := section.given(name)) is not None}
    if oldest:
        result.replicas, result.spelt_under = section.item.holding(oldest), "tensorflow"
    for name in ("replicas", *FRAMEWORKS):
        found = section.given(name)
        if found is not None and result.replicas is not None:
            section.notes.error(found, _TWICE, key=True)
        elif found is not None:
            result.replicas, result.spelt_under = found, name


def _names(item: Item, notes: Notes) -> list[Item]:
    return [
        element.saying(text)
        for element in want_list(item, notes)
        if (text := want_text(element, notes)) is not None
    ]
