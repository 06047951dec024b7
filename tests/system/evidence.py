"""Step times of other frameworks: calibrate, watch, profile show|diff|merge|check, on logs with known steps."""
import json
import math
import signal
import time

import harness
from harness import POLYPHONY, ROOT, SCENARIOS, run

SAMPLES, TOKENS, RANKS = 32, 4096, 8


def megatron(step, seconds):
    return (f" [2026-04-13 23:41:12] iteration {step:8d}/    1000 | consumed samples: {SAMPLES * step} | "
            f"elapsed time per iteration (ms): {seconds * 1e3:.4f} | learning rate: 1.5E-04 | global batch size: {SAMPLES:5d} | "
            "lm loss: 1.047E+01 | loss scale: 1.0 | grad norm: 2.918 | number of skipped iterations:   0 |\n")


def torchtitan(step, seconds):
    return (f"[rank0]:[titan] 2026-04-13 23:41:12,123 - root - INFO - step: {step:2d}  loss:  8.1200  memory: 47.93GiB(50.47%)  "
            f"tps: {SAMPLES * TOKENS / RANKS / seconds:.4f}  tflops: 295.44  mfu: 29.87%\n")


def deepspeed(step, seconds, phases=None):
    line = (f"[2026-04-13 23:41:12,123] [INFO] [timer.py:260:stop] epoch=0/micro_step={step}/global_step={step}, "
            f"RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec={SAMPLES / seconds:.6f}, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n")
    if phases:
        line = "[Rank 0] time (ms) | " + " | ".join(f"{k}: {v * 1e3:.2f}" for k, v in phases.items()) + "\n" + line
    return line


WRITERS = {"Megatron-LM": megatron, "torchtitan": torchtitan, "DeepSpeed": deepspeed}


class Evidence(harness.SystemTest):
    def setUp(self):
        super().setUp()
        # Four blocks with the dimensions of Llama-3-8B on a node of eight H100.
        self.today = self.folder / "today.json"
        self.today.write_text(json.dumps({
            "polyphony": 1, "about": "made by a test", "model": {"language": {"preset": "llama-3-8b", "layers": 4}},
            "cluster": {"node": {"device": "H100", "ranks": RANKS}},
            "data": {"source": "synthetic", "text": {"tokens": TOKENS}, "sequence": TOKENS, "global_batch": SAMPLES},
            "layout": {"placement": "homogeneous", "microbatches": 8, "language": {"tp": 2, "pp": 2}},
            "training": {"precision": "bf16"}}))

    def json_of(self, *command, code=0):
        done = run(POLYPHONY, *command, "--format", "json", limit=120)
        self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout)

    def prediction(self):
        path = self.folder / "prediction.json"
        answer = self.json_of("simulate", self.today)
        path.write_text(json.dumps(answer))
        low, high = answer["chance"]["interval90_seconds"]
        return path, answer["step_seconds"], low, high

    def log(self, times, writer=megatron, name="run.log"):
        path = self.folder / name
        path.write_text("building the model ...\n" + "".join(writer(i + 1, t) for i, t in enumerate(times)))
        return path


class Calibrate(Evidence):
    def test_a_log_of_every_framework_moves_the_prediction_to_its_step(self):
        _, predicted, _, _ = self.prediction()
        measured = 1.1 * predicted
        # The first line includes compilation; line 15 a checkpoint.
        times = [5 * measured] + [measured] * 13 + [3 * measured] + [measured] * 15
        after = {}
        for framework, writer in WRITERS.items():
            with self.subTest(framework):
                out = self.folder / f"{framework}.json"
                log = self.log(times, writer, framework + ".log")
                answer = self.json_of("calibrate", log, "--scenario", self.today, "--out", out)
                row, = answer["evidence"]
                self.assertEqual(row["source"], str(log))
                self.assertAlmostEqual(row["measured_seconds"] / measured, 1, delta=1e-5)  # digits of the log
                self.assertAlmostEqual(row["before_seconds"] / predicted, 1, delta=0.01)  # estimate compared with simulation
                error = {k: abs(math.log(row[k + "_seconds"] / measured)) for k in ("before", "after")}
                # Part of the error stays: the part that no parameter explains belongs to each layout.
                self.assertLess(error["after"], 0.6 * error["before"])
                self.assertFalse(row["outlier"])
                self.assertTrue(any(p["moved"] for p in answer["errors"]))
                after[framework] = row["after_seconds"]
                again = self.json_of("simulate", self.today, "--profile", out)["step_seconds"]
                self.assertAlmostEqual(again / row["after_seconds"], 1, delta=0.01)
        self.assertAlmostEqual(after["torchtitan"] / after["Megatron-LM"], 1, delta=1e-4)
        self.assertAlmostEqual(after["DeepSpeed"] / after["Megatron-LM"], 1, delta=1e-4)

    def test_a_step_time_an_evidence_file_and_a_log_give_the_same_result(self):
        _, predicted, _, _ = self.prediction()
        measured = round(1.1 * predicted, 6)
        self.log([measured] * 20)
        entries = self.folder / "evidence.json"
        entries.write_text(json.dumps({"evidence": 1, "runs": [{"scenario": "today.json", "log": "run.log"}]}))
        by_log = self.json_of("calibrate", entries)["evidence"][0]["after_seconds"]
        entries.write_text(json.dumps({"evidence": 1, "runs": [{"scenario": "today.json", "step_time": f"{measured}s"}]}))
        by_file = self.json_of("calibrate", entries)["evidence"][0]["after_seconds"]
        by_hand = self.json_of("calibrate", "--scenario", self.today, "--step-time", f"{measured}s")["evidence"][0]["after_seconds"]
        self.assertAlmostEqual(by_log / by_hand, 1, delta=1e-5)
        self.assertAlmostEqual(by_file / by_hand, 1, delta=1e-9)
        table = run(POLYPHONY, "calibrate", "--scenario", self.today, "--step-time", f"{measured}s")
        self.assert_ok(table)
        self.assertIn("--step-time", table.stdout)

    def test_a_profile_that_another_program_recorded(self):
        """Four blocks of Llama-8B in eager PyTorch on an H100; the model's head is made small, the profile has none."""
        profile = ROOT / "traces/samples/llama_8b_eager.json.gz"
        blocks = json.loads(self.today.read_text())
        blocks["model"]["language"]["vocab"] = 32
        blocks["cluster"]["node"]["ranks"] = 1
        blocks["data"].update({"text": {"tokens": 8192}, "sequence": 8192, "global_batch": 1})
        blocks["layout"] = {"placement": "homogeneous", "microbatches": 1, "language": {"tp": 1}}
        (self.folder / "blocks.json").write_text(json.dumps(blocks))
        ours = self.folder / "ours.json"
        command = ["calibrate", profile, "--scenario", self.folder / "blocks.json", "--stack", "hf-eager"]
        answer = self.json_of(*command, "--out", ours)
        kernels = {row["kernels"]: row for row in answer["kernels"]}
        self.assertEqual(list(kernels), ["GEMMs", "attention forward", "attention backward", "memory-bound kernels"])
        for row in kernels.values():
            self.assertAlmostEqual(row["after_seconds"] / row["measured_seconds"], 1, delta=0.01)
        # 4 blocks: 7 GEMMs forward, 14 backward. Their times as `polyphony trace` adds them up.
        self.assertEqual(kernels["GEMMs"]["count"], 84)
        self.assertAlmostEqual(kernels["GEMMs"]["measured_seconds"], 120.35e-3 / 2, delta=5e-5)
        self.assertAlmostEqual(kernels["attention forward"]["measured_seconds"] + kernels["attention backward"]["measured_seconds"],
                               34.97e-3 / 2, delta=2e-5)
        self.assertIn("fprop", kernels["attention forward"]["longest"])
        # The profile has no optimizer, so its step is no step time.
        self.assertEqual(answer["evidence"][0]["measured_seconds"], 0)
        simulated = [self.json_of("simulate", self.today, *words)["step_seconds"] for words in ([], ["--profile", ours])]
        self.assertNotEqual(*simulated)
        text = run(POLYPHONY, *command)
        self.assert_ok(text)
        self.assertIn("has no kernels of the kind: optimizer", text.stderr)
        # By an evidence file it is the same; of another batch only the rates of GEMMs are used.
        entries = self.folder / "evidence.json"
        entries.write_text(json.dumps({"evidence": 1, "runs": [{"scenario": "blocks.json", "profiles": [str(profile)]}]}))
        self.assertEqual(self.json_of("calibrate", entries, "--stack", "hf-eager")["kernels"],
                         answer["kernels"])
        blocks["data"]["global_batch"] = 2
        (self.folder / "blocks.json").write_text(json.dumps(blocks))
        other = run(POLYPHONY, *command, "--format", "json")
        self.assert_ok(other)
        self.assertIn("0.50 times the FLOPs of", other.stderr)
        self.assertEqual([row["kernels"] for row in json.loads(other.stdout)["kernels"]], ["GEMMs"])
        self.assert_one_line(run(POLYPHONY, "calibrate", profile), profile, "needs its scenario", "--scenario")
        blocks["cluster"]["node"]["device"] = "B200"
        (self.folder / "blocks.json").write_text(json.dumps(blocks))
        self.assert_one_line(run(POLYPHONY, *command), profile, "was recorded on NVIDIA H100 80GB HBM3, but the profile is of B200")
        self.assert_one_line(run(POLYPHONY, "calibrate", self.folder / "missing.nsys-rep"), self.folder / "missing.nsys-rep", "no such file")

    def test_bad_input(self):
        _, predicted, _, _ = self.prediction()
        log = self.log([predicted] * 20)
        calibrate = [POLYPHONY, "calibrate"]
        scenario = ["--scenario", self.today]
        self.assert_one_line(run(*calibrate), "needs a run, a log, a profile, an evidence file or --step-time")
        self.assert_one_line(run(*calibrate, log), log, "needs its scenario", "--scenario")
        self.assert_one_line(run(*calibrate, "--step-time", "2s"), "--step-time", "needs its scenario")
        self.assert_one_line(run(*calibrate, *scenario, "--step-time", "2"), "--step-time", "no unit")
        self.assert_one_line(run(*calibrate, *scenario, "--step-time", "-2s"), "--step-time", "is negative")
        self.assert_one_line(run(*calibrate, *scenario, "--step-time", "0s"), "--step-time", "must be above 0")
        self.assert_one_line(run(*calibrate, self.folder / "missing.log", *scenario), self.folder / "missing.log")
        self.assert_one_line(run(*calibrate, log, "--scenario", self.folder / "missing.json"), self.folder / "missing.json")
        words = self.folder / "words.log"
        words.write_text("nothing of a step\n" * 3)
        self.assert_one_line(run(*calibrate, words, *scenario), words)
        both = self.folder / "both.log"
        both.write_text(log.read_text() + "".join(torchtitan(i, predicted) for i in range(5)))
        self.assert_one_line(run(*calibrate, both, *scenario), f"{both}:22")  # 21 lines before
        entries = self.folder / "evidence.json"
        for runs, pointer in (([{"scenario": "today.json"}], "/runs/0"),
                              ([{"scenario": "today.json", "step_time": "1s"}, {"scenario": "today.json", "step_time": 2}], "/runs/1/step_time"),
                              ([{"scenario": "today.json", "step_time": "1s", "nois": 1}], "/runs/0")):
            with self.subTest(pointer):
                entries.write_text(json.dumps({"evidence": 1, "runs": runs}))
                self.assert_one_line(run(*calibrate, entries), entries, pointer)
        batch = self.log([predicted] * 20, lambda i, t: megatron(i, t).replace("size:    32", "size:    64"), "batch.log")
        self.assert_one_line(run(*calibrate, batch, *scenario), batch, "64", "32")


class Watch(Evidence):
    def test_a_job_that_leaves_its_interval_at_a_known_step(self):
        prediction, predicted, _, high = self.prediction()
        # A warm-up line, inside the interval until step 40, then 1.5 times its upper end: at step 48, 8 of 10 are outside.
        log = self.log([3 * predicted] + [predicted] * 39 + [1.5 * high] * 20)
        answer = self.json_of("watch", log, "--prediction", prediction, "--once", code=1)
        left, = [e for e in answer["events"] if e["what"] == "left"]
        self.assertEqual((left["step"], left["told"]), (41, 48))
        self.assertAlmostEqual(left["ratio"], 1.5 * high / predicted, delta=1e-3)
        self.assertTrue(answer["left"] and answer["outside"])
        self.assertEqual((answer["steps"], answer["warm_up"]), (60, 1))
        drifted, = [e for e in answer["events"] if e["what"] == "drifted"]
        self.assertEqual(drifted["step"], 41)
        text = run(POLYPHONY, "watch", log, "--prediction", prediction, "--once")
        self.assertEqual(text.returncode, 1)
        self.assertRegex(text.stdout, r"step 41: LEFT the predicted interval, \+\d+.* \(detected at step 48\)")
        self.assertTrue(text.stdout.endswith("outside\n"), text.stdout)

    def test_a_job_that_stays_inside_and_one_that_returns(self):
        prediction, predicted, _, high = self.prediction()
        for framework, writer in WRITERS.items():
            with self.subTest(framework):
                log = self.log([3 * predicted] + [predicted] * 59, writer, framework + ".log")
                more = ["--batch", SAMPLES] if framework == "DeepSpeed" else []
                answer = self.json_of("watch", log, "--prediction", prediction, "--once", *more)
                self.assertEqual((answer["left"], answer["events"], answer["steps"]), (False, [], 60))
                self.assertAlmostEqual(answer["step_seconds"] / predicted, 1, delta=1e-4)
        back = self.log([predicted] * 30 + [1.5 * high] * 15 + [predicted] * 15)
        answer = self.json_of("watch", back, "--prediction", prediction, "--once", code=1)
        self.assertEqual([e["what"] for e in answer["events"] if e["what"] in ("left", "back")], ["left", "back"])
        self.assertFalse(answer["outside"])

    def test_the_phase_that_grew_is_named(self):
        prediction, predicted, _, high = self.prediction()
        slow = 1.5 * high
        calm = {"fwd": 0.3 * predicted, "bwd": 0.65 * predicted, "bwd_inner": 0.65 * predicted, "bwd_allreduce": 0, "step": 0.05 * predicted}
        busy = {**calm, "bwd": calm["bwd"] + slow - predicted, "bwd_allreduce": slow - predicted}
        log = self.log([predicted] * 30 + [slow] * 12,
                       lambda i, t: deepspeed(i, t, busy if t == slow else calm))
        answer = self.json_of("watch", log, "--prediction", prediction, "--once", "--batch", SAMPLES, code=1)
        self.assertEqual([e["phase"] for e in answer["events"] if e["what"] == "left"], ["all-reduce"])

    def test_a_truncated_log(self):
        prediction, predicted, _, _ = self.prediction()
        log = self.log([predicted] * 30)
        text = log.read_text()
        last = text.rindex(" [2026")
        inside = text.index("(ms): ", last) + len("(ms): ")
        for cut in (last + 20, inside, inside + 2, inside + len(f"{predicted * 1e3:.4f}") + 2):
            with self.subTest(cut - last):
                log.write_text(text[:cut])
                answer = self.json_of("watch", log, "--prediction", prediction, "--once")
                self.assertEqual(answer["steps"], 30 if cut > inside + 2 else 29)
                self.assertAlmostEqual(answer["step_seconds"] / predicted, 1, delta=1e-4)
                # A truncated number is not a step time.
                row, = self.json_of("calibrate", log, "--scenario", self.today)["evidence"]
                self.assertAlmostEqual(row["measured_seconds"] / predicted, 1, delta=1e-4)
        # The truncated number never counts as a step.
        log.write_text(text[:text.index("(ms): ") + len("(ms): ") + 2])
        self.assert_one_line(run(POLYPHONY, "watch", log, "--prediction", prediction, "--once"), log)

    def test_a_log_that_grows_until_ctrl_c(self):
        prediction, predicted, _, high = self.prediction()
        log = self.folder / "growing.log"
        log.write_text("building the model ...\n")
        process = self.start(POLYPHONY, "watch", log, "--prediction", prediction)
        lines = [megatron(i + 1, predicted if i < 20 else 1.5 * high) for i in range(40)]
        with log.open("a") as growing:
            for i in range(0, 40, 8):
                half = len(lines[i]) // 2
                growing.write("".join(lines[i:i + 7]) + lines[i + 7][:half])
                growing.flush()
                time.sleep(0.7)  # longer than its polling interval: it reads half a line
                growing.write(lines[i + 7][half:])
                growing.flush()
        time.sleep(1.2)
        self.assertIsNone(process.poll(), "it follows until it is told to end")
        process.send_signal(signal.SIGINT)
        out, err = self.finish(process, 20)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(out, r"step 21: LEFT .*\(detected at step 28\)")
        self.assertIn("40 steps, ", out)
        self.assertEqual(err, "")
        # Inside, with none of its steps read yet.
        calm = self.log([predicted] * 30)
        process = self.start(POLYPHONY, "watch", calm, "--prediction", prediction)
        time.sleep(1.2)
        process.send_signal(signal.SIGINT)
        out, err = self.finish(process, 20)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertTrue(out.endswith("inside\n"), out)
        self.assert_ok(run(POLYPHONY, "watch", calm, "--prediction", prediction, "--idle", "1s", limit=20))

    def test_the_end_of_a_polyphony_run_ends_the_watch(self):
        out, prediction = self.folder / "run", self.folder / "tiny.json"
        prediction.write_text(json.dumps(self.json_of("simulate", SCENARIOS / "tiny.json")))
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 30, limit=120))
        for given in (out, out / "metrics.jsonl"):
            once = [] if given == out else ["--once"]
            done = run(POLYPHONY, "watch", given, "--prediction", prediction, "--format", "json", *once, limit=20)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            self.assertEqual(json.loads(done.stdout)["steps"], 30)

    def test_bad_input(self):
        prediction, predicted, _, _ = self.prediction()
        log = self.log([predicted] * 20)
        watch = [POLYPHONY, "watch"]
        self.assert_one_line(run(*watch), "needs a run's folder or a log")
        self.assert_one_line(run(*watch, self.folder / "missing", "--prediction", prediction), self.folder / "missing")
        self.assert_one_line(run(*watch, log, "--once"), "--prediction")
        self.assert_one_line(run(*watch, log, "--once", "--prediction", log), log, "is not JSON")
        self.assert_one_line(run(*watch, log, "--once", "--prediction", self.today), self.today, "is not a prediction of a step")
        self.assert_one_line(run(*watch, log, "--once", "--prediction", prediction, "--idle", "5"), "--idle", "no unit")
        words = self.folder / "words.log"
        words.write_text("nothing of a step\n" * 3)
        self.assert_one_line(run(*watch, words, "--once", "--prediction", prediction), words)
        samples = self.log([predicted] * 20, deepspeed, "deepspeed.log")
        self.assert_one_line(run(*watch, samples, "--once", "--prediction", prediction), f"{samples}:2", "--batch")
        empty = self.folder / "empty"
        empty.mkdir()
        self.assert_one_line(run(*watch, empty, "--once", "--prediction", prediction), empty)


class Profile(Evidence):
    def calibrated(self, name, times):
        path = self.folder / name
        _, predicted, _, _ = self.prediction()
        self.assert_ok(run(POLYPHONY, "calibrate", "--scenario", self.today, "--step-time", f"{times * predicted}s", "--out", path,
                           "--name", name))
        return path

    def edited(self, name, **numbers):
        path = self.folder / name
        profile = json.loads(self.calibrated("base.json", 1.0).read_text())
        profile.update(numbers)
        path.write_text(json.dumps(profile))
        return path

    def test_show(self):
        shown = self.json_of("profile", "show", "H100")
        text = run(POLYPHONY, "profile", "show", "H100").stdout
        self.assertIn("gemm_efficiency", text)
        keys = {p["parameter"]: p for p in shown["parameters"]}
        self.assertGreater(keys["gemm_efficiency"]["value"], 0)
        ours = self.calibrated("ours.json", 1.1)
        moved = {p["parameter"]: p for p in self.json_of("profile", "show", ours)["parameters"]}
        self.assertLess(moved["gemm_efficiency"]["value"], keys["gemm_efficiency"]["value"])

    def test_a_device_file_is_shown_with_the_fit_that_it_names(self):
        values = [{p["parameter"]: p["value"] for p in self.json_of("profile", "show", name)["parameters"]}
                  for name in ("H100", SCENARIOS / "devices/h100_pcie.json")]
        self.assertEqual(values[0], values[1])
        text = run(POLYPHONY, "profile", "show", SCENARIOS / "devices/h100_pcie.json", "--stack", "megatron-core").stdout
        self.assertIn("No published measurement of H100-PCIe was available", text)
        wrong = self.folder / "wrong_gpu.json"
        wrong.write_text((SCENARIOS / "devices/h100_pcie.json").read_text().replace('"h100"', '"h1000"'))
        self.assert_one_line(run(POLYPHONY, "profile", "show", wrong), wrong, "/fit", "h1000")

    def test_diff(self):
        ours = self.calibrated("ours.json", 1.1)
        self.assertEqual(self.json_of("profile", "diff", "H100", "H100")["differences"], [])
        rows = {p["parameter"]: p for p in self.json_of("profile", "diff", "H100", ours)["differences"]}
        self.assertLess(rows["gemm_efficiency"]["second"], rows["gemm_efficiency"]["first"])
        self.assertIn("gemm_efficiency", run(POLYPHONY, "profile", "diff", "H100", ours).stdout)

    def test_merge(self):
        slow, fast, out = self.calibrated("slow.json", 1.1), self.calibrated("fast.json", 0.95), self.folder / "merged.json"
        merged = self.json_of("profile", "merge", slow, fast, "--origin", "H100", "--out", out)
        values = {name: {p["parameter"]: p["value"] for p in self.json_of("profile", "show", name)["parameters"]}
                  for name in (slow, fast, out)}
        self.assertEqual({p["parameter"]: p["value"] for p in merged["parameters"]}, values[out])
        key = "gemm_efficiency"
        self.assertLess(values[slow][key], values[out][key])
        self.assertLess(values[out][key], values[fast][key])
        self.assert_ok(run(POLYPHONY, "simulate", self.today, "--profile", out))
        self.assertIn("taken as independent", run(POLYPHONY, "profile", "merge", slow, fast, "--out", out).stdout)

    def test_check(self):
        _, predicted, _, _ = self.prediction()
        scenario = ["--scenario", self.today]
        fine = self.json_of("profile", "check", "H100", *scenario, "--step-time", f"{predicted}s")
        self.assertTrue(fine["evidence"][0]["inside90"])
        self.assertEqual(fine["implausible"], [])
        log = self.log([predicted] * 20)
        self.assertEqual(self.json_of("profile", "check", "H100", log, *scenario)["evidence"][0]["source"], str(log))
        beyond = self.json_of("profile", "check", "H100", *scenario, "--step-time", f"{20 * predicted}s", code=1)
        self.assertTrue(beyond["evidence"][0]["beyond_all"])
        slip = self.edited("slip.json", gemm_efficiency=0.01)
        lines = self.json_of("profile", "check", slip, code=1)["implausible"]
        self.assertTrue(any(line.startswith("gemm_efficiency") for line in lines), lines)
        text = run(POLYPHONY, "profile", "check", slip)
        self.assertEqual(text.returncode, 1)
        self.assertIn("implausible: gemm_efficiency", text.stdout)
        self.assertIn("every number is near", run(POLYPHONY, "profile", "check", "H100").stdout)

    def test_bad_input(self):
        profile = [POLYPHONY, "profile"]
        ours = self.calibrated("ours.json", 1.0)
        self.assert_one_line(run(*profile, "show"), "polyphony profile show", "needs 1 profile, has 0")
        self.assert_one_line(run(*profile, "diff", "H100"), "polyphony profile diff", "needs 2 profiles, has 1")
        self.assert_one_line(run(*profile, "show", "H1000"), "H1000", "H100")
        self.assert_one_line(run(*profile, "show", "H100", "--stack", "megatron"), "--stack", "megatron-core")
        self.assert_one_line(run(*profile, "show", self.folder / "missing.json"), self.folder / "missing.json")
        broken = self.folder / "broken.json"
        broken.write_text(ours.read_text()[:200])
        self.assert_one_line(run(*profile, "show", broken), broken)
        wrong = self.edited("wrong.json", gemm_efficiency="fast")
        self.assert_one_line(run(*profile, "diff", "H100", wrong), wrong, "/gemm_efficiency")
        self.assert_one_line(run(*profile, "merge", ours, ours), "--out")
        self.assert_one_line(run(*profile, "merge", ours, "H200", "--out", self.folder / "x.json"), "h200-roofline")
        self.assert_one_line(run(*profile, "check", "H200", "--scenario", self.today, "--step-time", "1s"), "H100", "H200")
        self.assert_one_line(run(*profile, "check", "H100", "--step-time", "1s"), "--step-time", "needs its scenario")


if __name__ == "__main__":
    harness.main()
