"""What a shell completes: names of files and folders, where a command takes them."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

# Arguments that name a folder; options say so by their metavar.
FOLDERS = ("model", "models", "folder", "out")


class FileName(click.types.StringParamType):
    """A text that is completed as the name of a file or a folder (`kind` file or dir)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell do it."""
        return [CompletionItem(incomplete, type=self.kind)]


def complete_names(command: click.Command) -> None:
    """Let a shell complete the names of files and folders that a command takes."""
    for parameter in command.params:
        metavar = parameter.metavar or ""
        if not isinstance(parameter.type, click.types.StringParamType):
            continue
        if "FOLDER" in metavar or (isinstance(parameter, click.Argument) and parameter.name in FOLDERS):
            parameter.type = FileName("dir")
        elif "FILE" in metavar or "IMAGE" in metavar:
            parameter.type = FileName("file")
