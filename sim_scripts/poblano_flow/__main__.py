"""`python -m poblano_flow` is the command `poblano`."""

from poblano_flow.cli import main

main()
