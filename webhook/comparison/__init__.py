"""What becomes of pods under two policy sets: where they part, and by which policy."""
