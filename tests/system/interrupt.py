"""Ctrl-C and a launcher that dies: nothing stays, nothing is lost."""
import os
import signal
import time

import harness
from harness import POLYPHONY, SCENARIOS, run


class Interrupt(harness.SystemTest):
    def running(self, out, scenario="tiny.json", ranks=2):
        launcher = self.start(POLYPHONY, "run", SCENARIOS / scenario, "--out", out, "--steps", 1000000)
        harness.wait_until(lambda: len(harness.losses(out)) > 5, 60, "some steps")
        pids = harness.workers_of(out)
        self.assertEqual(sorted(pids), list(range(ranks)))
        return launcher, pids

    def assert_gone(self, pids, limit):
        harness.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids.values()), limit, "the workers' end")

    def test_ctrl_c_saves_and_stops_and_resume_goes_on(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                out = self.folder / number.name
                launcher, pids = self.running(out)
                launcher.send_signal(number)
                begin = time.monotonic()
                text, err = self.finish(launcher, 40)
                self.assertLess(time.monotonic() - begin, 15)
                self.assertEqual(launcher.returncode, 1, err)
                self.assertIn("--resume continues", text + err)
                self.assert_gone(pids, 0.5)
                done = max(harness.losses(out)) + 1
                self.assertEqual(harness.checkpoints(out)[-1], done)
                self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", done + 4, "--resume"))
                whole = self.folder / f"whole-{number.name}"
                self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", whole, "--steps", done + 4))
                self.assertEqual(harness.losses(out), harness.losses(whole))

    def test_the_launcher_killed_takes_its_workers_along(self):
        launcher, pids = self.running(self.folder / "run", "tiny_fan_out.json", 4)
        launcher.kill()
        self.assert_gone(pids, 10)

    def test_ctrl_c_while_workers_start(self):
        out = self.folder / "early"
        launcher = self.start(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 1000000)
        pids = harness.wait_until(lambda: harness.workers_of(out), 30, "workers")
        launcher.send_signal(signal.SIGINT)
        self.finish(launcher, 45)
        self.assertNotEqual(launcher.returncode, 0)
        self.assert_gone(pids, 0.5)


if __name__ == "__main__":
    harness.main()
