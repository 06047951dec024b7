"""What all answers can do: be read from JSON, shown, and turned into dictionaries and tables."""
from __future__ import annotations

import dataclasses
import functools
import html
import json
import sys
import types
import typing
from typing import TYPE_CHECKING, Any, ClassVar, Mapping

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

_SHOWN_ROWS = 12
# Columns of notebooks' tables; all scalars of a row for other answers.
_COLUMNS = {
    "Search": ("words", "step_seconds", "interval90_seconds", "peak_memory_bytes", "mfu", "tied"),
    "Plan": ("stage", "ranks", "layers", "forward_seconds", "backward_seconds", "memory_bytes"),
}


def _key(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("key", field.name))


@functools.lru_cache(maxsize=None)
def _hints(kind: type) -> dict[str, Any]:
    module = sys.modules[kind.__module__]
    return typing.get_type_hints(kind, vars(module))


def _is_answer(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Answer)


def _fits(kind: type[Any], value: Mapping[str, Any]) -> bool:
    """Returns whether an object has the keys of a class."""
    fields = dataclasses.fields(kind)
    required = {_key(field) for field in fields if not field.metadata.get("optional")}
    return required <= value.keys() <= {_key(field) for field in fields}


def decode(kind: Any, value: Any) -> Any:
    """Returns a JSON value as the given type: an Answer, a tuple, a mapping or a scalar."""
    if value is None:
        return None
    if _is_answer(kind):
        fields = dataclasses.fields(kind)
        hints = _hints(kind)
        return kind(**{field.name: decode(hints[field.name], value[_key(field)]) for field in fields if _key(field) in value})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in arguments if option is not type(None)]
        for option in options:
            if _is_answer(option) and isinstance(value, dict) and _fits(option, value):
                return decode(option, value)
        return decode(options[0] if len(options) == 1 else Any, value)
    if origin is tuple:
        return tuple(decode(arguments[0], item) for item in value)
    if isinstance(value, dict):
        item = arguments[1] if len(arguments) == 2 else Any
        return types.MappingProxyType({key: decode(item, each) for key, each in value.items()})
    return value


def encode(value: Any) -> Any:
    """Returns a value as plain dictionaries, lists and scalars, with the keys of the command's JSON."""
    if isinstance(value, Answer):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: encode(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(each) for each in value]
    return value


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(encode(value))


class Answer:
    """Base class of all answers: immutable values with the keys of the command's JSON."""

    __slots__ = ()
    _rows: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer as the command prints it with --format json."""
        answer: dict[str, Any] = {}
        for field in dataclasses.fields(typing.cast(Any, self)):
            value = getattr(self, field.name)
            if value is not None or not field.metadata.get("optional"):
                answer[_key(field)] = encode(value)
        return answer

    def to_json(self) -> str:
        """Returns the answer as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def records(self) -> list[dict[str, Any]]:
        """Returns the rows of the answer's table: of a search its layouts. One row if it has no table."""
        table = getattr(self, self._rows) if self._rows else None
        return [encode(row) for row in table] if table is not None else [self.to_dict()]

    def to_frame(self) -> pandas.DataFrame:
        """Returns records() as a data frame of pandas, nested keys joined by dots.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas

        return pandas.json_normalize(self.records())

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws the answer with matplotlib, and returns the axes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If this kind of answer has no picture.
        """
        from . import _plots

        return _plots.draw(self, ax)

    def __repr__(self) -> str:
        shown = []
        for key, value in self.to_dict().items():
            if isinstance(value, (int, float, str)):
                shown.append(f"{key}={_short(value)}")
            elif isinstance(value, list):
                shown.append(f"{key}=[{len(value)}]")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = self.records()
        if not self._rows:
            rows = [{"": key, "value": value} for key, value in self.to_dict().items() if not isinstance(value, (dict, list))]
        scalars = [key for key in (rows[0] if rows else {}) if not any(isinstance(row.get(key), (dict, list)) for row in rows)]
        columns = _COLUMNS.get(type(self).__name__, scalars)
        head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_short(row.get(column)))}</td>" for column in columns) + "</tr>"
                       for row in rows[:_SHOWN_ROWS])
        rest = f"<p>{len(rows) - _SHOWN_ROWS:,} more rows</p>" if len(rows) > _SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
