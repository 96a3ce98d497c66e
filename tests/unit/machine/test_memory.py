import platform
import subprocess
import sys

import pytest

# Takes and frees 40 MB again and again, and says how many pages the system had to provide in the end.
TAKE_AND_FREE = """
import resource, torch
from heedful.machine.memory import keep_freed_memory
{call}
for turn in range(30):
    if turn == 20:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(10 * 2**20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


LIBRARY, VERSION = platform.libc_ver()
NEW_GLIBC = LIBRARY == "glibc" and tuple(map(int, VERSION.split("."))) >= (2, 36)


def pages(call: str) -> int:
    program = TAKE_AND_FREE.format(call=call)
    return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(not NEW_GLIBC, reason="older and other allocators have no such setting")
def test_freed_memory_is_used_again() -> None:
    assert pages("keep_freed_memory()") < 100
    assert pages("") > 10000
