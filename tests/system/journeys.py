"""Four users' journeys, in the order in which a person would type them: the commands of scenarios/JOURNEYS.md, and the facts that
each is about."""
import csv
import json
import os
import re
import subprocess

import harness
from harness import BUILD, SCENARIOS
from scan import png

PAGE = (SCENARIOS / "JOURNEYS.md").read_text()
VIT = {"architectures": ["SiglipVisionModel"], "model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384,
       "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
         "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05,
         "tie_word_embeddings": False, "hidden_act": "silu", "rope_theta": 500000.0}
SCRIPT = r"""#!/usr/bin/env bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --swiglu --disable-bias-linear --normalization RMSNorm \
  --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 128256 \
  --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 \
  --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
  --bf16 --use-distributed-optimizer --attention-dropout 0 --hidden-dropout 0 --train-iters 1000 --lr 3e-4 \
  --our-own-loader fast
"""
MILLISECONDS = [24000.0, 5600.0, 5010.0, 5030.0, 5050.0, 9000.0, 5020.0]
# One step of two ranks and four microbatches: rank 1 has no time to lose, all weight gradients come last.
OWN = [["0F0", "0F1", "0I0", "0F2", "0I1", "0F3", "0I2", "0W0", "0I3", "0W1", "0W2", "0W3"],
       ["1F0", "1I0", "1F1", "1I1", "1F2", "1I2", "1F3", "1I3", "1W0", "1W1", "1W2", "1W3"]]


class Journeys(harness.SystemTest):
    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=harness.environment(PATH=f"{BUILD}:{os.environ['PATH']}"))

    def do(self, command, code=0):
        """Runs a command of the page; returns its output, in which a blank stands for every break."""
        self.ran.append(command)
        done = self.shell(command)
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}\n{done.stderr}")
        return " ".join((done.stdout + done.stderr).split())

    def answer(self, command, code=0):
        """The answer to a command of the page as JSON."""
        done = self.shell(command + " --format json")
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout)

    def refused(self, command, *named):
        self.assert_one_line(self.shell(command), *named)

    def on_the_page(self, title, *files):
        """Asserts that a section of the page has the commands that ran, in their order, and the contents of the files."""
        section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^    (polyphony .*)$", section, re.M), self.ran)
        self.assertEqual(re.findall(r"^    ([^p].*)$", section, re.M), list(files))

    def setUp(self):
        super().setUp()
        self.ran = []

    def test_which_layout(self):
        self.write("vit/config.json", VIT)
        self.write("llama/config.json", LLAMA)
        shown = self.do("polyphony ask --model vit --model llama --gpus 4x8xH100 --images 4 --price 2.50USD/GPUh --save q.json")
        # Vision: 27 · (4 · 1152² + 2 · 1152 · 4304) = 411M, 1M of biases and norms, 729 · 1152 positions, 588 · 1152 of patches.
        # Projector: 1152 · 4096 + 4096² = 21.5M. Language: 32 · (2 · 4096² + 2 · 4096 · 1024 + 3 · 4096 · 14336) + 2 · 128256 · 4096.
        self.assertIn("vision 413M + projector 22M + language 8.0B | 4 nodes × 8 H100", shown)
        # 4 Mi tokens / 8192.
        for text in ("Assumed:", "(--seq)", "(--global-batch)", "global batch 512, sequence 8,192", "rule of thumb"):
            self.assertIn(text, shown)
        self.do("polyphony plan q.json --resolved")
        resolved = self.answer("polyphony plan q.json --resolved")
        # 384 / 14 = 27 patches a side; 8192 - 4 · 27² = 5276 tokens of text.
        self.assertEqual((resolved["model"]["vision"]["image_size"], resolved["data"]["text"]["tokens"]), (27 * 14, 5276))
        sweep = "polyphony sweep q.json --tokens 1T --for megatron-bridge --report answer.html --save-row 1 --out best.json"
        shown = self.do(sweep)
        self.assertIn("238,419 steps for 1,000,000,000,000 tokens", shown)  # 1e12 / 2²² = 238,418.6
        rows = self.answer(sweep)
        best = rows["ranked"][0]
        # At least 6 FLOPs for each parameter but the embedding's, and token, on 32 · 989 TFLOP/s.
        self.assertGreater(best["step_seconds"], 6 * 7.5e9 * 2**22 / (32 * 989.5e12))
        self.assertAlmostEqual(best["dollars_per_million_tokens"], best["step_seconds"] * 32 * 2.5 / 3600 / (2**22 / 1e6), places=9)
        days = float(re.search(r"take ([\d.]+) days", shown)[1])
        self.assertGreater(days, 238419 * best["step_seconds"] / 86400 - 0.01)
        self.assertLess(days, 1.05 * 238419 * best["step_seconds"] / 86400)  # some are lost to failures
        self.assertIn("megatron-bridge can run every row", shown)
        target = rows["target"]
        self.assertNotIn("colocated", {row["placement"] for row in rows["ranked"]})  # which Megatron-Bridge does not have
        if target["best"] is not None:
            self.assertAlmostEqual(target["slower"], best["step_seconds"] / target["best_step_seconds"] - 1, places=6)
            self.assertNotEqual(target["missing"], [])
        self.do("polyphony emit best.json --for megatron-bridge --out run")
        page = (self.folder / "answer.html").read_text()
        self.assertIn("</html>", page)
        self.assertIsNone(re.search(r"(src|href)=[\"']https?:", page), "the page opens offline")
        none = "polyphony sweep q.json --estimate --for torchtitan"
        self.assertIn("torchtitan can run none of the layouts", self.do(none))
        self.assertFalse(self.answer(none)["target"]["runs"])
        self.do("polyphony simulate best.json")
        self.assertAlmostEqual(self.answer("polyphony simulate best.json")["step_seconds"], best["step_seconds"], delta=0.01 * best["step_seconds"])
        self.on_the_page("Which layout?")

    def test_is_my_script_right_and_why_is_it_slow(self):
        self.write("train.sh", SCRIPT)
        self.write("run.log", "".join(
            f" [2026-01-05 10:00:{i:02}] iteration {i:8}/    1000 | consumed samples: {64 * i:12} | elapsed time per iteration (ms): {time} | "
            f"global batch size:    64 | lm loss: 1.1E+01 |\n" for i, time in enumerate(MILLISECONDS, 1)))
        command = "polyphony import train.sh --log run.log --device H100 --out today.json"
        self.assertIn("measured step 5.03 s", self.do(command))
        imported = self.answer(command)
        # 16 / (2 · 2) = DP4; 64 / 4 samples of one each; 32 blocks / 2.
        self.assertEqual(imported["layout"], "TP2 SP PP2 DP4, ZeRO-1, recompute all layers, 16 blocks a stage, 1F1B, 16 microbatches")
        self.assertAlmostEqual(imported["measured_step"], 5.03, places=9)  # the median without the first two
        self.assertEqual([line["setting"] for line in imported["report"]["unknown"]], ["--our-own-loader fast"])
        why = "polyphony why today.json --for megatron-lm"
        self.assertIn("The same in megatron-lm's settings", self.do(why))
        changes = {"; ".join(change["changes"]): change for change in self.answer(why)["worth_trying"]}
        change = changes["language recompute full -> none"]
        # The forward is computed a second time: at most 1 of 4 units of work.
        self.assertGreater(change["gain"], 0.1)
        self.assertLess(change["gain"], 0.25)
        self.assertIn("without --recompute-granularity", change["settings"])
        without = "--set layout.language.recompute=none"
        self.assertIn("what if as written changed difference", self.do(f"polyphony why today.json {without}"))
        self.assertIn("what if as written changed difference", self.do(f"polyphony simulate today.json {without}"))
        variant = self.answer(f"polyphony simulate today.json {without}")
        today = self.answer("polyphony simulate today.json")
        self.assertAlmostEqual(variant["unchanged"]["step_seconds"], today["step_seconds"], places=9)
        self.assertAlmostEqual(1 - variant["step_seconds"] / today["step_seconds"], change["gain"], delta=0.01)
        self.assertGreater(variant["peak_memory_bytes"], today["peak_memory_bytes"])
        vary = "polyphony sweep today.json --vary layout.language.recompute=full,selective,none"
        self.do(vary)
        steps = [question["best"]["step_seconds"] for question in self.answer(vary)["questions"]]
        self.assertEqual([steps[0], steps[2]], [today["step_seconds"], variant["step_seconds"]])
        self.assertGreater(steps[0], steps[1])
        better = '{"extends": "today.json", "layout": {"language": {"recompute": "none"}}}'
        self.write("better.json", better)
        self.do("polyphony emit better.json --for megatron-lm --out run")
        self.assertNotIn("--recompute", (self.folder / "run/run.sh").read_text())
        again = self.answer("polyphony import run/run.sh --device H100")
        self.assertEqual(again["layout"], imported["layout"].replace(", recompute all layers", ""))
        self.assertAlmostEqual(again["predicted_step"], variant["step_seconds"], delta=0.01 * variant["step_seconds"])
        self.on_the_page("Is my script right, and why is it slow?", better)

    def test_will_it_fit_on_my_data(self):
        self.write("today.json", {
            "polyphony": 1, "cluster": {"node": "hgx-h100"}, "training": {"precision": "bf16"},
            "model": {"vision": {"preset": "qwen2-vl-vision"}, "projector": {"from": "vision", "merge": "2x2"},
                      "language": {"preset": "qwen2.5-7b", "from": "projector"}},
            "data": {"source": "synthetic", "images": {"per_sample": 2}, "text": {"tokens": 7680}, "sequence": 8192, "global_batch": 64},
            "layout": {"placement": "homogeneous", "microbatches": 8, "all": {"shard": "full"}}})
        for side in (112, 224, 448):
            self.write(f"images/{side}.png", png(side, side))
        lines = []
        for i in range(640):  # one of them has many large images
            images = ["448.png"] * 30 if i == 333 else ["112.png" if i % 2 else "224.png"]
            lines.append(json.dumps({"image": images, "conversations": [{"from": "human", "value": "<image>" * len(images) + "what? " * 20},
                                                                        {"from": "gpt", "value": "word " * 100}]}))
        self.write("sft.jsonl", "\n".join(lines) + "\n")
        self.do("polyphony simulate today.json")  # fits: exit code 0
        scan = "polyphony scan today.json sft.jsonl --pictures images --native --out mix.jsonl"
        self.assertIn("640 samples of sft.jsonl", self.do(scan))
        recorded = [json.loads(line)["items"] for line in (self.folder / "mix.jsonl").read_text().splitlines()]
        text = ["text", (120 + 500) // 4, 500 // 4]  # 4 bytes a token
        self.assertEqual(recorded[0], [["image", 16 * 16], text])  # 224 / 14
        self.assertEqual(recorded[1], [["image", 8 * 8], text])
        self.assertEqual(recorded[333], [["image", 32 * 32]] * 30 + [text])
        mine = '{"extends": "today.json", "data": {"source": {"recorded": "mix.jsonl"}, "images": null, "text": null}}'
        self.write("mine.json", mine)
        command = "polyphony simulate mine.json --batches 20 --steps 30"
        self.assertIn("sample 333", self.do(command, code=3))
        answer = self.answer(command, code=3)
        # Twice ten batches of 64 have each of the 640 samples twice; 30 steps meet it with 1 - 0.9³⁰.
        risk = answer["out_of_memory"]
        self.assertEqual((answer["batches"], risk["batches"]), (20, 2))
        self.assertAlmostEqual(risk["per_step"], 0.1)
        self.assertAlmostEqual(risk["in_run"], 1 - 0.9**30)
        self.assertEqual([(sample["id"], sample["tokens"]) for sample in answer["worst"]["samples"]],
                         [(333, {"image": 30 * 1024, "text": 155})])
        self.assertGreater(answer["worst"]["peak_bytes"], answer["device_bytes"])
        self.assertLess(answer["stages"][0]["p50_bytes"], 0.5 * answer["device_bytes"])
        command = "polyphony simulate mine.json --set layout.all.recompute=full --batches 20 --steps 30"
        self.do(command)
        full = self.answer(command)
        self.assertEqual(full["out_of_memory"]["batches"], 0)
        self.assertLess(full["largest_samples_peak_bytes"], full["device_bytes"])
        # Recomputation keeps a block's input alone, and of one block at a time what it needs; without it each block keeps a dozen such vectors.
        self.assertLess(full["worst"]["peak_bytes"], 0.5 * answer["worst"]["peak_bytes"])
        self.on_the_page("Will it fit on my data?", mine)

    def test_my_schedule_against_the_others(self):
        units = [f"{module},{stage},all,1ms,1ms,1ms,100MB" for module in ("vision", "language") for stage in (0, 1)]
        self.write("times.csv", "\n".join(["module,stage,microbatch,forward,backward_input,backward_weight,bytes", *units]) + "\n")
        as_csv = lambda rows: "".join(",".join(cells) + "\n" for cells in rows)
        self.write("mine.csv", as_csv(OWN))
        self.write("q2.json", {
            "polyphony": 1, "model": {"language": {"preset": "llama-3.1-8b"}}, "cluster": {"node": "hgx-h100"},
            "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 16}, "training": {"precision": "bf16"},
            "layout": {"placement": "homogeneous", "microbatches": 4, "language": {"pp": 2, "shard": "full"}}})
        times = "polyphony schedules --times times.csv --ranks 2 --microbatches 4"
        # Each rank has two units: F, I and W of 2 ms for each of 4 microbatches are 24 ms. Rank 1 starts after 2 ms and never waits again.
        self.assertIn("own 26.00 ms 7.7 %, 7.7 %", self.do(f"{times} --schedule mine.csv"))
        self.write("short.csv", as_csv([OWN[0], [cell for cell in OWN[1] if cell != "1I3"]]))
        self.refused(f"{times} --schedule short.csv", "short.csv", "microbatch 3 of stage 1")
        # Rank 0 waits for the backward of microbatch 0, before which rank 1 wants the forward of microbatch 1.
        self.write("stuck.csv", "0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n1F0,1F1,1B0,1B1,1F2,1B2,1F3,1B3\n")
        for more in ("--times times.csv --ranks 2 --microbatches 4 --schedule stuck.csv", "stuck.csv --scenario q2.json"):
            self.refused(f"polyphony schedules {more}", "stuck.csv", "wait for each other", "B microbatch 0 of stage 0", "F microbatch 1 of stage 1")
        self.do(f"{times} --all --schedule mine.csv --gantt page.svg")
        self.assertIn("</svg>", (self.folder / "page.svg").read_text())
        self.do(f"{times} --all --schedule mine.csv --format csv > rows.csv")
        with open(self.folder / "rows.csv", newline="") as file:
            rows = {row["schedule"]: row for row in csv.DictReader(file)}
        makespans = {name: float(row["makespan_seconds"]) for name, row in rows.items() if row["makespan_seconds"]}
        # 1F1B: 4 + 1 microbatches of 6 ms. Interleaved: two turns, so that half of a microbatch's 6 ms is lost. Zero bubble: a forward is lost.
        for name, milliseconds in (("1f1b", 30), ("interleaved", 27), ("zero-bubble", 26), ("own", 26)):
            self.assertAlmostEqual(makespans[name], milliseconds / 1000, places=9)
        self.assertEqual(rows["interleaved"]["setting"], "vpp 2")
        self.assertAlmostEqual(makespans["searched"], min(makespans.values()), places=9)
        # 1F1B keeps two microbatches of 2 · 100 MB on rank 0 and one on rank 1; ours all four until their weight gradients.
        memory = lambda name: [float(bytes) / 1e6 for bytes in rows[name]["rank_peak_activation_bytes"].split()]
        self.assertEqual((memory("1f1b"), memory("own")), ([400, 200], [800, 800]))
        self.assertAlmostEqual(float(rows["1f1b"]["mean_bubble"]), 6 / 30, places=5)
        for row in rows.values():  # no order is below the time of the work itself
            if row["makespan_seconds"]:
                self.assertAlmostEqual(float(row["any_bound_seconds"]), 0.024, places=9)
                self.assertGreaterEqual(float(row["makespan_seconds"]), float(row["bound_seconds"]) - 1e-9)
        self.assertIn("Verified.", self.do("polyphony schedules mine.csv --scenario q2.json --out order.txt"))
        self.assertIn("own order of actions", self.do("polyphony simulate q2.json --schedule mine.csv --gantt mine.svg"))
        self.assertIn("</svg>", (self.folder / "mine.svg").read_text())
        step = self.answer("polyphony simulate q2.json --schedule mine.csv")["step_seconds"]
        self.assertLess(step, self.answer("polyphony simulate q2.json --schedule 1f1b")["step_seconds"])
        lines = [line for line in (self.folder / "order.txt").read_text().splitlines() if line[0] in "FIW"]
        self.assertEqual(lines[0].split()[:4], ["F0.0", "F0.1", "I0.0", "F0.2"])
        self.write("own.json", {"extends": "q2.json", "layout": {"actions": lines}})
        self.do("polyphony emit own.json --for torchtitan --out run")
        self.assertEqual((self.folder / "run/schedule.csv").read_text().splitlines(), as_csv(OWN).splitlines())
        self.assertIn("pipeline_parallel_schedule_csv", (self.folder / "run/polyphony_config.py").read_text())
        self.assertAlmostEqual(self.answer("polyphony simulate own.json")["step_seconds"], step, places=9)
        self.on_the_page("My schedule against the others", '{"extends": "q2.json", "layout": {"actions": ["F0.0 F0.1 …", "F1.0 I1.0 …"]}}')


if __name__ == "__main__":
    harness.main()
