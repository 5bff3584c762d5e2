"""Polyaxonfiles to Runs: the old schema (version 1), and components and operations (1.1)."""

from webhook.convert.polyaxon.asked import Wanted
from webhook.convert.polyaxon.convert import Converted, convert

__all__ = ["Converted", "Wanted", "convert"]
