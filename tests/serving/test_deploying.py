"""The recipes for a server: its clients' lines, with a key, and by the name that a proxy hands on."""

import re
import subprocess
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
CLIENTS = re.findall(r"^```bash\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_clients_of_a_server_behind_a_proxy(start, models: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text("abc\n")
    options = ["--allow-host", "translate.example.org", "--api-key-file", tmp_path / "keys.txt", "--workers", "1"]
    with start(f"en-de={models['translator']}", *options) as server:

        def shell(code: str) -> str:
            code = code.replace("http://", "").replace("localhost:8000", server.url.removeprefix("http://"))
            result = subprocess.run(["bash", "-ec", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert result.returncode == 0, result.stderr
            return result.stdout

        without_key, with_key = (shell(code) for code in CLIENTS)
        assert '"ok"' in without_key and "key" in without_key
        assert '"text"' in with_key and "error" not in with_key
        with server.client as client:
            by_name = client.get("/api/models", headers={"Host": "translate.example.org", "X-API-Key": "abc"})
            assert by_name.status_code == 200
            assert client.get("/api/models", headers={"Host": "other.example.org"}).status_code == 403
