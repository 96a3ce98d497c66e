"""Text in encodings other than UTF-8, converted as it is read; and files that are not text, refused with the reason."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from heedful.config import nearest
from heedful.errors import UserError

# A greater share of lines that are not valid text means that the file is in another encoding, or is not text.
MOST_INVALID = 0.01
# Bytes of invalid lines by which the encoding is guessed.
_SAMPLE_BYTES = 1 << 16
# The longer ones come first: one of them begins with another.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_TEXT = (
    (rb"PK\x03\x04", "a zip archive (or an office document)"),
    (rb"BZh[1-9]1AY&SY", "a bzip2 file"),
    (rb"\x28\xb5\x2f\xfd", "a zstd file"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (rb"\x04\x22\x4d\x18", "an lz4 file"),
    (rb"Rar!\x1a\x07", "a rar archive"),
    (rb".{257}ustar", "a tar archive"),
    (rb"%PDF-", "a PDF document"),
    (rb"PAR1", "a Parquet file"),
    (rb"\x89PNG\r\n", "an image"),
    (rb"\xff\xd8\xff", "an image"),
    (rb"GIF8[79]a", "an image"),
    (rb"\x7fELF", "a program"),
    (rb"SQLite format 3\x00", "a database"),
)
_NOT_TEXT_STARTS = [(re.compile(start, re.DOTALL), what) for start, what in _NOT_TEXT]
_KNOWN = ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "latin-1", "iso-8859-2", "iso-8859-15"]
_KNOWN += ["windows-1250", "windows-1251", "windows-1252", "koi8-r", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"]
# What an encoding is called, where Python has another name for it.
_NAMES = {"latin_1": "ISO-8859-1", "utf_16": "UTF-16", "utf_32": "UTF-32", "big5": "Big5", "gb18030": "GB18030"}
_NAMES |= {f"cp125{digit}": f"Windows-125{digit}" for digit in range(9)}
# Encodings of host names, and of characters in Python source.
_NOT_OF_FILES = ("idna", "punycode", "unicode-escape", "raw-unicode-escape")
_INVALID = "heedful.invalid"


def _mark_invalid(error: UnicodeError) -> tuple[str, int]:
    """Half a surrogate pair in place of what cannot be decoded: as UTF-8 it is invalid, as the bytes were."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error(_INVALID, _mark_invalid)


def check_encoding(name: str | None, option: str = "--encoding") -> None:
    """Raise a UserError for an encoding that Python does not know, or that is not one of text."""
    if name is None:
        return
    try:
        "a".encode(name)
        if codecs.lookup(name).name in _NOT_OF_FILES:
            raise LookupError
    except (LookupError, ValueError):
        raise UserError(f"{option} {name!r} is not the name of an encoding: {nearest(name, _KNOWN)}") from None


def as_utf8(blocks: Iterable[bytes], name: str | Path, encoding: str | None = None) -> Iterator[bytes]:
    """The bytes of a text file as UTF-8 without a byte order mark; the mark, or else the given name, says the encoding.

    Bytes that the encoding has no character for become bytes that are invalid in UTF-8 too. Without a mark or a name,
    the bytes are given as they are.
    """
    stream = iter(blocks)
    first = _with_a_whole_mark(stream)
    marked = next((found for mark, found in _BYTE_ORDER_MARKS if first.startswith(mark)), None)
    if marked is None:
        _refuse_other_files(first, name)
        if encoding is None and (found := _wide_encoding(first)):
            looks = found.removesuffix("-le").removesuffix("-be").upper()
            raise UserError(f"{name} looks like {looks} without a byte order mark: give --encoding {found}")
        _refuse_unmarked(first, name, encoding)
    encoding = marked or encoding or "utf-8"
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        yield from _without_empty(first.removeprefix(codecs.BOM_UTF8), stream)
        return
    decoder = codecs.getincrementaldecoder(encoding)(_INVALID)
    begins = True
    raw = _without_empty(first, stream)
    for block in _refusing_utf8(raw, name, encoding) if _is_of_single_bytes(encoding) else raw:
        text = decoder.decode(block)
        if begins and text:
            text, begins = text.removeprefix("\ufeff"), False
        if text:
            yield text.encode("utf-8", "surrogatepass")
    if text := decoder.decode(b"", final=True):
        yield text.encode("utf-8", "surrogatepass")


def _with_a_whole_mark(stream: Iterator[bytes]) -> bytes:
    """The first block, and more as long as it may be the beginning of a byte order mark that arrives byte by byte."""
    first = next(stream, b"")
    while first and any(mark.startswith(first) and mark != first for mark, _ in _BYTE_ORDER_MARKS):
        more = next(stream, b"")
        if not more:
            break
        first += more
    return first


def _wide_encoding(start: bytes) -> str | None:
    """The encoding of several bytes per character that a text without a mark seems to have, by where its NULs are."""
    if not start.count(0):
        return None
    for found in ("utf-32-le", "utf-32-be"):  # of all numbers of 32 bits, few are characters
        if len(start) > 7 and not codecs.getincrementaldecoder(found)("replace").decode(start).count("\ufffd"):
            return found
    even, odd = start[::2].count(0), start[1::2].count(0)
    # Scripts other than Latin have them only in spaces and line ends; a few may be damage.
    many = start.count(0) > len(start) // 4
    some = start.count(0) > max(7, len(start) // 200) and not _is_utf8(start[: start.rfind(b"\0")])
    if (even and odd) or not (many or some):
        return None
    return "utf-16-le" if odd else "utf-16-be"


def _without_empty(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


def _refuse_unmarked(start: bytes, name: str | Path, encoding: str | None) -> None:
    """Raise a UserError if an encoding was named whose byte order only a mark can tell."""
    known = codecs.lookup(encoding).name if encoding and start else ""
    if known in ("utf-16", "utf-32"):
        raise UserError(
            f"{name} has no byte order mark, without which {encoding} does not say the order of its bytes: "
            f"give --encoding {known}-le or {known}-be"
        )


class IsUtf8Error(UserError):
    """A file is valid UTF-8, though another encoding was named."""

    def __init__(self, name: str | Path, encoding: str) -> None:
        super().__init__(f"{name} is valid UTF-8, not {encoding}: leave --encoding out")


def _is_of_single_bytes(encoding: str) -> bool:
    """Whether an encoding has one byte per character, so that nothing distinguishes its text from UTF-8."""
    return len(bytes(range(256)).decode(encoding, "replace")) == 256


def _refusing_utf8(blocks: Iterable[bytes], name: str | Path, encoding: str) -> Iterator[bytes]:
    """The same bytes; at their end an error if they are UTF-8, and not just ASCII."""
    check = Utf8Check()
    for block in blocks:
        check.look(block)
        yield block
    if check.finish():
        raise IsUtf8Error(name, encoding)


class Utf8Check:
    """Tells whether bytes, given block by block, are valid UTF-8 and not just ASCII."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_valid, self._is_ascii = True, True

    def look(self, block: bytes) -> None:
        """Take in a block."""
        if not self._is_valid or (self._is_ascii and block.isascii()):
            return
        self._is_ascii = False
        self._decode(block)

    def finish(self) -> bool:
        """Whether all of it is valid UTF-8, and not just ASCII."""
        self._decode(b"", final=True)
        return self._is_valid and not self._is_ascii

    def _decode(self, block: bytes, final: bool = False) -> None:
        try:
            self._decoder.decode(block, final)
        except UnicodeDecodeError:
            self._is_valid = False


def _refuse_other_files(start: bytes, name: str | Path) -> None:
    for pattern, what in _NOT_TEXT_STARTS:
        if pattern.match(start):
            raise UserError(
                f"{name} is {what}, not a text file: give plain text, which may be compressed as .gz or .xz"
            )


class LineCensus:
    """Counts the lines of a text file that are not text, and refuses a file with too many of them."""

    def __init__(
        self, name: str | Path, encoding: str | None = None, option: Callable[[], str] = lambda: "--encoding"
    ) -> None:
        self._name, self._encoding, self._option = name, encoding, option
        self._lines = self._invalid = self._with_nul = 0
        self._sample = b""

    def look(self, lines: bytes) -> None:
        """Count some lines, which are whole, or cut where a character ends."""
        begins = self._lines == 0
        self._lines += lines.count(b"\n") + (not lines.endswith(b"\n"))
        if b"\0" in lines:
            self._with_nul += sum(b"\0" in line for line in lines.split(b"\n"))
            if begins:
                self._refuse_binary()
        if not _is_utf8(lines):
            for line in lines.split(b"\n"):
                if not _is_utf8(line):
                    self._invalid += 1
                    if len(self._sample) < _SAMPLE_BYTES:
                        self._sample += line[:_SAMPLE_BYTES] + b"\n"

    def finish(self) -> None:
        """Raise a UserError that says what the file looks like, if there were too many."""
        self._refuse_binary()
        if self._invalid <= MOST_INVALID * self._lines:
            return
        share = f"{self._invalid:,} of {self._lines:,} lines"
        if self._encoding is not None:
            raise UserError(f"{self._name}: {share} are not valid {self._encoding}: give another {self._option()}")
        looks, offer, reads = "", "its name", ""
        if found := _guess(self._sample):
            label, offer = found
            looks = f", and it looks like {label}"
            reads = f" (it then reads {_excerpt(self._sample, offer)!r}; if that is wrong, give another one)"
        raise UserError(
            f"{self._name}: {share} are not valid UTF-8{looks}: give {self._option()} {offer}{reads}, "
            "or convert the file to UTF-8"
        )

    def _refuse_binary(self) -> None:
        if self._with_nul > MOST_INVALID * self._lines:
            raise UserError(
                f"{self._name} is not a text file: {self._with_nul:,} of {self._lines:,} lines hold NUL bytes; "
                "if it is UTF-16 without a byte order mark, give --encoding utf-16-le or utf-16-be"
            )


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _excerpt(sample: bytes, encoding: str) -> str:
    """The first word that is not ASCII, with those around it: similar encodings differ in a few letters."""
    words = sample.partition(b"\n")[0].decode(encoding, "replace").split()
    place = next((number for number, word in enumerate(words) if not word.isascii()), 0)
    return " ".join(words[max(0, place - 2) : place + 3])[:60]


def _guess(sample: bytes) -> tuple[str, str] | None:
    """The encoding that lines look like, as people call it and as an option takes it."""
    from charset_normalizer import from_bytes  # here: most files are UTF-8, and need not wait for it

    best = from_bytes(sample).best()
    if best is None:
        return None
    found = best.encoding
    # Many encodings have the same letters in the same places: the best-known one that reads the same is named.
    for usual in ("latin_1", "cp1252"):
        try:
            if sample.decode(usual) == sample.decode(found) and not re.search("[\x80-\x9f]", sample.decode(usual)):
                found = usual
                break
        except UnicodeDecodeError:
            continue
    label = _NAMES.get(found, found.upper().replace("_", "-"))
    return label, label.lower() if found in _NAMES else found.replace("_", "-")
