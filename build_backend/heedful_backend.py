"""The PEP 517 backend of this package: that of setuptools, with the C++ core compiled first."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from typing import Any

from heedful_build import LIBRARY, ROOT, build_library, needs_zig
from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.command.bdist_wheel import bdist_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
Settings = Mapping[str, Any] | None


class PlatformWheel(bdist_wheel):  # type: ignore[misc]
    """A wheel for every Python 3: for this platform if the library is in it, for any if it is not."""

    def finalize_options(self) -> None:
        self.distribution.has_ext_modules = LIBRARY.exists
        super().finalize_options()

    def get_tag(self) -> tuple[str, str, str]:
        platform_tag = super().get_tag()[2]
        return "py3", "none", platform_tag.replace("universal2", platform.machine())


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return ["ziglang"] if needs_zig() else []


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return get_requires_for_build_wheel()


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None) -> str:
    build_library()
    # setuptools packs everything in there, including what an older build has left.
    for left in (ROOT / "build").glob("lib*/heedful"):
        shutil.rmtree(left)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    build_library()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
