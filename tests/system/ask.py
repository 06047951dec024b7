"""The ask command: a question without a file, its scenario, the least number of nodes, and what is refused."""
import json
import subprocess
import unittest

import harness
from harness import POLYPHONY, SCENARIOS, run

SMALL = ["--model", "llama-3.1-8b", "--gpus", "8xH100", "--global-batch", "64"]
LLAVA = {  # as published: transformers leaves class defaults out
    "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 32000, "vision_feature_layer": -2,
    "vision_feature_select_strategy": "default", "projector_hidden_act": "gelu", "text_config": {"model_type": "llama", "vocab_size": 32064},
    "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
                      "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000}}


class Ask(harness.SystemTest):
    def ask(self, *more, codes=(0,), limit=120):
        done = run(POLYPHONY, "ask", *more, "--format", "json", limit=limit)
        self.assertIn(done.returncode, codes, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr}")
        return json.loads(done.stdout)

    def test_the_first_answer_is_the_saved_scenarios(self):
        scenario, row = self.folder / "q.json", self.folder / "row.json"
        answer = self.ask(*SMALL, "--save", scenario, "--save-row", 1, "--out", row)
        self.assertGreater(len(answer["ranked"]), 3)
        self.assertTrue(any("--seq" in line for line in answer["assumed"]), answer["assumed"])
        self.assertEqual(json.loads(scenario.read_text()), answer["scenario"])
        again = run(POLYPHONY, "sweep", scenario, "--format", "json", "--effort", "0.2", limit=120)
        self.assertEqual(json.loads(again.stdout)["ranked"], answer["ranked"])
        step = json.loads(run(POLYPHONY, "simulate", row, "--format", "json").stdout)["step_seconds"]
        self.assertAlmostEqual(step, answer["ranked"][0]["step_seconds"], delta=1e-6 * step)

    def test_the_table_says_what_was_assumed(self):
        done = run(POLYPHONY, "ask", *SMALL, "--top", 3, limit=120)
        self.assert_ok(done)
        for text in ("Assumed:", "sequences of 8,192 tokens (--seq)", "--thorough", "language 8.0B", "1 ", "rule of thumb"):
            self.assertIn(text, done.stdout)
        self.assertTrue(all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout)

    def test_a_configuration_is_asked_about(self):
        config = self.folder / "llava/config.json"
        config.parent.mkdir()
        config.write_text(json.dumps(LLAVA))
        scenario = self.folder / "questions/q.json"
        scenario.parent.mkdir()
        answer = self.ask("--model", config.parent, "--gpus", "8xH100", "--images", 1, "--seq", "2k", "--global-batch", 64,
                          "--train", "projector,lora:language", "--save", scenario)
        # The low-rank updates are 40M of the language model's.
        self.assertIn("vision 291M + projector 21M + language 6.8B", answer["question"]["model"])
        self.assert_ok(run(POLYPHONY, "sweep", scenario, "--estimate", "--effort", "0.1", limit=120))
        done = run(POLYPHONY, "sweep", config)  # no scenario: says what to do
        self.assertEqual(done.returncode, 2)
        self.assertIn("polyphony ask --model", done.stderr)

    def test_files_of_machines_state_the_cluster(self):
        machines = harness.ROOT / "tests/system/machines"
        scenario = self.folder / "q.json"
        answer = self.ask("--model", "llama-3.1-8b", "--global-batch", 512, "--cluster", machines / "hgx_h100_topo.xml", "--cluster",
                          machines / "topology.conf", "--oversubscription", 2, "--save", scenario)
        cluster = json.loads(scenario.read_text())["cluster"]
        self.assertEqual((cluster["nodes"], cluster["leaf"]), (64, {"nodes": 16, "oversubscription": 2}))
        for name in ("hgx_h100_topo.xml", "topology.conf"):
            self.assertTrue(any(name in line for line in answer["assumed"]), answer["assumed"])
        other = run(POLYPHONY, "ask", "--model", "llama-3.1-8b", "--gpus", "8xA100", "--cluster", machines / "hgx_h100_topo.xml")
        self.assertEqual(other.returncode, 2)
        self.assertIn("names A100-80, ", other.stderr)
        script = harness.ROOT / "tests/system/imported/llama_70b_slurm.sh"
        elsewhere = run(POLYPHONY, "import", script, "--device", "A100-80", "--cluster", machines / "hgx_h100_topo.xml")
        self.assert_one_line(elsewhere, "--device", "names A100-80", "hgx_h100_topo.xml has H100")
        none = run(POLYPHONY, "ask", *SMALL, "--cluster", machines.parent / "ask.py")
        self.assertEqual(none.returncode, 2)
        self.assertIn("NCCL_TOPO_DUMP_FILE", none.stderr)

    def test_a_stack_answers_with_what_it_can_run(self):
        answer = self.ask(*SMALL, "--stack", "hf-eager")
        for row in answer["ranked"]:
            self.assertEqual(row["placement"], "homogeneous")
            self.assertEqual({grid.get("tp", 1) for grid in row["layout_form"].values() if isinstance(grid, dict)}, {1}, row["layout_form"])
            self.assertNotIn("PP", row["words"])

    def test_how_many_are_needed(self):
        question = ["--model", "llama-3.1-8b", "--gpus", "?x1xH100", "--global-batch", 64, "--seq", "4k"]
        answer = self.ask(*question)
        least = answer["least_nodes"]
        self.assertGreater(least["nodes"], 1)  # 8.0e9 parameters × 18 bytes are 145 GB: not on one of 80
        fits = {one["nodes"]: one["fits"] for one in least["tried"]}
        self.assertTrue(fits[least["nodes"]])
        self.assertFalse(fits[least["nodes"] - 1])
        points = sorted((point["nodes"], point["values"]["step"]) for point in answer["goal"]["points"])
        self.assertEqual([nodes for nodes, _ in points], [least["nodes"] * 2**i for i in range(4)])
        self.assertTrue(all(a > b for (_, a), (_, b) in zip(points, points[1:])), points)
        shown = run(POLYPHONY, "ask", *question)
        self.assert_ok(shown)
        self.assertIn(f"At least {least['nodes']} nodes of 1 H100", shown.stdout)
        self.assertEqual(run(POLYPHONY, "ask", *question, "--format", "csv").returncode, 2)

    def test_what_cannot_be_asked_is_refused(self):
        for options, named in (
                ([], "--gpus"), (["--gpus", "8xH100"], "--model"), (["--gpus", "8xZ100", *SMALL[:2]], "--gpus"),
                ([*SMALL, "--seq", "long"], "--seq"), ([*SMALL, "--images", "8"], "--images"), ([*SMALL, "--stack", "megatron-cor"], "megatron-core"),
                ([*SMALL, "--train", "vision"], "--train"), ([*SMALL, "--tokens", "many"], "--tokens"), ([*SMALL, "--save", "/nowhere/q.json"], "/nowhere"),
                (["--model", SCENARIOS / "tiny.json", "--gpus", "H100"], "polyphony sweep"), ([*SMALL, "--out", "row.json"], "--save-row")):
            with self.subTest(options):
                done = run(POLYPHONY, "ask", *options)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(named, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_init_asks_and_writes_a_commented_scenario(self):
        file = self.folder / "mine.json"
        answers = ["siglip-so400m-14 llama-3.1-8b", "8xH100", "4k", "2x784", "projector", "32"]
        init = lambda lines: subprocess.run([POLYPHONY, "init", file], input="".join(line + "\n" for line in lines), capture_output=True, text=True, timeout=30)
        short = init(answers[:3])
        self.assertEqual((short.returncode, file.exists()), (2, False), short.stderr)
        self.assertIn("Images of a sample", short.stderr)
        refused = init([answers[0], "8xZ100"])
        self.assertEqual((refused.returncode, file.exists()), (2, False), refused.stderr)
        self.assertIn("Z100", refused.stderr)
        done = init(answers)
        self.assert_ok(done)
        self.assertIn(f"polyphony sweep {file}", done.stdout)
        self.assertIn("// Accelerators", file.read_text())
        resolved = json.loads(run(POLYPHONY, "plan", file, "--resolved").stdout)
        self.assertEqual((resolved["data"]["sequence"], resolved["data"]["global_batch"]), (4096, 32))
        self.assertEqual(resolved["model"]["language"]["train"], "frozen")
        again = init(answers)  # does not write over a file
        self.assertEqual(again.returncode, 2)

    def test_too_few_devices_are_infeasible(self):
        answer = self.ask("--model", "llama-3.1-70b", "--gpus", "H100", codes=(3,))
        self.assertEqual(answer["ranked"], [])
        self.assertIsNotNone(answer["nearest_misfit"])


if __name__ == "__main__":
    harness.main()
