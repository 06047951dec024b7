"""Steps whose loss jumps: skipped or rewound alike in every layout, also by a run that was killed; and what is refused."""
import json
import os
import signal

import harness
import training
from harness import POLYPHONY, WORKER, run

LAYOUTS = {"one": {}, "tp2": {"tp": 2}, "pp2": {"pp": 2}}
# One sample of forty has an answer that no other has: once in ten steps the loss jumps.
JUDGED = ["--spike-window", 6, "--spike-loss", 1.5, "--spike-norm", 0]
REWIND = ["--spikes", "rewind", *JUDGED, "--rewind-every", 5, "--max-rewinds", 99]


class Spikes(harness.SystemTest):
    def setUp(self):
        super().setUp()
        training.save_model(self.folder / "small")
        answers = ["aaaa"] * 39 + ["~}|{zyxwvutsrqponmlkjihgfedcb"]
        self.write("chat.jsonl", "\n".join(
            json.dumps({"conversations": [{"from": "human", "value": "say it"}, {"from": "gpt", "value": answer}]}) for answer in answers))

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def scenario(self, layout="pp2", steps=30):
        text = {"polyphony": 1, "model": {"language": {"weights": "small"}}, "cluster": {"node": "this-machine", "ranks": 1 if layout == "one" else 2},
                "data": {"source": {"dataset": "chat.jsonl", "tokenizer": "small/tokenizer.json", "template": "plain"},
                         "sequence": 48, "global_batch": 4},
                "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": LAYOUTS[layout]},
                "training": {"precision": "fp32", "learning_rate": 0.01, "steps": steps}}
        return self.write(f"{layout}.json", json.dumps(text))

    def trained(self, out, scenario, *options, code=0):
        done = run(POLYPHONY, "run", scenario, "--out", self.folder / out, *options, limit=240)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done, harness.metrics(self.folder / out)

    def test_every_layout_skips_and_rewinds_alike(self):
        for action, options in (("skip", ["--spikes", "skip", *JUDGED]), ("rewind", REWIND)):
            seen = {}
            for layout in LAYOUTS:
                done, lines = self.trained(f"{action}-{layout}", self.scenario(layout), *options)
                steps = [line for line in lines if "loss" in line]
                skipped = [line["step"] for line in steps if line["skipped"]]
                rewinds = [(line["step"], line["from"], line["passed_over"], line["why"]) for line in lines if "rewind" in line]
                self.assertEqual([line["step"] for line in steps], list(range(30)))
                self.assertTrue(skipped if action == "skip" else rewinds, lines)
                self.assertRegex(done.stderr, r"polyphony-worker: step \d+: its loss, [\d.e+-]+, is more than 1.5 times the median, [\d.e+-]+: "
                                              + ("it is skipped on all ranks" if action == "skip" else "rewinds to the checkpoint of step"))
                total = f"{len(skipped or rewinds)} " + ("step" if action == "skip" else "rewind")
                self.assertIn(f"polyphony-worker: {total}", done.stderr)
                self.assertIn(total, done.stdout)
                seen[layout] = (skipped, rewinds, [line["loss"] for line in steps])
                events = b"".join(path.read_bytes() for path in (self.folder / f"{action}-{layout}").glob("events.out.tfevents.*"))
                self.assertIn(b"train/skipped" if action == "skip" else b"train/rewinds", events)
            for layout in LAYOUTS:
                self.assertEqual(seen[layout][:2], seen["one"][:2], layout)
                for a, b in zip(seen[layout][2], seen["one"][2]):
                    self.assertAlmostEqual(a, b, delta=1e-3 * max(1, abs(b)))

    def test_a_killed_run_decides_as_the_whole_one(self):
        scenario, out = self.scenario(steps=120), self.folder / "killed"
        options = [*REWIND, "--checkpoint-every", 0.3]
        launcher = self.start(POLYPHONY, "run", scenario, "--out", out, *options)
        harness.wait_until(lambda: any("rewind" in line for line in harness.metrics(out)), 120, "a rewind")
        pids = harness.workers_of(out)
        launcher.kill()
        for pid in pids.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        launcher.communicate()
        self.trained("killed", scenario, *options, "--resume")
        _, whole = self.trained("whole", scenario, *options)
        self.assertEqual(harness.losses(out), harness.losses(self.folder / "whole"))
        rewinds = [[{**line, "check": ""} for line in lines if "rewind" in line] for lines in (harness.metrics(out), whole)]
        self.assertEqual(*rewinds)

    def test_stops(self):
        done, lines = self.trained("stop", self.scenario(), "--spikes", "stop", *JUDGED, code=1)
        last = max(line["step"] for line in lines)
        self.assertIn(f"polyphony-worker: stopped at step {last}: its loss, ", done.stderr)
        self.assertIn(f"stopped at step {last}", done.stdout)
        self.assertEqual(harness.checkpoints(self.folder / "stop"), [])

    def test_what_does_not_apply_is_refused(self):
        scenario = self.scenario("one")
        for options, wanted in (
                (["--spikes", "maybe"], '--spikes: must be one of ignore, skip, rewind, stop (got "maybe")'),
                (["--non-finite", "ignore"], '--non-finite: must be one of skip, rewind, stop (got "ignore")'),
                (["--spike-loss", 3], "--spike-loss: requires --spikes"),
                (["--spikes", "skip", "--rewind-every", 5], "--rewind-every: requires --spikes rewind or --non-finite rewind"),
                (["--spikes", "skip", "--spike-window", 0], "--spike-window: must be at least 1 (got 0)"),
                (["--non-finite", "rewind", "--keep-checkpoints", 0], "--non-finite: rewind requires checkpoints"),
                (["--spikes", "rewind", "--trace-steps", "2:4"], "--spikes: rewind is not possible while steps are planned live or recorded")):
            with self.subTest(options=options):
                done = run(POLYPHONY, "run", scenario, "--out", self.folder / "refused", *options, limit=120)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(wanted, done.stderr)
        done = run(WORKER, scenario, "--spikes", "rewind", limit=120)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("--spikes: rewind requires checkpoints (add --out", done.stderr)


if __name__ == "__main__":
    harness.main()
