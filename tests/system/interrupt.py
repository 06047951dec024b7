"""Ctrl-C, and a launcher that dies: no process is left, no step is lost."""
import os
import pathlib
import re
import signal
import socket
import time

import harness
from harness import POLYPHONY, SCENARIOS, WORKER, run


def waits(pid):
    """True once the main thread has delegated both signals to another thread, some tenths of a second before its rendezvous."""
    both = 1 << (signal.SIGINT - 1) | 1 << (signal.SIGTERM - 1)
    blocked = re.search(r"SigBlk:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]
    return int(blocked, 16) & both == both


class Interrupt(harness.SystemTest):
    def running(self, out, scenario="tiny.json", ranks=2):
        launcher = self.start(POLYPHONY, "run", SCENARIOS / scenario, "--out", out, "--steps", 1000000)
        harness.wait_until(lambda: len(harness.losses(out)) > 5, 60, "some steps")
        pids = harness.workers_of(out)
        self.assertEqual(sorted(pids), list(range(ranks)))
        return launcher, pids

    def assert_gone(self, pids, limit):
        harness.wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids.values()), limit, "the workers' end")

    def test_ctrl_c_saves_and_stops_and_resume_continues(self):
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

    def test_a_worker_that_waits_for_other_ranks_ends_immediately(self):
        for rank in (0, 1):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(rank=rank, signal=number.name):
                    port = harness.free_port()
                    worker = self.start(WORKER, SCENARIOS / "tiny.json", "--rank", rank, "--world-size", 2, "--master", f"127.0.0.1:{port}")
                    harness.wait_until(lambda: waits(worker.pid), 30, "the worker's wait")
                    time.sleep(1)
                    self.assert_ends_soon(worker, number, number.name)

    def test_a_worker_connected_to_a_silent_server_ends_immediately(self):
        with socket.create_server(("127.0.0.1", 0)) as stranger:
            worker = self.start(WORKER, SCENARIOS / "tiny.json", "--rank", 1, "--world-size", 2, "--master", f"127.0.0.1:{stranger.getsockname()[1]}")
            stranger.settimeout(30)
            guests = []
            for _ in range(2):  # the connection check, and that of the store
                guests.append(stranger.accept()[0])
                guests[-1].recv(1)
            self.assert_ends_soon(worker, signal.SIGTERM, "SIGTERM")
            for guest in guests:
                guest.close()

    def test_a_second_signal_ends_a_training_rank_immediately_and_the_others_report_it(self):
        launcher, pids = self.running(self.folder / "twice", "tiny_fan_out.json", 4)
        os.kill(pids[3], signal.SIGSTOP)  # so that no rank reaches its checkpoint
        for _ in range(2):
            os.kill(pids[1], signal.SIGTERM)
            time.sleep(0.3)
        harness.wait_until(lambda: not os.path.exists(f"/proc/{pids[1]}"), 3, "the rank's end")
        os.kill(pids[3], signal.SIGCONT)
        _, err = self.finish(launcher, 40)
        self.assertIn("stopped by SIGTERM again, and ends at once: the last checkpoint is kept", err)
        self.assertIn("lost rank 1: it stopped: SIGTERM", err)

    def assert_ends_soon(self, worker, number, name):
        worker.send_signal(number)
        begin = time.monotonic()
        _, err = self.finish(worker, 20)
        self.assertLess(time.monotonic() - begin, 3)  # one second on an idle machine
        self.assertEqual(worker.returncode, 1, err)
        self.assertEqual(err, f"polyphony-worker: stopped by {name} before its first step: there is nothing to save\n")

    def test_killing_the_launcher_ends_its_workers(self):
        launcher, pids = self.running(self.folder / "run", "tiny_fan_out.json", 4)
        launcher.kill()
        self.assert_gone(pids, 10)

    def test_ctrl_c_while_workers_start(self):
        out = self.folder / "early"
        launcher = self.start(POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 1000000)
        pids = harness.wait_until(lambda: harness.workers_of(out), 30, "workers")
        launcher.send_signal(signal.SIGINT)
        _, err = self.finish(launcher, 20)
        self.assertEqual(launcher.returncode, 1, err)
        self.assertIn("run: interrupted; no checkpoint was saved yet", err)
        self.assert_gone(pids, 0.5)


if __name__ == "__main__":
    harness.main()
