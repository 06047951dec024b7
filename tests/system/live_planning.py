"""Steps planned while earlier ones train, over Gloo: a lost rank and Ctrl-C leave no process, and a resumed run uses the saved plans."""
import json
import os
import signal

import harness
from harness import POLYPHONY, SCENARIOS, run


class LivePlanning(harness.SystemTest):
    def scenario(self):
        planned = json.loads((SCENARIOS / "tiny_non_colocated.json").read_text())
        planned["extends"] = str(SCENARIOS / planned["extends"])
        planned["layout"]["planner"] = "entrain"
        path = self.folder / "planned.json"
        path.write_text(json.dumps(planned))
        return path

    def running(self, out):
        """(launcher, {rank: pid}, file of plans) of a run that has completed some steps."""
        plans = self.folder / f"{out.name}.plans"
        launcher = self.start(POLYPHONY, "run", self.scenario(), "--out", out, "--steps", 1000000, "--planning", "live", "--plans", plans)

        def some_steps():
            self.assertIsNone(launcher.poll(), "the run ended by itself")
            return len(harness.losses(out)) > 5
        harness.wait_until(some_steps, 60, "some steps")
        pids = harness.workers_of(out)
        self.assertEqual(sorted(pids), [0, 1, 2])
        return launcher, pids, plans

    def assert_gone(self, pids):
        harness.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids.values()), 1, "the workers' end")

    def test_a_lost_rank_that_plans_or_receives_plans(self):
        for rank in (0, 2):
            with self.subTest(rank=rank):
                launcher, pids, _ = self.running(self.folder / f"killed-{rank}")
                os.kill(pids[rank], signal.SIGKILL)
                _, err = self.finish(launcher, 40)
                self.assertEqual(launcher.returncode, 1, err)
                for other in set(pids) - {rank}:
                    self.assertRegex(err, rf"(?m)^rank {other}: lost rank {rank}: \S")
                self.assert_gone(pids)

    def test_ctrl_c_and_resume_with_the_saved_plans(self):
        out = self.folder / "run"
        launcher, pids, plans = self.running(out)
        launcher.send_signal(signal.SIGINT)
        text, err = self.finish(launcher, 40)
        self.assertEqual(launcher.returncode, 1, err)
        self.assertIn("--resume continues", text + err)
        self.assert_gone(pids)
        done = max(harness.losses(out)) + 1
        self.assertEqual(harness.checkpoints(out)[-1], done)
        ending = ("--steps", done + 4, "--plans", plans)
        self.assert_ok(run(POLYPHONY, "run", self.scenario(), "--out", out, "--planning", "live", "--resume", *ending))
        again = self.folder / "again"
        self.assert_ok(run(POLYPHONY, "run", self.scenario(), "--out", again, "--planning", "replay", *ending))
        self.assertEqual(harness.losses(again), harness.losses(out))


if __name__ == "__main__":
    harness.main()
