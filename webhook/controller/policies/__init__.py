"""Write the statuses of policies and capacity classes, while this process leads."""
