"""ValidatingAdmissionPolicies that hold what a mutating webhook alone cannot."""
