"""Convert Polyaxonfiles to Runs: version 1, and components and operations (1.1)."""

from webhook.convert.polyaxon.convert import Converted, convert
from webhook.convert.polyaxon.draft import ConversionOptions

__all__ = ["ConversionOptions", "Converted", "convert"]
