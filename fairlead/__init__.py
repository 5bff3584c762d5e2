"""Runs and policies from Python: submit a Run and follow it, and ask what policies do to pods.

What this package exports is stable; everything else may change. Nothing here asks a cluster, or
imports its client, before a `Client` is used.
"""

from fairlead.client import Client, Logs, RunEvent, RunHandle
from fairlead.policies import Checked, Evaluated, PodsEvaluation, check, evaluate
from fairlead.runs import Preview, Run
from webhook import __version__
from webhook.errors import (
    ClusterError,
    FairleadError,
    InvalidDocuments,
    InvalidName,
    InvalidRun,
    UnreadableInput,
)

__all__ = (
    "Checked",
    "Client",
    "ClusterError",
    "Evaluated",
    "FairleadError",
    "InvalidDocuments",
    "InvalidName",
    "InvalidRun",
    "Logs",
    "PodsEvaluation",
    "Preview",
    "Run",
    "RunEvent",
    "RunHandle",
    "UnreadableInput",
    "__version__",
    "check",
    "evaluate",
)
