"""Two policy sets, and what they do to the same pods."""
