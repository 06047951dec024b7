"""Shared by the system tests: the two programs, folders, processes. Python 3's standard library only.

Each test file runs alone: python3 tests/system/NAME.py BUILD_FOLDER [unittest arguments]. Nothing here waits without a limit.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
POLYPHONY = str(BUILD / "polyphony")
WORKER = str(BUILD / "polyphony-worker")
SCENARIOS = ROOT / "scenarios"
CACHE = pathlib.Path(os.environ.get("POLYPHONY_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "polyphony")
LIMIT = 60  # seconds for a short command
# The identity of a worker is given by these variables only, independent of the environment of the tests.
LAUNCHER_VARIABLES = re.compile(
    r"^(RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|(TORCHELASTIC|SLURM|OMPI|PMI|MPI)_.*)$")


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not LAUNCHER_VARIABLES.match(k)}
    return {**clean, **{k: str(v) for k, v in more.items()}}


def run(*command, limit=LIMIT, env=None, **options):
    """Runs a command; returns the finished process, with its output as text and its duration as .seconds."""
    begin = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=limit, cwd=ROOT,
                          stdin=subprocess.DEVNULL, env=environment() if env is None else env, **options)
    done.seconds = time.monotonic() - begin
    return done


def answer(*command, limit=300):
    """The answer of a command of polyphony, decoded from --format json."""
    done = run(POLYPHONY, *command, "--format", "json", limit=limit)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def start(*command, env=None):
    """Starts a process in its own session, so that signals sent to it reach no other process."""
    return subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
                            stdin=subprocess.DEVNULL, env=environment() if env is None else env, start_new_session=True)


def free_port():
    """Below the ports that Linux gives to outgoing connections, so that none takes it before a worker listens."""
    for port in random.sample(range(20000, 32000), 1000) + [0]:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]


def cached(name):
    """The folder of a package of scripts/pins.txt in the cache of set-up, which fetches it if it is missing."""
    if not list(CACHE.glob(f"{name}-*")):
        subprocess.run([ROOT / "scripts/setup", "oracle"], check=True)
    return next(CACHE.glob(f"{name}-[0-9]*"))


def workers_of(folder, variable="RANK"):
    """{rank: pid} of the workers whose command line names the folder, and which have their rank from the variable."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if not arguments[0].endswith(b"polyphony-worker") or str(folder).encode() not in arguments:
                continue
            rank = re.search(rf"(?:^|\0){variable}=(\d+)".encode(), (entry / "environ").read_bytes())
            found[int(rank[1])] = int(entry.name)
        except (OSError, TypeError):
            continue  # the process has ended meanwhile
    return found


def wait_until(condition, limit, what):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {limit} s")


def metrics(folder):
    """The complete lines of a run's metrics."""
    path = pathlib.Path(folder) / "metrics.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def losses(folder):
    """{step: loss}"""
    return {line["step"]: line["loss"] for line in metrics(folder) if "loss" in line}


def checkpoints(folder):
    """Steps of the complete checkpoints, ascending."""
    found = pathlib.Path(folder).glob("checkpoints/step-*/manifest.json")
    return sorted(int(p.parent.name[len("step-"):]) for p in found if p.parent.name[len("step-"):].isdigit())


class SystemTest(unittest.TestCase):
    """A test with its own folder; no worker may be running after it."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="polyphony-test-"))
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        left = {}
        for out in [self.folder, *self.folder.rglob("*")]:
            if out.is_dir():
                left.update(workers_of(out))
        for pid in left.values():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(left, {}, "workers were left behind")

    def start(self, *command, env=None):
        process = start(*command, env=env)
        self.started.append(process)
        return process

    def finish(self, process, limit):
        """stdout and stderr of a started process, which must end by itself."""
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"still running after {limit} s")
        return out, err

    def assert_ok(self, done):
        self.assertEqual(done.returncode, 0, f"{done.args}\n{done.stdout}\n{done.stderr}")

    def assert_one_line(self, done, *wanted, code=2):
        """Asserts exit code 2 and one line on stderr that contains every expected text."""
        self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout}\n{done.stderr}")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, f"one line is wanted:\n{done.stderr}")
        for text in wanted:
            self.assertIn(str(text), lines[0])
        self.assertRegex(lines[0], r"\(.+\)$", "the line has to say how to fix it")
        self.assertNotIn("basic_", lines[0])
        self.assertNotIn("json.exception", lines[0])

    def scenario(self, name="scenario.json", base="tiny.json", **changes):
        """Writes a scenario file to the test's folder that extends a shipped one."""
        path = self.folder / name
        path.write_text(json.dumps({"polyphony": 1, "about": "made by a test", "extends": str(SCENARIOS / base), **changes}))
        return path


def main():
    if not os.access(POLYPHONY, os.X_OK) or not os.access(WORKER, os.X_OK):
        sys.exit(f"{BUILD} does not hold both programs: build them first")
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
