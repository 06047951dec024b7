"""Shared by benchmarks that calibrate on some layouts of scenarios/easy_vqa.json, predict others and
measure them: layouts as texts, the runs, a layout's line of the output, coverage of intervals."""
import argparse
import json
import math
import pathlib
import statistics
import sys
from statistics import NormalDist

from layout_runs import ROOT, LayoutRuns, file_name, spread

WARM_UP = 3  # steps that are not measured
BAR = 0.08
WITHIN = {True: "yes", False: "NO", None: "cannot tell"}  # by the value of `result()`


def one_grid(microbatches, schedule="1f1b", **grid):
    return {"placement": "homogeneous", "schedule": schedule, "microbatches": microbatches, "all": grid}


def two_grids(placement, microbatches, vision, language, schedule="1f1b"):
    return {"placement": placement, "schedule": schedule, "microbatches": microbatches, "vision": vision, "language": language}


def two_parts(microbatches, vision, language, schedule="1f1b"):
    """The encoder's ranks, then the language module's."""
    first = vision["ranks"]
    return two_grids("non-colocated", microbatches, vision | {"ranks": {"first": 0, "count": first}},
                     language | {"ranks": {"first": first, "count": language["ranks"]}}, schedule)


class Bench(LayoutRuns):
    """`calibration`: names of the layouts to which the profile is fitted."""

    def __init__(self, name, options, calibration):
        super().__init__(name, options.build, options.out)
        self.name, self.options, self.calibration = name, options, calibration
        self.profiled = None  # the profile of calibrate_by_profiler()

    def scenario(self, name, layout, base="easy_vqa.json", model=None, ranks=None):
        path = self.out / (file_name(name) + ".json")
        base = str(ROOT / "scenarios" / base)
        about = f"{name}, a layout of scripts/{self.name}. Arithmetic and source: {base}."
        path.write_text(json.dumps({"polyphony": 1, "about": about, "extends": base, "search": None, "model": model or {},
                                    "cluster": {"ranks": ranks} if ranks else {}, "layout": {"all": None, "vision": None, "language": None} | layout}))
        return path

    def folder(self, name, number):
        return self.out / f"round{number}" / file_name(name)

    def measure(self, scenarios):
        steps = self.options.steps
        for number in range(self.options.rounds):
            for name, path in scenarios.items():
                print(f"round {number + 1} of {self.options.rounds}: {name}", file=sys.stderr)
                self.polyphony("run", path, "--fresh", "--out", self.folder(name, number), "--steps", steps, "--trace-steps", f"{WARM_UP}:{steps}",
                               "--checkpoint-every", 0)

    def calibrate(self):
        runs = [self.folder(name, number) for name in self.calibration for number in range(self.options.rounds)]
        self.polyphony("calibrate", *runs, "--profile", self.machine, "--out", self.calibrated)

    def covered(self, path, error):
        """Whether the 80 % interval of the calibrated prediction contains the measured step. Steps with emulated compute are longer than simulated ones, so
        only the relative width of the interval is taken from the simulation, and the error from the prediction."""
        answer = self.rows("simulate", path, "--profile", self.calibrated)
        step, high = answer["step_seconds"], answer["chance"]["interval90_seconds"][1]
        deviation = math.log(high / step) / NormalDist().inv_cdf(0.95)
        return abs(math.log1p(error)) <= deviation * NormalDist().inv_cdf(0.9)

    def calibrate_by_profiler(self):
        """Calibrates on profiles of the same layouts by PyTorch's profiler, in a profile beside the other one."""
        self.profiled, steps = str(self.out / "profiled.json"), self.options.steps
        for name in self.calibration:
            folder = self.folder(name, "kineto")
            self.polyphony("run", self.out / (file_name(name) + ".json"), "--fresh", "--out", folder, "--steps", steps, "--kineto", f"{WARM_UP}:{steps}",
                           "--format", "json")
            files = sorted(pathlib.Path(folder, "kineto").glob("step-*"))
            self.polyphony("calibrate", *files, "--scenario", pathlib.Path(folder, "scenario.json"), "--profile", self.machine, "--out", self.profiled)

    def compared(self, names):
        """A line for each, with the error before calibration."""
        lines = []
        for name in names:
            runs = [self.folder(name, number) for number in range(self.options.rounds)]
            before = self.rows("compare", runs[0], "--profile", self.machine)[0]
            line = result(name, self.rows("compare", *runs, "--profile", self.calibrated), before)
            if self.profiled:
                line["error_profiled"] = result(name, self.rows("compare", *runs, "--profile", self.profiled))["error"]
            lines.append(line)
        return lines

    def judged(self, lines):
        """The lines of unseen layouts, with the coverage of their intervals."""
        unseen = [line for line in lines if line["layout"] not in self.calibration]
        for line in unseen:
            line["covered"] = self.covered(self.out / (file_name(line["layout"]) + ".json"), line["error"])
        return unseen

    def rehearse(self, paced):
        """{name: one comparison per round}; `paced`: name -> (scenario, layout, changes of the model, ranks)."""
        scenarios = {name: self.scenario(name, layout, base, *model) for name, (base, layout, *model) in paced.items()}
        found = {name: [] for name in paced}
        for number in range(self.options.rounds):
            for name, path in scenarios.items():
                print(f"round {number + 1} of {self.options.rounds}: {name}", file=sys.stderr)
                found[name] += self.rows("rehearse", path, "--fresh", "--profile", self.calibrated, "--out", self.folder(name, number))
        return found


def arguments(doc, name, profiler=False):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--out", default=f"runs/{name}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=15)
    if profiler:
        parser.add_argument("--profiler", action="store_true", help="also calibrate on profiles by PyTorch's profiler, and predict with them")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    if options.rounds < 1 or options.steps <= WARM_UP:
        parser.error(f"at least one round, more than {WARM_UP} steps")
    return options


def result(name, rows, before=None):
    """One line of the output from the comparisons of a layout, one per round."""
    measured = [row["measured_seconds"] for row in rows]
    median = statistics.median(measured)
    predicted = statistics.median(row["predicted_seconds"] for row in rows)
    repeatability = spread(measured) / median
    error = predicted / median - 1
    return {"layout": name, "predicted_seconds": predicted, "measured_seconds": median, "error": error,
            "error_before": None if before is None else before["predicted_seconds"] / median - 1, "repeatability": repeatability,
            "within": False if abs(error) > max(BAR, 2 * repeatability) else None if repeatability > BAR else True}


def summary(unseen):
    """Coverage over the lines of unseen layouts, whose `covered` is known."""
    return {"unseen": len(unseen), "within": sum(r["within"] is True for r in unseen), "mean_error": statistics.mean(abs(r["error"]) for r in unseen),
            "bias": statistics.mean(r["error"] for r in unseen), "covered_by_80": statistics.mean(r["covered"] for r in unseen)}


def show(answer, calibration):
    print(f"{'layout':30} {'predicted':>10} {'measured':>10} {'error':>8} {'before':>8} {'repeat.':>8}  within max({BAR:.0%}, 2x)")
    for r in answer["layouts"]:
        before = "-" if r["error_before"] is None else f"{r['error_before']:+.1%}"
        note = " (calibrated on)" if r["layout"] in calibration else ""
        profiled = f"; calibrated on the profiler: {r['error_profiled']:+.1%}" if "error_profiled" in r else ""
        print(f"{r['layout']:30} {r['predicted_seconds'] * 1e3:7.1f} ms {r['measured_seconds'] * 1e3:7.1f} ms {r['error']:+8.1%} {before:>8} "
              f"{r['repeatability']:8.1%}  {WITHIN[r['within']]}{note}{profiled}")
    print(f"{answer['within']} of {answer['unseen']} unseen layouts within the bar; mean error {answer['mean_error']:.1%}, "
          f"bias {answer['bias']:+.1%}; 80 % intervals hold {answer['covered_by_80']:.0%}")
