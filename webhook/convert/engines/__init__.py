"""Convert the objects of other engines to Runs."""
