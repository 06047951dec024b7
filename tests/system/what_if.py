"""What-if questions and rejections: --set for plan, simulate and sweep, machines with failed links, layouts that do not fit."""
import json

import harness
from harness import POLYPHONY, SCENARIOS, run

TINY = SCENARIOS / "tiny.json"  # homogeneous, pp 2 on 2 ranks
REHEARSE = SCENARIOS / "rehearse_8.json"


class WhatIf(harness.SystemTest):
    def test_the_unchanged_answer_is_also_printed(self):
        plain = json.loads(run(POLYPHONY, "simulate", REHEARSE, "--format", "json").stdout)
        done = run(POLYPHONY, "simulate", REHEARSE, "--format", "json", "--set", "profile.op_overhead=1ms", "--set", "layout.microbatches=8")
        self.assertEqual(done.returncode, 0, done.stderr)
        changed = json.loads(done.stdout)
        self.assertEqual(changed["set"], ["profile.op_overhead=1ms", "layout.microbatches=8"])
        self.assertEqual(changed["unchanged"]["step_seconds"], plain["step_seconds"])
        self.assertAlmostEqual(changed["step_change"], changed["step_seconds"] / plain["step_seconds"] - 1)
        self.assertNotEqual(changed["step_seconds"], plain["step_seconds"])
        self.assertNotIn("unchanged", plain)
        table = run(POLYPHONY, "simulate", REHEARSE, "--set", "layout.microbatches=8").stdout
        self.assertRegex(table, r"what if +as written +changed +difference\n-+\nstep ")

    def test_every_answer_begins_with_what_was_asked(self):
        first = "vision 826k + projector 82k + language 2M | 8 CPU ranks"
        for command in ("simulate", "why", "plan"):
            with self.subTest(command):
                done = run(POLYPHONY, command, REHEARSE, "--set", "layout.microbatches=8")
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = done.stdout.splitlines()
                self.assertEqual(lines[0], first)
                self.assertLessEqual(max(len(line) for line in lines), 80)
        self.assertRegex(run(POLYPHONY, "why", REHEARSE, "--set", "layout.microbatches=8").stdout, r"what if +as written +changed +difference\n")

    def test_stage_times_are_only_for_simulation(self):
        path = SCENARIOS / "stage_times.json"
        done = run(POLYPHONY, "simulate", path, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        # Three encoder stages until the language module has its first microbatch, then 12 + 2 slots; op overheads are added.
        self.assertAlmostEqual(answer["step_seconds"], 3 * 2.19991 + 14 * (0.37611 + 4.02322), delta=0.02)
        self.assertEqual(answer["mfu"], 0)
        # A language module that takes no time: 12 + 2 slots of the encoder.
        idle = run(POLYPHONY, "simulate", path, "--format", "json",
                   "--set", 'model.language.layer_times={"forward": "0s", "backward_input": "0s"}')
        self.assertAlmostEqual(json.loads(idle.stdout)["step_seconds"], 14 * 2.19991, delta=0.02)
        self.assertIn("Simulation only: vision is defined by its layer_times alone", run(POLYPHONY, "plan", path).stdout)
        for verb in ("run", "rehearse"):
            out = ["--out", self.folder / verb]
            self.assert_one_line(run(POLYPHONY, verb, path, *out), "defined by its layer_times alone, which is simulation only", code=3)

    def test_a_scenario_that_is_only_valid_with_the_change(self):
        path = self.scenario("too_few.json", cluster={"ranks": 1})
        done = run(POLYPHONY, "simulate", path, "--set", "cluster.ranks=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without the changes there is no answer: ", done.stdout)

    def test_sweep_and_plan(self):
        path = self.scenario("search.json", layout=None, search={})
        done = run(POLYPHONY, "sweep", path, "--estimate", "--format", "json", "--set", "cluster.ranks=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertIn("layout", answer["unchanged"])
        plain = json.loads(run(POLYPHONY, "sweep", path, "--estimate", "--format", "json").stdout)
        self.assertEqual(answer["unchanged"]["step_seconds"], plain["ranked"][0]["step_seconds"])
        self.assertNotEqual(answer["unchanged"]["step_seconds"], answer["ranked"][0]["step_seconds"])
        plan = json.loads(run(POLYPHONY, "plan", TINY, "--set", "cluster.ranks=4", "--format", "json").stdout)
        self.assertEqual(plan["program"]["ranks"], 4)

    def test_a_shipped_stack_for_every_predicting_command(self):
        def step(*more, command="simulate"):
            done = run(POLYPHONY, command, REHEARSE, "--format", "json", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)
        plain, fused = step(), step("--stack", "megatron-core")
        self.assertEqual((plain["stack"], fused["stack"]), ("polyphony", "megatron-core"))
        self.assertNotEqual(plain["step_seconds"], fused["step_seconds"])
        by_key = self.scenario("own.json", base="rehearse_8.json", training={"software": "megatron-core"})
        done = run(POLYPHONY, "simulate", by_key, "--format", "json")
        self.assertEqual(json.loads(done.stdout)["step_seconds"], fused["step_seconds"])
        self.assertIn("stack megatron-core", run(POLYPHONY, "simulate", REHEARSE, "--stack", "megatron-core").stdout)
        for command in ("simulate", "sweep", "plan", "run", "rehearse"):
            with self.subTest(command):
                self.assert_one_line(run(POLYPHONY, command, TINY, "--stack", "megatron"), "--stack", "megatron-core")
                self.assertIn("fsdp2-compiled", run(POLYPHONY, command, "--help").stdout)

    def test_a_plan_explains_its_split(self):
        page = self.folder / "plan.html"
        plain = json.loads(run(POLYPHONY, "plan", REHEARSE, "--format", "json", "--report", page).stdout)
        self.assertIn("<svg", page.read_text())
        split = plain["splits"][0]
        self.assertGreaterEqual(split["next"]["dearest_seconds"], split["dearest_seconds"])
        other = json.loads(run(POLYPHONY, "plan", REHEARSE, "--format", "json", "--set", "layout.balance=unaware").stdout)
        self.assertEqual(other["balance"], "unaware")
        table = run(POLYPHONY, "plan", REHEARSE).stdout
        self.assertRegex(table, r"stage +ranks +layers\n")
        self.assertRegex(table, r"vision stage 1 +1 +vision blocks 2-3, output; projector\n")
        self.assertRegex(table, r"language stage 5 +7 +language blocks 10-11, output head\n")
        self.assertRegex(table, r"between stages +one block moved to the earlier +one block moved to the later\n")
        self.assertRegex(table, r"Next best split: 3,1 blocks a stage; its slowest stage takes ")
        self.assert_one_line(run(POLYPHONY, "plan", TINY, "--set", "layout.balance=even"), "/layout/balance", "aware")

    def test_stages_are_assigned_to_modules(self):
        assigned = json.loads(run(POLYPHONY, "plan", REHEARSE, "--stages", 8, "--format", "json").stdout)
        self.assertEqual([assignment["balance"] for assignment in assigned["deals"]], ["aware", "unaware"])
        for assignment in assigned["deals"]:
            self.assertEqual(sum(module["stages"] for module in assignment["modules"]), 8)
        done = run(POLYPHONY, "plan", REHEARSE, "--stages", 3)
        self.assertEqual(done.returncode, 3)
        self.assertIn("the number of stages must divide the 8 ranks (got 3)", done.stderr)

    def test_virtual_stages_return_to_the_same_ranks(self):
        path = self.scenario(layout={"schedule": "interleaved", "microbatches": 4, "all": {"pp": 2, "vpp": 2}})
        plan = json.loads(run(POLYPHONY, "plan", path, "--format", "json").stdout)
        self.assertEqual([stage["ranks"] for stage in plan["stages"]], ["0", "1", "0", "1"])

    def test_recorded_samples_drive_the_prediction(self):
        """Without them, full images and texts of the sequence length were assumed."""
        def tokens(name, text):
            (self.folder / f"{name}.jsonl").write_text(f'{{"items": [["text", {text}, 1]]}}\n' * 8)
            data = {"source": {"recorded": f"{name}.jsonl"}, "sequence": 256, "images": None, "text": None}
            done = run(POLYPHONY, "simulate", self.scenario(f"{name}.json", data=data), "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            answer = json.loads(done.stdout)
            return round(answer["tokens_per_second_per_rank"] * answer["step_seconds"] * 2)
        self.assertEqual(tokens("short", 3), 8 * 3)
        self.assertEqual(tokens("long", 17), 8 * 17)
        (self.folder / "long.jsonl").unlink()
        for command in ("simulate", "plan", "sweep"):
            self.assert_one_line(run(POLYPHONY, command, self.folder / "long.json"), "long.jsonl", "cannot be read", "/data/source/recorded")

    def test_wrong_paths_and_values_in_one_line(self):
        for text, words in {
            "layout.microbatch=8": ["/layout/microbatch"],
            "cluster.rank=8": ["/cluster/rank", "ranks"],
            "layout.all.pp=two": ["/layout/all/pp", "a text is not allowed here"],
            "layout.all.tp=3": ["/layout"],
            "profile.gem_efficiency=1": ["gem_efficiency", "gemm_efficiency"],
            "profile.gemm_efficiency=-1": ["gemm_efficiency", "out of range"],
            "profile=1": ["not one value"],
            "cluster": ["PATH=VALUE"],
        }.items():
            for command in ("simulate", "plan", "sweep"):
                if command == "sweep" and text == "layout.all.tp=3":
                    continue  # searches layouts itself
                with self.subTest(text, command=command):
                    self.assert_one_line(run(POLYPHONY, command, TINY, "--set", text), *words)


class Refusals(harness.SystemTest):
    def assert_infeasible(self, done, *words):
        self.assertEqual(done.returncode, 3, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_failed_link(self):
        failed = "cluster.degraded=" + json.dumps([{"rank": 1, "link": 0}])
        self.assert_infeasible(run(POLYPHONY, "simulate", TINY, "--set", failed), "the node link of rank 1 has failed", "needs it")
        slow = "cluster.degraded=" + json.dumps([{"rank": 1, "device": 0.5}])
        done = run(POLYPHONY, "simulate", TINY, "--format", "json", "--set", slow)
        self.assertGreater(json.loads(done.stdout)["step_change"], 0.02)

    def test_out_of_memory_suggests_what_fits(self):
        # The largest stage of tiny.json needs less than a MiB.
        peak = json.loads(run(POLYPHONY, "simulate", TINY, "--format", "json").stdout)["peak_memory_bytes"]
        done = run(POLYPHONY, "simulate", TINY, "--set", f"cluster.node.device.memory={peak - 1}B")
        self.assert_infeasible(done, "out of memory: ", "stage", "parameters", "activations", "; fits: ")
        done = run(POLYPHONY, "simulate", TINY, "--set", "cluster.node.device.memory=1kB")
        self.assert_infeasible(done, "similar layouts fits; the smallest, ")

    def test_missing_dimension_and_missing_profile(self):
        path = self.scenario("no_layers.json", model={"language": {"layers": None}})
        self.assert_one_line(run(POLYPHONY, "simulate", path), "/model/language", 'key "layers" is missing')
        device = {"name": "X1", "fp32": "60TFLOPS", "memory_rate": "3TBps", "memory": "64GiB"}
        path = self.scenario("no_profile.json", cluster={"node": {"device": device, "ranks": 2, "link": "300GBps"}, "ranks": None})
        self.assert_one_line(run(POLYPHONY, "simulate", path), "/cluster", 'key "profile" is missing')


if __name__ == "__main__":
    harness.main()
