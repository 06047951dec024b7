"""A worker killed in the middle of a step: the others end and name it, `polyphony run` reports it, and the last checkpoint resumes."""
import os
import shutil
import signal
import time

import harness
from harness import POLYPHONY, SCENARIOS, run

FOUR_RANKS = SCENARIOS / "tiny_fan_out.json"
STEPS_AFTER = 6


class LostRank(harness.SystemTest):
    def kill_in_mid_step(self, rank):
        """The folder of a run whose `rank` was killed some steps after a checkpoint."""
        out = self.folder / f"killed-{rank}"
        launcher = self.start(POLYPHONY, "run", FOUR_RANKS, "--out", out, "--steps", 1000000, "--checkpoint-every", 0.5)

        def well_after_a_checkpoint():
            self.assertIsNone(launcher.poll(), "the run ended by itself")
            saved = harness.checkpoints(out)
            return saved and max(harness.losses(out), default=0) > saved[-1] + 2
        harness.wait_until(well_after_a_checkpoint, 60, "a checkpoint")
        pids = harness.workers_of(out)
        self.assertEqual(sorted(pids), [0, 1, 2, 3])
        os.kill(pids[rank], signal.SIGKILL)
        begin = time.monotonic()
        _, err = self.finish(launcher, 40)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(launcher.returncode, 1, err)
        self.assertRegex(err, rf"run: rank {rank} was killed by signal 9 .*; --resume continues from the last checkpoint")
        for other in set(range(4)) - {rank}:
            self.assertRegex(err, rf"(?m)^rank {other}: lost rank {rank}: \S")
        self.assertEqual([pid for pid in pids.values() if os.path.exists(f"/proc/{pid}")], [])
        return out

    def test_a_silent_rank_is_reported_once_it_is_known(self):
        """The launcher with a scripted worker: rank 0 names rank 1, which does not end by itself."""
        shutil.copy(POLYPHONY, self.folder / "polyphony")
        worker = self.folder / "polyphony-worker"
        worker.write_text('#!/bin/sh\n[ "$RANK" = 1 ] && exec sleep 600\necho "rank 0: lost rank 1: it is silent" >&2\nexit 1\n')
        worker.chmod(0o755)
        launcher = self.start(self.folder / "polyphony", "run", SCENARIOS / "tiny.json", "--out", self.folder / "run", "--steps", 5)
        lines = [launcher.stderr.readline() for _ in range(2)]
        self.assertIsNone(launcher.poll(), lines)
        self.assertEqual(lines[0], "rank 0: lost rank 1: it is silent\n")
        self.assertRegex(lines[1], r"^run: rank 1 has not ended yet: killed in \d+ s, or at once by Ctrl-C twice; no checkpoint was saved yet$")
        for _ in range(2):
            launcher.send_signal(signal.SIGINT)
            time.sleep(0.5)
        _, err = self.finish(launcher, 10)
        self.assertEqual(launcher.returncode, 1)
        self.assertEqual(err, "run: lost rank 1: it is silent; no checkpoint was saved yet\n")

    def go_on(self, out, scenario):
        """{step: loss} after the last checkpoint, resumed with the layout of the scenario."""
        first = harness.checkpoints(out)[-1]
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", out, "--steps", first + STEPS_AFTER, "--resume"))
        again = harness.losses(out)
        self.assertEqual(sorted(again), list(range(first + STEPS_AFTER)))
        lines = [line["step"] for line in harness.metrics(out) if "loss" in line]
        self.assertEqual(lines, sorted(set(lines)), "steps that were lost with the rank are still in the metrics")
        return {step: again[step] for step in range(first, first + STEPS_AFTER)}

    def test_a_rank_in_the_middle_and_every_way_to_resume(self):
        out = self.kill_in_mid_step(2)
        last = harness.checkpoints(out)[-1]
        elsewhere = self.folder / "elsewhere"
        shutil.copytree(out, elsewhere)
        resumed = self.go_on(out, FOUR_RANKS)
        moved = self.go_on(elsewhere, SCENARIOS / "tiny_non_colocated.json")
        whole = self.folder / "whole"
        self.assert_ok(run(POLYPHONY, "run", FOUR_RANKS, "--out", whole, "--steps", last + STEPS_AFTER, "--checkpoint-every", 0))
        uninterrupted = harness.losses(whole)
        for step, loss in resumed.items():
            self.assertLessEqual(abs(loss / uninterrupted[step] - 1), 1e-6, f"step {step}")
        # Another layout sums in another order: fp32 rounding of 1.2e-7 per sum, over some hundred sums and the steps since.
        for step, loss in moved.items():
            self.assertLessEqual(abs(loss / uninterrupted[step] - 1), 1e-4, f"step {step} in another layout")

    def test_rank_0_which_hosts_the_rendezvous(self):
        self.go_on(self.kill_in_mid_step(0), FOUR_RANKS)


if __name__ == "__main__":
    harness.main()
