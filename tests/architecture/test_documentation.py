"""The Python code in the documentation runs, and what the documentation names is there."""

import importlib
import re
from pathlib import Path

import click
import pytest

import heedful
from heedful.cli.main import cli
from heedful.tasks.labelling.files import RULES as RULES_OF_LABELLED_TEXT
from heedful.text.cleaning import RULES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "heedful"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# The pages that are about the code; others name classes of other libraries too.
PAGES_ON_CODE = [ROOT / "docs" / f"{name}.md" for name in ("architecture", "extending", "paper", "reading", "shapes")]
BLOCKS = [
    pytest.param(code, id=f"{file.name}-{number}")
    for file in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", file.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_code_runs(code: str, copy_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (tmp_path / "en-de").symlink_to(copy_model, target_is_directory=True)
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text("red dog\nblue sea\ngreen tree\nwhite moon\n" * 3 + "one cat\n")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "documentation", "exec"), {})
    assert capsys.readouterr().out


def test_links_lead_somewhere() -> None:
    for file in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", file.read_text(encoding="utf-8")):
            assert target.startswith("http") or (file.parent / target).exists(), (file.name, target)


def test_the_rules_of_cleaning_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for rule, sentence in RULES.items():
        assert f"| {rule.value} | {sentence} |" in text


def test_the_rules_of_labelled_text_are_documented_as_they_are() -> None:
    text = (ROOT / "docs" / "encoders.md").read_text(encoding="utf-8")
    for rule, sentence in RULES_OF_LABELLED_TEXT.items():
        assert f"| {rule} | {sentence} |" in text


def in_backticks(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


def is_there(name: str) -> bool:
    return any((folder / name).exists() for folder in (ROOT, PACKAGE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    for name in in_backticks(page):
        first, slash, _ = name.partition("/")
        is_path = slash and first and re.fullmatch(r"[\w./-]+", name) and is_there(first)
        is_file = re.fullmatch(r"[\w./-]+\.(py|js|css|html)", name) and slash
        if is_path or is_file:
            assert is_there(name), name


def test_names_that_are_given_with_a_file_are_in_it() -> None:
    for page in PAGES_ON_CODE:
        for file, names in re.findall(r"`([\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", page.read_text(encoding="utf-8")):
            code = (PACKAGE / file).read_text(encoding="utf-8")
            for name in re.findall(r"\w+", names):
                assert re.search(rf"\b(class|def) {name}\b", code), (page.name, file, name)


@pytest.mark.parametrize("page", PAGES_ON_CODE, ids=lambda page: page.name)
def test_classes_that_are_named_are_there(page: Path) -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    for name in in_backticks(page):
        if re.fullmatch(r"[A-Z][a-z0-9]+([A-Z]\w*)?", name):
            assert re.search(rf"^(class {name}\b|{name} = )", code, re.MULTILINE), name


def test_public_names_are_those_of_the_package() -> None:
    for page in PAGES:
        for name in in_backticks(page):
            if match := re.match(r"heedful\.((?:\w+\.)*)(\w+)", name):
                module = importlib.import_module(f"heedful.{match[1]}".rstrip(".")) if match[1] else heedful
                assert hasattr(module, match[2]) or is_there(match[2]), (page.name, name)


def test_the_tree_in_the_documentation_is_that_of_the_package() -> None:
    tree = re.search(r"src/heedful/\n(.*?)```", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"), re.DOTALL)
    assert tree
    top = re.findall(r"^  (\w+(?:/|\.py))", tree[1], re.MULTILINE)
    inner = re.findall(r"^    ((?:\w+/ *)+)$", tree[1], re.MULTILINE)
    there = {path.name + "/" * path.is_dir() for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    there -= {"__pycache__/", "__main__.py", "storage.py"}  # the last stands beside files.py
    assert set(top) == there
    tasks = {path.parent.name for path in (PACKAGE / "tasks").glob("*/about.py")}
    assert set(re.findall(r"\w+", " ".join(inner))) == tasks


def commands(group: click.Group) -> list[click.Command]:
    context = click.Context(group)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found += commands(command) if isinstance(command, click.Group) else [command]
    return found


def test_options_that_are_named_are_there() -> None:
    known = {
        name
        for command in commands(cli)
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = [line for line in text.splitlines() if line.startswith("heedful ")] + in_backticks(page)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+(?![a-z-])", "\n".join(named)):
            assert option in known | {"--help"} or option == "--valid-", (page.name, option)


def test_the_walks_through_the_code_take_an_hour() -> None:
    rows = re.findall(
        r"^\| `([\w/.]+)` \| (\d+) \|", (ROOT / "docs/reading.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert all((PACKAGE / file).is_file() for file, _ in rows)
    assert 50 <= sum(int(minutes) for _, minutes in rows) <= 60
