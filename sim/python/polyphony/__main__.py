"""Runs the command: the script `polyphony`, and `python -m polyphony`."""
import os
import sys

from ._command import program
from ._errors import PolyphonyError


def main() -> None:
    """Replaces this process by the command, with the arguments of this one."""
    try:
        path = program()
    except PolyphonyError as error:
        sys.exit(f"polyphony: {error}")
    os.execv(path, ["polyphony", *sys.argv[1:]])


if __name__ == "__main__":
    main()
