"""Shared by benchmarks that run layouts with `polyphony`: the program, folders of its runs, figures
over repeats."""
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def file_name(name):
    return "".join(letter if letter.isalnum() else "_" for letter in name.replace("|", "on"))


def spread(values):
    """Half the interquartile range."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def gain(before, after, points=0.10):
    """From the runs of two layouts, each (predicted, measured) seconds: by how much the median of the second is faster, and whether that was predicted
    within `points` of the measured gain, or twice the repeatability."""
    predicted, measured = (statistics.median(row[i] for row in before) / statistics.median(row[i] for row in after) - 1 for i in (0, 1))
    noise = sum(spread(times) / statistics.median(times) for times in ([row[1] for row in rows] for rows in (before, after)))
    return {"predicted_gain": predicted, "measured_gain": measured, "repeatability": noise, "predicted": abs(predicted - measured) <= max(points, 2 * noise)}


def apart(some, others):
    """The largest relative difference of losses, step by step."""
    return max(abs(a / b - 1) for a, b in zip(some, others))


class LayoutRuns:
    """`bench` names the caller in messages; `out` is created."""

    def __init__(self, bench, build, out):
        self.bench, self.build = bench, pathlib.Path(build)
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.machine, self.calibrated = self.out / "machine.json", self.out / "calibrated.json"

    def polyphony(self, *arguments):
        """stdout of the command; ends this program if the command fails."""
        command = [str(self.build / "polyphony"), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.bench}: {' '.join(command)}: exit code {done.returncode}")
        return done.stdout

    def rows(self, *arguments):
        return json.loads(self.polyphony(*arguments, "--format", "json"))
