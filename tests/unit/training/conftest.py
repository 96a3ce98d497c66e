"""What tests of training share."""

import os

import pytest


@pytest.fixture
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are not flushed to the disk: hundreds of checkpoints of which none must outlive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
