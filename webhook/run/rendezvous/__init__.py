"""What each framework's replicas are told, so that they find each other."""
