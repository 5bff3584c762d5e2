"""Systems that make pods, one YAML file each.

`SOURCES` has the rows that recognize pods, in order of precedence:

1. Fairlead's own labels.
2. The platforms that *define* the run (MLRun, Nuclio, Polyaxon, Katib, Kubeflow Pipelines), because
   they know its kind and its name: an MLRun function on Spark is MLRun's, a Katib trial that runs
   as a TFJob is Katib's.
3. The operators that *run* it (Trainer, MPI and training operators, KubeRay, Spark, Dask, JobSet),
   because they know each replica. Of two, the outer one comes first: Trainer creates JobSets.
4. Notebooks, whose controller copies any label of the author to the pod, and whole namespaces.

`POD_KINDS` has the kinds that create pods, by API group and kind. If two files describe the same
kind, one of them lists its versions.

The files are parsed once, when this package is imported. `webhook.policy.run_source` parses such
files strictly, and tests apply it to those that ship.

Keys and values were read in the code that `origin` names, except three from documentation:
KubeRay's replica index, Argo's workflow label and the name of a Workspace.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import yaml

from webhook.sources.kind_model import pod_kind
from webhook.sources.marks import source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.sources.kind_model import PodKind
    from webhook.sources.marks import Source


def _specs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and the spec of every file, highest precedence first."""
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
    """Return the sort key; systems that mark no pods come last."""
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
