"""The folder that `polyphony run` writes, and the commands that read it."""
import json

import harness
from harness import POLYPHONY, SCENARIOS, WORKER, run


class RunFolder(harness.SystemTest):
    def test_run_then_compare_calibrate_report(self):
        out = self.folder / "run"
        done = run(POLYPHONY, "run", SCENARIOS / "tiny_non_colocated.json", "--out", out, "--steps", 8, "--trace-steps", "4:8")
        self.assert_ok(done)
        self.assertRegex(done.stdout, r"8 steps of \d+ samples, loss ")
        losses = harness.losses(out)
        self.assertEqual(sorted(losses), list(range(8)))
        self.assertTrue(all(0 < loss < 10 for loss in losses.values()), losses)
        self.assertEqual(harness.checkpoints(out), [8])
        traces = {p.name for p in (out / "trace").iterdir()}
        self.assertEqual(traces, {"batches.jsonl"} | {f"step-{s}.rank-{r}.json" for s in range(4, 8) for r in range(3)})
        trace = json.loads((out / "trace/step-4.rank-0.json").read_text())
        self.assertTrue(any(event["ph"] == "X" for event in trace["traceEvents"]))

        compared = run(POLYPHONY, "compare", out, "--format", "json")
        self.assert_ok(compared)
        row, = json.loads(compared.stdout)
        self.assertEqual(row["steps"], 4)
        self.assertGreater(row["measured_seconds"], 0)
        self.assertGreater(row["predicted_seconds"], 0)
        self.assertIn("forward", row["parts"])

        # The same step from its trace files and the scenario that was run.
        files = sorted((out / "trace").glob("step-5.rank-*.json"))
        alone, = json.loads(run(POLYPHONY, "compare", *files, "--scenario", out / "scenario.json", "--format", "json").stdout)
        self.assertEqual(alone["steps"], 1)
        self.assertEqual(alone["layout"], row["layout"])
        self.assert_one_line(run(POLYPHONY, "compare", files[0]), "--scenario")
        self.assert_one_line(run(POLYPHONY, "compare", files[0], "--scenario", out / "scenario.json"), "give the files of all 3 ranks")

        self.assert_ok(run(POLYPHONY, "calibrate", out, "--out", self.folder / "fitted.json"))
        after, = json.loads(run(POLYPHONY, "compare", out, "--profile", self.folder / "fitted.json", "--format", "json").stdout)
        self.assertLess(abs(after["error"]), max(0.5, abs(row["error"])))
        page = self.folder / "report.html"
        self.assert_ok(run(POLYPHONY, "report", out, "--training", out, "--out", page))
        self.assertIn("<svg", page.read_text())

    def test_traces_of_a_killed_run_are_kept(self):
        out = self.folder / "run"
        killed = self.start(POLYPHONY, "run", SCENARIOS / "tiny_non_colocated.json", "--out", out, "--steps", 1000000, "--trace-steps", "4:1000000")
        harness.wait_until(lambda: len(harness.losses(out)) > 12, 60, "some steps")
        killed.kill()
        killed.communicate()
        compared = run(POLYPHONY, "compare", out, "--format", "json")
        self.assert_ok(compared)
        self.assertIn("killed while it traced", compared.stderr)
        self.assertGreaterEqual(json.loads(compared.stdout)[0]["steps"], 8)
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny_non_colocated.json", "--out", out, "--steps", 4, "--trace-steps", "2:4", "--fresh"))
        self.assertFalse(list((out / "trace").glob("journal*")))
        self.assertEqual(json.loads(run(POLYPHONY, "compare", out, "--format", "json").stdout)[0]["steps"], 2)

    def test_a_run_continues_where_it_stopped(self):
        whole, parts = self.folder / "whole", self.folder / "parts"
        tiny = SCENARIOS / "tiny.json"
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", whole, "--steps", 6))
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", parts, "--steps", 4))
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", parts, "--steps", 6, "--resume"))
        again = run(POLYPHONY, "run", tiny, "--out", parts, "--steps", 6, "--resume")
        self.assert_ok(again)
        self.assertIn("nothing is left to train up to step 6", again.stderr)
        self.assertEqual(harness.losses(parts), harness.losses(whole))
        self.assertEqual(harness.checkpoints(parts)[-1], 6)
        refused = run(POLYPHONY, "run", tiny, "--out", parts, "--steps", 6)  # an earlier run is never removed without a request
        self.assert_one_line(refused, "checkpoints")
        self.assertEqual(harness.checkpoints(parts)[-1], 6)
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", parts, "--steps", 2, "--fresh"))
        self.assertEqual(harness.checkpoints(parts), [2])

    def test_the_split_of_a_run_is_its_own(self):
        """Stages are split once: the folder and the checkpoint record the split, and a later profile does not change it."""
        out = self.folder / "run"
        tiny = SCENARIOS / "tiny.json"
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", out, "--steps", 2))
        blocks = json.loads((out / "scenario.json").read_text())["layout"]["all"]["blocks"]
        self.assertEqual(sum(blocks), 6)
        manifest = json.loads((out / "checkpoints/step-2/manifest.json").read_text())
        self.assertEqual(manifest["blocks"][-1], blocks)
        other = [blocks[0] - 1, blocks[1] + 1] if blocks[0] > 1 else [blocks[0] + 1, blocks[1] - 1]
        scenario = json.loads((out / "scenario.json").read_text())
        scenario["layout"]["all"]["blocks"] = other  # as another profile would have split them
        (out / "scenario.json").write_text(json.dumps(scenario))
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", out, "--steps", 4, "--resume"))
        self.assertEqual(json.loads((out / "scenario.json").read_text())["layout"]["all"]["blocks"], other)
        self.assertEqual(json.loads((out / "checkpoints/step-4/manifest.json").read_text())["blocks"][-1], other)

    def test_two_runs_never_share_a_folder(self):
        out, tiny = self.folder / "run", SCENARIOS / "tiny.json"
        first = self.start(POLYPHONY, "run", tiny, "--out", out, "--steps", 1000000)
        harness.wait_until(lambda: len(harness.losses(out)) > 5, 60, "some steps")
        for how in (["--resume"], ["--fresh"]):
            second = run(POLYPHONY, "run", tiny, "--out", out, "--steps", 5, *how)
            self.assert_one_line(second, "another run is using this folder: polyphony run, process", out)
        alone = self.one_worker(SCENARIOS / "tiny.json")
        self.assert_one_line(run(WORKER, alone, "--out", out, "--steps", 5, "--resume"), "another run is using this folder")
        self.assertIsNone(first.poll())
        first.kill()  # and all its workers: the folder is free
        first.communicate()
        done = run(POLYPHONY, "run", tiny, "--out", out, "--steps", 5, "--resume")
        self.assert_ok(done)
        self.assertIn("restarts from the beginning", done.stderr)
        self.assertEqual(sorted(harness.losses(out)), list(range(5)))

    def test_a_worker_without_a_launcher_also_owns_its_folder(self):
        out, alone = self.folder / "run", self.one_worker(SCENARIOS / "tiny.json")
        self.assert_ok(run(WORKER, alone, "--out", out, "--steps", 3))
        before = self.contents(out)
        self.assert_one_line(run(WORKER, alone, "--out", out, "--steps", 5), "belongs to an earlier run")
        self.assertEqual(self.contents(out), before)
        self.assert_ok(run(WORKER, alone, "--out", out, "--steps", 5, "--resume"))
        self.assertEqual(sorted(harness.losses(out)), list(range(5)))
        self.assert_ok(run(POLYPHONY, "run", out / "scenario.json", "--out", self.folder / "again", "--steps", 5))
        self.assertEqual(harness.losses(self.folder / "again"), harness.losses(out))

    def test_files_not_written_by_a_run_are_kept(self):
        out, tiny = self.folder / "user", SCENARIOS / "tiny.json"
        (out / "trace").mkdir(parents=True)
        (out / "trace/thesis.txt").write_text("a year of work")
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", out, "--steps", 4, "--trace-steps", "2:4"))
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", out, "--steps", 2, "--fresh"))
        self.assertEqual([p.name for p in (out / "trace").iterdir()], ["thesis.txt"])
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "metrics.jsonl").write_text("{\"loss\": 1}\n")
        for how in ([], ["--fresh"], ["--resume"]):
            for command in ("run", "rehearse"):
                if command == "rehearse" and how == ["--resume"]:
                    continue
                done = run(POLYPHONY, command, tiny, "--out", mine, "--steps", 4, *how)
                self.assert_one_line(done, "metrics.jsonl", "no run has marked")
        self.assertEqual(self.contents(mine), {"metrics.jsonl": b"{\"loss\": 1}\n"})

    def test_a_rejected_resume_changes_nothing(self):
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 4))
        before = self.contents(out)
        done = run(POLYPHONY, "run", SCENARIOS / "tiny_text_only.json", "--out", out, "--steps", 6, "--resume")
        self.assert_one_line(done, "is of another model")
        self.assertEqual(self.contents(out), before)
        scenario = self.scenario(model={"language": {"rope_theta": 500000}})
        self.assert_one_line(run(POLYPHONY, "run", scenario, "--out", out, "--steps", 6, "--resume"), "model.language.rope_theta was")
        self.assertEqual(self.contents(out), before)

    def test_changes_of_a_resume_are_reported(self):
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 4))
        scenario = self.scenario(data={"seed": 5, "global_batch": 16}, training={"learning_rate": 0.5})
        done = run(POLYPHONY, "run", scenario, "--out", out, "--steps", 6, "--resume")
        self.assert_ok(done)
        for what in ("data.global_batch was 8, is 16", "data.seed was 1, is 5", "training.learning_rate was 0.001, is 0.5"):
            self.assertIn(f"from step 4 on: {what}", done.stderr)

    def test_damaged_metrics_are_reported_and_kept(self):
        out, tiny = self.folder / "run", SCENARIOS / "tiny.json"
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", out, "--steps", 4))
        whole = (out / "metrics.jsonl").read_text()
        damaged = whole.replace('"step":2', '"step":3')
        self.assertNotEqual(damaged, whole)
        for number, text, said in ((1, damaged, "line 3 is damaged"), (2, whole[:len(whole) // 2], "are missing"), (3, "", "steps 0 to 5 are missing")):
            (out / "metrics.jsonl").write_text(text)
            done = run(POLYPHONY, "run", tiny, "--out", out, "--steps", 4 + number, "--resume")
            self.assert_ok(done)
            self.assertIn(said, done.stderr)
            self.assertEqual((out / f"metrics.jsonl.damaged-{number}").read_text(), text)
            self.assertIn(3 + number, harness.losses(out))

    def one_worker(self, base):
        """A scenario of one rank."""
        return self.scenario(name="alone.json", base=base.name, layout={"placement": "homogeneous", "microbatches": 4, "all": {"pp": 1}}, cluster={"ranks": 1})

    def contents(self, folder):
        """{name: bytes}, without the line that names the owner."""
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "run.lock"}

    def test_a_layout_that_only_the_simulator_knows(self):
        path = self.scenario(layout={"placement": "homogeneous", "microbatches": 4, "all": {"pp": 2, "vpp": 2}})
        for command in ("run", "rehearse"):
            done = run(POLYPHONY, command, path, "--out", self.folder / "run")
            self.assertIn(done.returncode, (2, 3), done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_full_stdout(self):
        with open("/dev/full", "w") as full:
            done = harness.subprocess.run([POLYPHONY, "plan", str(SCENARIOS / "tiny.json")], stdout=full,
                                          stderr=harness.subprocess.PIPE, text=True, timeout=harness.LIMIT)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("stdout", done.stderr)


if __name__ == "__main__":
    harness.main()
