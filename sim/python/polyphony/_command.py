"""Runs the `polyphony` command that the package contains, and reads its answers.

The command is a process of its own: a search uses all cores while Python's threads go on, and what
goes wrong in it cannot end the interpreter.
"""
from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any, Callable, Mapping, Sequence, Union

from ._errors import PolyphonyError, error_of

Path = Union[str, "os.PathLike[str]"]

log = logging.getLogger("polyphony")
_PROGRESS = re.compile(r"^[a-z]+: [\d.]+ \S+, (\d+) % done(.*)$")


def program() -> str:
    """Returns the path of the command: that of $POLYPHONY_COMMAND, of the package, or of $PATH.

    Raises
    ------
    PolyphonyError
        If there is none.
    """
    packaged = pathlib.Path(__file__).parent / "bin" / "polyphony"
    for path in (os.environ.get("POLYPHONY_COMMAND"), str(packaged), shutil.which("polyphony")):
        if path and os.access(path, os.X_OK):
            return path
    raise PolyphonyError("there is no program polyphony", fix="install the package with `pip install .`, or set POLYPHONY_COMMAND to a built one")


def version() -> str:
    """Returns the command's version, commit and build options, as `polyphony --version` prints them."""
    return subprocess.run([program(), "--version"], check=True, capture_output=True, text=True).stdout.strip()


def options(values: Mapping[str, Any]) -> list[str]:
    """Returns keyword arguments as options of the command.

    None and False are left out, True is an option without a value, and a list or a mapping repeats
    the option: set={"layout.microbatches": 8} is --set layout.microbatches=8.
    """
    words: list[str] = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            for key, each in value.items():
                words += [option, f"{key}={each if isinstance(each, str) else json.dumps(each)}"]
        elif isinstance(value, (list, tuple)):
            for each in value:
                words += [option, str(each)]
        else:
            words += [option, str(value)]
    return words


# Whether to show progress, or a function of percent and words that does.
Progress = Union[bool, Callable[[int, str], None], None]


class _Bar:
    """Shows how far a long command is: with tqdm if it is installed, else as lines, if they are asked for."""

    def __init__(self, name: str, wanted: Progress) -> None:
        self.name = name
        self.bar: Any = None
        self.tell = wanted if callable(wanted) else None
        self.wanted = wanted if wanted is not None else sys.stderr.isatty() or "ipykernel" in sys.modules
        self.lines = wanted is True

    def say(self, line: str) -> None:
        step = _PROGRESS.match(line)
        if not step:
            if line:
                log.info(line)
        elif self.tell:
            self.tell(int(step[1]), step[2].strip(", "))
        elif self.wanted and self._drawn() is not None:
            self.bar.update(int(step[1]) - self.bar.n)
            self.bar.set_postfix_str(step[2].strip(", "))
        elif self.lines:
            print(line, file=sys.stderr)

    def _drawn(self) -> Any:
        with contextlib.suppress(ImportError):
            if self.bar is None:
                from tqdm.std import tqdm  # type: ignore[import-untyped, unused-ignore]

                self.bar = tqdm(total=100, desc=self.name, unit="%", leave=False)
        return self.bar

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def run(command: str, arguments: Sequence[str], *, progress: Progress = None,
        keep: Callable[[Any], bool] = lambda answer: False) -> Any:
    """Runs a command with --format json, and returns its answer as decoded JSON.

    An interrupt (Ctrl-C) is passed on to the command, once. If the answer that it then gives is one
    to `keep`, it is returned.

    Raises
    ------
    InputError, InfeasibleError, PolyphonyError
        As the command states it.
    KeyboardInterrupt
        If the command was interrupted and gave no answer to keep.
    """
    words = [program(), command, *arguments, "--format", "json"]
    # A session of its own: Ctrl-C on a terminal then reaches the command once, from here.
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stdout and process.stderr
    talk: list[str] = []
    out: list[bytes] = []
    bar = _Bar(command, progress)

    def listen() -> None:
        assert process.stderr
        for line in process.stderr:
            talk.append(line.decode(errors="replace").rstrip())
            bar.say(talk[-1])

    def read() -> None:
        assert process.stdout
        out.append(process.stdout.read())

    threads = [threading.Thread(target=target, daemon=True) for target in (listen, read)]
    interrupted = False
    try:
        for thread in threads:
            thread.start()
        while True:
            try:
                for thread in threads:
                    while thread.is_alive():  # Without a limit, join() would not hear a signal to another thread.
                        thread.join(0.2)
                process.wait()
                break
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                process.send_signal(signal.SIGINT)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for thread in threads:
            if thread.is_alive():
                thread.join(1)
        for pipe in (process.stdout, process.stderr):
            pipe.close()
        bar.close()
    text = b"".join(out).decode()
    answer = json.loads(text) if text.strip() else None
    if interrupted and not (answer is not None and keep(answer)):
        raise KeyboardInterrupt
    if isinstance(answer, dict) and "error" in answer and process.returncode:
        raise error_of(process.returncode, answer["error"])
    if answer is None or (process.returncode and not keep(answer)):
        said = {"what": "; ".join(talk) or _reason(answer), "file": command, "pointer": "", "fix": ""}
        raise error_of(process.returncode, said, answer)
    return answer


def _reason(answer: Any) -> str:
    """Returns why a command has ended with an answer that is not a success."""
    if isinstance(answer, dict) and answer.get("nearest_misfit"):
        nearest = answer["nearest_misfit"]
        return f"no layout fits; the nearest, {nearest['layout']}, needs {nearest['memory_bytes'] / 2**30:.1f} GiB ({nearest['where']})"
    if isinstance(answer, dict) and answer.get("cannot"):
        return "; ".join(str(each) for each in answer["cannot"])
    return "the answer states why (the error's `answer`)"
