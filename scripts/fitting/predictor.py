"""Predicts the rows of one stage of scripts/fit_profiles with `polyphony validate`, with some numbers
replaced."""
import concurrent.futures
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

PUBLISHED = pathlib.Path(__file__).resolve().parent.parent.parent / "scenarios" / "published"

# Rows that last more than twice as long as their kernels, for reasons that no parameter stands for: one
# microbatch a step through 26 layers of experts without graphs. In the table, not in the fit.
LEFT_OUT = "moonlight"


def ask(binary, paths, values):
    command = [binary, "validate", *paths, "--format", "json"]
    for name, value in values.items():
        command += ["--set", f"{name}={value!r}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr or f"polyphony validate ended with {run.returncode}")
    return json.loads(run.stdout)


class Predictor:
    """Rows of a stage, predicted with some numbers replaced by `polyphony validate`. Rows are kept by the
    device and stack that predict them, each in a file of its own, and asked for again only where a
    number of theirs has moved."""

    def __init__(self, binary, stage, fixed):
        self.binary, self.stage, self.fixed = binary, stage, fixed
        self.folder = tempfile.TemporaryDirectory()
        self.known = {}
        self.groups, answer = self.split()
        self.profiles, self.devices = answer["profiles"], answer["devices"]

    def split(self):
        lines = {}
        for name in self.stage["files"]:
            with open(PUBLISHED / (name + ".csv"), newline="") as source:
                for line in csv.DictReader(source):
                    if "memory" not in line["measured_metric"] and self.of_stage(line["family"]):
                        lines[line["id"]] = line
        everything = self.write("all", list(lines.values()))
        answer = self.ask(everything, {})
        members = {}
        for row in answer["rows"]:
            if self.wanted(row):
                members.setdefault((row["device"], row["stack"]), []).append(lines[row["id"]])
        groups = {}
        for i, (owner, rows) in enumerate(sorted(members.items())):
            # Two files each, so that both cores have work.
            halves = [rows[0::2], rows[1::2]] if len(rows) > 1 else [rows]
            groups[owner] = [self.write(f"{i}_{k}", half) for k, half in enumerate(halves)]
        return groups, answer

    def of_stage(self, family):
        return any(f"| {part}" in family for part in self.stage["families"])

    def write(self, name, lines):
        path = pathlib.Path(self.folder.name) / (name + ".csv")
        columns = list(dict.fromkeys(column for line in lines for column in line))
        with open(path, "w") as copy:
            writer = csv.DictWriter(copy, columns, restval="")
            writer.writeheader()
            writer.writerows(lines)
        return str(path)

    def ask(self, path, values):
        return ask(self.binary, [path], values)

    def wanted(self, row):
        return (row["predicted"] is not None and LEFT_OUT not in row["id"] and "duplicate_of" not in row
                and "outlier" not in row and (row["complete"] or self.stage["assumed"]))

    def rows(self, values):
        numbers = {}
        for names, value in {**self.fixed, **values}.items():
            device_names, key = names.rsplit(".", 1)
            numbers.update({(one, key): value for one in device_names.split(",")})
        jobs = []
        for owner, files in self.groups.items():
            mine = {f"{device_names}.{key}": value for (device_names, key), value in sorted(numbers.items()) if device_names in owner}
            jobs += [(path, mine, (path, tuple(mine.items()))) for path in files]
        missing = [job for job in jobs if job[2] not in self.known]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for job, answer in zip(missing, pool.map(lambda j: self.ask(j[0], j[1]), missing)):
                self.known[job[2]] = answer["rows"]
        return [row for job in jobs for row in self.known[job[2]]]
