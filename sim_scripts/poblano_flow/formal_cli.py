"""`poblano prove`: proofs of the hardware."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(prove)


def prove(
    names: Annotated[
        list[str] | None, typer.Argument(help="Parts of proofs' names; all by default.")
    ] = None,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", help="Of one question to the solver.")
    ] = 1800.0,
) -> None:
    """Prove properties of the hardware for every input, with Yosys and Z3.

    Logs are in build/formal. Exit status 1 if something does not hold.

    [bold]Example[/bold]

      poblano prove noc_credits
    """
    from poblano_flow.formal import prove as prove_one
    from poblano_flow.formal import selected

    failed = 0
    for proof in selected(names or []):
        outcome = prove_one(proof, limit)
        failed += not outcome.passed
        extent = f"for {proof.depth} cycles from reset" if proof.bounded else "for ever"
        if outcome.passed:
            print(f"proved  {proof.name}: {proof.summary}, {extent}", flush=True)
        else:
            print(
                f"FAILED  {proof.name}: {outcome.message}\n  logs in {outcome.folder}", flush=True
            )
    if failed:
        raise typer.Exit(1)
