"""Judge policy sets: alone, together, by trial, and each write of one."""
