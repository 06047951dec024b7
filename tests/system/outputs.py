"""A full disk at any output causes exit code 1 and one line; endless and enormous inputs are rejected."""
import json
import os
import subprocess

import harness
from harness import POLYPHONY, ROOT, SCENARIOS, WORKER, environment, run

TINY = SCENARIOS / "tiny.json"
FULL = "cannot be written: No space left on device"


def full_stdout(*command, limit=harness.LIMIT):
    with open("/dev/full", "w") as full:
        return subprocess.run([str(c) for c in command], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment(), timeout=limit)


class Outputs(harness.SystemTest):
    def trained(self):
        folder = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", TINY, "--out", folder, "--steps", 4, "--trace-steps", "2:4"))
        return folder

    def test_a_full_disk(self):
        trained = self.trained()
        table = self.folder / "order.csv"
        self.assert_ok(run(POLYPHONY, "schedules", "1f1b", "--scenario", TINY, "--out", table))
        sweep = [POLYPHONY, "sweep", SCENARIOS / "easy_vqa.json", "--estimate"]
        # command, options that write a file, a name for it
        writers = [
            ([POLYPHONY, "simulate", TINY], ["--gantt"]), ([POLYPHONY, "simulate", TINY], ["--trace"]),
            (sweep, ["--json-out"]), (sweep, ["--report"]), ([POLYPHONY, "schedules", table, "--scenario", TINY], ["--gantt"]),
            ([POLYPHONY, "calibrate", trained], ["--out"]), ([POLYPHONY, "report", trained], ["--out"])]
        for command, option in writers:
            with self.subTest(" ".join(str(c) for c in command[1:] + option)):
                out = self.folder / "out"
                out.write_text("old")
                before = sorted(os.listdir(self.folder))
                limited = run("bash", "-c", 'ulimit -f 0; exec "$@"', "-", *command, *option, out)
                self.assertEqual(limited.returncode, 1, limited.stderr)
                self.assertIn(f"{out}: cannot be written: File too large (free some disk space, or write elsewhere)", limited.stderr.splitlines()[-1])
                self.assertEqual(out.read_text(), "old")
                self.assertEqual(sorted(os.listdir(self.folder)), before)
                link = self.folder / "link"
                link.symlink_to("/dev/full")
                device = run(*command, *option, link)
                self.assertEqual(device.returncode, 1, device.stderr)
                self.assertIn(f"{link}: {FULL}", device.stderr.splitlines()[-1])
                self.assertTrue(link.is_symlink() and link.is_char_device())
                link.unlink()
        saved = self.folder / "saved"
        limited = run("bash", "-c", 'ulimit -f 0; exec "$@"', "-", *sweep, "--save", saved)
        self.assertEqual(limited.returncode, 1, limited.stderr)
        self.assertEqual(os.listdir(saved), [])
        for command in ([], ["--help"], ["plan", TINY], ["simulate", TINY], ["simulate", TINY, "--format", "json"], ["simulate", "--help"],
                        ["simulate", TINY, "--batches", 3], sweep[1:], ["schema"], ["schedules", "1f1b", "--scenario", TINY], ["why", TINY],
                        ["compare", trained], ["calibrate", trained], ["report", trained, "--out", self.folder / "page.html"]):
            with self.subTest(" ".join(str(c) for c in command) + " > /dev/full"):
                done = full_stdout(POLYPHONY, *command)
                if not command:  # prints on stderr
                    self.assertEqual(done.returncode, 2, done.stderr)
                    continue
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"stdout: {FULL}", done.stderr.splitlines()[-1])
        done = full_stdout(WORKER, "--help")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"stdout: {FULL}", done.stderr)

    def test_stdout_and_pipes_as_files(self):
        out = self.folder / "out"
        with open(out, "w") as file:
            done = subprocess.run([POLYPHONY, "simulate", str(TINY), "--gantt", "/dev/stdout"], stdout=file, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = out.read_text()
        self.assertIn("<svg", text)
        self.assertIn("tokens/s/rank", text)  # neither output has overwritten the other
        for ignored in ("", "trap '' PIPE; "):  # a reader that closes the pipe is not an error, with or without SIGPIPE
            done = run("bash", "-c", ignored + '{ "$@"; echo "code $?" >&2; } | true', "-", POLYPHONY, "schema")
            self.assertRegex(done.stderr, r"^code \d+\n$")

    def test_endless_and_enormous_inputs(self):
        large = self.folder / "large"
        with open(large, "wb") as file:
            file.truncate(10 << 30)  # sparse
        for path, size in (("/dev/zero", "64.0 MiB"), (large, "64.0 MiB"), (self.folder, "is a folder")):
            for command in ([POLYPHONY, "simulate", path], [POLYPHONY, "simulate", TINY, "--profile", f"{path}"], [WORKER, path],
                            [POLYPHONY, "profile", "--nccl-tests", path, "--device", "H100", "--out", self.folder / "p.json"]):
                with self.subTest(" ".join(str(c) for c in command)):
                    self.assert_one_line(run("bash", "-c", 'ulimit -v 4000000; exec "$@"', "-", *command), path, size)
        data = self.scenario(data={"source": {"recorded": str(large)}, "images": None, "text": None, "global_batch": 8})
        for command in ([POLYPHONY, "simulate", data], [WORKER, data, "--steps", 1, "--rank", 0, "--world-size", 2]):
            with self.subTest(" ".join(str(c) for c in command)):
                self.assert_one_line(run(*command), large, "1.0 GiB")
        self.assert_one_line(run(POLYPHONY, "report", "--sweep", "/dev/zero", "--out", self.folder / "page.html"), "/dev/zero", "1.0 GiB")
        done = run("bash", "-c", f'exec "$1" simulate <(cat "$2")', "-", POLYPHONY, TINY)
        self.assert_ok(done)


class Sizes(harness.SystemTest):
    def test_programs_that_exceed_memory(self):
        """49 million ops with an address space of half a gigabyte. Rejected immediately, with the numbers."""
        block = {"layers": 1000, "hidden": 64, "heads": 4, "kv_heads": 4, "ffn": 64, "vocab": 64}
        path = self.folder / "large.json"
        path.write_text(json.dumps({
            "polyphony": 1, "about": "made by a test", "model": {"language": block}, "cluster": {"node": "hgx-h100", "nodes": 1000, "nic": "400Gbps"},
            "data": {"source": "synthetic", "text": {"tokens": 8}, "sequence": 8, "global_batch": 8192},
            "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 1024, "all": {"pp": 1000}}, "training": {"precision": "bf16"}}))
        for command in (["simulate"], ["simulate", "--estimate"], ["simulate", "--batches", 4], ["simulate", "--trace", self.folder / "t.json"], ["plan"]):
            with self.subTest(" ".join(str(c) for c in command)):
                done = run("bash", "-c", 'ulimit -v 500000; exec "$@"', "-", POLYPHONY, command[0], path, *command[1:], limit=20)
                self.assert_one_line(done, path, "49,159,232 ops", "GiB of memory", "memory is proportional to ranks and microbatches", code=3)
                self.assertNotIn("bad_alloc", done.stderr)
        done = run("bash", "-c", 'ulimit -v 500000; exec "$@"', "-", POLYPHONY, "simulate", path, "--format", "json", limit=20)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((done.returncode, error["exit_code"], error["file"]), (3, 3, str(path)))
        self.assertIn("49,159,232 ops", error["what"])


if __name__ == "__main__":
    harness.main()
