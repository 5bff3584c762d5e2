"""Live objects of a cluster, their pods, and how these differ from what policies say today."""
