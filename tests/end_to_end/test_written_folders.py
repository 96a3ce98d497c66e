"""What import, export and shortlist leave on the disk: all of it, readable by whom the umask says, or nothing."""

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from heedful.errors import UserError
from heedful.text.shortlist import Shortlist

LIMIT = 30_000


@pytest.fixture
def gpt2_folder(tmp_path: Path) -> Path:
    """A GPT-2 with zeros for weights, in Hugging Face's layout."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    sizes = {"vocab_size": 53, "n_positions": 29, "n_embd": 24, "n_layer": 1, "n_head": 3, "eos_token_id": 52}
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", **sizes}))
    shapes = {"wte.weight": (53, 24), "wpe.weight": (29, 24), "ln_f.weight": (24,), "ln_f.bias": (24,)}
    shapes |= {"h.0.attn.c_attn.weight": (24, 72), "h.0.attn.c_attn.bias": (72,), "h.0.mlp.c_fc.bias": (96,)}
    shapes |= {"h.0.attn.c_proj.weight": (24, 24), "h.0.attn.c_proj.bias": (24,), "h.0.mlp.c_fc.weight": (24, 96)}
    shapes |= {"h.0.mlp.c_proj.weight": (96, 24), "h.0.mlp.c_proj.bias": (24,)}
    shapes |= {f"h.0.ln_{number}.{name}": (24,) for number in (1, 2) for name in ("weight", "bias")}
    save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, folder / "model.safetensors")
    return folder


def full_disk(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """The command on a disk that takes only small files."""
    return subprocess.run(
        [sys.executable, "-m", "heedful", *map(str, arguments)],
        capture_output=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT)),
    )


def failed(result: subprocess.CompletedProcess[bytes]) -> None:
    assert result.returncode == 2, result.stderr.decode()
    assert result.stderr.count(b"\n") == 1, result.stderr.decode()
    assert result.stderr.startswith(b"heedful: ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_failed_import_leaves_nothing_and_can_be_tried_again(gpt2_folder: Path, tmp_path: Path, run) -> None:
    failed(full_disk("import", gpt2_folder, tmp_path / "deep" / "ours"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["theirs"]
    run("import", gpt2_folder, tmp_path / "deep" / "ours")
    names = ["README.md", "config.json", "model.safetensors"]
    assert sorted(each.name for each in (tmp_path / "deep" / "ours").iterdir()) == names
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["ours"]
    assert b"already exists" in run("import", gpt2_folder, tmp_path / "deep" / "ours", code=2).stderr


@contextmanager
def small_files() -> Iterator[None]:
    """The same disk for this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_failed_export_leaves_nothing(untrained_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from heedful.interop.ctranslate2_export import export_folder

    with pytest.raises(UserError, match="cannot write"), small_files():
        export_folder(untrained_model, tmp_path / "deep" / "exported")
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_failed_shortlist_leaves_nothing(untrained_model: Path) -> None:
    before = sorted(each.name for each in untrained_model.iterdir())
    large = np.zeros((1000, 16), np.int64)
    with pytest.raises(UserError, match="largest file size that is allowed"), small_files():
        Shortlist(large[:, 0], large, large.astype(np.float32)).save(untrained_model)
    assert sorted(each.name for each in untrained_model.iterdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002], ids=oct)
def test_files_have_the_permissions_that_the_umask_gives(mask: int, gpt2_folder: Path, tmp_path: Path) -> None:
    from heedful.interop.huggingface import import_folder
    from heedful.training.checkpoint import save_checkpoint

    before = os.umask(mask)
    try:
        import_folder(gpt2_folder, tmp_path / "ours")
        save_checkpoint(tmp_path / "run", 3, {"model": {"weight": torch.zeros(2)}}, {"step": 3})
    finally:
        os.umask(before)
    written = [tmp_path / "ours", tmp_path / "run"]
    written += [each for folder in (*written,) for each in folder.rglob("*")]
    assert len(written) >= 8
    for each in written:
        expected = (0o777 if each.is_dir() else 0o666) & ~mask
        assert stat.S_IMODE(each.stat().st_mode) == expected, each
