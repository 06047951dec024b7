#!/usr/bin/env python3
"""A bundle of scripts/make_gpu_bundle, unpacked where no tree is seen, rehearses the whole first hour without a GPU.

The programs are real: what is made up are nvidia-smi, the device (an emulated one) and NCCL (Gloo). Faults on the way: a part
that the budget cuts off, a call that is killed, a layout that fails, a case that takes too long. gpu_rehearsal.py BUILD
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import harness
from harness import BUILD, ROOT, wait_until

PART_MIB = 8  # several parts
LAYOUTS = ("data_parallel", "zero1", "zero2", "zero3", "tensor_parallel", "tensor_parallel_pieces", "interleaved_v2", "interleaved_v4",
           "expert_parallel", "context_all_gather", "context_ring", "context_ulysses", "vision_language_apart", "tensor_and_pipeline")
MEASURED = r"\d+\.\d ms \([\d,]+ tokens/s of a GPU, MFU \d+\.\d%, 0\.0 GiB of a GPU \(predicted \d+\.\d\)\), predicted \d+\.\d ms \([+-]\d+\.\d%\)"


def torch_of_build():
    return pathlib.Path(re.search(r"^POLYPHONY_TORCH_ROOT:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE).group(1))


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="polyphony-bundle-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.parts = cls.folder / "parts"
        done = subprocess.run([sys.executable, ROOT / "scripts/make_gpu_bundle", "--build", BUILD, "--out", cls.parts, "--part-size", str(PART_MIB)],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        cls.said = done.stdout
        cls.unpack(cls.folder / "there", sorted(cls.parts.glob("part-*.tar.gz")))
        (cls.folder / "home").mkdir()

    @staticmethod
    def unpack(where, parts):
        where.mkdir()
        for part in parts:
            with tarfile.open(part) as tar:
                tar.extractall(where)

    def environment(self, **more):
        """A machine that knows nothing of this one: neither tree, nor cache, nor this session's variables."""
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder / "home"), "TORCH_ROOT": str(torch_of_build()), **more}

    def command(self, *words, where="there"):
        return [sys.executable, str(self.folder / where / "polyphony-gpu/run"), *map(str, words)]

    def run_there(self, *words, where="there", limit=600, **more):
        return subprocess.run(self.command(*words, where=where), capture_output=True, text=True, errors="replace", timeout=limit, cwd=self.folder / where,
                              env=self.environment(**more), stdin=subprocess.DEVNULL)

    def refused(self, done, *wanted):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^run: .* \(.*\)$", "a line has to say what to do")
        for text in wanted:
            self.assertIn(text, done.stderr)

    def test_parts_are_small_whole_and_the_same_each_time(self):
        parts = sorted(self.parts.glob("part-*.tar.gz"))
        self.assertGreater(len(parts), 1)
        sums = dict(reversed(line.split("  ")) for line in (self.parts / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(sums, {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts})
        names = []
        for part in parts:
            self.assertLess(part.stat().st_size, PART_MIB << 20)
            with tarfile.open(part) as tar:
                names.append({info.name for info in tar})
                self.assertTrue({info.mtime for info in tar} == {0} and all(info.name.startswith("polyphony-gpu/") for info in tar))
        self.assertEqual(set.intersection(*names), {"polyphony-gpu/run", "polyphony-gpu/CONTENTS.json"})
        # Neither LibTorch nor glibc, and no folder of this machine from which a program would load.
        self.assertFalse([name for name in set.union(*names) if re.search(r"/lib(torch|c10|cu|nccl|c|m)\b[^/]*\.so", name)])
        for program in (self.folder / "there/polyphony-gpu/programs").iterdir():
            path = re.search(r"R(?:UN)?PATH\).*\[(.*)\]", subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout)
            self.assertIn(path.group(1) if path else "", ("", "$ORIGIN/../lib"))
        again = self.folder / "again"
        subprocess.run([sys.executable, ROOT / "scripts/make_gpu_bundle", "--build", BUILD, "--out", again, "--part-size", str(PART_MIB)], check=True,
                       capture_output=True, timeout=300)
        self.assertEqual((again / "SHA256SUMS").read_text(), (self.parts / "SHA256SUMS").read_text())

    def test_what_is_missing_is_named_with_what_to_do(self):
        self.unpack(self.folder / "first", [self.parts / "part-1.tar.gz"])
        self.refused(self.run_there("--check", where="first"), "part-2.tar.gz of ", "is missing", "unpack it here")
        self.unpack(self.folder / "changed", sorted(self.parts.glob("part-*.tar.gz")))
        with (self.folder / "changed/polyphony-gpu/scripts/gpu_kernels").open("a") as file:
            file.write("#\n")
        self.refused(self.run_there("--check", where="changed"), "scripts/gpu_kernels was changed")
        other = self.folder / "other"
        (other / "torch").mkdir(parents=True)
        self.refused(self.run_there("--check", TORCH_ROOT=str(other)), f"{other} has no torch", "TORCH_ROOT must be")
        about = json.loads((self.folder / "there/polyphony-gpu/CONTENTS.json").read_text())["about"]
        here, cuda = about["torch"], about["cuda"] or "13.0"
        for version, with_cuda, wanted in (("1.2.3+cu130", cuda, f"torch 1.2.3 with CUDA {cuda}, and this bundle was built with {here}"),
                                           (f"{here}+cu128", "12.8", f"built with CUDA {cuda} (install torch {here}+cu130"), (f"{here}+cu130", cuda, "libtorch_cpu.so is in none of")):
            (other / "torch/version.py").write_text(f"__version__ = '{version}'\ncuda: Optional[str] = '{with_cuda}'\n")
            if about["cuda"] or with_cuda == cuda:
                self.refused(self.run_there("--check", TORCH_ROOT=str(other)), wanted)
        # A bundle of a build without CUDA: the same files with another description.
        self.unpack(self.folder / "cpu", sorted(self.parts.glob("part-*.tar.gz")))
        listed = self.folder / "cpu/polyphony-gpu/CONTENTS.json"
        listed.write_text(json.dumps(json.loads(listed.read_text()) | {"about": about | {"cuda": None}}))
        self.refused(self.run_there("--only", "machine", where="cpu"), "it can only rehearse", "POLYPHONY_CUDA=on scripts/setup")
        self.assertIn("it can only rehearse", self.run_there("--check", where="cpu").stdout)
        done = subprocess.run([sys.executable, ROOT / "scripts/make_gpu_bundle", "--build", self.folder / "home", "--out", self.folder / "none"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^make_gpu_bundle: .*/polyphony is missing \(cmake --build .*exec_test\)\n$")

    def test_check_and_help(self):
        done = self.run_there("--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"files, complete\ntorch 2\.\d+\.\d+ with.*\nbuilt for .*\npolyphony-worker: ")
        self.assertIn("--with COMMAND", self.run_there("--help").stdout)
        self.assertIn("nccl_parity", self.run_there("--help-hour").stdout)
        self.assertIn("--keep-checkpoints", self.run_there("--with", self.folder / "there/polyphony-gpu/bin/polyphony", "run", "--help").stdout)
        # Where the machine's libstdc++ is older, the bundle's is taken: one of the versions that are needed gets another name.
        about = json.loads((self.folder / "there/polyphony-gpu/CONTENTS.json").read_text())["about"]
        version = f"GLIBCXX_{about['libstdc++']}\0".encode()
        old = self.folder / "old"
        old.mkdir()
        own = self.folder / "there/polyphony-gpu/lib/cxx/libstdc++.so.6"
        (old / own.name).write_bytes(own.read_bytes().replace(version, version.replace(b"CXX_3", b"CXX_0")))
        for folder, wanted in ((old, "lib/cxx"), ("", "lib")):
            there = self.run_there("--with", "/usr/bin/env", LD_LIBRARY_PATH=str(folder))
            self.assertEqual(re.search("POLYPHONY_LIBRARIES=([^:]*):", there.stdout).group(1), str(self.folder / "there/polyphony-gpu" / wanted), there.stderr)
        bare = subprocess.run([self.folder / "there/polyphony-gpu/bin/polyphony", "--help"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
        self.assertIn("./run --with".removeprefix("."), bare.stderr)

    def states(self):
        kept = json.loads((self.folder / "there/hour/state.json").read_text())
        return kept, {name: part["state"] for name, part in kept["parts"].items()}

    def rehearse(self, *words):
        return self.run_there("--rehearse", "--out", "hour", *self.python(), *words)

    def python(self):
        """A Python with torch, if scripts/setup pytorch was here: the part blocks runs."""
        cache = sorted(torch_of_build().parent.glob("pytorch-*/torch/version.py"))
        if not cache:
            return []
        file = self.folder / "python_with_torch"
        file.write_text(f'#!/bin/sh\nPYTHONPATH={cache[-1].parents[1]} exec {sys.executable} "$@"\n')
        file.chmod(0o755)
        return ["--python", file]

    def test_the_whole_course_with_faults_on_the_way(self):
        hour = self.folder / "there/hour"
        # A file where a run's folder should be: this layout fails, with what the real program says.
        (hour / "runs").mkdir(parents=True)
        (hour / "runs/zero2").write_text("in the way")

        # The budget ends inside a part: exit code 4, what was done is in the archive.
        done = self.rehearse("--budget", "0.04")
        self.assertEqual(done.returncode, 4, done.stderr)
        kept, states = self.states()
        self.assertEqual([name for name, state in states.items() if state == "cut off"], [list(states)[-1]])
        with tarfile.open(self.folder / "there/hour.tar.gz") as archive:
            self.assertIn("cut off", archive.extractfile("hour/state.json").read().decode())

        # Killed in the middle of the layouts: nothing of it stays behind, and what had ended is kept.
        process = subprocess.Popen(self.command("--rehearse", "--out", "hour", *self.python()), cwd=self.folder / "there", env=self.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        wait_until(lambda: len(self.states()[0]["cases"].get("layouts", {})) >= 3 or process.poll() is not None, 500, "three layouts")
        self.assertIsNone(process.poll())
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        kept, states = self.states()
        self.assertNotIn("layouts", states)
        before = {name: (pathlib.Path(kept["runs"][name]) / "metrics.jsonl").stat().st_mtime_ns for name in kept["cases"]["layouts"] if name in kept["runs"]}
        self.assertGreaterEqual(len(before), 2)
        wait_until(lambda: not harness.workers_of(hour) and not any(harness.workers_of(run) for run in (hour / "runs").iterdir()), 20, "the end of the killed ranks")

        # The next call goes on behind them, and to the end.
        done = self.rehearse()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertNotIn("\nkernels ", done.stderr)
        kept, states = self.states()
        for name, ended in before.items():
            self.assertEqual((pathlib.Path(kept["runs"][name]) / "metrics.jsonl").stat().st_mtime_ns, ended, name)
        said = {name: part["said"] for name, part in kept["parts"].items()}
        self.assertEqual({name for name, state in states.items() if state != "ok"} - {"blocks"}, {"layouts"}, said)
        self.check_what_parts_said(said)
        self.check_files(hour)

        # Nothing is left to do.
        done = self.rehearse()
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        # A case that takes too long is ended, and the next part runs.
        done = self.rehearse("--only", "collectives,machine", "--case-seconds", "0.3")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"collectives +FAILED.*longer than 0\.3 s, collectives\.log\nmachine +ok ")
        self.assertRegex((hour / "collectives.log").read_text(), r"out of time; its processes:\n(\d+ \S+: .*\n?)+")
        # Results of GPUs do not mix with a rehearsal's.
        done = self.run_there("--out", "hour", "--only", "machine") if "for GPUs" in self.said else None
        if done:
            self.assertEqual(done.returncode, 2)
            self.assertIn("holds a rehearsal: choose another --out", done.stderr)

    def check_what_parts_said(self, said):
        self.assertRegex(said["machine"], r"^4 × NVIDIA H100 80GB HBM3, 81559 MiB, .*; polyphony-worker: ")
        self.assertRegex(said["transport"], r"^\d+ assertions; start: 30 groups of 2 ranks on cpu in ")
        self.assertRegex(said["kernels"], r"^attention \d{3} assertions; \d{3,} assertions; (glu .* of 8 rows of 4096, Float: [\d.e-]+ ms, ATen's form [\d.e-]+ ms; )+.*AdamW of 8 rows")
        self.assertEqual(said["parity_first"], "4 of 4 layouts")
        self.assertRegex(said["parity"], r"^(\d+) of \1 layouts$")
        self.assertRegex(said["nccl_parity"], r"^(\d+) of \1 layouts \(\d+ need more than 4 GPUs\)$")
        row = r"[\d.]+ us for 1024 bytes, [\d.]+ GB/s for 1048576"
        self.assertRegex(said["collectives"], "^4 ranks: " + "; ".join(f"{name} {row}" for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "message")) + "$")
        for part, names in (("train", ("llama-1b", "llama-8b-4-layers")), ("pipeline", ("pipeline2", "pipeline4"))):
            self.assertRegex(said[part], "^" + "; ".join(f"{name} {MEASURED}" for name in names) + "$")
        self.assertRegex(said["layouts"], "^" + "; ".join(r"zero2 FAILED: exit code \d, zero2\.log: [^;]*" if name == "zero2" else f"{name} {MEASURED}" for name in LAYOUTS) + "$")
        self.assertRegex(said["calibrate"], r"^llama-1b \d.* predicted [\d.]+ ms .*; llama-8b-4-layers \d.* predicted ")
        self.assertRegex(said["recording"], r"^recorded steps take [+-]\d+\.\d\d% ")
        beside = r", PyTorch eager [\d.-]+ times as long" if self.python() else ""
        self.assertRegex(said["own_blocks"], rf"^tiny -?\d+\.\d{{3}} ms \(.* tokens/s, MFU -?\d+\.\d%{beside}\); tiny_flash -?\d+.* \(goals")
        self.assertRegex(said["fp8"], rf"^fp8_tensorwise {MEASURED}; fp8_rowwise {MEASURED}$")
        self.assertRegex(said["blocks"], r"^tiny eager \d+\.\d{3} ms \(" if self.python() else "has no torch")

    def check_files(self, hour):
        rows = [line.split(",") for line in (hour / "collectives.csv").read_text().splitlines()]
        self.assertEqual(rows[0], ["operation", "ranks", "bytes", "seconds", "bus_bytes_per_second"])
        self.assertEqual(len(rows), 1 + 5 * 6)  # 1 KiB to 1 MiB by 4
        factor = {"all_reduce": 1.5, "all_gather": 0.75, "reduce_scatter": 0.75, "all_to_all": 0.75, "message": 1}  # of 4 ranks: 2 * 3/4, 3/4, 1
        for name, ranks, count, seconds, rate in rows[1:]:
            self.assertEqual(ranks, "4")
            self.assertAlmostEqual(float(rate) * float(seconds) / int(count), factor[name], delta=1e-3 * factor[name])
        memory = (hour / "memory.csv").read_text().splitlines()
        self.assertEqual(memory[0], "run,gpu,mib_before,mib_most,mib_after")
        self.assertEqual(memory.count("zero3,0,4,4,4"), 1)
        logs = {path.stem for path in hour.glob("*.log")}
        self.assertLess({"machine", "kernels", "collectives", "nccl_parity", "zero3", "pipeline4"}, logs)
        with tarfile.open(self.folder / "there/hour.tar.gz") as archive:
            names = archive.getnames()
            summary = archive.extractfile("hour/summary.md").read().decode()
        self.assertTrue({"hour/state.json", "hour/collectives.csv", "hour/runs/zero3/metrics.jsonl"} < set(names))
        self.assertFalse([name for name in names if "/checkpoints" in name])
        self.assertTrue(summary.startswith("# Rehearsal without a GPU: no figure here is one of a GPU"))


if __name__ == "__main__":
    harness.main()
