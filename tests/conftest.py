"""Settings shared by every test."""

from hypothesis import HealthCheck, settings

# How long a draw or an example takes belongs to the machine: the first text draw of a fresh install builds
# Unicode tables, which takes seconds. What the examples find does not depend on it.
settings.register_profile("headroom", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headroom")
