"""What `heedful evaluate` measures of text files: the documents that training would read."""

from pathlib import Path

from heedful.tasks.language_modeling.evaluation import evaluate


def figures(model: Path, *files: Path) -> dict:
    options = {"text": tuple(map(str, files)), "document": "file", "encoding": None}
    return evaluate(str(model), {**options, "device": "cpu", "engine": "torch", "precision": "fp32"}, lambda _: None)[0]


def test_files_are_read_as_for_training(small_folders: dict[str, Path], tmp_path: Path) -> None:
    contents = {"a": b"red dog\n", "b": b"\n \n", "c": b"dog\x07red\r\n", "d": b"dog red\n"}
    files = {name: tmp_path / name for name in contents}
    for name, file in files.items():
        file.write_bytes(contents[name])
    model = small_folders["language_model"]
    assert figures(model, files["a"], files["b"], files["c"]) == figures(model, files["a"], files["d"])
