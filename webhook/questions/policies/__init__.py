"""The policies in force, and the pods that they match."""
