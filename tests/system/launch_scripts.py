"""The scripts of `polyphony launch`, run with real torchrun, and stand-ins for srun, mpirun and scontrol that start processes as those do."""
import json
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import POLYPHONY, SCENARIOS, WORKER, environment, run

# Starts the ranks of a job step with Slurm's variables. Without --kill-on-bad-exit, as the script asks for, the other ranks go on
# when one ends; SIGTERM to srun kills them, as it does there.
SRUN = """#!/usr/bin/env python3
import os, signal, subprocess, sys
command = [word for word in sys.argv[1:] if not word.startswith("--kill")]
tasks = int(os.environ["SLURM_NTASKS"])
ranks = [subprocess.Popen(command, env={**os.environ, "SLURM_PROCID": str(r), "SLURM_LOCALID": str(r), "SLURM_STEP_NUM_TASKS": str(tasks),
                                        "SLURM_STEP_TASKS_PER_NODE": str(tasks), "SLURM_STEP_NODELIST": "localhost"}) for r in range(tasks)]
signal.signal(signal.SIGTERM, lambda *_: [rank.kill() for rank in ranks])
with open(os.path.join(os.path.dirname(__file__), "tasks"), "w") as tasks:
    tasks.write(" ".join(str(rank.pid) for rank in ranks))
codes = [rank.wait() for rank in ranks]
sys.exit(max(code if code >= 0 else 128 - code for code in codes))
"""
MPIRUN = """#!/usr/bin/env python3
import os, subprocess, sys
words = sys.argv[1:]
assert words[:2] == ["-np", "2"] and words[2:4] == ["--map-by", "ppr:2:node"], words
command = words[8:]
ranks = [subprocess.Popen(command, env={**os.environ, "OMPI_COMM_WORLD_RANK": str(r), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(r),
                                        "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}) for r in range(2)]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""
# scancel --signal reaches the tasks of the job's steps, not the batch script; srun itself ends its step when it is signaled.
SCANCEL = """#!/usr/bin/env python3
import os, signal, subprocess, sys
assert sys.argv[1:] == ["--signal=TERM", os.environ["SLURM_JOB_ID"]], sys.argv
with open(os.path.join(os.path.dirname(__file__), "tasks")) as tasks:
    for task in tasks.read().split():
        os.kill(int(task), signal.SIGTERM)
"""
SCONTROL = """#!/bin/bash
echo "$@" >> "$(dirname "$0")/scontrol.said"
"""


class LaunchScripts(harness.SystemTest):
    def setUp(self):
        super().setUp()
        tools = self.folder / "tools"
        tools.mkdir()
        for name, text in (("srun", SRUN), ("mpirun", MPIRUN), ("scontrol", SCONTROL), ("scancel", SCANCEL)):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        self.variables = environment(PATH=f"{tools}:{os.environ['PATH']}", MASTER_PORT=harness.free_port(), SLURM_NTASKS=2, SLURM_JOB_ID=7)
        self.out = self.folder / "it's a run"

    def script(self, launcher, steps, *more):
        path = self.folder / f"start{launcher}.sh"
        done = run(POLYPHONY, "launch", SCENARIOS / "tiny.json", launcher, "--run", self.out, "--worker", WORKER, "--out", path,
                   "--with", f"--steps {steps} --checkpoint-every 0.01", *more)
        self.assert_ok(done)
        self.assertEqual(subprocess.run(["bash", "-n", path]).returncode, 0)
        return path

    def start_script(self, path):
        return subprocess.Popen(["bash", path], env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def wait_for_checkpoint(self, process):
        deadline = time.monotonic() + 60
        while not list((self.out / "checkpoints").glob("step-*[0-9]")):
            self.assertIsNone(process.poll(), "the script ended before the first checkpoint")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def steps(self):
        return [json.loads(line)["step"] for line in (self.out / "metrics.jsonl").read_text().splitlines()]

    def test_slurm_restarts_after_a_killed_rank(self):
        script = self.start_script(self.script("--slurm", 400))
        self.wait_for_checkpoint(script)
        os.kill(harness.workers_of(self.out, "SLURM_PROCID")[1], signal.SIGKILL)
        output, errors = script.communicate(timeout=300)
        self.assertEqual(script.returncode, 0, errors)
        self.assertIn("attempt 2 of 4 begins", output)
        self.assertNotIn("attempt 3 of 4", output)
        self.assertEqual(self.steps(), list(range(400)))

    def test_slurm_saves_and_queues_again_before_its_time_is_over(self):
        script = self.start_script(self.script("--slurm", 100000))
        self.wait_for_checkpoint(script)
        os.kill(script.pid, signal.SIGUSR1)  # to the batch script alone, as --signal=B:USR1 does
        output, errors = script.communicate(timeout=120)
        self.assertEqual(script.returncode, 0, errors)
        self.assertEqual((self.folder / "tools/scontrol.said").read_text(), "requeue 7\n")
        self.assertEqual(harness.workers_of(self.out, "SLURM_PROCID"), {})
        saved = max(int(path.name[5:]) for path in (self.out / "checkpoints").glob("step-*[0-9]"))
        self.assertEqual(self.steps(), list(range(saved)))

    def test_bad_input_is_not_tried_again(self):
        script = self.start_script(self.script("--slurm", "nonsense", "--attempts", "3"))
        output, _ = script.communicate(timeout=120)
        self.assertEqual(script.returncode, 2)
        self.assertNotIn("attempt 2", output)

    def test_mpirun(self):
        script = self.start_script(self.script("--mpirun", 3))
        _, errors = script.communicate(timeout=120)
        self.assertEqual(script.returncode, 0, errors)
        self.assertEqual(self.steps(), [0, 1, 2])

    @unittest.skipIf(os.environ.get("POLYPHONY_ORACLE") == "off", "POLYPHONY_ORACLE=off: PyTorch for Python is not fetched")
    def test_torchrun_restarts_after_a_killed_rank(self):
        """PyTorch's own elastic agent, with a worker that is killed: it restarts all, which continue from their checkpoint."""
        torch = harness.cached("pytorch")
        (self.folder / "tools/torchrun").write_text('#!/bin/sh\nexec python3 -m torch.distributed.run "$@"\n')
        (self.folder / "tools/torchrun").chmod(0o755)
        self.variables["PYTHONPATH"] = f"{harness.cached('transformers')}:{torch}"  # the first one has numpy
        script = self.start_script(self.script("--torchrun", 1000))
        self.wait_for_checkpoint(script)
        os.kill(harness.workers_of(self.out, "RANK")[1], signal.SIGKILL)
        _, errors = script.communicate(timeout=300)
        self.assertEqual(script.returncode, 0, errors)
        self.assertIn("(exitcode: -9) local_rank: 1", errors)
        self.assertEqual(self.steps(), list(range(1000)))
        # The same losses as those of a run that nothing disturbed.
        whole = self.folder / "whole"
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", whole, "--steps", 1000))
        self.assertEqual(harness.losses(self.out), harness.losses(whole))

    def test_what_the_scripts_ask_for(self):
        scenario = json.loads((SCENARIOS / "tiny.json").read_text())
        scenario["cluster"] = {"node": "hgx-h100", "nodes": 2, "nic": "400Gbps"}
        scenario["layout"]["all"] = {"pp": 2}
        scenario["data"]["global_batch"] = 32
        path = self.folder / "two_nodes.json"
        path.write_text(json.dumps(scenario))
        slurm = run(POLYPHONY, "launch", path, "--slurm", "--partition", "h100", "--time", "1:00:00", "--format", "json")
        self.assert_ok(slurm)
        answer = json.loads(slurm.stdout)
        self.assertEqual((answer["nodes"], answer["ranks"], answer["ranks_per_node"]), (2, 16, 8))
        for line in ("--nodes=2", "--ntasks=16", "--ntasks-per-node=8", "--gpus-per-node=8", "--time=1:00:00", "--partition=h100"):
            self.assertIn(f"\n#SBATCH {line}\n", answer["script"])
        torchrun = run(POLYPHONY, "launch", path, "--torchrun")
        self.assertIn("--nnodes=2 --rdzv-backend=c10d", torchrun.stdout)
        self.assertIn("--max-restarts=3", torchrun.stdout)
        none = run(POLYPHONY, "launch", path)
        self.assertEqual(none.returncode, 2)
        self.assertIn("exactly one of --slurm, --torchrun and --mpirun", none.stderr)


if __name__ == "__main__":
    harness.main()
