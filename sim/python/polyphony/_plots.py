"""Pictures of answers, with matplotlib."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from . import answers

if TYPE_CHECKING:
    import matplotlib.axes

    from ._timeline import Timeline
    from ._values import Answer

_GIB = 2**30
Fit = Union[answers.StepTimeCalibration, answers.RunCalibration, answers.JointCalibration]


def _axes(ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as pyplot

    return pyplot.subplots(layout="constrained")[1]


def _bars(parts: dict[str, Any], ax: matplotlib.axes.Axes, title: str) -> matplotlib.axes.Axes:
    shown = [(name, value) for name, value in parts.items() if isinstance(value, (int, float)) and value > 0]
    ax.barh([name for name, _ in shown], [value for _, value in shown])
    ax.invert_yaxis()
    ax.set_xlabel("seconds of a step")
    ax.set_title(title)
    return ax


def _search(search: answers.Search, ax: matplotlib.axes.Axes) -> matplotlib.axes.Axes:
    for placement in dict.fromkeys(row.placement for row in search.ranked):
        rows = [row for row in search.ranked if row.placement == placement]
        ax.scatter([row.step_seconds for row in rows], [row.peak_memory_bytes / _GIB for row in rows], label=placement, s=16)
    if search.device_memory_bytes:
        ax.axhline(search.device_memory_bytes / _GIB, linestyle="--", linewidth=1, color="gray")
    ax.set_xlabel("step time [s]")
    ax.set_ylabel("peak memory of a rank [GiB]")
    ax.legend()
    return ax


def _fit(fit: Fit, ax: matplotlib.axes.Axes) -> matplotlib.axes.Axes:
    rows: list[tuple[str, float, float, float]] = []  # name; seconds: measured, predicted before and after the fit
    if not isinstance(fit, answers.StepTimeCalibration):
        rows += [(run.run, run.measured_seconds, run.measured_seconds * (1 + run.before), run.measured_seconds * (1 + run.after))
                 for run in fit.runs]
    if not isinstance(fit, answers.RunCalibration):
        rows += [(each.source, each.measured_seconds, each.before_seconds, each.after_seconds) for each in fit.evidence]
    rows = [row for row in rows if row[1] > 0]
    for number, name in enumerate(("measured", "predicted before the fit", "predicted after the fit")):
        ax.barh([place + (number - 1) * 0.27 for place in range(len(rows))], [row[1 + number] for row in rows], height=0.27, label=name)
    ax.set_yticks(range(len(rows)), [row[0] for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("step time [s]")
    ax.legend(fontsize="small")
    return ax


def _replay(answer: answers.Replay | answers.TraceReplay, ax: matplotlib.axes.Axes) -> matplotlib.axes.Axes:
    bars = [("measured", answer.measured_seconds), ("replayed", answer.before.step_seconds)]
    if answer.after is not None:
        bars.append((", ".join(answer.changes), answer.after.step_seconds))
    ax.barh([name for name, _ in bars], [seconds for _, seconds in bars])
    ax.invert_yaxis()
    ax.set_xlabel("step time [s]")
    return ax


def draw(answer: Answer, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """Draws an answer: a search as time against memory, a step as its parts, a fit or replay next to what was measured."""
    if isinstance(answer, answers.Search):
        return _search(answer, _axes(ax))
    if isinstance(answer, answers.Prediction):
        return _bars(dict(answer.busiest_rank_seconds), _axes(ax), f"{answer.step_seconds:.4g} s, rank {answer.busiest_rank}")
    if isinstance(answer, answers.Explanation):
        return _bars(dict(answer.critical_rank_seconds), _axes(ax), f"{answer.step_seconds:.4g} s, rank {answer.critical_rank}")
    if isinstance(answer, answers.Schedules):
        axes = _axes(ax)
        rows = [(row.schedule, row.makespan_seconds) for row in answer.schedules if row.makespan_seconds is not None]
        axes.barh([name for name, _ in rows], [seconds for _, seconds in rows])
        axes.invert_yaxis()
        axes.axvline(answer.bound_seconds, linestyle="--", linewidth=1, color="gray")
        axes.set_xlabel("step time [s]")
        return axes
    if isinstance(answer, (answers.StepTimeCalibration, answers.RunCalibration, answers.JointCalibration)):
        return _fit(answer, _axes(ax))
    if isinstance(answer, (answers.Replay, answers.TraceReplay)):
        return _replay(answer, _axes(ax))
    raise TypeError(f"{type(answer).__name__} has no picture (it has to_frame() and to_dict())")


def gantt(timeline: Timeline, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """Draws the compute of each rank over time, one color per module and phase."""
    axes = _axes(ax)
    compute = timeline.ops[timeline.ops["stream"] == "compute"]
    kinds = list(dict.fromkeys((str(op["module"]), str(op["phase"])) for op in compute))
    for number, (module, phase) in enumerate(kinds):
        ops = compute[(compute["module"] == module) & (compute["phase"] == phase)]
        axes.barh(ops["rank"], ops["duration_seconds"], left=ops["start_seconds"], height=0.8, color=f"C{number % 10}", edgecolor="white",
                  linewidth=0.3, label=f"{module} {phase}".strip() or "other")
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_ylabel("rank")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return axes


def memory(timeline: Timeline, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """Draws the memory of each rank over time."""
    axes = _axes(ax)
    for rank in dict.fromkeys(timeline.memory["rank"].tolist()):
        rows = timeline.memory[timeline.memory["rank"] == rank]
        axes.step(rows["time_seconds"], rows["bytes"] / _GIB, where="post", label=f"rank {rank}")
    axes.set_xlabel("seconds")
    axes.set_ylabel("memory [GiB]")
    axes.legend(fontsize="small")
    return axes
