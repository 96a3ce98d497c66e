"""The engine's CRC-32 beside that of zlib."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from heedful.core.interface import add_to_checksum, joined_checksum


@given(st.binary(max_size=1000), st.integers(0, 2**32 - 1), st.integers(0, 70))
def test_it_is_that_of_zlib(content: bytes, before: int, offset: int) -> None:
    block = memoryview(bytearray(content))[offset:]  # at any address
    assert add_to_checksum(block, before) == zlib.crc32(block, before)


def test_it_goes_on_over_blocks_of_any_size() -> None:
    content = bytearray(range(256)) * 1021
    crc, first = 0, 0
    for size in (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 4099, len(content)):
        crc = add_to_checksum(memoryview(content)[first : first + size], crc)
        first += size
    assert crc == zlib.crc32(content)


@given(st.binary(max_size=1000), st.binary(max_size=1000), st.integers(0, 2**32 - 1))
def test_the_sums_of_parts_make_that_of_the_whole(first: bytes, second: bytes, before: int) -> None:
    joined = joined_checksum(zlib.crc32(first, before), zlib.crc32(second), len(second))
    assert joined == zlib.crc32(first + second, before)


def test_parts_may_be_of_any_size() -> None:
    zeros = bytes(3 * 2**20 + 7)
    assert joined_checksum(zlib.crc32(b"first"), zlib.crc32(zeros), len(zeros)) == zlib.crc32(b"first" + zeros)
