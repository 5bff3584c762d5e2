"""Convert documents of other systems to Runs."""
