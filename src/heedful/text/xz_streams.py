"""Unpacking .xz files, which may consist of several streams, one after the other."""

import lzma
from collections.abc import Iterator
from io import BufferedReader


def xz_blocks(packed: BufferedReader, size: int) -> Iterator[bytes]:
    """The unpacked bytes of all streams of a file, up to `size` at a time; damage anywhere is an error.

    Python's own `LZMAFile` takes a damaged stream after a sound one for the end of the file.
    """
    unpacker, block = lzma.LZMADecompressor(lzma.FORMAT_XZ), b""
    while True:
        if unpacker.eof:
            block = unpacker.unused_data.lstrip(b"\0")  # zeros may follow a stream
            while not block and (read := packed.read1(size)):
                block = read.lstrip(b"\0")
            if not block:
                return
            unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        elif unpacker.needs_input:
            block = packed.read1(size)
            if not block:
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        if unpacked := unpacker.decompress(block, size):
            yield unpacked
        block = b""
