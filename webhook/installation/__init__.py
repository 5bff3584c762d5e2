"""Install, remove and diagnose Fairlead in a cluster."""
