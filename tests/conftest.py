"""Settings of all tests."""

import os

from hypothesis import settings

# At a desk hypothesis looks for something new every time; CI judges a commit by the same cases.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
