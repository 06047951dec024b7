"""Scenarios: what is asked, and the questions about it."""
from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import tempfile
from typing import Any, Callable, Iterator, Mapping, Sequence, Union

from . import answers
from ._command import Path, Progress, options, run
from ._errors import InputError, PolyphonyError
from ._timeline import Timeline
from ._values import decode, encode

Changes = Mapping[str, Any]
# The actions of each rank of a pipeline, as texts of PyTorch's pipelining: "0F0", "1B2".
Order = Sequence[Sequence[str]]
Schedule = Union[str, Order, Callable[[int, int, int], Order]]
# (module, block) -> seconds: forward, or forward, backward of the input, backward of the weights.
LayerTimes = Callable[[str, int], Union[float, Sequence[float]]]
# (modules, ranks) -> what the search section of a scenario fixes: {"placement": ..., "vision": {"ranks": 64}}.
PlacementPolicy = Callable[[Mapping[str, Any], int], Changes]


def _stopped(answer: Any) -> bool:
    return isinstance(answer, dict) and bool(answer.get("stopped")) and bool(answer.get("ranked"))


class Scenario:
    """Holds a training run to predict, search or plan: model, cluster, data, layout, training.

    A scenario does not change: with_() returns another one. Its keys are those of scenario files
    (`polyphony schema scenario`). Make one with load(), scenario() or ask().
    """

    def __init__(self, layers: Sequence[Changes], base: pathlib.Path | None = None) -> None:
        self._base = base
        self._layers = tuple(encode(dict(layer)) for layer in layers)

    def with_(self, changes: Changes) -> Scenario:
        """Returns this scenario with some keys changed.

        Parameters
        ----------
        changes
            Nested keys, as in a scenario file that extends this one: objects are merged, null (None)
            removes a key: {"layout": {"microbatches": 8}}.
        """
        return Scenario([*self._layers, changes], self._base)

    def with_layout(self, layout: Mapping[str, Any] | answers.Candidate) -> Scenario:
        """Returns this scenario with another layout: a mapping as in scenario files, or a row of a search."""
        form = layout.layout_form if isinstance(layout, answers.Candidate) else layout
        return self.with_({"layout": None}).with_({"layout": form})

    def save(self, path: Path) -> None:
        """Writes the scenario to a file, which extends the file that the scenario was loaded from where that is possible.

        Raises
        ------
        InputError
            If the file is not writable.
        """
        values = self._merged()
        try:
            pathlib.Path(path).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"is not writable: {error.strerror}", file=os.fspath(path), fix="check the path") from error

    def resolved(self) -> dict[str, Any]:
        """Returns the scenario with every default and derived value written out."""
        return dict(self._run("plan", {"resolved": True}))

    def _merged(self) -> dict[str, Any]:
        if self._base is None:
            return functools.reduce(_merge, self._layers, {})
        try:
            return functools.reduce(_composed, self._layers, {"extends": os.fspath(self._base)})
        except _NotOneChange:
            return self.resolved()

    @contextlib.contextmanager
    def _file(self) -> Iterator[str]:
        if self._base is not None and not self._layers:
            yield os.fspath(self._base)
            return
        with tempfile.TemporaryDirectory(prefix="polyphony-") as folder:
            layers = self._layers if self._base else [self._merged()]
            below = os.fspath(self._base) if self._base else None
            for number, layer in enumerate(layers):
                path = pathlib.Path(folder) / f"scenario-{number}.json"
                path.write_text(json.dumps({**({"extends": below} if below else {}), **layer}), encoding="utf-8")
                below = os.fspath(path)
            yield str(below)

    def _run(self, command: str, settings: Mapping[str, Any], *, progress: Progress = None,
             keep: Callable[[Any], bool] = lambda answer: False) -> Any:
        with self._file() as path:
            try:
                return run(command, [path, *options(settings)], progress=progress, keep=keep)
            except PolyphonyError as error:
                if os.path.dirname(error.file) != os.path.dirname(path) or path == os.fspath(self._base or ""):
                    raise
                raise type(error)(error.what, "scenario", error.pointer, error.fix) from None

    def simulate(self, layout: Mapping[str, Any] | answers.Candidate | None = None, *, estimate: bool = False, whole: bool = False,
                 schedule: Schedule | None = None, layer_times: LayerTimes | None = None, jitter: int | None = None,
                 profile: Path | None = None, stack: str | None = None, phase: str | None = None, set: Changes | None = None,
                 jobs: int | None = None) -> answers.Prediction:
        """Predicts one training step: its time, where the time goes, and the memory.

        Parameters
        ----------
        layout
            The layout; the scenario's when absent. A mapping as in scenario files, or a row of a search.
        estimate
            Estimates by the longest path instead of SimGrid: faster, without contention.
        whole
            Simulates every rank of a large step instead of one data-parallel replica.
        schedule
            The order of the pipeline: a name, a list of actions per rank, or a function of
            (ranks, stages, microbatches) that returns one. Actions are texts: "0F3", "0B3", "0I3",
            "0W3" (stage, kind, microbatch).
        layer_times
            A function of (module, block) that returns the seconds of one block for one microbatch on one
            rank, collectives inside it included, which replace the predicted ones: of the forward pass
            (the gradients of the input and of the weights, where they are
            needed, then take as long each), or of all three.
        jitter
            Number of steps that are drawn with the profile's variance.
        profile, stack, phase, set, jobs
            As the options of `polyphony simulate`: `set` maps paths to values and compares with the
            scenario as written.

        Returns
        -------
        answers.Prediction

        Raises
        ------
        InputError
            If the scenario or the layout is wrong.
        InfeasibleError
            If the stack cannot run the layout.
        """
        return self._predicted(layout, schedule, layer_times, estimate=estimate, whole=whole, jitter=jitter, profile=profile, stack=stack,
                               phase=phase, set=set, jobs=jobs)

    def _predicted(self, layout: Any, schedule: Schedule | None, layer_times: LayerTimes | None, **settings: Any) -> answers.Prediction:
        asked = self.with_layout(layout) if layout is not None else self
        if layer_times is not None:
            asked = asked._with_layer_times(layer_times)
        with asked._schedule_file(schedule) as order:
            answer: answers.Prediction = decode(answers.Prediction, asked._run("simulate", {"schedule": order, **settings}))
        return answer

    def timeline(self, layout: Mapping[str, Any] | answers.Candidate | None = None, *, schedule: Schedule | None = None,
                 layer_times: LayerTimes | None = None, **settings: Any) -> Timeline:
        """Predicts one training step op by op. The parameters are those of simulate().

        Returns
        -------
        Timeline
            When each op runs, and the memory of each rank over time.
        """
        with tempfile.TemporaryDirectory(prefix="polyphony-") as folder:
            path = os.path.join(folder, "trace.json")
            self._predicted(layout, schedule, layer_times, trace=path, **settings)
            return Timeline.read(path)

    def sweep(self, *, estimate: bool = False, runnable: bool = False, effort: float | None = None, top: int | None = None,
              all: bool = False, objective: str | None = None, tokens: str | None = None, nodes: str | None = None,
              memory_margin: str | None = None, for_: str | None = None, placement: PlacementPolicy | None = None,
              journal: Path | None = None, report: Path | None = None,
              profile: Path | None = None, stack: str | None = None, phase: str | None = None, set: Changes | None = None,
              jobs: int | None = None, progress: Progress = None, executor: concurrent.futures.Executor | None = None,
              parts: int | None = None) -> answers.Search:
        """Searches for the fastest layout.

        An interrupt (Ctrl-C) stops the search and returns the best layouts so far (`stopped` is True).

        Parameters
        ----------
        for_
            A framework: only layouts that it can run ("megatron-lm", "torchtitan@0.2.2").
        placement
            A function of (modules, ranks) that decides where modules are placed: it returns keys of the
            section `search` ({"placement": "non-colocated", "vision": {"ranks": 64}}), and the rest is
            searched. `modules` is the section `model`, with all values written out; `ranks` is the
            number of ranks of the cluster.
        progress
            True: shows how far the search is; False: does not; None: only on a terminal or in a
            notebook, if tqdm is installed. Or a function of (percent, words) that is called now and then.
        executor
            Searches the space in parts by the workers of any concurrent.futures.Executor: processes,
            Dask's, mpi4py's, Ray's (polyphony.RayExecutor). The answer is the same to the byte. Workers
            need this package, and the
            files of the scenario under the same paths. A part whose worker dies is searched here.
        parts
            Number of parts; twice the executor's workers when absent. Ctrl-C while parts are searched ends
            the search without an answer.
        estimate, runnable, effort, top, all, objective, tokens, nodes, memory_margin, journal, report
            As the options of `polyphony sweep`.
        profile, stack, phase, set, jobs
            As in simulate().

        Returns
        -------
        answers.Search

        Raises
        ------
        InputError
            If the scenario is wrong.
        InfeasibleError
            If no layout fits.
        """
        settings = {"estimate": estimate, "runnable": runnable, "effort": effort, "top": top, "all": all, "objective": objective,
                    "tokens": tokens, "nodes": nodes, "memory_margin": memory_margin, "for": for_, "journal": journal, "report": report,
                    "profile": profile, "stack": stack, "phase": phase, "set": set, "jobs": jobs}
        asked = self if placement is None else self._placed(placement, {"set": set, "phase": phase, "profile": profile})
        with contextlib.ExitStack() as stack_of:
            if executor is not None:
                folder = stack_of.enter_context(tempfile.TemporaryDirectory(prefix="polyphony-"))
                from ._shards import write_journal

                shared = {key: value for key, value in settings.items() if key not in ("journal", "report", "jobs")}
                own = os.fspath(journal) if journal else os.path.join(folder, "journal")
                together = write_journal(asked, shared, executor, parts, folder)
                settings["journal"] = f"{own},{together}" if together else own
            answer: answers.Search = decode(answers.Search, asked._run("sweep", settings, progress=progress, keep=_stopped))
        return answer

    def batches(self, count: int, *, steps: int | None = None, profile: Path | None = None, stack: str | None = None,
                phase: str | None = None, set: Changes | None = None, jobs: int | None = None) -> answers.Batches:
        """Predicts batches of the data: percentiles of step, idle time and memory, and the risk of running out of memory.

        Parameters
        ----------
        count
            Number of batches.
        steps
            Steps of the run whose risk is stated; the scenario's when absent.
        """
        settings = {"batches": count, "steps": steps, "profile": profile, "stack": stack, "phase": phase, "set": set, "jobs": jobs}
        # A batch that does not fit is an answer.
        answer: answers.Batches = decode(answers.Batches, self._run("simulate", settings, keep=lambda answer: "batches" in answer))
        return answer

    def vary(self, path: str, values: Sequence[Any], *, estimate: bool = False, effort: float | None = None, profile: Path | None = None,
             stack: str | None = None, phase: str | None = None, jobs: int | None = None, progress: Progress = None) -> answers.Variations:
        """Searches once for each of several values of a key, or predicts the scenario's layout if the key is in it.

        Parameters
        ----------
        path, values
            "cluster.nic" and ["100Gbps", "400Gbps"].
        """
        words = ",".join(value if isinstance(value, str) else json.dumps(value) for value in values)
        settings = {"vary": f"{path}={words}", "estimate": estimate, "effort": effort, "profile": profile, "stack": stack, "phase": phase,
                    "jobs": jobs}
        answer: answers.Variations = decode(answers.Variations, self._run("sweep", settings, progress=progress))
        return answer

    def plan(self, *, report: Path | None = None, profile: Path | None = None, stack: str | None = None, phase: str | None = None,
             set: Changes | None = None) -> answers.Plan:
        """Checks the layout and returns its stages: their ranks, layers, times and memory."""
        answer: answers.Plan = decode(answers.Plan, self._run("plan", {
            "report": report, "profile": profile, "stack": stack, "phase": phase, "set": set}))
        return answer

    def why(self, *, estimate: bool = False, for_: str | None = None, profile: Path | None = None, stack: str | None = None,
            phase: str | None = None, set: Changes | None = None, jobs: int | None = None) -> answers.Explanation:
        """Returns where the time of the layout goes, and which single changes are worth trying."""
        answer: answers.Explanation = decode(answers.Explanation, self._run("why", {
            "estimate": estimate, "for": for_, "profile": profile, "stack": stack, "phase": phase, "set": set, "jobs": jobs}))
        return answer

    def emit(self, for_: str, out: Path, *, force: bool = False, pick: int | None = None, set: Changes | None = None,
             profile: Path | None = None, stack: str | None = None, phase: str | None = None, jobs: int | None = None) -> answers.Emission:
        """Writes the layout as the launch files of a framework ("megatron-lm", "torchtitan") to a folder.

        Raises
        ------
        InfeasibleError
            If the framework cannot run the layout.
        """
        answer: answers.Emission = decode(answers.Emission, self._run("emit", {
            "for": for_, "out": out, "force": force, "pick": pick, "set": set, "profile": profile, "stack": stack, "phase": phase,
            "jobs": jobs}))
        return answer

    def _grid(self) -> tuple[int, int, int]:
        """Returns ranks, stages and microbatches of the language module's pipeline."""
        layout = self.resolved()["layout"]
        grid = layout.get("language", layout.get("all", {}))
        ranks = int(grid.get("pp", 1))
        return ranks, ranks * int(grid.get("vpp", 1)), int(layout.get("microbatches", 1))

    @contextlib.contextmanager
    def _schedule_file(self, schedule: Schedule | None) -> Iterator[str | None]:
        if schedule is None or isinstance(schedule, str):
            yield schedule
            return
        order = schedule(*self._grid()) if callable(schedule) else schedule
        with tempfile.TemporaryDirectory(prefix="polyphony-") as folder:
            path = pathlib.Path(folder) / "order.csv"
            path.write_text("".join(",".join(rank) + "\n" for rank in order), encoding="utf-8")
            yield os.fspath(path)

    def _placed(self, policy: PlacementPolicy, settings: Mapping[str, Any]) -> Scenario:
        whole = self._run("plan", {"resolved": True, **settings})
        cluster = whole["cluster"]
        return self.with_({"search": policy(whole["model"], int(cluster["nodes"]) * int(cluster["node"]["ranks"]))})

    def _with_layer_times(self, layer_times: LayerTimes) -> Scenario:
        modules: dict[str, Any] = {}
        for name, module in self.resolved()["model"].items():
            if not isinstance(module, dict) or "layers" not in module:
                continue
            times = []
            for block in range(int(module["layers"])):
                parts = _three(layer_times(name, block))
                if len(parts) != 3:
                    raise InputError(f"layer_times must return a number or three (got {len(parts)})", fix="forward, input, weights")
                keys = ("forward", "backward_input", "backward_weight") if module.get("train") != "frozen" else ("forward", "backward_input")
                times.append({"layers": [block, block + 1], **{key: f"{value:.12g}s" for key, value in zip(keys, parts)}})
            modules[name] = {"layer_times": times}
        return self.with_({"model": modules})

    def __repr__(self) -> str:
        changed = f", {len(self._layers)} changes" if self._layers and self._base else ""
        return f"Scenario({self._base or 'in memory'}{changed})"


def _three(seconds: Any) -> list[float]:
    """Returns the numbers of a sequence or array, or one number of any type three times."""
    try:
        return [float(seconds)] * 3
    except (TypeError, ValueError, RuntimeError):  # it has several elements
        return [float(part) for part in seconds]


class _NotOneChange(Exception):
    """A key is removed and then set as an object: one change would merge the object into the removed one."""


def _composed(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one change that does what two do, one after the other. Throws _NotOneChange if there is none."""
    change = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping) and key in change:
            if not isinstance(change[key], Mapping):
                raise _NotOneChange
            change[key] = _composed(change[key], value)
        else:
            change[key] = value
    return change


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Returns values with a change applied to them; null removes a key."""
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = value
    return merged
