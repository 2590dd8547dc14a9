"""The one exception for input that is wrong."""


class InputError(ValueError):
    """What the user gave is wrong: the message names it, its value, and what would be right.

    The command line prints the message alone and exits with 2.
    """
