"""The sweep command: killed and repeated, stopped, in parts, with saved rows, with contradicting lists."""
import csv
import io
import json
import os
import pathlib
import signal
import time
import unittest

import harness
from harness import POLYPHONY, SCENARIOS, run, start

QUESTION = {
    "polyphony": 1, "model": {"language": {"preset": "llama-3.1-8b"}}, "cluster": {"node": "hgx-h100", "nodes": 8, "nic": "400Gbps"},
    "data": {"source": "synthetic", "text": {"tokens": 8192}, "sequence": 8192, "global_batch": 256}, "training": {"precision": "bf16"},
    "search": {"language": {"cp": [1, 2], "shard": ["optimizer", "full"]}, "microbatch": [1, 2]}}


class Sweep(harness.SystemTest):
    def question(self, name="question.json", **search):
        path = self.folder / name
        path.write_text(json.dumps({**QUESTION, "search": {**QUESTION["search"], **search}}))
        return path

    def sweep(self, path, *more):
        return run(POLYPHONY, "sweep", path, "--estimate", "--format", "json", *more)

    def assert_answered(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_killed_and_repeated(self):
        path, journal = self.question(), self.folder / "journal.jsonl"
        plain = self.sweep(path)
        whole = self.assert_answered(plain)
        killed = start(POLYPHONY, "sweep", path, "--estimate", "--format", "json", "--journal", journal)
        deadline = time.monotonic() + 30
        while not (journal.exists() and len(journal.read_text().splitlines()) > 3) and time.monotonic() < deadline:
            time.sleep(0.005)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        with journal.open("a") as file:
            file.write('{"key": "estimate [')  # truncated in the middle of a line
        again = self.sweep(path, "--journal", journal)
        self.assertEqual(again.stdout, plain.stdout)
        size = journal.stat().st_size
        self.assertEqual(self.sweep(path, "--journal", journal).stdout, plain.stdout)
        self.assertEqual(journal.stat().st_size, size)  # nothing was left to compute
        self.assertGreater(len(whole["ranked"]), 10)
        # Damaged: computed again.
        journal.write_text(journal.read_text().replace('\\"step\\":0.', '\\"step\\":0.9', 3))
        self.assertEqual(self.sweep(path, "--journal", journal).stdout, plain.stdout)

    def test_parts_on_several_machines(self):
        path = self.question()
        parts = [self.folder / f"part{i}.jsonl" for i in (1, 2)]
        for i, part in enumerate(parts):
            self.assert_answered(self.sweep(path, "--shard", f"{i + 1}/2", "--journal", part))
        joined = self.sweep(path, "--journal", f"{self.folder / 'all.jsonl'},{parts[0]},{parts[1]}")
        self.assertEqual(joined.stdout, self.sweep(path).stdout)

    def test_stopped_it_prints_its_results_so_far(self):
        path = self.folder / "large.json"
        path.write_text((SCENARIOS / "vlm_12b_70b_h100.json").read_text())
        process = start(POLYPHONY, "sweep", path, "--format", "json", "--set", "search.language.tp=[2,4,8]",
                        "--set", "search.language.pp=\"auto\"", "--set", "search.microbatch=\"auto\"")
        time.sleep(2)
        os.killpg(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=30)
        self.assertIn(process.returncode, (0, 1), error)
        answer = json.loads(out)
        self.assertEqual(answer["stopped"], process.returncode == 1)
        if answer["stopped"] and answer["ranked"]:  # the original question is then not answered
            self.assertIn("stopped", answer["unchanged"]["no_answer"])

    def test_a_row_is_saved_and_simulated(self):
        path, out = self.question(), self.folder / "row.json"
        answer = self.assert_answered(run(POLYPHONY, "sweep", path, "--format", "json", "--save-row", 1, "--out", out))
        renamed = self.folder / "renamed.json"
        self.assert_answered(run(POLYPHONY, "sweep", path, "--format", "json", "--save-rank", 1, "--out", renamed))  # the earlier name
        self.assertEqual(renamed.read_text(), out.read_text())
        first = answer["ranked"][0]
        self.assertTrue(first["simulated"])
        simulated = self.assert_answered(run(POLYPHONY, "simulate", out, "--format", "json"))
        self.assertAlmostEqual(simulated["step_seconds"], first["step_seconds"], places=9)
        self.assertEqual({b["name"] for b in answer["baselines"]}, {"rule of thumb"})
        # The layout that a file states is what its sweep is compared with.
        again = self.assert_answered(run(POLYPHONY, "sweep", out, "--format", "json"))
        self.assertEqual([b["name"] for b in again["baselines"]], ["layout of the file", "rule of thumb"])
        own = again["baselines"][0]
        self.assertEqual(own["layout"], first["layout"])
        self.assertAlmostEqual(own["step_seconds"], first["step_seconds"], places=9)
        for row in again["ranked"][:3]:
            self.assertAlmostEqual(row["step_change"], row["step_seconds"] / own["step_seconds"] - 1, places=6)

    def test_cost_goals(self):
        path, journal = self.question(), self.folder / "journal.jsonl"
        goal = ("--objective", "days,dollars", "--nodes", "4..8", "--tokens", "1e11")
        refused = self.sweep(path, *goal)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("price", refused.stderr)
        priced = self.folder / "priced.json"
        priced.write_text(json.dumps({**QUESTION, "cluster": {**QUESTION["cluster"], "price": "2USD/GPUh"}}))
        first = self.sweep(priced, *goal, "--journal", journal)
        points = self.assert_answered(first)["goal"]["points"]
        self.assertEqual([point["nodes"] for point in points], [8, 4])  # days and dollars: each point is better in one of them
        self.assertLess(points[0]["values"]["days"], points[1]["values"]["days"])
        self.assertGreater(points[0]["values"]["dollars"], points[1]["values"]["dollars"])
        for point in points:
            hours = point["campaign"]["days"] * 24 * point["ranks"] * 2
            self.assertAlmostEqual(point["values"]["dollars"], hours, delta=1e-6 * hours)
        size = journal.stat().st_size
        self.assertEqual(self.sweep(priced, *goal, "--journal", journal).stdout, first.stdout)
        self.assertEqual(journal.stat().st_size, size)  # each choice of nodes has its own keys
        alone = self.assert_answered(self.sweep(priced, "--set", "cluster.nodes=4"))
        self.assertEqual(points[1]["candidate"]["step_seconds"], alone["ranked"][0]["step_seconds"])

    def test_where_the_best_changes(self):
        answer = self.assert_answered(self.sweep(self.question(), "--vary", "cluster.nic=100Gbps..400Gbps", "--vary", "data.global_batch=256,512"))
        rows = answer["questions"]
        self.assertEqual([row["set"]["cluster.nic"] for row in rows], ["100Gbps"] * 2 + ["200Gbps"] * 2 + ["400Gbps"] * 2)
        alone = self.assert_answered(self.sweep(self.question(), "--set", "cluster.nic=400Gbps", "--set", "data.global_batch=512"))
        self.assertEqual(rows[-1]["best"]["step_seconds"], alone["ranked"][0]["step_seconds"])
        self.assertLess(rows[4]["best"]["step_seconds"], rows[0]["best"]["step_seconds"])  # a faster fabric

    def test_layouts_from_a_file(self):
        path, planner = SCENARIOS / "varying/tiny_clips.json", "layout.planner"
        rows = self.assert_answered(self.sweep(path, "--vary", f"{planner}=none,dip,entrain"))["questions"]
        self.assertEqual([row["set"][planner] for row in rows], ["none", "dip", "entrain"])
        for row in rows[:2]:  # equal to the output of simulate
            alone = run(POLYPHONY, "simulate", path, "--estimate", "--format", "json", "--set", f"{planner}={row['set'][planner]}")
            self.assertEqual(row["best"]["step_seconds"], self.assert_answered(alone)["step_seconds"])
        self.assertIsNone(rows[2]["best"])
        self.assertIn("entrain", rows[2]["why_not"])  # it does not support diffusion modules
        lines = run(POLYPHONY, "sweep", path, "--estimate", "--vary", f"{planner}=none,dip,entrain").stdout.splitlines()
        self.assertIn("2 CPU ranks", lines[0])  # what all questions have in common
        begin = next(i for i, line in enumerate(lines) if line.startswith("---"))
        self.assertIn("the fastest", lines[begin - 1])
        rows = [line.split()[0] for line in lines[begin + 1:] if line and not line.startswith(" ")]
        self.assertEqual(rows, ["dip", "none", "entrain"])  # ranked; layouts without an answer come last

    def table(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout), strict=True))

    def test_comma_separated(self):
        path = self.question()
        answer = self.assert_answered(self.sweep(path))
        rows = self.table(run(POLYPHONY, "sweep", path, "--estimate", "--format", "csv"))
        listed = answer["ranked"] + answer["baselines"]
        self.assertEqual([row["rank"] for row in rows], [str(i + 1) for i in range(len(answer["ranked"]))] + [b["name"] for b in answer["baselines"]])
        for row, candidate in zip(rows, listed, strict=True):
            self.assertNotIn(None, row)  # as many cells as columns
            for key in ("step_seconds", "peak_memory_bytes", "step_change", "bound_seconds"):
                self.assertEqual(float(row[key]), candidate[key])
            self.assertEqual([row["step_change90_low"], row["step_change90_high"]], [str(x) for x in candidate.get("step_change90", ["", ""])])
            self.assertEqual(row["tied"], str(candidate["tied"]).lower())
            grid = candidate["layout_form"].get("language") or candidate["layout_form"]["all"]
            self.assertEqual(int(row["language.tp"]), grid.get("tp", 1))
            ways = [int(row[f"language.{key}"]) for key in ("tp", "cp", "dp", "pp")]
            self.assertEqual(ways[0] * ways[1] * ways[2] * ways[3], int(row["language.ranks"]))
            self.assertEqual(row["layout"], candidate["layout"])
        varied = self.table(run(POLYPHONY, "sweep", path, "--estimate", "--format", "csv", "--vary", "cluster.nic=200Gbps,400Gbps", "--vary",
                                "search.language.tp=1,3"))  # 3 does not divide the heads
        self.assertEqual([(row["cluster.nic"], row["search.language.tp"], row["rank"], row["why_not"]) for row in varied],
                         [(nic, *rest) for nic in ("200Gbps", "400Gbps") for rest in (("1", "1", ""), ("3", "", "no layout fits"))])

    def test_invalid_options(self):
        path, other = self.question(), self.folder / "other.jsonl"
        self.assert_answered(self.sweep(self.question("b.json", microbatch=[1]), "--journal", other))
        foreign = self.folder / "foreign.txt"
        foreign.write_text("notes of mine\n")
        for more, words in {
                ("--shard", "9/8", "--journal", self.folder / "x"): ["--shard", "I/N"],
                ("--shard", "1/2"): ["--journal"],
                ("--save-row", 100000, "--out", self.folder / "r.json"): ["--save-row", "1 to"],
                ("--save-row", 1): ["needs --out"],
                ("--out", self.folder / "r.json"): ["--out", "add --save-row 1"],
                ("--journal", other): ["another question"],
                ("--journal", foreign): ["is not the journal"],
                ("--journal", self.folder / "no" / "where"): ["where"],
                ("--vary", "data.global_batch"): ["--vary", "PATH=A,B,C"],
                ("--vary", "data.global_batch=9..x"): ["is no number"],
                ("--vary", "data.global_batch=1..1000000", "--vary", "data.seed=1..1000000"): ["more than 256"],
                ("--jobs", -3): ["--jobs"],
                ("--effort", -1): ["--effort"]}.items():
            with self.subTest(more):
                done = self.sweep(path, *more)
                self.assertEqual(done.returncode, 2, done.stderr)
                for word in words:
                    self.assertIn(word, done.stderr)
        self.assertEqual(foreign.read_text(), "notes of mine\n")
        for search, word in (({"language": {"tp": 3}}, "tp 3 does not divide"), ({"language": {"tp": 8, "pp": 64, "dp": 3}}, "dp"),
                             ({"microbatch": [100000]}, "microbatch"), ({"placement": "colocated"}, "")):
            with self.subTest(search):
                done = run(POLYPHONY, "sweep", self.question("none.json", **search))
                self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
                self.assertIn("no layout fits", done.stderr)


if __name__ == "__main__":
    harness.main()
