"""The command in processes of its own, without the seconds in which each would import torch.

Run as a program, it imports what the command needs, and then forks for each line of standard input: a JSON object with
arguments, folder, environment and the files for input, output and errors. It answers each with the exit code.
"""

import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

IMPORTS = (
    "heedful.tasks.translation.lines",
    "heedful.training.run",
    "heedful.training.display",
    "heedful.tasks.translation.job",
)
IMPORTS += (
    "heedful.tasks.translation.with_torch",
    "heedful.tasks.language_modeling.pipeline",
    "heedful.tasks.language_modeling.with_torch",
    "heedful.tasks.masked_modeling.pipeline",
    "heedful.tasks.labelling.tagger",
    "heedful.tasks.encoding.with_torch",
    "heedful.tasks.image_classification.pipeline",
    "heedful.tasks.image_classification.with_torch",
    "torch._dynamo",  # torch imports it, in two seconds, when the first model is built without memory
)


class PreloadedCommand:
    """`python -m heedful` with any arguments, started by forking."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def close(self) -> None:
        """End the process that forks."""
        self.process.communicate()

    def run(self, arguments: list[str], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        """Run the command to its end."""
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder, name)) for name in ("stdin", "stdout", "stderr")]
            Path(files[0]).write_bytes(stdin)
            code = self.run_on(arguments, files, str(Path.cwd()))
            output, errors = (Path(file).read_bytes() for file in files[1:])
        return subprocess.CompletedProcess(["heedful", *arguments], code, output, errors)

    def run_on(self, arguments: list[str], files: list[str], folder: str, *, ends_at_once: bool = False) -> int:
        """Run the command in a folder, with these files for input, output and errors, and give its exit code.

        With `ends_at_once` it ends as soon as its work is done, without the half second in which Python takes itself
        apart.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        order = {"arguments": arguments, "folder": folder, "environment": dict(os.environ), "files": files}
        order["ends_at_once"] = ends_at_once
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def _become_the_command(order: dict[str, object]) -> None:
    """Take the place of `python -m heedful`, in a process that was just forked."""
    for number, file in enumerate(order["files"]):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY, 0o600), number)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["heedful", *order["arguments"]]
    try:
        runpy.run_module("heedful", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if order["ends_at_once"] and isinstance(end.code, int):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code)
        raise


def main() -> None:
    """Fork for each order, one at a time."""
    for name in IMPORTS:
        __import__(name)
    gc.freeze()  # what is there by now is shared by all children, not looked through by each
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become_the_command(json.loads(line))
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
