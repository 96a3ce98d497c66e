"""Compiles core/*.cpp into the package's shared library, with whichever C++ compiler works on this machine."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "core"
PACKAGE = ROOT / "src" / "heedful" / "core"
LIBRARY = PACKAGE / {"win32": "heedful.dll", "darwin": "libheedful.dylib"}.get(sys.platform, "libheedful.so")
NOT_BUILT = PACKAGE / "not_built.txt"  # why there is no library; `heedful doctor` shows it
BUILT_FROM = PACKAGE / "built_from.txt"  # the fingerprint of what the library was compiled from

MACHINE = platform.machine().lower()
X86 = MACHINE in ("x86_64", "amd64") and sys.maxsize > 2**32
# The end of a file's name -> the instructions that it may use, whatever machine it is compiled on.
INSTRUCTIONS = {
    "_avx2": ["-mavx2", "-mfma"],
    "_avx_vnni": ["-mavx2", "-mfma", "-mavxvnni"],
    "_avx512": [*(f"-mavx512{part}" for part in ("f", "bw", "vl", "dq", "vnni")), "-mavx2", "-mfma"],
}
# A compiler need not know this one, which is newer than the others: its file then has nothing in it.
OPTIONAL = "-mavxvnni"
COMPILING = ["-std=c++17", "-O3", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fvisibility=hidden"]
COMPILING += ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-pthread"]
COMPILING += [] if sys.platform == "win32" else ["-fPIC"]
COMPILING += ["-DHEEDFUL_X86=1"] if X86 else []
# Ways to link without the C++ standard library, best first; g++ knows -nostdlib++ since version 13.
LINKING = [["-nostdlib++"], []]
if sys.platform == "linux":
    LINKING = [["-nostdlib++", "-Wl,-z,defs"], ["-Wl,--as-needed,-z,defs"]]
ZIG = [sys.executable, "-m", "ziglang", "c++", "-mcpu=baseline", "-fno-sanitize=undefined"]
ZIG_PLATFORMS = {(system, machine) for system in ("linux", "darwin") for machine in ("x86_64", "aarch64", "arm64")}
ZIG_PLATFORMS |= {("win32", "amd64"), ("win32", "arm64")}

LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
PROBE = {
    "probe.cpp": """
        #include <math.h>
        #include <pthread.h>
        #include <stdlib.h>
        extern "C" __attribute__((visibility("default"))) float heedful_probe(float x) { return expf(x); }
        """,
    "probe_avx2.cpp": "#include <immintrin.h>\n__m256 add(__m256 a, __m256 b) { return _mm256_fmadd_ps(a, b, b); }",
    "probe_avx512.cpp": "#include <immintrin.h>\n__m512i add(__m512i a) { return _mm512_dpbusd_epi32(a, a, a); }",
}
OPTIONAL_PROBE = "#include <immintrin.h>\n__m256i add(__m256i a) { return _mm256_dpbusd_avx_epi32(a, a, a); }"


class NotBuiltError(Exception):
    """There is no library: its text says why in a few lines, `output` is all that was printed."""

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__("\n".join([reason, *[line for line in output.splitlines() if line.strip()][-3:]]))
        self.output = output


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler, and a folder for its temporary files."""

    command: Sequence[str]
    folder: Path

    @property
    def name(self) -> str:
        return "ziglang" if self.command is ZIG else " ".join(self.command)

    def run(self, *arguments: str | Path, program: Sequence[str] = ()) -> str:
        """What the compiler, or another program, prints; a NotBuiltError if it fails."""
        command = [*(program or self.command), *map(str, arguments)]
        # Zig's cache goes where the rest goes: a home folder may be missing, read-only, or not to be filled.
        environment = {"ZIG_GLOBAL_CACHE_DIR": str(self.folder / "zig"), **os.environ}
        try:
            result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=environment)
        except OSError as error:
            raise NotBuiltError(f"{self.name}: {error.strerror}") from None
        output = result.stdout + result.stderr
        if result.returncode:
            raise NotBuiltError(f"{self.name} failed with exit code {result.returncode}", output)
        return output

    def compile(self, files: Sequence[Path], objects: Path, extra: Sequence[str] = ()) -> str:
        """Compile files to objects in a new folder, side by side; returns what the compiler printed."""
        objects.mkdir()
        known = {file: [*COMPILING, *self.known_instructions(file)] for file in files}

        def compile_one(file: Path) -> str:
            return self.run(*known[file], *extra, "-c", file, "-o", objects / f"{file.stem}.o")

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return "".join(pool.map(compile_one, files))

    def known_instructions(self, file: Path) -> list[str]:
        """The options for the instructions that a file may use, without what the compiler does not know."""
        options = instructions(file)
        if OPTIONAL not in options:
            return options
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        probe = folder / "probe.cpp"
        probe.write_text(OPTIONAL_PROBE, encoding="utf-8")
        try:
            self.run(*COMPILING, *options, "-c", probe, "-o", folder / "probe.o")
        except NotBuiltError:
            return [option for option in options if option != OPTIONAL]
        return options

    def link(self, objects: Path, library: Path, options: Sequence[str]) -> None:
        """Link the objects of a folder."""
        self.run("-shared", "-O3", "-pthread", *sorted(objects.glob("*.o")), *options, "-lm", "-o", library)

    def probe(self) -> list[str]:
        """The options that link a small library which this Python can load; a NotBuiltError if none do."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in PROBE.items():
            (folder / name).write_text(text, encoding="utf-8")
        self.compile(sources(folder), folder / "objects")
        failure = NotBuiltError("")
        for options in LINKING:
            try:
                self.link(folder / "objects", folder / LIBRARY.name, options)
                self.run(folder / LIBRARY.name, program=[sys.executable, "-IS", "-c", LOAD])
            except NotBuiltError as error:
                failure = error
            else:
                return options
        raise failure

    def fingerprint(self) -> str:
        """A hash of the sources, the options (which are in this file) and the compiler."""
        version = self.run("--version").partition("\n")[0]
        digest = hashlib.sha256(repr((self.name, version, MACHINE, core_flags())).encode())
        for file in [Path(__file__), *sorted(CORE.glob("*.h")), *sorted(CORE.glob("*.cpp"))]:
            digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
        return digest.hexdigest()


def allowed() -> str:
    """HEEDFUL_CORE: what may compile the core."""
    value = os.environ.get("HEEDFUL_CORE") or "auto"
    if value not in ("auto", "system", "zig", "none"):
        raise ValueError(f"HEEDFUL_CORE is {value!r}; it can be auto, system, zig or none")
    return value


def core_flags() -> list[str]:
    """HEEDFUL_CORE_FLAGS: options that the core is compiled and linked with, after all others."""
    return shlex.split(os.environ.get("HEEDFUL_CORE_FLAGS", ""))


def compilers() -> Iterator[list[str]]:
    """The commands to try, in this order."""
    if allowed() in ("auto", "system"):
        if chosen := os.environ.get("CXX"):
            yield [chosen] if shutil.which(chosen) else shlex.split(chosen)
        else:
            yield from ([name] for name in ("c++", "g++", "clang++"))
    if allowed() in ("auto", "zig"):
        yield ZIG


def instructions(file: Path) -> list[str]:
    """The options for the instructions that a file may use, by its name."""
    return next((options for end, options in INSTRUCTIONS.items() if file.stem.endswith(end)), [])


def sources(folder: Path) -> list[Path]:
    """The files to compile on this machine."""
    return [file for file in sorted(folder.glob("*.cpp")) if X86 or not instructions(file)]


def needs_zig() -> bool:
    """Whether Zig, which comes as a wheel, is to compile the core."""
    if (sys.platform, MACHINE) not in ZIG_PLATFORMS:
        return False
    with tempfile.TemporaryDirectory(prefix="heedful-core-", ignore_cleanup_errors=True) as folder:
        for command in compilers():
            if command is ZIG:
                return True
            with suppress(NotBuiltError):
                Compiler(command, Path(folder)).probe()
                return False
    return False


def compile_core(folder: Path) -> str:
    """Bring the library up to date; returns what was done, in words."""
    failures = ["HEEDFUL_CORE=none was set" if allowed() == "none" else "no C++ compiler works here"]
    for compiler in (Compiler(command, folder) for command in compilers()):
        try:
            fingerprint = compiler.fingerprint()
            if LIBRARY.exists() and BUILT_FROM.exists() and BUILT_FROM.read_text() == fingerprint:
                return f"{LIBRARY.name} is up to date"
            linking = compiler.probe()
        except NotBuiltError as error:
            failures.append(str(error))
            continue
        print(compiler.compile(sources(CORE), folder / "objects", core_flags()), end="")
        new = LIBRARY.with_name(f"{LIBRARY.name}.new")
        compiler.link(folder / "objects", new, [*linking, *core_flags()])
        new.replace(LIBRARY)  # in one step: a process that has loaded the old one keeps it
        BUILT_FROM.write_text(fingerprint)
        return f"{LIBRARY.name} was compiled with {compiler.name}"
    raise NotBuiltError("\n".join(failures))


def build_library() -> bool:
    """Bring the library up to date, or leave a file that says why there is none."""
    with tempfile.TemporaryDirectory(prefix="heedful-core-", ignore_cleanup_errors=True) as folder:
        try:
            done = compile_core(Path(folder))
        except NotBuiltError as error:
            LIBRARY.unlink(missing_ok=True)
            BUILT_FROM.unlink(missing_ok=True)
            NOT_BUILT.write_text(f"{error}\n", encoding="utf-8")
            print(f"{error.output}heedful: not built: {'; '.join(str(error).splitlines())}", flush=True)
            return False
    NOT_BUILT.unlink(missing_ok=True)
    print(f"heedful: {done}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(0 if build_library() else 1)
