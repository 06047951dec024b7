"""Predicted steps op by op: arrays of numpy."""
from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.axes
    import numpy
    import pandas


@dataclasses.dataclass(frozen=True, repr=False)
class Timeline:
    """Holds one step: when every op runs on which rank, and the memory of every rank over time.

    Attributes
    ----------
    ops : numpy.ndarray
        One record per op, in order of rank and start: `rank` (int), `stream` (str: "compute", or the
        name of a link), `name` (str), `kind` (str), `module` (str), `phase` (str: "forward", ...),
        `microbatch` (int, -1 if it belongs to none), `start_seconds`, `duration_seconds` (float).
    memory : numpy.ndarray
        One record per change of a rank's memory: `rank` (int), `time_seconds` (float), `bytes` (int).
    step_seconds : float
        When the last op ends.
    """

    ops: numpy.ndarray[Any, Any]
    memory: numpy.ndarray[Any, Any]
    step_seconds: float

    @staticmethod
    def read(path: str) -> Timeline:
        """Reads the Chrome trace that `polyphony simulate --trace` writes."""
        import numpy

        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        streams: dict[tuple[int, int], str] = {}
        ops, memory = [], []
        for event in trace["traceEvents"]:
            rank, phase = event.get("pid", 1) - 1, event["ph"]
            if phase == "M" and event["name"] == "thread_name":
                streams[event["pid"], event["tid"]] = event["args"]["name"]
            elif phase == "X":
                about = event["args"]
                ops.append((rank, streams[event["pid"], event["tid"]], event["name"], event.get("cat", ""), about.get("module", ""),
                            about.get("phase", ""), about.get("work", -1), event["ts"] * 1e-6, event["dur"] * 1e-6))
            elif phase == "C" and event["name"] == "memory":
                memory.append((rank, event["ts"] * 1e-6, event["args"]["bytes"]))

        def width(column: int) -> str:
            return f"U{max((len(op[column]) for op in ops), default=1) or 1}"

        table = numpy.array(sorted(ops, key=lambda op: (op[0], op[7])), dtype=[
            ("rank", "i4"), ("stream", width(1)), ("name", width(2)), ("kind", width(3)), ("module", width(4)), ("phase", width(5)),
            ("microbatch", "i4"), ("start_seconds", "f8"), ("duration_seconds", "f8")])
        memory_table = numpy.array(memory, dtype=[("rank", "i4"), ("time_seconds", "f8"), ("bytes", "i8")])
        return Timeline(table, memory_table, trace["polyphony"]["makespan_ns"] * 1e-9)

    def to_frame(self) -> pandas.DataFrame:
        """Returns the ops as a data frame of pandas."""
        import pandas

        return pandas.DataFrame(self.ops)

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws a Gantt chart of the compute of each rank, and returns the axes."""
        from . import _plots

        return _plots.gantt(self, ax)

    def plot_memory(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws the memory of each rank over time, and returns the axes."""
        from . import _plots

        return _plots.memory(self, ax)

    def __repr__(self) -> str:
        ranks = len(set(self.ops["rank"])) if len(self.ops) else 0
        return f"Timeline({ranks} ranks, {len(self.ops)} ops, {self.step_seconds:.6g} s)"
