"""Admission of pods. The review and the engine are pure; app is the ASGI edge."""
