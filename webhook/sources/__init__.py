"""Systems that make pods, one YAML file each.

`SOURCES` has the rows that recognize pods, in order of precedence:

1. Fairlead's own labels.
2. The platforms that *define* the run (MLRun, Nuclio, Polyaxon, Katib, Kubeflow Pipelines), because
   they know its kind and its name: an MLRun function on Spark is MLRun's, a Katib trial that runs
   as a TFJob is Katib's.
3. The operators that *run* it (Trainer, MPI and training operators, KubeRay, Spark, Dask, JobSet),
   because they know each replica. Of two, the outer one comes first: Trainer creates JobSets.
4. Notebooks, whose controller copies any label of the author to the pod, and whole namespaces.

If two files describe the same kind, one of them lists its versions.

The files are parsed once, when this package is imported: `SHIPPED` is their table. A policy set has
a table with the documents RunSource of its author as well. `webhook.policy.run_source` parses such
documents strictly, and tests apply it to those that ship.

Keys and values were read in the code that `origin` names, except three from documentation:
KubeRay's replica index, Argo's workflow label and the name of a Workspace.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

import yaml

from webhook.sources.table import SourceTable, System, system

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.sources.marks import Source


def _systems() -> Iterator[System]:
    for file in files(__package__).iterdir():
        if file.name.endswith(".yaml"):
            document = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
            yield system(document["metadata"]["name"], document["spec"])


SHIPPED: Final = SourceTable(tuple(_systems()))
SOURCES: Final[tuple[Source, ...]] = SHIPPED.rows
