"""The errors that a command states, as exceptions."""
from __future__ import annotations

from typing import Any


class PolyphonyError(Exception):
    """Is raised if a command fails.

    Attributes
    ----------
    what : str
        What is wrong.
    file : str
        The file, option or command that it is about; may be empty.
    pointer : str
        RFC 6901 pointer into that file; empty for the whole of it.
    fix : str
        What to do about it; may be empty.
    answer : Any
        The command's answer as decoded JSON, if it gave one: of a search its rejected layouts.
    """

    def __init__(self, what: str, file: str = "", pointer: str = "", fix: str = "", answer: Any = None) -> None:
        self.what, self.file, self.pointer, self.fix, self.answer = what, file, pointer, fix, answer
        where = f"{file}: {pointer}: " if file and pointer else f"{file or pointer}: " if file or pointer else ""
        super().__init__(f"{where}{what}" + (f" ({fix})" if fix else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.file, self.pointer, self.fix, self.answer)


class InputError(PolyphonyError, ValueError):
    """Is raised if what was asked is wrong: an unknown key, a value out of its range (exit code 2)."""


class InfeasibleError(PolyphonyError):
    """Is raised if nothing fits, or cannot run (exit code 3)."""


def error_of(exit_code: int, stated: dict[str, Any], answer: Any = None) -> PolyphonyError:
    """Returns the exception of an error that a command stated in JSON."""
    kind = {2: InputError, 3: InfeasibleError}.get(exit_code, PolyphonyError)
    return kind(stated["what"], stated["file"], stated["pointer"], stated["fix"], answer)
