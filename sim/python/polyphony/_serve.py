"""The command `polyphony serve`: a page in the browser that asks the command's questions (needs starlette, uvicorn and plotly)."""
from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import socket
import sys
import webbrowser

_PORT = 8765
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ABOUT = """\
Serves a page in the browser: paste or drop a config.json, choose GPUs and data, see parameters and memory at once and the
ranked layouts as they are found; look into a layout, change one thing, compare two, and export.

The page is for this machine only. Its address contains a random token, without which every request is refused. One search
runs at a time; further ones wait for their turn. Ctrl-C ends the server, its searches, and deletes their files."""
_EXAMPLES = """\
Examples
  polyphony serve                       opens the page in the browser
  polyphony serve --no-browser          prints the address only; through ssh: ssh -L 8765:127.0.0.1:8765 MACHINE
  polyphony serve --host 0.0.0.0        for other machines too, unencrypted: the address is the only key
"""


def _socket(host: str, port: int | None) -> socket.socket:
    """Returns a listening socket: on the port, or if none is given on the usual one or a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if port is not None:
        return socket.create_server((host, port), family=family)
    try:
        return socket.create_server((host, _PORT), family=family)
    except OSError:
        return socket.create_server((host, 0), family=family)


def serve(words: list[str]) -> None:
    """Serves the page until it is interrupted."""
    parser = argparse.ArgumentParser(prog="polyphony serve", description=_ABOUT, epilog=_EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, help=f"port (default: {_PORT}, or a free one if it is taken)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page in a browser")
    asked = parser.parse_args(words)
    if asked.port is not None and not 0 <= asked.port < 65536:
        parser.error(f"--port must be 0 to 65535 (got {asked.port}; 0: a free one)")

    import uvicorn

    from ._command import program
    from ._errors import PolyphonyError
    from ._serve_app import application

    local = asked.host in _LOOPBACK
    try:
        program()
        listening = _socket("127.0.0.1" if asked.host == "localhost" else asked.host, asked.port)
    except PolyphonyError as error:
        sys.exit(f"polyphony serve: {error}")
    except OSError as error:
        sys.exit(f"polyphony serve: {asked.host}:{asked.port or _PORT}: cannot be listened on: {error.strerror or error} (choose another --port or --host)")
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    shown = asked.host if local else socket.gethostname() if asked.host in ("0.0.0.0", "::") else asked.host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/{token}/"
    if not local:
        print(f"polyphony serve: warning: {asked.host} is not this machine alone: all machines that reach port {port} and know the address"
              " may start searches, unencrypted", file=sys.stderr)
    print(f"polyphony serve: {address}   (Ctrl-C ends it)", flush=True)
    if not asked.no_browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        webbrowser.open(address)
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")} if local else None
    config = uvicorn.Config(application(token, hosts), log_level="error", access_log=False, server_header=False, limit_concurrency=200,
                            timeout_graceful_shutdown=2, timeout_keep_alive=15)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])
