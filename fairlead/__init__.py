"""Runs and policies from Python: submit a Run and follow it, and ask what policies do to pods.

What this package exports is stable; everything else may change. Nothing here asks a cluster, or
imports its client, before a `Client` is used.
"""

from fairlead.client import Client, Logs, RunEvent, RunHandle
from fairlead.policies import Checked, Evaluated, PodsEvaluation, check, evaluate
from fairlead.runs import Preview, Run
from webhook import __version__
from webhook.errors import FairleadError

__all__ = (
    "Checked",
    "Client",
    "Evaluated",
    "FairleadError",
    "Logs",
    "PodsEvaluation",
    "Preview",
    "Run",
    "RunEvent",
    "RunHandle",
    "__version__",
    "check",
    "evaluate",
)
