"""Steps recorded by Kineto, PyTorch's profiler (`polyphony run --kineto`), and the commands that read them."""
import collections
import gzip
import json
import re

import harness
from harness import POLYPHONY, SCENARIOS, WORKER, run

PIPELINE = SCENARIOS / "tiny.json"  # two stages on two ranks: messages on threads of their own
TENSOR = SCENARIOS / "tiny_text_only.json"  # tensor parallel over two ranks: collectives inside compute ops


def profile(out, step, rank):
    return json.loads(gzip.decompress((out / f"kineto/step-{step}.rank-{rank}.json.gz").read_bytes()))


def spans(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] in ("cpu_op", "user_annotation")]


def within(inner, outer):
    return inner["tid"] == outer["tid"] and outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.001


def ops_of_trace(out, step, rank):
    """{position in the rank's Program: the event} of one of our own trace files."""
    trace = json.loads((out / f"trace/step-{step}.rank-{rank}.json").read_text())
    ops = {event["args"]["op"]: event for event in trace["traceEvents"] if event["ph"] == "X" and "op" in event.get("args", {})}
    first = min(ops)
    return {op - first: event for op, event in ops.items()}


class Kineto(harness.SystemTest):
    def recorded(self, scenario, *options):
        out = self.folder / "run"
        done = run(POLYPHONY, "run", scenario, "--out", out, "--steps", 5, "--trace-steps", "2:3", "--kineto", *options)
        self.assert_ok(done)
        self.assertNotIn("ERROR", done.stderr)
        return out

    def check_ops(self, out, step):
        """Each op of the Program has an annotation with the same name and arguments as in our trace, and compute ops run operators."""
        threads = set()
        for rank in range(2):
            trace = profile(out, step, rank)
            self.assertEqual(trace["distributedInfo"], {"rank": rank, "world_size": 2})
            packed = (out / f"kineto/step-{step}.rank-{rank}.json.gz").read_bytes()
            self.assertIn(f'"rank": {rank}'.encode(), gzip.decompress(packed))  # HolisticTraceAnalysis searches for this text
            events = spans(trace)
            steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
            self.assertEqual([event["name"] for event in steps], [f"ProfilerStep#{step}"])
            self.assertEqual(steps[0]["cat"], "user_annotation")
            annotations = {event["args"]["op"]: event for event in events if event["cat"] == "user_annotation" and "op" in event["args"]}
            ours = ops_of_trace(out, 2, rank)
            self.assertEqual(sorted(annotations), sorted(ours))
            self.assertEqual(trace["polyphony"]["ops"], len(ours))
            operators = [event for event in events if event["cat"] == "cpu_op"]
            # Also on the threads of messages and collectives: the profiler records all threads, not only the one that starts it.
            self.assertLessEqual({event["tid"] for event in annotations.values()}, {event["tid"] for event in operators})
            self.assertTrue(any(event["args"].get("Input Dims") for event in operators))
            for op, event in annotations.items():
                self.assertTrue(ours[op]["name"].endswith(event["name"]), (ours[op]["name"], event["name"]))
                for key, value in ours[op]["args"].items():
                    if key not in ("op", "stream", "correlation"):
                        self.assertEqual(str(event["args"][key]), str(value), (event, key))
                self.assertGreaterEqual(event["ts"], steps[0]["ts"])
                self.assertLessEqual(event["ts"] + event["dur"], steps[0]["ts"] + steps[0]["dur"])
                if "work" in event["args"] or event["name"] == "update":
                    self.assertTrue(any(within(inner, event) for inner in operators), event)
            threads |= {(rank, event["tid"]) for event in annotations.values()}
        return threads

    def test_pipeline(self):
        out = self.recorded(PIPELINE, "3,4")
        self.assertEqual(sorted(p.name for p in (out / "kineto").iterdir()),
                         ["batches.jsonl"] + [f"step-{s}.rank-{r}.json.gz" for s in (3, 4) for r in (0, 1)])
        for step in (3, 4):
            self.assertGreaterEqual(len(self.check_ops(out, step)), 4)  # compute, and messages on other threads
        # Training is the same without the profiler, bit for bit.
        plain = self.folder / "plain"
        self.assert_ok(run(POLYPHONY, "run", PIPELINE, "--out", plain, "--steps", 5))
        self.assertEqual(harness.losses(out), harness.losses(plain))
        for rank in range(2):
            name = f"checkpoints/step-5/rank-{rank}.safetensors"
            self.assertEqual((out / name).read_bytes(), (plain / name).read_bytes())

        files = sorted((out / "kineto").glob("step-3.rank-*"))
        shown = run(POLYPHONY, "trace", *files, "--format", "json")
        self.assert_ok(shown)
        self.assertIn("recorded on a CPU", shown.stderr)
        answer = json.loads(shown.stdout)
        self.assertEqual(len(answer["ranks"]), 2)
        self.assert_ok(run(POLYPHONY, "trace", *files))
        self.assert_one_line(run(POLYPHONY, "trace", out), "profiles of 2 steps")
        self.assert_one_line(run(POLYPHONY, "replay", files[0]), "recorded on a CPU")

        fitted = self.folder / "fitted.json"
        calibrated = run(POLYPHONY, "calibrate", *files, "--scenario", out / "scenario.json", "--out", fitted)
        self.assert_ok(calibrated)
        self.assertIn("recorded with PyTorch's profiler", calibrated.stderr)
        before, = self.compared(out, files)
        after, = self.compared(out, files, "--profile", fitted)
        self.assertLess(abs(after["error"]), max(0.5, abs(before["error"])))
        # The same kinds of ops as in the trace of another step.
        trace, = self.compared(out, sorted((out / "trace").glob("step-2.rank-*")))
        self.assertEqual(sorted(trace["parts"]), sorted(before["parts"]))
        self.assert_one_line(run(POLYPHONY, "compare", files[0], "--scenario", out / "scenario.json"), "give the files of all 2 ranks")
        self.assert_one_line(run(POLYPHONY, "calibrate", *files, "--scenario", TENSOR), "give all files of one step")

    def compared(self, out, files, *more):
        done = run(POLYPHONY, "compare", *files, "--scenario", out / "scenario.json", *more, "--format", "json")
        self.assert_ok(done)
        return json.loads(done.stdout)

    def test_tensor_parallel(self):
        out = self.recorded(TENSOR, "4")
        self.check_ops(out, 4)
        trace = profile(out, 4, 0)
        inside = [event for event in spans(trace) if event["name"] == "gloo:allreduce" and event["args"]["Group size"] == 2]
        self.assertTrue(inside)
        shown = run(POLYPHONY, "trace", out, "--format", "json")  # the folder stands for its one step
        self.assert_ok(shown)
        kinds = collections.Counter(row["class"] for row in json.loads(shown.stdout)["kernels"])
        self.assertIn("gemm", kinds)
        self.assertIn("collective", kinds)
        self.assertNotIn("unknown", kinds)

    def test_refused(self):
        for options, says in ((["--kineto", "five"], "must be steps"), (["--kineto", "2:2"], "must be steps"), (["--kineto", "1,"], "must be steps"),
                              (["--kineto", "-1"], "must be steps"), (["--kineto", "1,3"], "the run's last step is 2"),
                              (["--kineto", "2:4"], "the run's last step is 2"),
                              (["--kineto", "1", "--trace-steps", "0:2"], "--trace-steps")):
            with self.subTest(options):
                self.assert_one_line(run(POLYPHONY, "run", PIPELINE, "--out", self.folder / "a", "--steps", 3, *options), says)
        self.assert_one_line(run(WORKER, PIPELINE, "--rank", 0, "--world-size", 2, "--master", "127.0.0.1:1", "--kineto", "1"), "--out")

    def test_resumed_and_fresh(self):
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", PIPELINE, "--out", out, "--steps", 2, "--kineto", "1"))
        resumed = run(POLYPHONY, "run", PIPELINE, "--out", out, "--steps", 4, "--resume", "--kineto", "0,3")
        self.assert_ok(resumed)
        self.assertIn("steps before 2 were trained earlier", resumed.stderr)
        self.assertEqual(sorted(p.name for p in (out / "kineto").glob("step*")),
                         [f"step-{s}.rank-{r}.json.gz" for s in (1, 3) for r in (0, 1)])
        for step in (1, 3):  # the batches of both parts of the run are kept
            self.compared(out, sorted((out / "kineto").glob(f"step-{step}.rank-*")))
        self.assert_ok(run(POLYPHONY, "run", PIPELINE, "--out", out, "--steps", 1, "--fresh"))
        self.assertFalse((out / "kineto").exists())

    def test_a_full_disk(self):
        """Training goes on and is saved; then the run fails with the file's name, and leaves no partial file."""
        out = self.folder / "run"
        limited = run("bash", "-c", 'ulimit -f 400; exec "$@"', "-", POLYPHONY, "run", PIPELINE, "--out", out, "--steps", 3, "--kineto", "1", "--keep-checkpoints", 0)
        self.assertNotEqual(limited.returncode, 0)
        self.assertRegex(limited.stderr, r"kineto/step-1\.rank-\d\.json\.gz\S*: cannot be written")
        self.assertEqual(sorted(harness.losses(out)), [0, 1, 2])
        self.assertFalse([p.name for p in (out / "kineto").iterdir() if re.search("partial|tmp", p.name)])


if __name__ == "__main__":
    harness.main()
