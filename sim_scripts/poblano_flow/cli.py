"""The command `poblano`: its frame, and what becomes of an error.

Every command group is a module with a function `register(app)`; the modules import what their
commands need inside the commands, so that `poblano --help` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated

import typer

from poblano_golden.errors import PoblanoError

__all__ = ["build_app", "main"]

COMMAND_MODULES = (
    "poblano_flow.config_cli",
    "poblano_flow.emit_cli",
    "poblano_flow.lint_cli",
    "poblano_flow.sim_cli",
    "poblano_flow.synth_cli",
    "poblano_flow.sweep_cli",
    "poblano_flow.optimise_cli",
    "poblano_flow.demo_cli",
    "poblano_flow.commands_cli",
    "poblano_flow.registers_cli",
    "poblano_flow.program_cli",
    "poblano_flow.noc_cli",
