"""The error that every package of Poblano raises for a user's mistake."""

from __future__ import annotations


class PoblanoError(Exception):
    """Input that breaks a stated rule: one line that names the rule and the value.

    The command line prints the message and ends with a status that is not 0; it shows no
    traceback. Anything else that escapes is a fault of Poblano itself.
    """
