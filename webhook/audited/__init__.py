"""What policies under Audit would have done to pods, summed up of what was recorded."""
