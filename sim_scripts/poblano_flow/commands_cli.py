"""`poblano commands`: the command table, and the scalar engine's instructions, for reading."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("commands")
    def commands(
        markdown: Annotated[
            bool, typer.Option("--markdown", help="As the reference page docs/commands.md.")
        ] = False,
        scalar: Annotated[
            bool, typer.Option("--scalar", help="The scalar engine's instructions: docs/scalar.md.")
        ] = False,
    ) -> None:
        """List the commands of every engine: fields, bits, legal values and meaning."""
        if scalar:
            from poblano.scalar.reference import markdown as reference
        else:
            from poblano.commands.reference import markdown as reference

        if markdown:
            print(reference(), end="")
            return
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(reference()))
