"""The course of scripts/first_gpu_hour: commands with limits, results that outlast the call, the archive."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU_QUERY = "name,memory.total,driver_version,compute_cap"
UNSTARTED = 3  # calls in a row in which no case began, after which a part gives up


class Skipped(Exception):
    pass


class Failed(Exception):
    """`output`: what the command printed, if it was one."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


class Cut(Exception):
    """The budget of this call is used up."""


class PartOver(Exception):
    """The part has used --minutes, and has cases left."""


class Course:
    def __init__(self, options, sizes):
        self.options, self.sizes = options, sizes
        self.build = pathlib.Path(options.build).resolve()
        self.out = pathlib.Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.gpus = self.list_gpus()
        self.end = time.monotonic() + 60 * options.budget if options.budget else None
        self.begin_part()
        self.state = {"rehearsal": sizes.rehearsal, "parts": {}, "runs": {}, "theirs": {}, "cases": {}}
        if self.state_file.exists():
            kept = json.loads(self.state_file.read_text())
            if kept.get("rehearsal", False) != sizes.rehearsal:
                raise Failed(f"{self.out} holds {'a rehearsal' if kept.get('rehearsal') else 'results of GPUs'}: choose another --out")
            self.state |= kept

    def begin_part(self):
        self.part_end = time.monotonic() + 60 * self.options.minutes

    @property
    def state_file(self):
        return self.out / "state.json"

    @property
    def runs(self):
        """Folders of runs by name, as text; those of earlier calls included."""
        return self.state["runs"]

    @property
    def theirs(self):
        """Seconds of PyTorch's blocks, by name and mode."""
        return self.state["theirs"]

    def cases(self, part):
        """The results of a part's cases by name: a part that was cut off goes on behind them."""
        return self.state["cases"].setdefault(part, {})

    def forget(self, parts):
        """Forgets the cases of parts that run again, and the runs among them."""
        if {"parity", "parity_first"} & set(parts):
            self.state["cases"].pop("parity", None)
        for part in parts:
            for name in self.state["cases"].pop(part, {}):
                self.runs.pop(name, None)

    def summary(self):
        rows = [f"| {name} | {part['state']} | {part['seconds']:.0f} | {part['said']} |" for name, part in self.state["parts"].items()]
        title = "# Rehearsal without a GPU: no figure here is one of a GPU" if self.sizes.rehearsal else "# First hour on a GPU"
        return "\n".join([title, "", "| part | | seconds | |", "|---|---|---|---|", *rows]) + "\n"

    def save(self):
        """Writes the state and the summary, each whole or not at all."""
        for file, text in ((self.state_file, json.dumps(self.state, indent=1)), (self.out / "summary.md", self.summary())):
            beside = file.with_suffix(".new")
            beside.write_text(text)
            beside.replace(file)

    def keep(self, name, state, seconds, said):
        """Keeps a part's result, and writes the archive, whole or not at all."""
        self.state["parts"][name] = {"state": state, "seconds": seconds, "said": said}
        self.save()
        beside = self.out.parent / f"{self.out.name}.tar.gz.new"
        with tarfile.open(beside, "w:gz") as tar:
            tar.add(self.out, arcname=self.out.name, filter=lambda info: None if "/checkpoints" in info.name else info)
        beside.replace(self.archive)

    @property
    def archive(self):
        return self.out.parent / f"{self.out.name}.tar.gz"

    def seconds_left(self):
        """Of the part, or of the call if that is less."""
        now = time.monotonic()
        if self.end is not None and self.end <= now:
            raise Cut
        return min(max(self.part_end - now, 0.1), self.end - now if self.end is not None else float("inf"))

    @staticmethod
    def list_gpus():
        if shutil.which("nvidia-smi") is None:
            return []
        answer = subprocess.run(["nvidia-smi", f"--query-gpu={GPU_QUERY}", "--format=csv,noheader"], capture_output=True, text=True, check=False)
        return answer.stdout.strip().splitlines() if answer.returncode == 0 else []

    def needs(self, gpus=1):
        if len(self.gpus) < gpus:
            raise Skipped("no GPU" if not self.gpus else f"{len(self.gpus)} of {gpus} GPUs")

    def ranks(self):
        """The GPUs that parts with several use."""
        return max((count for count in self.sizes.stages if count <= len(self.gpus)), default=1)

    def call(self, log, *command, variables=None, seconds=None):
        """Runs a command, for `seconds` at most, and returns its output, which is also written to OUT/LOG.log."""
        path = self.out / f"{log}.log"
        with path.open("a") as file:
            file.write("$ " + " ".join(map(str, command)) + "\n")
            file.flush()
            at, left = file.tell(), self.seconds_left()
            limit = min(left, seconds or left)
            process = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                       env=self.sizes.variables | os.environ | (variables or {}), start_new_session=True,
                                       preexec_fn=end_with_parent)
            late = None
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                late = f"longer than {limit:g} s" if seconds and limit == seconds else f"longer than {self.options.minutes:g} minutes"
                file.write(where_it_is(process.pid, with_stacks=limit > 10))  # less is slow, not stuck
            finally:  # the ranks, too
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        text = path.read_bytes()[at:].decode(errors="replace")
        if late:
            self.seconds_left()  # cut off by the budget, and not by a limit
            if seconds and limit < seconds:
                raise PartOver
            raise Failed(f"{late}, {path.name}", text)
        if code != 0:
            lines = [line for line in text.split('\n{\n  "error"')[0].splitlines() if line.strip()]  # the same as JSON
            raise Failed(f"exit code {code}, {path.name}: {lines[-1] if lines else ''}", text)
        return text

    def answer(self, log, *command):
        """The JSON that a polyphony command prints after its notes."""
        text = self.call(log, self.build / "polyphony", *command, "--format", "json")
        return json.JSONDecoder().raw_decode(text, re.search(r"^{", text, re.MULTILINE).start())[0]

    def tests(self, log, *filters, variables=None, seconds=None):
        """Runs tests of exec_test and returns their output. Its ranks are threads or processes."""
        return self.call(log, self.build / "exec_test", *filters, variables={"OMP_NUM_THREADS": "1"} | (variables or {}), seconds=seconds)

    def each_case(self, part, cases):
        """Runs functions by name, one after another; one that fails does not stop the others. Returns what they said."""
        known = self.cases(part)
        for name, run in cases:
            if name in known:
                continue
            if self.seconds_left() < 1:
                raise PartOver
            try:
                known[name] = run()
            except Failed as why:
                known[name] = f"{name} FAILED: {why}"
            self.save()
        said = "; ".join(known.values())
        if any(f"{name} FAILED" in text for name, text in known.items()):
            raise Failed(said)
        return said


def end_with_parent():
    """Ends this process when the hour's own is killed: its GPUs are wanted by the next call. Linux: prctl(PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def assertions(text):
    return re.search(r"assertions: *(\d+)", text).group(1) + " assertions"


def where_it_is(group, with_stacks):
    """What the processes of a group that is about to be killed wait for, as the kernel and, for one of them, gdb tell."""
    lines, ours = ["\nout of time; its processes:\n"], []
    for folder in sorted((folder for folder in pathlib.Path("/proc").iterdir() if folder.name.isdigit()), key=lambda folder: int(folder.name)):
        try:
            if os.getpgid(int(folder.name)) != group:
                continue
            name = (folder / "comm").read_text().strip()
            waits = ["runs" if (text := (task / "wchan").read_text()) in ("", "0") else text for task in (folder / "task").iterdir()]
            lines.append(f"{folder.name} {name}: {', '.join(sorted(waits))}\n")
            ours += [folder.name] if name in ("polyphony-worke", "exec_test") else []  # 15 characters
        except OSError:
            continue
    if with_stacks and ours and shutil.which("gdb"):  # the last one is a rank; each takes seconds
        try:
            lines.append(subprocess.run(["gdb", "-p", ours[-1], "-batch", "-ex", "thread apply all backtrace 12"], capture_output=True, text=True,
                                        errors="replace", timeout=20, check=False, stdin=subprocess.DEVNULL).stdout)
        except (OSError, subprocess.TimeoutExpired):
            pass
    return "".join(lines)
