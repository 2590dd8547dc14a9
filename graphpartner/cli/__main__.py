"""``python -m graphpartner.cli``, where the command itself is not installed."""

from graphpartner.cli import main

main()
