"""Polyaxonfiles to Runs: the old schema (version 1), and components and operations (1.1)."""

from webhook.run.polyaxon.asked import Wanted
from webhook.run.polyaxon.convert import Converted, convert

__all__ = ["Converted", "Wanted", "convert"]
