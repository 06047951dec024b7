"""Runs the command: the script `polyphony`, and `python -m polyphony`."""
import os
import sys

from ._command import program
from ._errors import PolyphonyError


def main() -> None:
    """Replaces this process by the command, with the arguments of this one. `mcp` serves the tools of agents, `serve` a page."""
    if sys.argv[1:] == ["mcp"]:
        try:
            from ._mcp import serve
        except ModuleNotFoundError as error:
            sys.exit(f"polyphony mcp: needs the package {error.name} (pip install mcp)")
        return serve()
    if sys.argv[1:2] == ["serve"]:
        from ._serve import serve as serve_page

        try:
            return serve_page(sys.argv[2:])
        except ModuleNotFoundError as error:
            sys.exit(f"polyphony serve: needs the package {error.name} (pip install starlette uvicorn plotly)")
    try:
        path = program()
    except PolyphonyError as error:
        sys.exit(f"polyphony: {error}")
    os.execv(path, ["polyphony", *sys.argv[1:]])


if __name__ == "__main__":
    main()
