"""An installation in a cluster: putting it there, taking it away, and saying what is wrong."""
