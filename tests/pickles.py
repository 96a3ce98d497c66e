"""What in a folder is a pickle, or could hold one."""

import json
import pickletools
import zipfile
from pathlib import Path

import numpy as np
from safetensors import safe_open


def pickled_files(folder: Path) -> list[Path]:
    """The files of a folder that a program might unpickle; the others are of kinds that hold nothing but data."""
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and not _is_data(file)]


def _is_data(file: Path) -> bool:
    content = file.read_bytes()
    if zipfile.is_zipfile(file):  # as torch.save writes it
        return False
    if file.suffix == ".safetensors":
        with safe_open(file, "np") as tensors:
            return len(tensors.keys()) >= 0
    if file.suffix == ".json":
        return json.loads(content) is not None
    if file.suffix in (".jsonl", ".log"):
        return all(isinstance(json.loads(line), dict) for line in content.splitlines())
    if file.suffix == ".npy":
        return np.load(file, allow_pickle=False) is not None
    try:
        list(pickletools.genops(content))
    except (ValueError, UnicodeDecodeError):
        return True
    return False
