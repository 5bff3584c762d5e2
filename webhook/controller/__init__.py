"""The controller: Runs become their replica pods."""
