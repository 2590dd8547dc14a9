"""Run ``python -m graphpartner.cli``, for where the command itself is not installed."""

from graphpartner.cli import main

main()
