"""Invalid input: exit code 2 and one line with the file, the JSON pointer, the problem and the remedy. No rank hangs."""
import json
import os
import shutil

import harness
from harness import POLYPHONY, SCENARIOS, WORKER, environment, run


def layout(**modules):
    return {"placement": "non-colocated", "all": None, "microbatches": 2, **modules}


# name -> (changes to tiny.json, JSON pointer in the message, other text in the message)
WRONG_SCENARIOS = {
    "unknown key": ({"data": {"global_bacth": 8}}, "/data/global_bacth", ["global_batch"]),
    "wrong unit": ({"cluster": {"node": {"device": "H100", "ranks": 2}, "ranks": None, "nic": "400parsec"}}, "/cluster/nic", ["400parsec"]),
    "no unit": ({"cluster": {"node": {"device": "H100", "ranks": 2}, "ranks": None, "nic": "400"}}, "/cluster/nic", ["400"]),
    "wrong kind of unit": ({"cluster": {"node": {"device": "H100", "ranks": 2}, "ranks": None, "nic": "80GiB"}}, "/cluster/nic", ["80GiB"]),
    "negative size": ({"model": {"language": {"hidden": -32}}}, "/model/language/hidden", ["-32"]),
    "zero ranks": ({"cluster": {"ranks": 0}}, "/cluster/ranks", []),
    "ranks that overlap": ({"cluster": {"ranks": 3}, "layout": layout(vision={"ranks": {"first": 0, "count": 2}},
                                                                      language={"ranks": {"first": 1, "count": 2}})}, "/layout", ["vision", "language"]),
    "ranks that do not tile": ({"cluster": {"ranks": 4}, "layout": layout(vision={"ranks": {"first": 0, "count": 1}},
                                                                          language={"ranks": {"first": 2, "count": 2}})}, "/layout", []),
    "tp that does not divide the heads": ({"cluster": {"ranks": 3}, "layout": {"placement": "homogeneous", "all": {"tp": 3, "pp": 1}}},
                                          "/layout", ["3", "heads"]),
    "more stages than layers": ({"cluster": {"ranks": 64}, "layout": {"all": {"pp": 64}}}, "/layout", []),
    "fewer samples than microbatches": ({"data": {"global_batch": 3}}, "/layout", ["3"]),
    "no such data set": ({"data": {"source": "imagenet"}}, "/data/source", ["imagenet", "easy-vqa"]),
}


class BadScenario(harness.SystemTest):
    def test_both_programs_reject_with_one_line(self):
        for name, (changes, pointer, words) in WRONG_SCENARIOS.items():
            path = self.scenario(name.replace(" ", "_") + ".json", **changes)
            for command in ([POLYPHONY, "plan", path], [POLYPHONY, "run", path, "--out", self.folder / "run"], [WORKER, path, "--steps", 1]):
                with self.subTest(name, command=os.path.basename(command[0]) + " " + str(command[1])):
                    self.assert_one_line(run(*command, limit=20), path, pointer, *words)

    def test_more_ranks_than_cores_are_refused_before_a_layout_is_searched_for(self):
        done = run(POLYPHONY, "run", SCENARIOS / "vlm_12b_70b_h100.json", "--device", "cpu", "--out", self.folder / "run")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("/cluster: has 512 ranks", done.stderr)
        self.assertNotIn("layout chosen", done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_missing_files_and_files_without_json(self):
        empty, cut = self.folder / "empty.json", self.folder / "cut.json"
        empty.write_text("")
        cut.write_text((SCENARIOS / "tiny.json").read_text()[:200])
        for path in (self.folder / "missing.json", self.folder, empty, cut):
            for program in ([POLYPHONY, "plan"], [POLYPHONY, "sweep"], [WORKER]):
                with self.subTest(path=path.name, program=program[0]):
                    self.assert_one_line(run(*program, path, limit=20), path)
        self.assert_one_line(run(POLYPHONY, "plan", self.scenario(extends="nowhere.json")), "nowhere.json")

    def test_actions_that_deadlock_or_do_not_match(self):
        scenario, order = SCENARIOS / "rehearse_4.json", self.folder / "order.csv"
        self.assertEqual(run(POLYPHONY, "schedules", "gpipe", "--scenario", scenario, "--out", order).returncode, 0)
        rows = [line.split(",") for line in order.read_text().splitlines()]
        lost = [row[:-1] if i == 0 else row for i, row in enumerate(rows)]
        # The encoder sends its microbatches in ascending order: if the second one must come first, all ranks wait.
        swapped = [[row[1], row[0], *row[2:]] if row[0] else [row[0], row[2], row[1], *row[3:]] for row in rows]
        for name, changed in (("lost", lost), ("swapped", swapped)):
            order.write_text("\n".join(",".join(row) for row in changed) + "\n")
            with self.subTest(name):
                done = run(POLYPHONY, "simulate", scenario, "--schedule", order)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertNotIn("internal error", done.stderr)

    def test_stage_times(self):
        times = self.folder / "times.csv"
        times.write_text("module,stage,microbatch,forward,backward_input,backward_weight\nl,0,0,1,fast,1\n")
        command = [POLYPHONY, "schedules", "--all", "--times", times]
        self.assert_one_line(run(*command, "--ranks", 1), "times.csv: line 2, column backward_input", "fast")
        self.assert_one_line(run(*command), "--ranks 8")
        times.write_text(times.read_text().replace("fast", "1"))
        own = self.folder / "own.csv"
        for turns, words in (("0F0,0X0", "0X0"), ("0F0", "no rank runs B")):
            own.write_text(turns + "\n")
            self.assert_one_line(run(*command, "--ranks", 1, "--schedule", own), "own.csv", words)
        done = run(*command, "--ranks", 1, "--format", "json")
        self.assertEqual(json.loads(done.stdout)["bound_seconds"], 3, done.stderr)
        self.assert_one_line(run(*command, "--ranks", 1, "--memory", "1GiB"), "--memory", "bytes")
        order = self.folder / "order.csv"
        self.assert_ok(run(*command, "--ranks", 1, "--out", order))
        again = run(*command[:2], "--times", times, "--ranks", 1, "--schedule", order, "--format", "json")
        self.assertEqual(json.loads(again.stdout)["schedules"][0]["makespan_seconds"], 3, again.stderr)

    def test_command_lines(self):
        tiny = SCENARIOS / "tiny.json"
        for command in ([POLYPHONY, "plan"], [POLYPHONY, "plan", tiny, "--nonsense"], [POLYPHONY, "run", tiny, "--steps", "many"],
                        [POLYPHONY, "run", tiny, "--steps", -5, "--out", self.folder / "a"], [POLYPHONY, "simulate", tiny, "--format", "xml"],
                        [POLYPHONY, "run", tiny, "--trace-steps", "5", "--out", self.folder / "b"], [POLYPHONY, "dance"],
                        [POLYPHONY, "rehearse", tiny, "--steps", 2], [POLYPHONY, "profile", "--ranks", 0],
                        [POLYPHONY, "simulate", tiny, "--profile", self.folder / "missing.json"], [POLYPHONY, "compare"],
                        [WORKER], [WORKER, tiny, "--nonsense"], [WORKER, tiny, "--rank", 0], [WORKER, tiny, "--steps", "many"]):
            with self.subTest(command=" ".join(str(c) for c in command[1:]), program=os.path.basename(command[0])):
                self.assert_one_line(run(*command, limit=20))


class InJson(harness.SystemTest):
    """With --format json, a command without an answer prints an error object instead; stderr has the same line as without."""

    def error_of(self, *command, code=2, printed=False):
        """`printed`: without --format json the answer is on stdout before the error."""
        plain = run(*command, limit=20)
        done = run(*command, "--format", "json", limit=20)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual((plain.returncode, plain.stdout != ""), (code, printed))
        self.assertEqual(done.stderr, plain.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(list(answer), ["error"])
        error = answer["error"]
        self.assertEqual(sorted(error), sorted(json.loads(run(POLYPHONY, "schema", "error").stdout)["properties"]["error"]["required"]))
        self.assertEqual(error["exit_code"], code)
        self.assertIn(error["what"], done.stderr)
        self.assertIn(error["fix"], done.stderr)
        return error

    def test_errors(self):
        path = self.scenario(**WRONG_SCENARIOS["unknown key"][0])
        for verb in ("plan", "simulate", "sweep", "why", "run", "rehearse"):
            with self.subTest(verb):
                error = self.error_of(POLYPHONY, verb, path)
                self.assertEqual((error["file"], error["pointer"]), (str(path), "/data/global_bacth"))
                self.assertIn("global_batch", error["fix"])
        missing = self.folder / "missing.json"
        self.assertEqual(self.error_of(POLYPHONY, "plan", missing)["file"], str(missing))
        self.assertIn("nonsense", self.error_of(POLYPHONY, "plan", path, "--nonsense")["what"])
        self.assertIn("dance", self.error_of(POLYPHONY, "dance")["what"])
        full = self.folder / "full"
        full.symlink_to("/dev/full")
        self.assertIn("No space left", self.error_of(POLYPHONY, "simulate", SCENARIOS / "tiny.json", "--gantt", full, code=1, printed=True)["what"])
        sweep = [POLYPHONY, "sweep", SCENARIOS / "easy_vqa.json", "--estimate", "--report"]
        for more, begins in ([], "vision "), (["--format", "json"], "{"):  # the answer is there, whatever becomes of the page
            done = run(*sweep, full, *more)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertTrue(done.stdout.startswith(begins), done.stdout[:200])
            self.assertIn("No space left", done.stderr)
        for option in ("--report", "--json-out"):  # before the search
            nowhere = self.folder / "no" / "where"
            done = run(*sweep[:-1], option, nowhere)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(str(nowhere), done.stderr)


class BadLaunch(harness.SystemTest):
    def test_world_size_differs_from_the_layout(self):
        for size in (1, 3):
            done = run(WORKER, SCENARIOS / "tiny.json", limit=20, env=environment(RANK=0, WORLD_SIZE=size))
            self.assert_one_line(done, "tiny.json", "/layout", "2 ranks", f"{size} were started")

    def test_invalid_environment_variables(self):
        for variables in ({"RANK": 2, "WORLD_SIZE": 2}, {"RANK": "x", "WORLD_SIZE": 2}, {"WORLD_SIZE": 2}, {"RANK": 0, "WORLD_SIZE": 2, "MASTER_PORT": 70000}):
            with self.subTest(variables):
                self.assert_one_line(run(WORKER, SCENARIOS / "tiny.json", limit=20, env=environment(**variables)))


class BadData(harness.SystemTest):
    def recorded(self, name, text):
        data = self.folder / (name + ".jsonl")
        if text is not None:
            data.write_text(text)
        return data, self.scenario(name + ".json", data={"source": {"recorded": str(data)}, "images": None, "text": None, "global_batch": 8})

    def test_recorded_samples(self):
        good = '{"items": [["image", 16], ["text", 8, 4]]}\n'
        data, path = self.recorded("good", good * 32)
        self.assert_ok(run(POLYPHONY, "run", path, "--out", self.folder / "run", "--steps", 2))
        bad = {"missing": None, "empty": "", "cut": (good * 32)[:-20], "negative": good.replace("8", "-8") * 8, "odd_image": good.replace("16", "15") * 8,
               "no_json": "nonsense\n", "too_long": good.replace("8", "800") * 8}
        for name, text in bad.items():
            data, path = self.recorded(name, text)
            for command in ([POLYPHONY, "run", path, "--out", self.folder / "run", "--fresh", "--steps", 2],
                            [WORKER, path, "--rank", 0, "--world-size", 2, "--master", f"127.0.0.1:{harness.free_port()}"]):
                with self.subTest(name, program=os.path.basename(command[0])):
                    self.assert_one_line(run(*command, limit=30), data)

    def test_missing_or_damaged_easy_vqa(self):
        path = self.scenario(base="easy_vqa.json", layout={"placement": "homogeneous", "schedule": "1f1b", "microbatches": 4, "all": {"pp": 2}}, search=None)
        nowhere = self.folder / "nowhere"
        nowhere.mkdir()
        self.assert_one_line(run(POLYPHONY, "run", path, "--out", self.folder / "run", "--steps", 1, "--data", nowhere, limit=30), "nowhere")
        package = next(iter(harness.pathlib.Path(os.environ.get("POLYPHONY_CACHE", os.path.expanduser("~/.cache/polyphony"))).glob("easy-vqa-*")), None)
        if package is None:
            self.skipTest("easy-vqa was not downloaded")
        (self.folder / "cache").mkdir()
        damaged = self.folder / "cache" / package.name
        shutil.copytree(package, damaged)
        questions = next(damaged.rglob("train/questions.json"))
        questions.write_text(questions.read_text()[:5000])
        self.assert_one_line(run(POLYPHONY, "run", path, "--out", self.folder / "run", "--steps", 1, "--data", self.folder / "cache", limit=30), "questions.json")
        shutil.copy(next(package.rglob("train/questions.json")), questions)
        for picture in next(damaged.rglob("train/images")).iterdir():
            picture.write_bytes(picture.read_bytes()[:60])
        self.assert_one_line(run(POLYPHONY, "run", path, "--out", self.folder / "run", "--steps", 1, "--data", self.folder / "cache", limit=30), ".png")


class BadFiles(harness.SystemTest):
    def damaged(self, good, name):
        copy = self.folder / name
        shutil.copytree(good, copy)
        return copy

    def test_traces_and_checkpoints(self):
        good = self.folder / "good"
        tiny = SCENARIOS / "tiny.json"
        self.assert_ok(run(POLYPHONY, "run", tiny, "--out", good, "--steps", 4, "--trace-steps", "2:4"))
        self.assert_ok(run(POLYPHONY, "compare", good))
        other = self.folder / "other"
        self.assert_ok(run(POLYPHONY, "run", SCENARIOS / "tiny_text_only.json", "--out", other, "--steps", 4, "--trace-steps", "2:4"))

        def cut(file, size):
            file.write_bytes(file.read_bytes()[:size])
        trace, batches = "trace/step-2.rank-1.json", "trace/batches.jsonl"
        size = (good / trace).stat().st_size
        for name, file, damage in (
                ("cut", trace, lambda f: cut(f, size // 2)), ("empty", trace, lambda f: cut(f, 0)), ("missing", trace, os.remove),
                ("foreign", trace, lambda f: shutil.copy(other / trace, f)),
                ("another program's", trace, lambda f: f.write_text('{"traceEvents": []}')),
                ("another rank's", trace, lambda f: shutil.copy(good / "trace/step-2.rank-0.json", f)),
                ("cut batches", batches, lambda f: cut(f, 100)), ("no batches", batches, os.remove),
                ("no scenario", "scenario.json", os.remove), ("cut scenario", "scenario.json", lambda f: cut(f, 100))):
            with self.subTest(trace=name):
                folder = self.damaged(good, f"trace {name}")
                damage(folder / file)
                done = run(POLYPHONY, "compare", folder, limit=20)
                self.assert_one_line(done, folder)
                self.assert_one_line(run(POLYPHONY, "calibrate", folder, limit=20), folder)

        checkpoint = "checkpoints/step-4"
        if not (good / checkpoint).exists():
            checkpoint = str(next((good / "checkpoints").iterdir()).relative_to(good))
        manifest, tensors = checkpoint + "/manifest.json", checkpoint + "/rank-1.safetensors"

        def flip(file):
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 4
            file.write_bytes(data)

        def rename_parameter(file):
            file.write_text(json.dumps(json.loads(file.read_text()) | {"step": -4}))
        for name, file, damage in (
                ("cut", tensors, lambda f: cut(f, f.stat().st_size // 2)), ("empty", tensors, lambda f: cut(f, 0)), ("missing", tensors, os.remove),
                ("a bit", tensors, flip), ("cut manifest", manifest, lambda f: cut(f, 300)), ("no manifest", manifest, os.remove),
                ("negative", manifest, rename_parameter)):
            with self.subTest(checkpoint=name):
                folder = self.damaged(good, f"checkpoint {name}")
                damage(folder / file)
                done = run(POLYPHONY, "run", tiny, "--out", folder, "--steps", 6, "--resume", limit=40)
                self.assert_one_line(done, folder)
        with self.subTest(checkpoint="of another model"):
            done = run(POLYPHONY, "run", SCENARIOS / "tiny_text_only.json", "--out", self.damaged(good, "model"), "--steps", 6, "--resume", limit=40)
            self.assert_one_line(done, "manifest.json", "/parameters")
        with self.subTest(checkpoint="none"):
            self.assert_one_line(run(POLYPHONY, "run", tiny, "--out", self.folder / "fresh", "--steps", 6, "--resume", limit=40), "fresh")


class BadDisk(harness.SystemTest):
    def test_a_folder_that_is_not_writable(self):
        file = self.folder / "file"
        file.write_text("")
        tiny = self.scenario(cluster={"ranks": 1}, layout={"all": {"pp": 1}})
        for command in ([POLYPHONY, "run", tiny, "--out", file / "run"], [WORKER, tiny, "--steps", 1, "--out", file / "run"],
                        [POLYPHONY, "run", tiny, "--out", file], [WORKER, tiny, "--steps", 1, "--out", file],
                        [POLYPHONY, "simulate", tiny, "--trace", file / "x.json"], [POLYPHONY, "simulate", tiny, "--gantt", self.folder]):
            with self.subTest(" ".join(str(c) for c in command)):
                self.assert_one_line(run(*command, limit=30))

    def test_a_disk_that_becomes_full(self):
        """Files of at most 8 KiB (ulimit -f): the first lines of the metrics fit, checkpoint and traces do not."""
        for options in (["--trace-steps", "1:3"], []):
            with self.subTest(options):
                out = self.folder / ("run" + "-".join(options))
                done = run("bash", "-c", 'ulimit -f 8; exec "$@"', "-", POLYPHONY, "run", SCENARIOS / "tiny.json", "--out", out, "--steps", 3, *options, limit=60)
                self.assert_one_line(done, out, "disk space")
                self.assertEqual(harness.checkpoints(out), [])

    def test_a_disk_that_is_full_from_the_start(self):
        tiny = self.scenario(cluster={"ranks": 1}, layout={"all": {"pp": 1}})
        for command in ([POLYPHONY, "run", tiny], [WORKER, tiny]):
            with self.subTest(command[0]):
                out = self.folder / "run"
                self.assert_one_line(run("bash", "-c", 'ulimit -f 0; exec "$@"', "-", *command, "--steps", 3, "--out", out, limit=30), out, "space", code=1)


if __name__ == "__main__":
    harness.main()
