"""A training run in phases: the same losses as the runs made by hand, resumed where it was stopped, refused before anything runs."""
import json
import random
import signal
import struct
import zlib

import harness
import schemas
import training
from harness import POLYPHONY, SCENARIOS, WORKER, run

ALIGN = {"model": {"language": {"train": "frozen"}}, "training": {"steps": 4}}
TUNE = {"model": {"language": {"train": "lora", "lora_rank": 4}}, "data": {"seed": 7}, "training": {"steps": 6, "learning_rate": 0.02},
        "layout": {"all": {"tp": None, "pp": 2}}}


def png(color, side=16):
    """The bytes of an image of one color."""
    rows = b"".join(b"\0" + bytes(color) * side for _ in range(side))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def merged(value, change):
    """RFC 7396."""
    if not isinstance(change, dict):
        return change
    result = dict(value) if isinstance(value, dict) else {}
    for key, inner in change.items():
        if inner is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), inner)
    return result


class Phases(harness.SystemTest):
    def setUp(self):
        super().setUp()
        training.save_model(self.folder / "small")
        draw = random.Random(3)
        lines = []
        for i in range(24):
            (self.folder / f"{i}.png").write_bytes(png([draw.randrange(256) for _ in range(3)]))
            lines.append(json.dumps({"image": f"{i}.png", "conversations": [
                {"from": "human", "value": "<image>\nsay " + "abcdefgh"[i % 8]}, {"from": "gpt", "value": "abcdefgh"[i % 8] * draw.randint(1, 9)}]}))
        (self.folder / "chat.jsonl").write_text("\n".join(lines))
        self.base = {"polyphony": 1,
                     "model": {"vision": {"layers": 2, "hidden": 16, "heads": 2, "ffn": 32, "patch": 4, "image_size": 16},
                               "projector": {"from": "vision", "merge": "2x2"}, "language": {"from": "projector", "weights": "small"}},
                     "cluster": {"node": "this-machine", "ranks": 2},
                     "data": {"source": {"dataset": "chat.jsonl", "tokenizer": "small/tokenizer.json", "template": "plain"}, "sequence": 48, "global_batch": 4},
                     "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": {"tp": 2}},
                     "training": {"precision": "fp32", "learning_rate": 0.01}}

    def write(self, name, scenario):
        (self.folder / name).write_text(json.dumps(scenario))
        return self.folder / name

    def phased(self, align=ALIGN, tune=TUNE, name="phased.json"):
        return self.write(name, {**self.base, "phases": [{"name": "align", "change": align}, {"name": "tune", "change": tune}]})

    def train(self, *arguments):
        return run(POLYPHONY, "run", *arguments, limit=240)

    def trained(self, *arguments):
        done = self.train(*arguments)
        self.assert_ok(done)
        return done

    def test_phases_are_the_runs_made_by_hand(self):
        out = self.folder / "out"
        done = self.trained(self.phased(), "--out", out, "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual([(p["phase"], p["steps"]) for p in answer["phases"]], [("align", 4), ("tune", 6)])
        self.assertEqual((harness.checkpoints(out / "align"), harness.checkpoints(out / "tune")), ([4], [6]))
        align, tune = self.folder / "align", self.folder / "tune"
        self.trained(self.write("align.json", merged(self.base, ALIGN)), "--out", align)
        self.trained(self.write("tune.json", merged(self.base, TUNE)), "--out", tune, "--weights-from", align)
        self.assertEqual(len(harness.losses(out / "align")), 4)
        self.assertEqual(harness.losses(out / "align"), harness.losses(align))
        self.assertEqual(len(harness.losses(out / "tune")), 6)
        self.assertEqual(harness.losses(out / "tune"), harness.losses(tune))
        # A run that begins with the published weights has other losses: those of the vision encoder at random.
        plain = self.folder / "plain"
        self.trained(self.folder / "tune.json", "--out", plain)
        self.assertNotEqual(harness.losses(plain)[0], harness.losses(tune)[0])
        # One phase after the other, by name; the second finds the first in the same folder.
        parts = self.folder / "parts"
        early = self.train(self.phased(), "--phase", "tune", "--out", parts)
        self.assert_one_line(early, "phase \"align\", with whose parameters \"tune\" begins, has not ended", parts / "align")
        self.trained(self.phased(), "--phase", "align", "--steps", 2, "--out", parts)
        self.assert_one_line(self.train(self.phased(), "--phase", "tune", "--out", parts), "has not ended")
        self.trained(self.phased(), "--phase", "align", "--out", parts, "--resume")
        self.trained(self.phased(), "--phase", "tune", "--out", parts)
        self.assertEqual(harness.losses(parts / "tune"), harness.losses(tune))
        # Both are runs as any other.
        self.assert_ok(run(POLYPHONY, "export", out / "tune", "--hf", self.folder / "exported", "--merge"))
        self.assert_one_line(run(POLYPHONY, "export", out, "--hf", self.folder / "other"), "holds the phases align, tune", out / "tune")

    def test_another_layout_takes_over_the_same_weights(self):
        """The first loss of phase 2 depends on what was taken over, not on the layout; with all of the language module trained."""
        full = merged(TUNE, {"model": {"language": {"train": None, "lora_rank": None}}, "training": {"steps": 2}})
        first = {}
        for name, grid in (("pp2", {"tp": None, "pp": 2}), ("tp2", {"pp": None, "tp": 2}), ("dp2", {"tp": None, "pp": None, "shard": "full"})):
            change = merged(full, {"layout": {"all": grid}})
            out = self.folder / name
            self.trained(self.phased(tune={**change, "layout": {"all": grid}}), "--out", out)
            first[name] = harness.losses(out / "tune")[0]
        for loss in first.values():
            self.assertAlmostEqual(loss, first["pp2"], delta=1e-5 * first["pp2"])

    def test_a_killed_run_continues_in_its_phase(self):
        steps = 250  # a machine that is busy elsewhere sees the checkpoint and the kill a hundred steps late
        tune = merged(TUNE, {"training": {"steps": steps}})
        whole = self.folder / "whole"
        scenario = self.phased(tune=tune)
        self.trained(scenario, "--out", whole)
        for number, every in enumerate(("0.05", "1000")):  # killed after a checkpoint, and before the first one
            out = self.folder / f"killed-{number}"
            process = self.start(POLYPHONY, "run", scenario, "--out", out, "--checkpoint-every", every)
            harness.wait_until(lambda: len(harness.losses(out / "tune")) > 5 and (every == "1000" or harness.checkpoints(out / "tune")), 120, "steps of phase 2")
            process.kill()
            process.communicate()
            self.assertLess(len(harness.losses(out / "tune")), steps, "the kill came too late")
            done = self.trained(scenario, "--out", out, "--resume")
            self.assertIn("run: phase align has ended", done.stderr)
            for phase in ("align", "tune"):
                self.assertEqual(harness.losses(out / phase), harness.losses(whole / phase))
            again = self.trained(scenario, "--out", out, "--auto-resume", "--format", "json")  # there is nothing left to do
            self.assertEqual([p["ended_before"] for p in json.loads(again.stdout)["phases"]], [True, True])

    def test_ctrl_c_ends_the_run_and_resume_continues(self):
        scenario = self.phased(align=merged(ALIGN, {"training": {"steps": 250}}))
        whole, out = self.folder / "whole", self.folder / "out"
        self.trained(scenario, "--out", whole)
        process = self.start(POLYPHONY, "run", scenario, "--out", out)
        harness.wait_until(lambda: len(harness.losses(out / "align")) > 5, 120, "steps of phase 1")
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, 60)
        self.assertEqual(process.returncode, 1, err)
        self.assertFalse((out / "tune").exists())
        self.trained(scenario, "--out", out, "--resume")
        for phase in ("align", "tune"):
            self.assertEqual(harness.losses(out / phase), harness.losses(whole / phase))

    def test_a_phase_that_stops_by_itself_has_ended(self):
        """A phase that --stop-patience ends early is recorded as ended, and is not trained further."""
        lines = (self.folder / "chat.jsonl").read_text().splitlines()
        (self.folder / "held.jsonl").write_text("\n".join(lines[:4]))
        self.base["data"]["source"]["held_out"] = "held.jsonl"
        scenario, out = self.phased(tune=merged(TUNE, {"training": {"learning_rate": 0}})), self.folder / "out"
        options = ["--out", out, "--evaluate-every", 2, "--stop-patience", 1]
        self.trained(scenario, *options)
        self.assertEqual(harness.checkpoints(out / "tune"), [4])  # a learning rate of 0 never improves
        done = self.trained(scenario, *options, "--resume")
        self.assertIn("phase tune has ended", done.stderr)

    def test_what_would_be_lost_or_stale_is_refused(self):
        out = self.folder / "out"
        joint = merged(TUNE, {"model": {"language": {"train": None, "lora_rank": None}}, "training": {"steps": 2}})
        lora = {"model": {"language": {"train": "lora", "lora_rank": 4}}, "training": {"steps": 2}}
        scenario = self.phased(align=joint, tune=lora)
        self.trained(scenario, "--out", out)
        # An adapter would be added to the published weights, which the first phase has changed.
        adapter = run(POLYPHONY, "export", out / "tune", "--hf", self.folder / "adapter")
        self.assert_one_line(adapter, "differs from", "to which an adapter of language would be added", "--merge")
        # A phase that has ended stays as it is.
        before = harness.losses(out / "align")
        self.assertIn("phase align has ended", self.trained(scenario, "--phase", "align", "--out", out, "--resume").stderr)
        self.assertEqual(harness.losses(out / "align"), before)
        # --fresh does not remove what it is to begin with.
        fresh = self.train(scenario, "--out", out, "--fresh", "--weights-from", out / "tune")
        self.assert_one_line(fresh, "names phase \"tune\", which --fresh removes")
        self.assertEqual(harness.checkpoints(out / "tune"), [2])
        # Evaluations of any phase need samples, before the first one trains.
        other = self.train(self.phased(), "--out", self.folder / "other", "--evaluate-every", "1")
        self.assert_one_line(other, "has no held-out samples to evaluate on")
        self.assertFalse((self.folder / "other/align/checkpoints").exists())

    def test_refusals(self):
        scenario, out = self.phased(), self.folder / "out"
        for options, words in ((["--keep-checkpoints", 0], ["--keep-checkpoints", "must be at least 1"]), (["--steps", 3], ["--steps", "--phase NAME"]),
                               (["--resume"], ["holds no phase to continue"]), (["--phase", "tun"], ["did you mean \"tune\"?"]),
                               (["--weights-from", self.folder], ["has no checkpoint of a run"])):
            self.assert_one_line(self.train(scenario, "--out", out, *options), *words)
            self.assertEqual(harness.checkpoints(out / "align"), [])
        for command in ("plan", "simulate", "why", "rehearse", "launch"):
            more = ["--slurm"] if command == "launch" else []
            self.assert_one_line(run(POLYPHONY, command, scenario, *more), "/phases: the scenario has the phases align, tune", "--phase align")
            if command == "plan":
                self.assert_ok(run(POLYPHONY, command, scenario, "--phase", "tune"))
        self.assert_one_line(run(WORKER, scenario), "the scenario has the phases align, tune")
        self.assert_ok(run(POLYPHONY, "validate", scenario))
        lost = self.phased(align=TUNE, tune=ALIGN, name="lost.json")
        for command in (["validate", lost], ["sweep", lost], ["run", lost, "--out", out]):
            self.assert_one_line(run(POLYPHONY, *command), "/phases/1/change/model/language", "cannot begin with the parameters of phase \"align\"", "--merge")
        self.assertFalse((out / "align").exists())
        wrong = self.phased(tune=merged(TUNE, {"trainin": {}}), name="wrong.json")
        self.assert_one_line(run(POLYPHONY, "validate", wrong), wrong, "/phases/1/change/trainin", "training")
        # A layout that the machine cannot run in phase 2 is refused before phase 1 is trained.
        large = self.phased(tune=merged(TUNE, {"cluster": {"ranks": 512}, "data": {"global_batch": 1024}, "layout": None, "search": {}}), name="large.json")
        done = self.train(large, "--out", out)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("in phase \"tune\"", done.stderr)
        self.assertFalse((out / "align").exists())

    def test_other_scenarios_in_the_same_folder_are_refused(self):
        out = self.folder / "out"
        self.trained(self.phased(), "--out", out)
        self.assert_one_line(self.train(self.phased(), "--out", out), "belongs to an earlier run", out / "align")
        changed = self.phased(align=merged(ALIGN, {"training": {"learning_rate": 0.5}}))
        self.assert_one_line(self.train(changed, "--out", out, "--resume"), out / "align", "training.learning_rate was 0.01, is 0.5")
        longer = self.phased(align=merged(ALIGN, {"training": {"steps": 9}}))
        self.assert_one_line(self.train(longer, "--out", out, "--resume"), out / "tune", "has begun with earlier parameters of phase \"align\"")
        self.assert_one_line(self.train(longer, "--out", out, "--resume", "--phase", "align"), out / "tune")
        before = harness.losses(out / "tune")
        self.trained(longer, "--out", out, "--fresh")
        self.assertEqual((len(harness.losses(out / "align")), len(harness.losses(out / "tune"))), (9, 6))
        self.assertNotEqual(harness.losses(out / "tune"), before)

    def test_scripts_start_one_phase(self):
        scenario, out = self.phased(), self.folder / "out"
        whole = self.folder / "whole"
        self.trained(scenario, "--out", whole)
        for phase in ("align", "tune"):
            done = run(POLYPHONY, "launch", scenario, "--phase", phase, "--torchrun", "--run", out)
            self.assert_ok(done)
            command = done.stdout.replace("\\\n", " ").splitlines()[-1]
            words = command[command.index("polyphony-worker"):].split()[1:]
            self.assertEqual(words.count("--weights-from"), 1 if phase == "tune" else 0)
            port = harness.free_port()
            ranks = [self.start(WORKER, *words, "--rank", r, "--world-size", 2, "--master", f"127.0.0.1:{port}") for r in range(2)]
            for rank in ranks:
                _, err = self.finish(rank, 120)
                self.assertEqual(rank.returncode, 0, err)
            self.assertEqual(harness.losses(out / phase), harness.losses(whole / phase))

    def test_a_sweep_answers_each_phase_and_all(self):
        base = {**self.base, "data": {"source": "synthetic", "images": {"per_sample": 1}, "text": {"tokens": 8, "loss_tokens": 4}, "sequence": 48, "global_batch": 4},
                "cluster": {**self.base["cluster"], "price": "0.5USD/GPUh"}}
        scenario = self.write("priced.json", {**base, "phases": [{"name": "align", "change": ALIGN}, {"name": "tune", "change": TUNE}]})
        done = run(POLYPHONY, "sweep", scenario, "--estimate", "--format", "json", limit=120)
        self.assert_ok(done)
        answer = json.loads(done.stdout)
        schema = json.loads(run(POLYPHONY, "schema", "phases").stdout)
        self.assertEqual(schemas.faults(answer, schema, schema), [])
        for phase, steps in zip(answer["phases"], (4, 6)):
            self.assertEqual(phase["steps"], steps)
            self.assertEqual(phase["step_seconds"], phase["sweep"]["ranked"][0]["step_seconds"])
            self.assertAlmostEqual(phase["days"], phase["step_seconds"] * steps / 86400)
            self.assertAlmostEqual(phase["rank_hours"], phase["days"] * 24 * 2)
            self.assertAlmostEqual(phase["dollars"], phase["rank_hours"] * 0.5)
            alone = json.loads(run(POLYPHONY, "sweep", scenario, "--phase", phase["phase"], "--estimate", "--format", "json", limit=120).stdout)
            self.assertEqual(alone["ranked"][0]["step_seconds"], phase["step_seconds"])
        self.assertAlmostEqual(answer["days"], sum(p["days"] for p in answer["phases"]))
        self.assertAlmostEqual(answer["dollars"], sum(p["dollars"] for p in answer["phases"]))
        text = run(POLYPHONY, "sweep", scenario, "--estimate", "--top", 2, limit=120)
        self.assert_ok(text)
        for part in ("phase align (1 of 2)", "phase tune (2 of 2)", "The best layout of each phase", "rank hours", "USD", "one phase after the other"):
            self.assertIn(part, text.stdout)
        for option in (["--journal", self.folder / "j"], ["--vary", "data.global_batch=4,8"], ["--report", self.folder / "p.html"], ["--format", "csv"]):
            self.assert_one_line(run(POLYPHONY, "sweep", scenario, *option), option[0], "add --phase align")
        self.assert_ok(run(POLYPHONY, "sweep", scenario, "--phase", "tune", "--estimate", "--vary", "data.global_batch=4,8", limit=120))


if __name__ == "__main__":
    harness.main()
