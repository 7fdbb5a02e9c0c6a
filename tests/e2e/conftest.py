"""What holds for all end-to-end tests."""

from harness.api import Judge

Judge.is_asked = True
