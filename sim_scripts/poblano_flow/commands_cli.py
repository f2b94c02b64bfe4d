"""`poblano commands`: the command table for reading."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("commands")
    def commands(
        markdown: Annotated[
            bool, typer.Option("--markdown", help="The reference page docs/commands.md.")
        ] = False,
    ) -> None:
        """List the commands of every engine: fields, bits, legal values and meaning."""
        from poblano.commands.reference import markdown as reference

        if markdown:
            print(reference(), end="")
            return
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(reference()))
