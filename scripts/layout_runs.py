"""What benchmarks share that run layouts with `polyphony`: the program, folders of its runs, figures of their repeats."""
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


class LayoutRuns:
    """`bench` names the caller in messages; `out` is made."""

    def __init__(self, bench, build, out):
        self.bench, self.build = bench, pathlib.Path(build)
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.machine, self.calibrated = self.out / "machine.json", self.out / "calibrated.json"

    def polyphony(self, *arguments):
        """stdout of the command; its end is ours when it fails."""
        command = [str(self.build / "polyphony"), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.bench}: {' '.join(command)}: exit code {done.returncode}")
        return done.stdout

    def rows(self, *arguments):
        return json.loads(self.polyphony(*arguments, "--format", "json"))
