"""What policies mean beside each other: warnings that no single document tells."""
