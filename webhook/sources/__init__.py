"""Systems that make pods, each in one YAML file beside this module.

`SOURCES` has the rows by which pods are recognised, in order of precedence. First Fairlead's own
labels. Then the platforms that *made* the run (MLRun, Nuclio, Polyaxon, Katib, Kubeflow Pipelines),
for they know what it is and what its author calls it: an MLRun function on Spark is MLRun's, a
Katib trial that runs as a TFJob is Katib's. Then what only *carries* it (Trainer, MPI and training
operators, KubeRay, Spark, Dask, JobSet), for that knows each replica; of two carriers the outer
one first: Trainer makes JobSets. Last the notebooks, whose controller copies any label of its
author's onto the pod, and the namespace as a whole.

`POD_KINDS` has the kinds that make pods, by API group and kind. Where two files describe the same
kind, one of them names the versions that it means.

The files are read as they are, once, when this package is imported. `webhook.policy.run_source`
reads such files strictly, and tests hold those that ship against it.

Keys and values were read in the code that `origin` names; of three we know by documentation that
pods carry them: KubeRay's replica index, Argo's workflow label, the name of a Workspace.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.sources.kinds import pod_kind
from webhook.sources.marks import source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.sources.kinds import PodKind
    from webhook.sources.marks import Source


def _specs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Of every file the name and the spec, those of the higher precedence first."""
    found = [
        yaml.load(each.read_bytes(), Loader=yaml.CSafeLoader)
        for each in files(__package__).iterdir()
        if each.name.endswith(".yaml")
    ]
    found.sort(key=lambda document: document["metadata"]["name"])
    found.sort(key=_precedence, reverse=True)
    for each in found:
        yield each["metadata"]["name"], each["spec"]


def _precedence(document: Mapping[str, Any]) -> int:
    """Systems that mark no pods come last."""
    return int(document["spec"].get("identity", {}).get("precedence", -1))


def _by_kind(kinds: Iterator[PodKind]) -> dict[tuple[str, str], Sequence[PodKind]]:
    found: dict[tuple[str, str], list[PodKind]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.kind), []).append(kind)
    return {key: tuple(sorted(of, key=lambda each: not each.versions)) for key, of in found.items()}


_SPECS: Final = tuple(_specs())
SOURCES: Final[tuple[Source, ...]] = tuple(
    source(name, spec) for name, spec in _SPECS if "identity" in spec
)
POD_KINDS: Final[Mapping[tuple[str, str], Sequence[PodKind]]] = _by_kind(
    pod_kind(each) for _, spec in _SPECS for each in spec.get("kinds", ())
)
