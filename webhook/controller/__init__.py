"""The controller, which creates the pods of Runs."""
