"""The wheel of the Python package, installed into an empty virtual environment: it needs nothing of the tree.

Also checks the types of the package and of a program that uses it, and executes the notebooks.
"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request
import zipfile

import harness
from harness import BUILD, CACHE, POLYPHONY, ROOT, SCENARIOS, run

TOOLS = CACHE / "python/bin"
QUESTION = ("--model", "llama-3.1-8b", "--gpus", "8xH100", "--jobs", "1", "--format", "json")
USER = """
import polyphony as pp

def seconds(rows: tuple[pp.answers.Candidate, ...]) -> list[float]:
    return [row.step_seconds for row in rows]

answer = pp.ask("llama-3.1-8b", "8xH100")
print(seconds(answer.ranked), answer.to_frame().shape)
"""
NOTEBOOK = """
import sys
import nbformat
from nbclient import NotebookClient
NotebookClient(nbformat.read(sys.argv[1], 4), timeout=300, kernel_name="python3").execute()
"""


@unittest.skipUnless((TOOLS / "auditwheel").exists(), "scripts/setup python has not run")
class Wheel(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="polyphony-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        built = run(ROOT / "scripts/build_wheel", "--build", BUILD, "--out", cls.home / "dist", limit=300)
        if built.returncode:
            raise AssertionError(built.stderr)
        cls.wheel = pathlib.Path(built.stdout.strip())
        subprocess.run([sys.executable, "-m", "venv", cls.home / "venv"], check=True)
        cls.python = cls.home / "venv/bin/python"
        # Neither the tree, nor the cache, nor this user's settings.
        cls.empty = {"HOME": str(cls.home), "PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1"}
        cls.alone(cls.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", cls.wheel)

    @classmethod
    def alone(cls, *command, **more):
        done = subprocess.run([str(word) for word in command], cwd=cls.home, env={**cls.empty, **more}, capture_output=True, text=True, timeout=400,
                              stdin=subprocess.DEVNULL)
        if done.returncode:
            raise AssertionError(f"{command}: {done.stdout}\n{done.stderr}")
        return done.stdout

    def with_tools(self):
        """The virtual environment's packages, and those of the tools."""
        packages = [next(folder.glob("lib/python3*/site-packages")) for folder in (self.home / "venv", CACHE / "python")]
        return {"PYTHONPATH": ":".join(map(str, packages)),
                "MPLBACKEND": "agg", "MYPY_CACHE_DIR": str(self.home / "mypy")}

    def test_it_is_small_and_has_its_libraries(self):
        self.assertLess(self.wheel.stat().st_size, 20e6)
        self.assertIn("manylinux", self.wheel.name)
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertTrue(any(re.match(r"polyphony\.libs/libsimgrid", name) for name in names))
        for program in ("polyphony", "polyphony-simulate"):
            self.assertIn(f"polyphony/bin/{program}", names)
            path = next(self.home.glob(f"venv/lib/python3*/site-packages/polyphony/bin/{program}"))
            wanted = self.alone("ldd", path)
            self.assertNotIn("not found", wanted)
            self.assertNotIn(str(CACHE), wanted)
            self.assertNotIn(str(ROOT), wanted)

    def test_from_the_wheel_to_a_search_and_its_steps(self):
        code = """if True:
            import polyphony as pp
            answer = pp.ask("llama-3.1-8b", "8xH100", jobs=1)
            step = pp.scenario(answer.scenario).simulate(answer.ranked[0])
            assert abs(step.step_seconds - answer.ranked[0].step_seconds) < 1e-9 * step.step_seconds
            print(answer.to_json())
        """
        command = run(POLYPHONY, "ask", *QUESTION)
        self.assert_ok(command)
        self.assertEqual(json.loads(self.alone(self.python, "-c", code)), json.loads(command.stdout))
        # The command itself, by the script that the wheel installs.
        self.assertEqual(self.alone(self.home / "venv/bin/polyphony", "ask", *QUESTION), command.stdout)
        self.assertIn("polyphony 0.", self.alone(self.python, "-m", "polyphony", "--version"))

    def test_the_page_is_in_the_wheel(self):
        refused = subprocess.run([self.home / "venv/bin/polyphony", "serve", "--port", "0"], env=self.empty, capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("pip install starlette uvicorn plotly", refused.stderr)
        server = self.start(self.home / "venv/bin/polyphony", "serve", "--port", "0", "--no-browser", env={**self.empty, **self.with_tools()})
        address = server.stdout.readline().split()[2]
        for path, held in (("", "<title>Polyphony</title>"), ("page.js", "api/preview"), ("page.css", "body"), ("plotly.min.js", "plotly"),
                           ("api/choices", "llama-3.1-8b")):
            with urllib.request.urlopen(address + path, timeout=60) as reply:
                self.assertIn(held, reply.read().decode())
        server.send_signal(signal.SIGINT)
        self.finish(server, 20)
        self.assertEqual(server.returncode, 0)

    def test_types_are_checked(self):
        program = self.home / "user.py"
        program.write_text(USER)
        for what in (program, next(self.home.glob("venv/lib/python3*/site-packages/polyphony"))):
            self.alone(TOOLS / "python", "-m", "mypy", "--strict", "--python-executable", TOOLS / "python", what, **self.with_tools())
        shape = self.alone(TOOLS / "python", program, **self.with_tools())
        self.assertRegex(shape, r"\(\d+, \d+\)")

    def test_notebooks_run(self):
        notebooks = sorted((ROOT / "sim/python/notebooks").glob("*.ipynb"))
        self.assertEqual(len(notebooks), 4)
        for notebook in notebooks:
            with self.subTest(notebook.name):
                cells = json.loads(notebook.read_text())["cells"]
                self.assertFalse([cell for cell in cells if cell.get("outputs")], "outputs are not committed")
                self.alone(TOOLS / "python", "-c", NOTEBOOK, notebook, **self.with_tools())

    def test_pictures_have_what_they_show(self):
        code = f"""if True:
            import numpy
            import polyphony as pp
            q = pp.load({str(SCENARIOS / "tiny.json")!r})
            step, timeline = q.simulate(), q.timeline()
            assert abs(timeline.step_seconds - step.step_seconds) < 1e-8
            ends = timeline.ops["start_seconds"] + timeline.ops["duration_seconds"]
            assert abs(ends.max() - step.step_seconds) < 1e-8
            assert timeline.memory["bytes"].max() == step.peak_memory_bytes
            forward = timeline.ops[(timeline.ops["rank"] == step.busiest_rank) & (timeline.ops["phase"] == "forward")]
            assert abs(forward["duration_seconds"].sum() - step.busiest_rank_seconds["forward"]) < 1e-8
            search = q.sweep(jobs=1)
            assert sum(len(points.get_offsets()) for points in search.plot().collections) == len(search.ranked)
            bars = [bar.get_width() for bar in step.plot().patches]
            assert sorted(bars) == sorted(value for value in step.busiest_rank_seconds.values() if value > 0)
            timeline.plot(), timeline.plot_memory(), q.why().plot(), pp.schedules({str(SCENARIOS / "times/vlm.csv")!r}, 4).plot()
            fit = pp.calibrate(scenario={str(SCENARIOS / "rehearse_8.json")!r}, step_time="330ms")
            measured, before, after = [bars.patches[0].get_width() for bars in fit.plot().containers]
            assert (measured, before, after) == (0.33, fit.evidence[0].before_seconds, fit.evidence[0].after_seconds)
            replay = pp.replay({str(ROOT / "traces/samples/gpt_7b_tp4_eager.json.gz")!r}, faster={{"gemm": 1.5}})
            assert [bar.get_width() for bar in replay.plot().patches] == [replay.measured_seconds, replay.before.step_seconds,
                                                                         replay.after.step_seconds]
            assert "<table>" in search._repr_html_() and len(search.to_frame()) == len(search.ranked)
        """
        self.alone(TOOLS / "python", "-c", code, **self.with_tools())


if __name__ == "__main__":
    harness.main()
