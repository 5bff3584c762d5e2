"""Plugins and settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.tiers", "tests.wording", "tests.control_planes"]

# Without it an example of over 0.2 s fails, and so do ten that took over a second to draw.
settings.register_profile(
    "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")
