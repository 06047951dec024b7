"""Predicts, searches and plans parallel layouts of multimodal training runs.

    import polyphony as pp

    answer = pp.ask(model=["llama-3.1-8b"], gpus="8xH100")     # a search without a file
    q = pp.load("scenario.json")
    q.sweep().to_frame()                                       # the layouts, fastest first
    q.simulate(answer.ranked[0]).step_seconds

Every answer is that of the command of the same name, as a frozen dataclass (polyphony.answers) with
the keys of its JSON. Units are in the names: `_seconds`, `_bytes`. Needs nothing but Python;
to_frame() needs pandas, plot() matplotlib, timeline() numpy, progress bars tqdm.
"""
from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Mapping, Sequence, Union

from ._errors import InfeasibleError, InputError, PolyphonyError

if TYPE_CHECKING:
    from . import answers
    from ._command import Path, Progress
    from ._ray import RayExecutor
    from ._scenario import Changes, Scenario
    from ._timeline import Timeline

__all__ = [
    "InfeasibleError", "InputError", "PolyphonyError", "RayExecutor", "Scenario", "Timeline", "answers", "ask", "calibrate", "emit", "import_", "load",
    "replay", "scenario", "schedules", "trace", "validate", "version",
]
_LAZY = {"answers": "answers", "RayExecutor": "_ray", "Scenario": "_scenario", "Timeline": "_timeline"}

Words = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def __getattr__(name: str) -> Any:
    # Loaded when they are first used: an import stays below 150 ms.
    if name not in _LAZY:
        raise AttributeError(f"module polyphony has no attribute {name}")
    import importlib

    module = importlib.import_module(f".{_LAZY[name]}", __name__)
    return module if name == "answers" else getattr(module, name)


def _list(words: Words) -> list[str]:
    return [os.fspath(words)] if isinstance(words, (str, os.PathLike)) else [os.fspath(word) for word in words]


def _decoded(kind: Any, command: str, words: Sequence[str], settings: Mapping[str, Any], **how: Any) -> Any:
    from ._command import options, run
    from ._values import decode

    return decode(kind, run(command, [*words, *options(settings)], **how))


def version() -> str:
    """Returns the version, commit and build options of the command that the package runs."""
    from ._command import version as of_command

    return of_command()


def load(path: Path) -> Scenario:
    """Returns the scenario of a file. Its keys are checked when it is asked something.

    Raises
    ------
    InputError
        If there is no such file.
    """
    from ._scenario import Scenario

    file = pathlib.Path(path).absolute()
    if not file.is_file():
        raise InputError("there is no such file", file=os.fspath(path), fix="check the path")
    return Scenario([], file)


def scenario(values: Mapping[str, Any]) -> Scenario:
    """Returns a scenario from its values, nested as in a scenario file. Paths in it must be absolute."""
    from ._scenario import Scenario

    return Scenario([{"polyphony": 1, **values}])


def ask(model: Words = (), gpus: str | None = None, *, seq: int | str | None = None, images: int | str | None = None,
        audio: int | str | None = None, merge: int | None = None, global_batch: int | str | None = None, train: str | None = None,
        precision: str | None = None, tokens: str | None = None, objective: str | None = None, stack: str | None = None,
        for_: str | None = None, thorough: bool = False, effort: float | None = None, estimate: bool = False, runnable: bool = False,
        top: int | None = None, memory_margin: str | None = None, cluster: Words = (), nic: str | None = None, price: str | None = None,
        profile: Path | None = None, save: Path | None = None, report: Path | None = None, jobs: int | None = None,
        progress: Progress = None) -> answers.Search:
    """Searches for the fastest layout of a question without a scenario file.

    Parameters
    ----------
    model
        A config.json of Hugging Face, its folder, or a preset; two for an encoder and a language model.
    gpus
        "64x8xH100": 64 nodes of 8; "H100": one; "?xH100": how many are needed.
    seq
        Tokens of a sequence, images and audio included.
    images
        Images of a sample: 8, or "8x1024" of 1,024 patches each, or "8x448px".
    for_
        A framework: only layouts that it can run.
    progress
        As in Scenario.sweep().
    audio, merge, global_batch, train, precision, tokens, objective, stack, thorough, effort, estimate, \
runnable, top, memory_margin, cluster, nic, price, profile, save, report, jobs
        As the options of `polyphony ask`.

    Returns
    -------
    answers.Search
        Its `scenario` is the question as a scenario: scenario(answer.scenario) goes on from it.

    Raises
    ------
    InputError
        If the question is wrong.
    InfeasibleError
        If no layout fits.
    """
    from . import answers
    from ._scenario import _stopped

    settings = {"model": _list(model), "gpus": gpus, "seq": seq, "images": images, "audio": audio, "merge": merge,
                "global_batch": global_batch, "train": train, "precision": precision, "tokens": tokens, "objective": objective,
                "stack": stack, "for": for_, "thorough": thorough, "effort": effort, "estimate": estimate, "runnable": runnable, "top": top,
                "memory_margin": memory_margin, "cluster": _list(cluster), "nic": nic, "price": price, "profile": profile, "save": save,
                "report": report, "jobs": jobs}
    answer: answers.Search = _decoded(answers.Search, "ask", [], settings, progress=progress, keep=_stopped)
    return answer


def schedules(times: Path, ranks: int, order: str | None = None, *, microbatches: int | None = None, memory: str | None = None,
              draws: int | None = None, schedule: Path | None = None, out: Path | None = None, gantt: Path | None = None) -> answers.Schedules:
    """Compares pipeline schedules by the times of stages alone.

    Parameters
    ----------
    times
        A CSV with the columns that `polyphony schedules --help` lists.
    ranks
        Ranks of the pipeline.
    order
        One schedule; all of them when absent.
    microbatches, memory, draws, schedule, out, gantt
        As the options of `polyphony schedules`.
    """
    from . import answers

    settings = {"times": times, "ranks": ranks, "microbatches": microbatches, "memory": memory, "draws": draws, "schedule": schedule,
                "out": out, "gantt": gantt, "all": order is None}
    answer: answers.Schedules = _decoded(answers.Schedules, "schedules", [order] if order else [], settings)
    return answer


def validate(files: Words, *, set: Changes | None = None) -> list[dict[str, Any]]:
    """Predicts published measurements.

    Returns
    -------
    list of dict
        One per row: `id`, `metric`, `unit`, `measured`, `predicted` (None if it is not predicted, and
        `reason`).
    """
    from ._command import options, run

    rows: list[dict[str, Any]] = run("validate", [*_list(files), *options({"set": set})])["rows"]
    return rows


def calibrate(evidence: Words = (), *, scenario: Path | None = None, step_time: str | None = None, memory: str | None = None,
              nccl_tests: Path | None = None, profile: Path | None = None, stack: str | None = None, phase: str | None = None,
              name: str | None = None, out: Path | None = None
              ) -> answers.StepTimeCalibration | answers.RunCalibration | answers.JointCalibration:
    """Fits a hardware profile to measurements: runs, traces, logs, a step time. `out` is the profile's file."""
    from . import answers

    settings = {"scenario": scenario, "step_time": step_time, "memory": memory, "nccl_tests": nccl_tests, "profile": profile,
                "stack": stack, "phase": phase, "name": name, "out": out}
    kinds = Union[answers.StepTimeCalibration, answers.RunCalibration, answers.JointCalibration]
    answer: answers.StepTimeCalibration | answers.RunCalibration | answers.JointCalibration
    answer = _decoded(kinds, "calibrate", _list(evidence), settings)
    return answer


def replay(run: Words, *, set: Changes | None = None, faster: Mapping[str, float] | None = None, vary: Sequence[str] = (),
           scenario: Path | None = None, links: float | None = None, group: Mapping[str, int] | None = None, fuse: Sequence[str] = (),
           profile: Path | None = None, stack: str | None = None, phase: str | None = None, report: Path | None = None,
           step: str | None = None) -> tuple[answers.Replay, ...] | answers.TraceReplay:
    """Replays a recorded run with its measured times, and again with something changed.

    Parameters
    ----------
    run
        The folder of a run, or traces of PyTorch's profiler.
    set, faster, vary, scenario, links, group, fuse, profile, stack, phase, report, step
        As the options of `polyphony replay`.

    Returns
    -------
    tuple of answers.Replay, or answers.TraceReplay
        Of a run one, or with `vary` one per value; of a profiler's traces a TraceReplay.
    """
    from . import answers
    from ._command import options
    from ._command import run as of_command
    from ._values import decode

    settings = {"set": set, "faster": faster, "vary": list(vary), "scenario": scenario, "links": links, "group": group,
                "fuse": list(fuse), "profile": profile, "stack": stack, "phase": phase, "report": report, "step": step}

    replayed = of_command("replay", [*_list(run), *options(settings)])
    return decode(answers.TraceReplay, replayed) if isinstance(replayed, dict) else tuple(decode(answers.Replay, one) for one in replayed)


def import_(files: Words, *, gpus: str | None = None, device: str | None = None, model: Words = (), from_: str | None = None,
            seq: int | None = None, images: int | str | None = None, global_batch: int | None = None,
            env: Mapping[str, str] | None = None, log: Path | None = None, trace: Words = (), out: Path | None = None,
            cluster: Words = (), nic: str | None = None, price: str | None = None) -> answers.Import:
    """Reads how a run is started in another framework, and returns its scenario and what became of each setting."""
    from . import answers

    settings = {"gpus": gpus, "device": device, "model": _list(model), "from": from_, "seq": seq, "images": images,
                "global_batch": global_batch, "env": env, "log": log, "trace": _list(trace), "out": out, "cluster": _list(cluster),
                "nic": nic, "price": price}
    answer: answers.Import = _decoded(answers.Import, "import", _list(files), settings)
    return answer


def emit(scenario: Path, for_: str, out: Path, **settings: Any) -> answers.Emission:
    """Writes a scenario's layout as the launch files of a framework: Scenario.emit() of a file."""
    return load(scenario).emit(for_, out, **settings)


def trace(traces: Words, *, step: str | None = None) -> answers.TraceSummary:
    """Returns where the time of GPUs goes, from traces of PyTorch's profiler or reports of Nsight Systems."""
    from . import answers

    answer: answers.TraceSummary = _decoded(answers.TraceSummary, "trace", _list(traces), {"step": step})
    return answer
