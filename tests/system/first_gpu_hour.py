#!/usr/bin/env python3
"""scripts/first_gpu_hour without a GPU: skipped parts, written files, and that everything it would run on a GPU exists."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys
import tarfile
import tempfile
import types
import unittest

import harness
from harness import BUILD, POLYPHONY, ROOT, environment, run

SCRIPT = ROOT / "scripts/first_gpu_hour"


def script():
    loader = importlib.machinery.SourceFileLoader("first_gpu_hour", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class FirstGpuHour(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_without_a_gpu_it_skips_with_a_reason_and_writes_an_archive(self):
        parts = script().PARTS
        done = run(sys.executable, SCRIPT, "--build", BUILD, "--out", self.folder / "hour", env=environment(PATH="/nowhere"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in parts:
            self.assertRegex(done.stdout, rf"\| {part} \| skipped \| \d+ \| no GPU \|")
        with tarfile.open(self.folder / "hour.tar.gz") as archive:
            self.assertEqual(archive.extractfile("hour/summary.md").read().decode().strip(), done.stdout[:done.stdout.rindex("|") + 1].strip())

    def test_a_failed_part_is_reported_and_the_next_one_still_runs(self):
        done = run(sys.executable, SCRIPT, "--build", self.folder, "--out", self.folder / "hour", "--only", "queued,train", env=environment(PATH="/nowhere"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\| queued \| FAILED \| \d+ \| FileNotFoundError: .*exec_test.*\|\n\| train \| skipped ")
        # Results are kept: the next call has nothing to do, and --again repeats all.
        calls = {"": 0, "--again": len(script().PARTS)}
        run(sys.executable, SCRIPT, "--build", self.folder, "--out", self.folder / "kept", env=environment(PATH="/nowhere"))
        for option, parts in calls.items():
            done = run(sys.executable, SCRIPT, "--build", self.folder, "--out", self.folder / "kept", *filter(None, [option]), env=environment(PATH="/nowhere"))
            self.assertEqual(done.stderr.count(" skipped "), parts)
            self.assertEqual(done.stdout.count("| skipped |"), len(script().PARTS))
        done = run(sys.executable, SCRIPT, "--only", "nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no part nothing", done.stderr)

    def test_a_part_that_the_budget_cuts_off_runs_again_in_the_next_call(self):
        build = self.folder / "build"
        build.mkdir()
        test = build / "exec_test"
        for seconds, state, code in ((60, "cut off", 4), (0, "ok", 0)):
            test.write_text(f"#!/bin/sh\n/bin/sleep {seconds}\necho 'assertions: 3 | 3 passed'\n")
            test.chmod(0o755)
            done = run(sys.executable, SCRIPT, "--build", build, "--out", self.folder / "hour", "--only", "queued", "--budget", "0.02")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(f"| queued | {state} |", done.stdout)
            with tarfile.open(self.folder / "hour.tar.gz") as archive:
                self.assertIn(state, archive.extractfile("hour/state.json").read().decode())

    def test_everything_it_runs_on_gpus_exists(self):
        module = script()
        suites = run(BUILD / "exec_test", "--list-test-suites").stdout
        seen, helps = [], {}

        class Hour(module.Hour):
            @staticmethod
            def list_gpus():
                return ["NVIDIA H100 80GB HBM3, 81559 MiB, 580.95, 9.0"] * 8

            def call(hour, log, *command, variables=None):
                words = [str(word) for word in command]
                seen.append(words)
                program = pathlib.Path(words[0]).name
                if program == "exec_test":
                    suite = words[1].removeprefix("--test-suite=")
                    self.assertIn(f"\n{suite}\n", suites)
                    # As doctest ends: it always counts skipped tests.
                    said = "assertions: 7 | 7 passed | 0 failed\n[doctest] test cases: 1 | 1 passed | 0 failed | 133 skipped\n"
                    (hour.out / f"{log}.log").write_text(said)
                    return said
                if program == "polyphony" and words[1] != "simulate":
                    text = helps.setdefault(words[1], run(POLYPHONY, words[1], "--help").stdout)
                    for word in words[2:]:
                        if word.startswith("--"):
                            self.assertIn(f" {word} ", text)
                    return hour.as_if_run(words) if words[1] == "run" else hour.as_if_fitted(words)
                if program == "nvidia-smi":
                    return ""
                if program == "true":
                    self.assertTrue(pathlib.Path(words[words.index("--trace") + 1]).is_dir())
                    return hour.as_if_timed(words)
                self.assertIn(program, ("polyphony", "polyphony-worker"))
                done = run(*(word for word in words if not word.endswith("calibrated.json") and word != "--profile"))
                self.assertEqual(done.returncode, 0, done.stderr)
                return done.stderr + done.stdout

            def as_if_run(hour, words):
                """A GPU that slows down by a fifth after half of the steps; recording costs 2 % of a step."""
                of = lambda option: words[words.index(option) + 1]
                first, last = map(int, of("--trace-steps").split(":"))
                folder, steps = pathlib.Path(of("--out")), int(of("--steps"))
                folder.mkdir(parents=True)
                self.assertEqual(of("--keep-checkpoints"), "0")
                lines = ({"step": k, "seconds": (1.0 if k < module.WARM + module.HALF else 1.2) * (1.02 if first <= k < last else 1)} for k in range(steps))
                model = json.loads(pathlib.Path(words[2]).read_text()).get("model", {})
                if name := next((name for name in ("vision", "language") if "layers" in model.get(name, {})), None):
                    # Forward 10 ms plus 1 ms per layer, backward twice as much.
                    events = [{"cat": "kernel", "dur": times * (10e3 + 1e3 * model[name]["layers"]), "args": {"module": name, "phase": phase}}
                              for phase, times in (("forward", 1), ("backward", 2), ("update", 9))]
                    (folder / "trace").mkdir()
                    (folder / "trace/step-9.rank-0.json").write_text(json.dumps({"traceEvents": [{"ph": "M"}, *events]}))
                (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
                return ""

            def as_if_fitted(hour, words):
                return ""

            def as_if_timed(hour, words):
                """4 layers on 8,192 tokens in 16.384 ms: 4.096 ms each, 2,000,000 tokens/s; 8.192e12 FLOPs: 500 TFLOP/s."""
                text = pathlib.Path(words[1]).read_text()
                for word in words[2:]:
                    if word.startswith("--"):
                        self.assertIn(f'add_argument("{word}"', text)
                for name in module.BLOCKS:
                    self.assertIn(f'"{name}"', text)
                columns = re.search(r'"(part,name,[\w,]+)\\n"', text).group(1)
                (hour.out / "blocks.csv").write_text(f"# part blocks: ok, 1 s\n{columns}\nblock,llama_8b_eager,forward,1,8192,64,1,4,0.1,0,1,1\n"
                                                     "block,llama_8b_eager,both,1,8192,64,1,4,0.016384,0,8.192e12,1\n"
                                                     "block,llama_8b_eager,both,2,8192,64,1,4,0.1,0,1,1\n")
                return ""

        hour = Hour(types.SimpleNamespace(build=BUILD, out=self.folder / "hour", python="true", minutes=1, budget=0))
        said = {}
        for part in module.PARTS + module.ON_REQUEST:
            try:
                said[part] = getattr(hour, part)()
            except module.Skipped as why:
                said[part] = f"skipped: {why}"
        self.assertEqual([part for part, text in said.items() if text.startswith("skipped")], [])
        self.assertEqual(said["blocks"], "llama_8b eager 4.096 ms (2,000,000 tokens/s, 500 TFLOP/s)")
        # 3 ms per layer. A layer of Llama-3.1-8B at 989 TFLOP/s: 3 * (2 * 8192 * 218.1e6 + 4 * 8192 * 4096 * 8192 / 2) = 1.237e13 FLOPs, 12.5 ms.
        self.assertRegex(said["own_blocks"], r"; llama_8b 3\.000 ms \(2,730,667 tokens/s, MFU 41[67]\.\d%, PyTorch eager 1\.37 times as long\); vit_1b_no_dropout 3\.000 ms \(")
        self.assertRegex(said["machine"], r"^8 × NVIDIA H100.*; polyphony-worker: ")
        self.assertEqual(said["recording"], "recorded steps take +2.00% (goal: under 1 %)")
        for part in ("train", "calibrate"):
            self.assertRegex(said[part], r"^llama-1b 1020\.0 ms \([\d,]+ tokens/s of a GPU, MFU \d+\.\d%\), predicted \d+\.\d ms \([+-]\d+\.\d%\); llama-8b-4-layers 1020\.0 ms ")
        self.assertEqual([part.split()[0] for part in said["pipeline"].split("; ")], ["pipeline2", "pipeline4", "pipeline8"])
        self.assertEqual([part.split()[0] for part in said["layouts"].split("; ")],
                         ["data_parallel", "zero1", "zero3", "tensor_parallel", "tensor_and_pipeline", "interleaved"])
        self.assertEqual(sum("calibrated.json" in " ".join(words) for words in seen), 3)  # the fit, and two predictions with it


if __name__ == "__main__":
    harness.main()
