"""`poblano config`: show, validate, compare and describe configurations."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poblano_flow.options import OverrideOption

if TYPE_CHECKING:
    from poblano.config import Configuration

__all__ = ["register", "to_yaml"]

Source = Annotated[
    str, typer.Argument(metavar="PRESET|FILE", help="A preset's name or a YAML or JSON file.")
]


class Format(StrEnum):
    """How `show` prints."""

    YAML = "yaml"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(
        help="Show, validate, compare and describe configurations.", no_args_is_help=True
    )
    group.command()(show)
    group.command()(validate)
    group.command()(schema)
    group.command()(diff)
    app.add_typer(group, name="config")


def show(
    source: Source,
    overrides: OverrideOption = None,
    format_: Annotated[Format, typer.Option("--format", help="Text form.")] = Format.YAML,
) -> None:
    """Print a configuration with every default filled in, and the figures that follow from it.

    The YAML form is itself a configuration file; the figures stand in comments.

    [bold]Examples[/bold]

      poblano config show bench
      poblano config show tiny -P slice.tensor.rows=4 > mine.yaml
      poblano config show jalapeno --format json | jq .derived
    """
    from poblano.config import derive, load

    configuration = load(source, overrides or ())
    if format_ is Format.YAML:
        print(to_yaml(configuration), end="")
    else:
        record = {
            "hash": configuration.hash,
            "configuration": configuration.model_dump(mode="json"),
            "derived": derive(configuration),
        }
        print(json.dumps(record, indent=2))


def validate(source: Source, overrides: OverrideOption = None) -> None:
    """Check a configuration; every problem is a line FILE:LINE:COLUMN: RULE; got VALUE.

    [bold]Examples[/bold]

      poblano config validate mine.yaml
      poblano config validate bench -P slice.tensor.cols=12
    """
    from poblano.config import load

    configuration = load(source, overrides or ())
    print(f"{source}: valid, {configuration.name}, hash {configuration.hash}")


def schema() -> None:
    """Print the JSON Schema of configuration files, for editors.

    [bold]Example[/bold]

      poblano config schema > poblano.schema.json
    """
    from poblano.config import Configuration

    print(json.dumps(Configuration.model_json_schema(), indent=2))


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="A preset's name or a file.")],
    second: Annotated[str, typer.Argument(metavar="B", help="A preset's name or a file.")],
) -> None:
    """Print the values in which two configurations differ; exit status 1 if there are any.

    [bold]Example[/bold]

      poblano config diff bench mine.yaml
    """
    from poblano.config import load

    sides = [_leaves(load(source).model_dump(mode="json")) for source in (first, second)]
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    different = [key for key in keys if sides[0].get(key) != sides[1].get(key)]
    for key in different:
        print(f"{key}: {_text(sides[0].get(key))} -> {_text(sides[1].get(key))}")
    if different:
        raise typer.Exit(1)


def to_yaml(configuration: Configuration) -> str:
    """Return a configuration file that stands for `configuration`, figures in comments."""
    import yaml

    from poblano.config.derived import describe_derived

    class Dumper(yaml.SafeDumper):
        pass

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent_text)
    values = yaml.dump(configuration.model_dump(mode="json"), Dumper=Dumper, sort_keys=False)
    figures = [("hash", configuration.hash), *describe_derived(configuration)]
    width = max(len(name) for name, _ in figures)
    comments = "".join(f"# {name:<{width}}  {text}\n" for name, text in figures)
    return f"{values}\n# What follows from these values:\n{comments}"


def _leaves(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            leaves |= _leaves(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def _text(value: Any) -> str:
    return "absent" if value is None else json.dumps(value)
