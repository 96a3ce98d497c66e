"""The compilation of the core: which compiler is taken, with which options, and what is left where none works."""

import ctypes
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from heedful.core.library import ABI_VERSION

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fake compilers are shell scripts")
COMPILER = shutil.which("c++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no c++ on this machine")


@pytest.fixture
def build(tree: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that builds, in a tree of its own."""
    for name in ("CXX", "HEEDFUL_CORE"):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location("heedful_build_in_a_tree", tree / "build_backend/heedful_build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small_build(build: ModuleType) -> ModuleType:
    """The same with a core of one small file, where what is in the core does not matter."""
    for file in build.CORE.glob("*.cpp"):
        file.unlink()
    code = '#include "interface.h"\nint heedful_abi_version(void) { return HEEDFUL_ABI_VERSION; }\n'
    (build.CORE / "interface.cpp").write_text(code)
    return build


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, empty."""
    folder = tmp_path / "some programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def fake(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def recording(file: Path) -> Path:
    """A compiler that does what `c++` does, and writes down what it was called with."""
    assert COMPILER
    log = file.with_suffix(".log")
    path = f"PATH={shlex.quote(os.environ['HEEDFUL_TEST_PATH'])}"
    fake(file, f'echo "$*" >> {shlex.quote(str(log))}\n{path} exec {shlex.quote(COMPILER)} "$@"')
    return log


@pytest.fixture(autouse=True)
def _the_path_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_TEST_PATH", os.environ["PATH"])


@needs_compiler
def test_the_library_is_built_and_can_be_loaded(build: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    build.NOT_BUILT.write_text("from an earlier build")
    assert " " in str(build.ROOT) and build.build_library()
    assert ctypes.CDLL(str(build.LIBRARY)).heedful_abi_version() == ABI_VERSION
    assert not build.NOT_BUILT.exists()
    assert capsys.readouterr().out.endswith(f"heedful: {build.LIBRARY.name} was compiled with c++\n")


@needs_compiler
def test_it_is_compiled_again_only_after_a_change(
    small_build: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = recording(programs / "c++")

    def compiled() -> bool:
        log.unlink(missing_ok=True)
        assert small_build.build_library()
        return " -c " in log.read_text()

    assert compiled() and not compiled()
    (small_build.CORE / "more.h").write_text("// a change\n")
    assert compiled() and not compiled()
    monkeypatch.setenv("HEEDFUL_CORE_FLAGS", "-O0 -DMORE=1")
    assert compiled() and not compiled()
    small_build.LIBRARY.unlink()
    assert compiled() and not compiled()
    log = recording(programs / "g++")
    monkeypatch.setenv("CXX", "g++")
    assert compiled() and not compiled()


@needs_compiler
def test_options_go_by_the_names_of_files(
    small_build: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, macro in {"sums": "HEEDFUL_X86", "sums_avx2": "__AVX2__", "sums_avx512": "__AVX512VNNI__"}.items():
        code = f'#include "interface.h"\n#ifdef {macro}\nHEEDFUL_API int {name}() {{ return 1; }}\n#endif\n'
        (small_build.CORE / f"{name}.cpp").write_text(code)
    monkeypatch.setenv("HEEDFUL_CORE_FLAGS", "-DA_FLAG -O1")
    log = recording(programs / "c++")
    assert small_build.build_library()
    lines = [line for line in log.read_text().splitlines() if " -c " in line and str(small_build.CORE) in line]
    options = {re.search(r"(\w+)\.cpp ", line)[1]: line.partition(" -c ")[0].split() for line in lines}
    assert all(each[-2:] == ["-DA_FLAG", "-O1"] for each in options.values())
    assert not [option for option in options["sums"] + options["interface"] if option.startswith("-m")]
    if small_build.X86:
        assert {"-mavx2", "-mfma"} == {option for option in options["sums_avx2"] if option.startswith("-m")}
        assert {"-mavx512vnni", "-mavx512vl", "-mavx2"} < set(options["sums_avx512"])
        library = ctypes.CDLL(str(small_build.LIBRARY))
        assert library.sums() == library.sums_avx2() == library.sums_avx512() == 1
    else:
        assert {"sums", "interface"} < options.keys() and not [name for name in options if "avx" in name]


@needs_compiler
def test_a_compiler_need_not_know_avx_vnni(build: ModuleType, programs: Path, tmp_path: Path) -> None:
    if not build.X86:
        pytest.skip("these are instructions of x86-64")
    file, log = build.CORE / "engine_avx_vnni.cpp", recording(programs / "c++")
    script = (programs / "c++").read_text().removeprefix("#!/bin/sh\n")
    fake(programs / "c++", f'case "$*" in *-mavxvnni*) echo "unknown option" >&2; exit 1;; esac\n{script}')
    compiler = build.Compiler(["c++"], tmp_path)
    compiler.compile([file], tmp_path / "objects")
    assert "-mavx2 -mfma" in log.read_text() and (tmp_path / "objects" / "engine_avx_vnni.o").exists()
    # One that knows it is given it, if its assembler does too.
    fake(programs / "c++", "exit 0")
    assert compiler.known_instructions(file) == ["-mavx2", "-mfma", "-mavxvnni"]


def test_files_for_other_machines_are_left_out(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sums", "sums_avx2", "sums_avx512"):
        (build.CORE / f"{name}.cpp").touch()
    monkeypatch.setattr(build, "X86", False)
    assert [file.stem for file in build.sources(build.CORE) if file.stem.startswith("sums")] == ["sums"]


def test_the_next_compiler_is_tried(
    small_build: ModuleType, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if COMPILER is None:
        pytest.skip("there is no c++ on this machine")
    fake(programs / "c++", "echo 'c++ is broken' >&2; exit 7")
    recording(programs / "g++")
    assert not small_build.needs_zig()
    assert small_build.build_library()
    assert "was compiled with g++" in capsys.readouterr().out


@needs_compiler
def test_the_compiler_of_the_environment_is_taken(
    small_build: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recording(programs / "c++")
    recording(programs / "my compiler")
    monkeypatch.setenv("CXX", str(programs / "my compiler"))
    assert small_build.build_library()
    assert f"was compiled with {programs / 'my compiler'}" in capsys.readouterr().out
    monkeypatch.setenv("CXX", "c++ -DMINE")
    assert small_build.build_library()
    assert "was compiled with c++ -DMINE" in capsys.readouterr().out


def test_without_a_compiler_the_reason_is_left(
    build: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    build.LIBRARY.write_text("from an earlier build")
    fake(programs / "g++", "echo 'first line'; for n in 1 2 3; do echo \"error $n\" >&2; done; exit 7")
    fake(programs / "clang++", 'while [ "$1" != -o ]; do shift; done; : > "$2"')  # ends well, and writes empty files
    monkeypatch.setattr(build, "ZIG", [sys.executable, "-m", "no_such_zig"])
    assert not build.build_library()
    text = build.NOT_BUILT.read_text()
    assert text.startswith("no C++ compiler works here\nc++: No such file or directory\ng++ failed with exit code 7\n")
    assert "first line" not in text and "error 1\nerror 2\nerror 3\nclang++" in text
    assert "No module named no_such_zig" in text
    assert not build.LIBRARY.exists() and not build.BUILT_FROM.exists()
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("heedful: not built: no C++ compiler works here; c++: No such file or directory; g++ failed")


@needs_compiler
def test_a_core_that_does_not_compile_is_shown_in_full(
    small_build: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    (small_build.CORE / "wrong.cpp").write_text("".join(f"int {name} = no_such_name;\n" for name in "abcdefg"))
    assert not small_build.build_library()
    assert capsys.readouterr().out.count("error:") >= 7
    assert "c++ failed with exit code 1\n" in small_build.NOT_BUILT.read_text()


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="other linkers have no such option")
def test_a_name_that_is_nowhere_defined_is_found_when_linking(small_build: ModuleType) -> None:
    code = '#include "interface.h"\nvoid no_such_function();\nHEEDFUL_API void call() { no_such_function(); }\n'
    (small_build.CORE / "wrong.cpp").write_text(code)
    assert not small_build.build_library()
    assert "failed with exit code" in small_build.NOT_BUILT.read_text()


@pytest.mark.parametrize(("wanted", "zig"), [("auto", True), ("zig", True), ("system", False), ("none", False)])
def test_zig_is_asked_for_only_where_it_may_be_used(
    build: ModuleType, programs: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, zig: bool
) -> None:
    monkeypatch.setattr(build, "ZIG_PLATFORMS", {(sys.platform, build.MACHINE)})
    monkeypatch.setenv("HEEDFUL_CORE", wanted)
    assert build.needs_zig() == zig
    monkeypatch.setattr(build, "ZIG_PLATFORMS", set())
    assert not build.needs_zig()


@needs_compiler
def test_zig_is_not_asked_for_where_a_compiler_works(build: ModuleType) -> None:
    assert not build.needs_zig()


def test_another_word_is_refused(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CORE", "gcc")
    with pytest.raises(ValueError, match="HEEDFUL_CORE is 'gcc'; it can be auto, system, zig or none"):
        build.build_library()


@needs_compiler
def test_as_a_command(tree: Path, build: ModuleType) -> None:
    command = [sys.executable, str(tree / "build_backend/heedful_build.py")]
    assert subprocess.run(command, check=True, capture_output=True).stdout.endswith(b"was compiled with c++\n")
    environment = {**os.environ, "HEEDFUL_CORE": "none"}
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 1
