"""Compiles core/*.cpp and one program of core/fuzz with a sanitizer:

python tools/compile_core.py COMPILER PROGRAM FLAGS... -- FILES...
"""

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "build_backend"))
from heedful_build import CORE, Compiler, NotBuiltError, sources

# A sanitizer stops at its first finding.
COMMON = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]


def compile_program(command: str, program: Path, flags: list[str], files: list[Path]) -> None:
    """Compile the core and some more files of core/fuzz, and link them to a program."""
    with tempfile.TemporaryDirectory(prefix="heedful-core-") as name:
        folder = Path(name)
        compiler = Compiler([command], folder)
        # The target for the interface decides when the core's memory runs out.
        decides = any(each.stem == "interface" for each in files)
        memory = ["-include", str(CORE / "fuzz" / "failing_malloc.h")] if decides else []
        compiler.compile(sources(CORE), folder / "core", [*COMMON, *flags, *memory])
        compiler.compile(files, folder / "fuzz", [*COMMON, *flags])
        objects = [*(folder / "core").glob("*.o"), *(folder / "fuzz").glob("*.o")]
        # libFuzzer has a `main` of its own, which the objects alone are compiled without.
        linking = [flag.replace("fuzzer-no-link", "fuzzer") for flag in flags]
        compiler.run(*linking, *objects, "-pthread", "-lm", "-o", program)


if __name__ == "__main__":
    command, program, *rest = sys.argv[1:]
    place = rest.index("--")
    try:
        compile_program(command, Path(program), rest[:place], [Path(each) for each in rest[place + 1 :]])
    except NotBuiltError as error:
        sys.exit(f"{error.output}{error}")
