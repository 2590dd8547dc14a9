"""The one exception for wrong input."""


class InputError(ValueError):
    """Wrong input: the message names the argument or file, its value, and what would be right.

    The command line prints the message alone and exits with code 2.
    """
