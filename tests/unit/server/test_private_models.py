import os
import time
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.server.settings import ServerSettings


def test_copies_that_nobody_holds_are_removed_and_others_are_not(tmp_path, monkeypatch):
    from heedful.server.front import private_models as module

    monkeypatch.setattr(module, "_parents", lambda: [tmp_path])
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    settings = ServerSettings({"m": str(model)})
    left, fresh = tmp_path / "heedful-serve-left", tmp_path / "heedful-serve-fresh"
    for each in (left, fresh):
        each.mkdir()
    old = time.time() - 2 * module.STALE_SECONDS
    os.utime(left, (old, old))
    with module.private_models(settings) as first:
        assert not left.exists() and fresh.exists()
        os.utime(first.private, (old, old))
        with module.private_models(settings) as second:
            assert Path(first.private).exists() and first.private != second.private
            assert (Path(second.models["m"]) / "config.json").read_text() == "{}"
    assert not Path(first.private).exists() and not Path(second.private).exists()


def test_a_lack_of_room_is_told_before_anything_is_copied(tmp_path, monkeypatch):
    from heedful.server.front import private_models as module

    monkeypatch.setattr(module, "_parents", lambda: [tmp_path / "small"])
    (tmp_path / "small").mkdir()
    (tmp_path / "m").mkdir()
    with (tmp_path / "m" / "model.safetensors").open("wb") as file:
        file.truncate(2**43)
    with (
        pytest.raises(UserError, match=r"takes 8,388,608 MiB, and there is no room for it in .*: set TMPDIR"),
        module.private_models(ServerSettings({"m": str(tmp_path / "m")})),
    ):
        pass
