"""Lines of text files as bytes: plain, gzip or xz, one rule for where a line ends, bounded memory."""

import glob
import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from io import BufferedReader
from pathlib import Path

from heedful.errors import UserError
from heedful.text.encodings import as_utf8
from heedful.text.xz_streams import xz_blocks

STANDARD_INPUT = "-"

# A longer line is cut while it is read, so that one huge line cannot fill the memory. What the reader
# gives is then one byte longer than this, by which the cleaning rules recognise it.
MAX_LINE_BYTES = 65_536
# A line that is longer than this is not cut but refused: it may never end, like that of /dev/zero.
LONGEST_LINE_BYTES = 64 << 20

_BLOCK_BYTES = 1 << 19
OLD_LINE_ENDS = "if its lines end with them, as on old Macs, convert it with tr '\\r' '\\n'"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Neither of the two can begin valid UTF-8 text, so the first bytes decide how a file is read.
PACKED_BEGINNINGS = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00"}

_TWO_LETTER_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de "
    "dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id "
    "ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu "
    "lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu "
    "rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to "
    "tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
# Endings of three letters that could be mistaken for a three-letter code.
_OTHER_ENDINGS = (
    "bak bin bpe csv dat dev doc htm ids log lst new old out pdf ref sgm src srt tgt tmp tmx tok trg tst val "
    "vtt xlf xml zip"
)
_LANGUAGES = frozenset(_TWO_LETTER_CODES.split())
_NOT_LANGUAGES = frozenset(_OTHER_ENDINGS.split())
_LANGUAGE = re.compile(r"([a-z]{2,3})([_-][A-Z][a-z]{3})?([_-]([A-Z]{2}|[0-9]{3}))?")
# Endings that say nothing about the language.
_NEUTRAL_ENDINGS = frozenset({"gz", "xz", "txt", "tsv", "csv", "json", "jsonl", "ndjson", "text", "raw"})


def expand_files(patterns: Sequence[str]) -> list[str]:
    """The files that names and glob patterns stand for, in the order given, each pattern's matches sorted."""
    files: list[str] = []
    for pattern in patterns:
        if pattern == STANDARD_INPUT or Path(pattern).exists():
            files.append(pattern)
        elif glob.has_magic(pattern):
            found = glob.glob(pattern, recursive=True)  # noqa: PTH207 (Path.glob refuses absolute patterns)
            matches = sorted(match for match in found if not Path(match).is_dir())
            if not matches:
                raise UserError(f"no file matches {pattern}: check the pattern and the folder")
            files.extend(matches)
        else:
            raise UserError(f"there is no file {pattern}: check the name and the folder")
    for file in files:
        if Path(file).is_dir():
            raise UserError(f"{file} is a folder: name a file, or a pattern such as {Path(file) / '*'}")
    return files


def read_line_blocks(path: str | Path, encoding: str | None = None, name: str | None = None) -> Iterator[list[bytes]]:
    """Consecutive lines of a file in non-empty lists of bounded size, as UTF-8, without their line ends.

    Only a newline, with an optional carriage return before it, ends a line; the last line may lack it. A
    byte order mark at the start of the file is removed; a line over MAX_LINE_BYTES is cut one byte later, and one
    over LONGEST_LINE_BYTES is a UserError.
    Errors call the file by `name`.
    """
    rest = b""
    for block in _refusing_endless(unpacked_blocks(path, encoding, name), name or path):
        text = rest + block
        lines = text.split(b"\n")
        # One byte more than the cut line needs: the carriage return of a line that just fits.
        rest = lines.pop()[: MAX_LINE_BYTES + 2]
        if b"\r" in text:
            lines = [line.removesuffix(b"\r") for line in lines]
        if lines:
            yield _cut(lines)
    if rest:
        yield _cut([rest])


def _refusing_endless(blocks: Iterable[bytes], name: str | Path, whole: bool = False) -> Iterator[bytes]:
    """The same bytes; a line without end is a UserError, or NULs without end in a text that needs no lines."""
    line, size = 1, 0
    for block in blocks:
        ended = len(block.rstrip(b"\0")) if whole else block.rfind(b"\n") + 1
        size = len(block) - ended + (0 if ended else size)
        line += block.count(b"\n")
        if size > LONGEST_LINE_BYTES:
            what = "has {} NUL bytes in a row" if whole else "is longer than {} bytes"
            raise UserError(
                f"{name}, line {line} {what.format(f'{LONGEST_LINE_BYTES:,}')}: split it, or give a file of text"
            )
        yield block


def looks_like_old_line_ends(newlines: int, returns: int) -> bool:
    """Whether the lines of a text end with carriage returns alone, by the number of newlines and of those."""
    return newlines == 0 and returns >= 2


def cut_line(line: bytes) -> bytes:
    """As many whole characters of an over-long line as are kept of it."""
    return line[: end_of_last_character(line[:MAX_LINE_BYTES])]


def end_of_last_character(raw: bytes) -> int:
    """Where to cut bytes without cutting a character of UTF-8, whose first byte is among the last four."""
    end = len(raw)
    for begin in range(end - 1, max(end - 5, -1), -1):
        if raw[begin] >= 0xC0:  # it says how many bytes follow it
            size = 2 + (raw[begin] >= 0xE0) + (raw[begin] >= 0xF0)
            return end if begin + size <= end else begin
        if raw[begin] < 0x80:
            break
    return end


def _cut(lines: list[bytes]) -> list[bytes]:
    if max(map(len, lines)) <= MAX_LINE_BYTES:
        return lines
    return [line[: MAX_LINE_BYTES + 1] for line in lines]


def unpacked_blocks(path: str | Path, encoding: str | None = None, name: str | None = None) -> Iterator[bytes]:
    """The unpacked text of a file as UTF-8, without a byte order mark; every failure names the file."""
    return as_utf8(unpacked_bytes(path), name or path, encoding)


def unpacked_bytes(path: str | Path) -> Iterator[bytes]:
    """The unpacked bytes of a file of any kind; every failure names the file."""
    try:
        with Path(path).open("rb") as stream:  # opened once, so it may be a pipe
            yield from _unpacked(stream, Path(path))
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise UserError(f"{path} is damaged or cut short ({error}): copy or compress it again") from error
    except OSError as error:
        raise _unreadable(path, error) from error


def read_raw_blocks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a file as they are on the disk, packed or not."""
    try:
        with Path(path).open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                yield block
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str | Path, error: OSError) -> UserError:
    return UserError(f"{path} cannot be read: {error.strerror or error}")


def _unpacked(stream: BufferedReader, path: Path) -> Iterator[bytes]:
    """A file's contents, unpacked if it is a .gz or .xz file."""
    start = stream.peek(max(map(len, PACKED_BEGINNINGS.values())))
    if not start.startswith(PACKED_BEGINNINGS.get(path.suffix, b"")):
        raise UserError(f"{path} is named {path.suffix} but is not such a file: compress it again, or rename it")
    if start.startswith(PACKED_BEGINNINGS[".xz"]):
        yield from xz_blocks(stream, _BLOCK_BYTES)
    elif start.startswith(PACKED_BEGINNINGS[".gz"]):
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield from iter(partial(unpacked.read1, _BLOCK_BYTES), b"")
    else:
        yield from iter(partial(stream.read1, _BLOCK_BYTES), b"")


def can_be_read_once_only(file: str) -> bool:
    """Whether this is standard input or a pipe, which must be spooled to be read a second time."""
    return file == STANDARD_INPUT or not Path(file).is_file()


def spool(file: str, destination: Path, whole: bool = False) -> None:
    """Copy standard input or a pipe into a file; lines without end are refused, except in a `whole` text."""
    name = "standard input" if file == STANDARD_INPUT else file
    try:
        source = nullcontext(sys.stdin.buffer) if file == STANDARD_INPUT else Path(file).open("rb")  # noqa: SIM115
        with source as pipe, destination.open("wb") as copy:
            copy.writelines(_refusing_endless(iter(partial(pipe.read, _BLOCK_BYTES), b""), name, whole))
    except OSError as error:
        raise UserError(f"{file} cannot be copied to {destination}: {error.strerror or error}") from error


def language_from_name(name: str | Path) -> str | None:
    """The language code at the end of a file name, as in train.en.gz or corpus.pt-BR.txt, or None."""
    code = _last_telling_part(name)
    return code if _is_language(code) else None


def language_pair_from_name(name: str | Path) -> tuple[str, str] | None:
    """The two language codes at the end of a file name, as in train.en-de.tsv, or None."""
    source, _, target = _last_telling_part(name).replace("_", "-").partition("-")
    return (source, target) if _is_language(source) and _is_language(target) else None


def _last_telling_part(name: str | Path) -> str:
    stem, *endings = Path(name).name.split(".")
    while endings and endings[-1] in _NEUTRAL_ENDINGS:
        endings.pop()
    if endings:
        return endings[-1]
    # A stem is free text (big.gz), so only the well-known codes of two letters count there (en.txt).
    return stem if stem in _LANGUAGES else ""


def _is_language(code: str) -> bool:
    match = _LANGUAGE.fullmatch(code)
    if match is None:
        return False
    base = match[1]
    return base in _LANGUAGES if len(base) == 2 else base not in _NOT_LANGUAGES
