"""Blocks that compute in bf16 learn as in fp32, and what is held stays fp32."""

from pathlib import Path

import pytest

from planned_subjects import losses_in_both_precisions
from process_group import run_in_processes


def test_losses_in_bf16_are_near_those_in_fp32(tmp_path: Path) -> None:
    for full, half in run_in_processes(2, tmp_path, losses_in_both_precisions):
        assert full[2] < full[1] < full[0]
        assert half == pytest.approx(full, rel=0.01)
        assert half != full
