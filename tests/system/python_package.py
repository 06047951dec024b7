"""The Python package: its numbers are the command's, its errors are exceptions, its searches can be stopped."""
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import sys
import threading
import time

import harness
from harness import POLYPHONY, ROOT, SCENARIOS, run

os.environ["POLYPHONY_COMMAND"] = POLYPHONY
sys.path.insert(0, str(ROOT / "sim/python"))
sys.dont_write_bytecode = True
import polyphony as pp  # noqa: E402

TINY = SCENARIOS / "tiny.json"


class PythonPackage(harness.SystemTest):
    def test_answers_are_those_of_the_command(self):
        q = pp.load(TINY)
        self.assertEqual(q.simulate().to_dict(), harness.answer("simulate", TINY))
        self.assertEqual(q.simulate(estimate=True, set={"layout.microbatches": 2}).to_dict(),
                         harness.answer("simulate", TINY, "--estimate", "--set", "layout.microbatches=2"))
        self.assertEqual(q.sweep(jobs=1).to_dict(), harness.answer("sweep", TINY, "--jobs", 1))
        self.assertEqual(q.plan().to_dict(), harness.answer("plan", TINY))
        self.assertEqual(q.why().to_dict(), harness.answer("why", TINY))
        times = SCENARIOS / "times/vlm.csv"
        self.assertEqual(pp.schedules(times, 4).to_dict(), harness.answer("schedules", "--times", times, "--ranks", 4, "--all"))
        asked = pp.ask("llama-3.1-8b", "8xH100", jobs=1)
        self.assertEqual(asked.to_dict(), harness.answer("ask", "--model", "llama-3.1-8b", "--gpus", "8xH100", "--jobs", 1))
        # From the question's scenario and a row to the step of that row.
        again = pp.scenario(asked.scenario).simulate(asked.ranked[0])
        self.assertAlmostEqual(again.step_seconds, asked.ranked[0].step_seconds, delta=1e-9 * again.step_seconds)
        clips = SCENARIOS / "varying/tiny_clips.json"
        self.assertEqual(pp.load(clips).batches(4).to_dict(), harness.answer("simulate", clips, "--batches", 4))
        varied = pp.load(TINY).vary("layout.microbatches", [2, 4])
        self.assertEqual(varied.to_dict(), harness.answer("sweep", TINY, "--vary", "layout.microbatches=2,4"))
        rows = SCENARIOS / "published/mcore.csv"
        self.assertEqual(pp.validate(rows), harness.answer("validate", rows)["rows"])

    def test_traces_and_launch_scripts(self):
        sample = ROOT / "traces/samples/gpt_7b_tp4_eager.json.gz"
        self.assertEqual(pp.trace(sample).to_dict(), harness.answer("trace", sample))
        asked = pp.ask("llama-3.1-8b", "8xH100", for_="megatron-lm", estimate=True, jobs=1)
        q = pp.scenario(asked.scenario).with_layout(asked.ranked[0])
        out = self.folder / "launch"
        self.assertEqual(set(q.emit("megatron-lm", out).to_dict()) & {"files"}, {"files"})
        back = pp.import_(out / "run.sh", gpus="8xH100", out=self.folder / "back.json")
        self.assertEqual(back.to_dict(), harness.answer("import", out / "run.sh", "--gpus", "8xH100", "--out", self.folder / "back.json"))

    def test_replays_and_calibrations(self):
        sample = ROOT / "traces/samples/gpt_7b_tp4_eager.json.gz"
        self.assertEqual(pp.replay(sample, faster={"gemm": 1.5}).to_dict(), harness.answer("replay", sample, "--faster", "gemm=1.5"))
        fitted = self.folder / "fitted.json"
        calibrated = pp.calibrate(scenario=SCENARIOS / "rehearse_8.json", step_time="330ms", out=fitted)
        self.assertEqual(calibrated.to_dict(), harness.answer("calibrate", "--scenario", SCENARIOS / "rehearse_8.json", "--step-time", "330ms"))
        profiled = pp.load(SCENARIOS / "rehearse_8.json").simulate(profile=fitted)
        self.assertAlmostEqual(profiled.step_seconds, 0.33, delta=0.03)
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", TINY, "--out", out, "--steps", 6, "--trace-steps", "2:6", limit=120))
        self.assertEqual([each.to_dict() for each in pp.replay(out)], harness.answer("replay", out))

    def test_scenarios_are_changed_and_saved(self):
        q = pp.load(TINY)
        more = q.with_({"layout": {"microbatches": 8}})
        self.assertTrue(more.simulate().layout.endswith("x8"))
        self.assertTrue(q.simulate().layout.endswith("x4"))
        best = q.sweep(jobs=1).ranked[0]
        saved = self.folder / "best.json"
        q.with_layout(best).save(saved)
        self.assertEqual(pp.load(saved).simulate().step_seconds, best.step_seconds)
        more.save(saved)
        self.assertEqual(pp.load(saved).simulate(), more.simulate())
        # A removed key stays removed in the file, and one that is then set anew has nothing of what it was.
        fewer = q.with_({"training": {"steps": None}, "about": None})
        fewer.save(saved)
        self.assertNotIn("about", pp.load(saved).resolved())
        self.assertEqual(pp.load(saved).resolved(), fewer.resolved())
        anew = q.with_({"data": {"text": None}}).with_({"data": {"text": {"tokens": 6}}})
        anew.save(saved)
        self.assertEqual(pp.load(saved).resolved(), anew.resolved())
        from_values = pp.scenario(json.loads(TINY.read_text()))
        self.assertEqual(from_values.simulate(), q.simulate())
        self.assertEqual(q.resolved()["layout"]["microbatches"], 4)

    def test_functions_give_schedules_and_times(self):
        # One rank, four microbatches of eight blocks, each pass 10 ms: 4 * 8 * 30 ms = 0.96 s, and the rest.
        alone = pp.load(TINY).with_layout({"placement": "homogeneous", "microbatches": 4, "all": {"pp": 1}}).with_({"cluster": {"ranks": 1}})
        rest = alone.simulate(layer_times=lambda module, block: 0.0).step_seconds
        timed = alone.simulate(layer_times=lambda module, block: [0.01, 0.01, 0.01]).step_seconds
        self.assertAlmostEqual(timed - rest, 4 * (2 + 4) * 0.03, delta=1e-6)
        self.assertAlmostEqual(alone.simulate(layer_times=lambda module, block: 0.01).step_seconds, timed)
        # GPipe by hand equals the schedule of this name.
        seen = []

        def gpipe(ranks, stages, microbatches):
            seen.append((ranks, stages, microbatches))
            return [[f"{s}F{m}" for m in range(microbatches)] + [f"{s}B{m}" for m in range(microbatches)] for s in range(stages)]

        q = pp.load(TINY)
        self.assertEqual(q.simulate(schedule=gpipe).step_seconds, q.simulate(schedule="gpipe").step_seconds)
        self.assertEqual(seen, [(2, 2, 4)])

        # A policy that gives the encoder a rank of its own finds what a search with these keys finds.
        def apart(modules, ranks):
            seen.append((list(modules), ranks))
            return {"placement": "non-colocated", "vision": {"ranks": ranks // 2}}

        found = q.sweep(jobs=1, estimate=True, placement=apart)
        self.assertEqual(seen[1:], [(["vision", "projector", "language"], 2)])
        self.assertEqual({row.placement for row in found.ranked}, {"non-colocated"})
        fixed = q.with_({"search": {"placement": "non-colocated", "vision": {"ranks": 1}}})
        self.assertEqual(found, fixed.sweep(jobs=1, estimate=True))

    def test_errors_are_exceptions(self):
        q = pp.load(TINY)
        with self.assertRaises(pp.InputError) as caught:
            q.simulate({"placement": "homogenous"})
        self.assertEqual((caught.exception.file, caught.exception.pointer), ("scenario", "/layout/placement"))
        self.assertIn("homogeneous", caught.exception.fix)
        with self.assertRaises(pp.InputError) as caught:
            pp.load(self.folder / "missing.json")
        self.assertIn("missing.json", str(caught.exception))
        with self.assertRaises(pp.InputError):
            q.simulate(schedule=[["0F0"]])
        with self.assertRaises(pp.InfeasibleError) as caught:
            pp.ask("llama-3.1-70b", "1xH100", jobs=1)
        self.assertEqual(caught.exception.answer["ranked"], [])
        with self.assertRaises(AttributeError):
            q.simulate().step_seconds = 1
        self.assertRaises(TypeError, q.plan().plot)

    def test_an_interrupt_returns_the_best_so_far(self):
        code = f"""if True:
            import signal, sys, threading, time
            import polyphony as pp
            threading.Timer(12, lambda: signal.raise_signal(signal.SIGINT)).start()
            found = pp.load({str(SCENARIOS / "vlm_12b_70b_h100.json")!r}).sweep(jobs=1)
            print(found.stopped, len(found.ranked))
        """
        begin = time.monotonic()
        done = run(sys.executable, "-c", code, env=harness.environment(PYTHONPATH=ROOT / "sim/python", PYTHONDONTWRITEBYTECODE=1), limit=120)
        self.assert_ok(done)
        stopped, rows = done.stdout.split()
        self.assertEqual(stopped, "True")
        self.assertGreater(int(rows), 0)
        self.assertLess(time.monotonic() - begin, 60)

    def test_two_threads_search_at_once(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(pp.load(TINY).sweep(jobs=1))) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(answers[0], answers[1])

    def test_searches_in_parts_have_the_same_answer(self):
        q = pp.load(TINY)
        whole = q.sweep(jobs=1, estimate=True)
        for workers in (1, 2, 3):
            with concurrent.futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
                self.assertEqual(q.sweep(jobs=1, estimate=True, executor=pool), whole)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual(q.sweep(jobs=1, estimate=True, executor=pool, parts=5), whole)
            changed = {"layout.microbatches": 8, "data.global_batch": 16}
            self.assertEqual(q.sweep(jobs=1, estimate=True, set=changed, executor=pool), q.sweep(jobs=1, estimate=True, set=changed))
            with self.assertRaises(pp.InputError):
                pp.scenario({"model": {}}).sweep(executor=pool)
            with self.assertRaises(pp.InputError):
                q.sweep(executor=pool, parts=0)

        class Dying(concurrent.futures.ThreadPoolExecutor):
            """Loses every second part, as if its worker had died."""

            def submit(self, function, *arguments):
                return super().submit(function, *arguments) if arguments[2] % 2 else super().submit(lambda: (_ for _ in ()).throw(OSError("gone")))

        with Dying(2) as pool, self.assertLogs("polyphony", "WARNING") as told:
            self.assertEqual(q.sweep(jobs=1, estimate=True, executor=pool, parts=4), whole)
        self.assertEqual(len(told.records), 2)

        class Old(concurrent.futures.ThreadPoolExecutor):
            """Has a worker with another version, whose answers are not comparable."""

            def submit(self, function, *arguments):
                future = super().submit(function, *arguments)
                if arguments[2] != 3:
                    return future
                other = concurrent.futures.Future()
                other.set_result("{}\n" + future.result().split("\n", 1)[1])
                return other

        with Old(2) as pool, self.assertLogs("polyphony", "WARNING") as told:
            self.assertEqual(q.sweep(jobs=1, estimate=True, executor=pool, parts=4), whole)
        self.assertIn("parts 3 of 4: their workers have another version", told.output[0])

    def test_parts_are_handed_out_as_workers_get_free(self):
        from polyphony import _shards

        open_now, most, ended = set(), 0, []

        def submit(part):
            nonlocal most
            future = concurrent.futures.Future()
            open_now.add(part)
            most = max(most, len(open_now))
            threading.Timer(0.001, lambda: (open_now.discard(part), future.set_result(str(part)))).start()
            return future

        _shards.each_part(submit, 50, lambda part, future: ended.append((part, future.result())), 4)
        self.assertEqual(sorted(ended), [(part, str(part)) for part in range(1, 51)])
        self.assertEqual(most, 4)
        # What has been submitted is cancelled when a result is refused.
        waiting = [concurrent.futures.Future() for _ in range(3)]
        waiting[1].set_exception(pp.InputError("no"))
        with self.assertRaises(pp.InputError):
            _shards.each_part(lambda part: waiting[part - 1], 3, lambda part, future: future.result(), 3)
        self.assertTrue(waiting[0].cancelled() and waiting[2].cancelled())

    def test_the_import_is_quick_and_needs_nothing(self):
        code = "import time; t = time.process_time(); import polyphony; print(time.process_time() - t)"
        times = [float(run(sys.executable, "-S", "-c", code, env=harness.environment(PYTHONPATH=ROOT / "sim/python")).stdout) for _ in range(3)]
        self.assertLess(min(times), 0.15)

    def test_the_classes_are_those_of_the_schemas(self):
        self.assert_ok(run(sys.executable, ROOT / "scripts/python_answers", "--build", pathlib.Path(POLYPHONY).parent, "--check"))


if __name__ == "__main__":
    harness.main()
