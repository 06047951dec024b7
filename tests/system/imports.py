"""import and emit: launch scripts, logs and configurations of each framework become the layout that they state, and back again."""
import gzip
import json
import unittest

import harness
from harness import POLYPHONY, ROOT, SCENARIOS, run

FILES = ROOT / "tests/system/imported"

# file: (files beside it, options, framework, layout in words, tokens of a sequence, samples of a step, accelerators)
CASES = {
    # 128 GPUs / (TP8 · CP2 · PP4) = DP2; 128 samples / (1 · 2) = 64 microbatches; 80 blocks / 4 = 20.
    "llama_70b_slurm.sh": ([], ["--device", "H100"], "megatron-lm",
                           "TP8 SP CP2 (ring) PP4 DP2, ZeRO-1, 20 blocks a stage, 1F1B, 64 microbatches", 16384, 128, 128),
    # 16 / (2 · 4) = DP2; 24 blocks / PP4 / 3 chunks = 2, of which each rank has 24 / 4 / 2 = 3; the batch is 2 · 2 · 16.
    "gpt_defaults.sh": ([], ["--device", "A100-80"], "megatron-lm",
                        "TP2 SP PP4 VPP3 DP2, ZeRO-1, recompute attention, 2 blocks a stage, interleaved 1F1B, 16 microbatches", 2048, 64, 16),
    # 128 / (2 · 4) = DP16; 56 blocks / PP4 / 7 = VPP2; 256 / 16. Of the modules, core_attn is the one that is modeled.
    "mixtral_8x22b.sh": ([], ["--gpus", "16x8xH100"], "megatron-lm",
                         "TP2 SP EP8 (experts TP1) PP4 VPP2 DP16, ZeRO-1, recompute attention, 7 blocks a stage, interleaved 1F1B, 16 microbatches",
                         4096, 256, 128),
    # 256 / PP8 = DP32; 512 / 32. Stages: 3, 14 times 4, 2: 61 blocks on 16 stages, VPP2. Experts' TP1 is TP1.
    "deepseek_v3.sh": ([], ["--device", "H100"], "megatron-lm",
                       "TP1 EP32 PP8 VPP2 DP32, ZeRO-1, stages of 3, 14 times 4 and 2 blocks, interleaved 1F1B, 16 microbatches", 4096, 512, 256),
    # 64 / (4 · 4) = DP4, of which half share an optimizer; 64 - 14 - 14 = 36 = 2 · 18; 3 blocks of 4 stages: 12.

    "qwen_32b_uneven.sh": ([], ["--device", "H100"], "megatron-lm",
                           "TP4 SP PP4 DP4, ZeRO-1 over 2 of 4 DP ranks, recompute layers 0-11, stages of 14, 2 times 18 and 14 blocks, 1F1B, "
                           "64 microbatches", 8192, 256, 64),

    "llama_8b_run.log": ([], ["--device", "H100"], "megatron-lm",
                         "TP2 SP PP2 VPP2 DP4, ZeRO-1, 8 blocks a stage, interleaved 1F1B, 16 microbatches", 8192, 64, 16),
    # 48 blocks / (PP2 · VPP12) = 2; 512 / 8.
    "qwen3_30b_run_config.yaml": ([], ["--gpus", "2x8xH100"], "megatron-bridge",
                                  "TP1 EP8 PP2 VPP12 DP8, ZeRO-1, 2 blocks a stage, interleaved 1F1B, 64 microbatches", 4096, 512, 16),
    # 64 / (4 · 4) = DP4; 80 / (4 · 5) = 4; 128 / 4.

    "llama_70b_bridge.sh": ([], ["--device", "H100", "--model", "llama-3.1-70b"], "megatron-bridge",
                            "TP4 SP PP4 VPP5 DP4, ZeRO-1, recompute all layers, 4 blocks a stage, interleaved 1F1B, 32 microbatches", 8192, 128, 64),
    # 16 / (2 · 2) = DP4; 48 - 23 = 25. ms-swift's experts have TP1 unless stated.

    "qwen3_moe_swift.yaml": ([], ["--gpus", "2x8xH100"], "ms-swift",
                             "TP2 SP EP4 (experts TP1) PP2 DP4, ZeRO-1, recompute all layers, stages of 25 and 23 blocks, 1F1B, 8 microbatches",
                             8192, 32, 16),
    # 8 / (2 · 2) = DP2; the first stage: 32 / 2 = 16 blocks and 23 of the encoder's 24, whose last but one gives the features.

    "llava_swift.sh": ([], ["--device", "H100", "--model", FILES / "llava_config.json"], "ms-swift",
                       "homogeneous: TP2 SP PP2 DP2, ZeRO-1, stages of 39 and 16 blocks, 1F1B, 8 microbatches", 4096, 16, 8),
    # 16 / (2 · 2) = DP4; 8 samples a rank, 1 a microbatch. Embedding and head count as a block each: 34 on 4 stages are 9, 9, 8, 8.

    "llama3_8b_titan.toml": ([], ["--gpus", "2x8xH100"], "torchtitan",
                             "TP2 SP PP2 VPP2 DP4, ZeRO-2, recompute all layers, stages of 8, 9, 8 and 7 blocks, interleaved 1F1B, 8 microbatches",
                             8192, 32, 16),
    # 32 = 2 copies · 8 shards · CP2; 1,048,576 tokens a step / 16,384 = 64 samples; 64 / 16.

    "llama3_8b_titan.json": ([], ["--gpus", "4x8xH100"], "torchtitan",
                             "TP1 CP2 DP16, ZeRO-3 (FSDP) over 16 of 32 DP·CP ranks, recompute attention, 4 microbatches", 16384, 64, 32),
    # 8 / 2 = DP4; 32 / (2 · 4).
    "llama3_8b_titan.sh": ([], ["--device", "H100"], "torchtitan", "TP2 SP DP4, ZeRO-3 (FSDP), 4 microbatches", 4096, 32, 8),
    # LLaMA-Factory recomputes unless told otherwise; 2 samples · 4 microbatches · 8 ranks. zero3.json is found beside it.
    "qwen_lora_factory.yaml": ([], ["--gpus", "8xA100-80"], "llama-factory", "TP1 DP8, ZeRO-3 (FSDP), recompute all layers, 4 microbatches", 4096, 64, 8),
    "llama_factory.sh": (["zero3.json"], ["--device", "A100-80"], "llama-factory",
                         "TP1 DP8, ZeRO-3 (FSDP), recompute all layers, 8 microbatches", 2048, 64, 8),
    # 4 samples · 2 microbatches · 16 ranks.

    "mistral_deepspeed.sh": ([], ["--device", "A100-80", "--model", "mistral-7b"], "hf-trainer",
                             "TP1 DP16, ZeRO-2, recompute all layers, 2 microbatches", 2048, 128, 16),
    # 16 / (2 · 2) = DP4; 64 prompts · 8 responses = 512 samples of 2,048 + 6,144 tokens; 2 · 8,192 tokens are 2 samples; 512 / 4 / 2.
    # verl's sequence parallelism is on unless stated.
    "qwen3_30b_verl.sh": ([], ["--device", "H100"], "verl",
                          "TP2 SP EP4 (experts TP1) PP2 DP4, ZeRO-1, recompute all layers, 24 blocks a stage, 1F1B, 64 microbatches", 8192, 512, 16),
    # 8 / CP2 = DP4, with 24 samples each; 8,192 tokens · CP2 = 8 samples of 2,048; 24 / 8.
    "qwen_7b_verl_sft.sh": ([], ["--device", "H100"], "verl", "TP1 CP2 (ulysses) DP4, ZeRO-3 (FSDP), recompute all layers, 3 microbatches", 2048, 96, 8),
    # 16 / (2 · 2) = DP4; a microbatch has 16,384 · 1 tokens, one sample; 128 / 4. nemo_rl_base.yaml is found beside it.
    "llama_8b_nemo_rl.yaml": ([], ["--device", "H100"], "nemo-rl",
                              "TP2 SP PP2 DP4, ZeRO-1, recompute all layers, 16 blocks a stage, 1F1B, 32 microbatches", 16384, 128, 16),
    # 8 / PP4 = DP2; 1 sample · 8 microbatches · DP2.
    "qwen3_moe_factory_mca.yaml": ([], ["--gpus", "8xH100"], "llama-factory",
                                   "TP1 EP2 PP4 DP2, ZeRO-1, recompute all layers, 12 blocks a stage, 1F1B, 8 microbatches", 4096, 16, 8),
    # Accelerate's file has 32 processes: 1 · 2 · 32.
    "qwen_accelerate.sh": ([], ["--device", "H100"], "hf-trainer", "TP1 DP32, ZeRO-3 (FSDP), recompute all layers, 2 microbatches", 8192, 64, 32),
}
SMALL = ("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "
         "--micro-batch-size 2 --global-batch-size 64 --vocab-size 32000 --bf16 ")


class Imports(harness.SystemTest):
    def imported(self, name, *options, code=0):
        done = run(POLYPHONY, "import", FILES / name, *options, "--format", "json")
        self.assertEqual(done.returncode, code, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr}")
        return json.loads(done.stdout)

    def written(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def texts(self, answer, kind):
        return [f"{line['setting']}: {line['text']}" for line in answer["report"][kind]]

    def test_each_file_becomes_the_layout_that_it_states(self):
        for name, (beside, options, framework, words, sequence, batch, accelerators) in CASES.items():
            with self.subTest(name):
                answer = self.imported(name, *[FILES / other for other in beside], *options)
                scenario = answer["scenario"]
                self.assertEqual((answer["framework"], answer["layout"], answer["illegal"]), (framework, words, ""))
                self.assertEqual(answer["report"]["unknown"], [])
                self.assertEqual(answer["report"]["contradictions"], [])
                self.assertEqual((scenario["data"]["sequence"], scenario["data"]["global_batch"]), (sequence, batch))
                self.assertEqual(scenario["training"]["precision"], "bf16")
                self.assertEqual(scenario["cluster"]["nodes"] * 8, accelerators)
                self.assertGreater(answer["predicted_step"], 0)
                # Every setting is accounted for once, with the file and its place.
                for kind in ("used", "approximated", "not_modeled", "ignored"):
                    for line in answer["report"][kind]:
                        self.assertTrue(line["text"], line)
                        if line["setting"]:
                            self.assertRegex(line["place"], r"(:\d+|: /.+)$", line)
                # Adam and AdamW are what is modeled. needs: the value of "optimizer" and "optimizer.name" is looked at.
                self.assertEqual([text for text in self.texts(answer, "not_modeled") if "another optimizer" in text], [])

    def test_every_fixture_is_imported(self):
        used = set(CASES) | {"llava_config.json", "zero2.json", "zero3.json", "fsdp2.yaml", "nemo_rl_base.yaml"}
        self.assertEqual({path.name for path in FILES.iterdir()}, used)

    def test_a_log_has_the_measured_step(self):
        # The median without the first two, which are slower: of 4.0987, 4.0995, 4.1002, 4.1010, 4.1024, 4.1036, 4.1051, 4.1108, 5.9332.
        answer = self.imported("llama_8b_run.log", "--device", "H100")
        self.assertAlmostEqual(answer["measured_step"], 4.1024, places=9)
        self.assertGreater(answer["report"]["off"], 20)
        # A plain run: what it prints are defaults. needs: printed defaults are told from what is asked for.
        self.assertEqual(self.texts(answer, "not_modeled"), [])
        beside = self.imported("gpt_defaults.sh", "--gpus", "2x8xH100", "--log", FILES / "llama_8b_run.log")
        self.assertAlmostEqual(beside["measured_step"], 4.1024, places=9)
        self.assertIsNone(self.imported("gpt_defaults.sh", "--gpus", "2x8xH100")["measured_step"])
        shown = run(POLYPHONY, "import", FILES / "llama_8b_run.log", "--device", "H100", "--out", self.folder / "s.json")
        self.assert_ok(shown)
        for text in ("measured", "4.10 s", "TP2 SP PP2 VPP2 DP4"):
            self.assertIn(text, shown.stdout)
        self.assertTrue(all(len(line) <= 80 for line in shown.stdout.splitlines()), shown.stdout)

    def test_a_profile_has_the_measured_step(self):
        """Four blocks of Llama-8B, recorded on an H100. The profile has no optimizer: without one it is of no whole step."""
        sample = ROOT / "traces/samples/llama_8b_eager.json.gz"
        config = self.written("config.json", json.dumps({
            "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
            "intermediate_size": 14336, "vocab_size": 32, "rms_norm_eps": 1e-5, "hidden_act": "silu", "max_position_embeddings": 8192,
            "tie_word_embeddings": False}))
        script = self.written("train.sh", "torchrun --nproc_per_node 1 train.py --model_name_or_path llama --per_device_train_batch_size 1 "
                                          "--max_seq_length 8192 --bf16 true\n")
        options = [script, "--model", config, "--gpus", "1xH100", "--format", "json", "--trace"]
        half = run(POLYPHONY, "import", *options, sample)
        self.assert_ok(half)
        self.assertIsNone(json.loads(half.stdout)["measured_step"])
        self.assertIn("has no kernels of the kind: optimizer", half.stderr)
        # The last kernel of each step becomes one of an optimizer. A step: from one's first kernel to the next one's.
        trace = json.loads(gzip.decompress(sample.read_bytes()))
        first, second = sorted(event["ts"] for event in trace["traceEvents"]
                               if event.get("cat") == "gpu_user_annotation" and event["name"].startswith("ProfilerStep#"))
        kernels = sorted((event for event in trace["traceEvents"] if event.get("cat") == "kernel"), key=lambda event: event["ts"])
        for kernel in (kernels[-1], [kernel for kernel in kernels if kernel["ts"] < second - 1][-1]):
            kernel["name"] = "void multi_tensor_apply_kernel<AdamFunctor>()"
        whole = self.written("whole.json", json.dumps(trace))
        answer = self.imported(*options[:-3], "--trace", whole)
        self.assertAlmostEqual(answer["measured_step"], (second - first) * 1e-6, delta=1e-8)
        shown = run(POLYPHONY, "import", *options[:-3], "--trace", whole, "--out", self.folder / "s.json")
        self.assert_ok(shown)
        self.assertIn("the median of 2 steps of", shown.stdout)
        self.assert_one_line(run(POLYPHONY, "import", *options, whole, "--log", sample), "--trace", "given with --log")

    def test_dimensions_and_what_is_trained(self):
        def module(name, key="language"):
            return self.imported(name, *CASES[name][1])["scenario"]["model"][key]

        deepseek = module("deepseek_v3.sh")
        self.assertEqual([deepseek[key] for key in ("layers", "dense_blocks", "experts", "experts_per_token", "shared_ffn", "key_value_rank",
                                                    "query_rank", "rotary_dim", "value_dim", "head_dim", "expert_groups", "routed_scale")],
                         [61, 3, 256, 8, 2048, 512, 1536, 64, 128, 128, 8, 2.5])
        # 151,936 up to a multiple of 128 · TP4 = 512: 297 · 512.
        self.assertEqual(module("qwen_32b_uneven.sh")["vocab"], 152064)
        # GPT-2's 50,257 up to a multiple of 128 · TP2: 197 · 256.
        self.assertEqual(module("gpt_defaults.sh")["vocab"], 50432)
        self.assertEqual(module("mixtral_8x22b.sh")["balance_weight"], 0.02)
        for key in ("vision", "projector"):
            self.assertEqual(module("llava_swift.sh", key)["train"], "frozen")
        self.assertEqual((module("qwen_lora_factory.yaml")["train"], module("qwen_lora_factory.yaml")["lora_rank"]), ("lora", 16))
        # One scale a tensor ("current scaling"). needs: mixed_precision=... of the command line.
        self.assertEqual(self.imported("llama_70b_bridge.sh", *CASES["llama_70b_bridge.sh"][1])["scenario"]["training"].get("fp8"), "tensorwise")

    def test_variables_of_the_environment(self):
        def words(name, *settings):
            options = [word for setting in settings for word in ("--env", setting)]
            return self.imported(name, *CASES[name][1], *options)

        # 16 / (4 · 2) = DP2; 24 / 2 / 2 = 6 blocks.
        self.assertEqual(words("gpt_defaults.sh", "TP=4", "PP=2", "CHUNKS=2", "RECOMPUTE=none", "ACCUMULATE=4")["layout"],
                         "TP4 SP PP2 VPP2 DP2, ZeRO-1, 6 blocks a stage, interleaved 1F1B, 4 microbatches")
        # [[ $PP -gt 1 && $CHUNKS -gt 1 ]] is false.
        alone = words("gpt_defaults.sh", "TP=1", "PP=1", "RECOMPUTE=full")
        self.assertEqual(alone["layout"], "TP1 DP16, ZeRO-1, recompute all layers, 16 microbatches")
        self.assertEqual([text for text in self.texts(alone, "assumed") if "not known here" in text], [])
        deepseek = words("deepseek_v3.sh", "FP8=1", "DISPATCHER=flex")
        self.assertEqual((deepseek["scenario"]["training"]["fp8"], deepseek["stack"]), ("rowwise", "megatron-bridge"))
        # Megatron-LM's own example has stages without a block, which no layout here can say: 32 stages are VPP4.
        empty = words("deepseek_v3.sh", "VPP_LAYOUT=Et*3|(tt|)*29,m|L")
        self.assertEqual(empty["layout"], "TP1 EP32 PP8 VPP4 DP32, ZeRO-1, interleaved 1F1B, 16 microbatches")
        self.assertTrue(any("no block" in text for text in self.texts(empty, "approximated")), self.texts(empty, "approximated"))

    def test_what_a_shell_would_do(self):
        small = SMALL.replace("--num-layers 8", "--num-layers $L")
        for name, script, layers, tp in (

                ("case.sh", "SIZE=${SIZE:-small}\ncase \"$SIZE\" in\n  small) L=8 ;;\n  large) L=40 ;;\nesac\n" + small, 8, 1),
                ("and.sh", "L=8; T=1\n[ -z \"$NO_SUCH\" ] && T=2\n" + small + "--tensor-model-parallel-size $T", 8, 2),
                ("or.sh", "L=8; T=1\n[[ -n \"$NO_SUCH\" || $L -lt 4 ]] || T=4\n" + small + "--tensor-model-parallel-size $T", 8, 4),

                ("element.sh", "L=8\nA=(--disable-bias-linear)\nA[${#A[@]}]=\"--tensor-model-parallel-size=2\"\n" + small + '"${A[@]}"', 8, 2),
                ("let.sh", "let L=16/2\n" + small, 8, 1)):
            with self.subTest(name):
                scenario = self.imported(self.written(name, script + "\n"), "--gpus", "8xH100")["scenario"]
                self.assertEqual((scenario["model"]["language"]["layers"], scenario["layout"]["language"].get("tp", 1)), (layers, tp))

    def test_a_configuration_named_by_a_script_without_a_framework_is_the_trainers(self):
        # As TRL's examples start: full fine-tuning, which LLaMA-Factory would default to LoRA.

        self.written("sft.yaml", "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 4\n"
                                 "gradient_checkpointing: true\nmax_seq_length: 2048\nbf16: true\n")
        script = self.written("run.sh", f"accelerate launch --config_file {FILES / 'fsdp2.yaml'} scripts/run_sft.py sft.yaml\n")
        answer = self.imported(script, "--device", "H100")
        self.assertEqual((answer["framework"], answer["layout"]), ("hf-trainer", "TP1 DP32, ZeRO-3 (FSDP), recompute all layers, 4 microbatches"))
        self.assertEqual(answer["scenario"]["model"]["language"], {"preset": "qwen2.5-7b"})

    def test_imported_scenarios_are_simulated(self):
        for name in ("llama_70b_slurm.sh", "llava_swift.sh", "qwen_accelerate.sh"):
            with self.subTest(name):
                out = self.folder / (name + ".json")
                answer = self.imported(name, *CASES[name][1], "--out", out)
                self.assertEqual(json.loads(out.read_text())["layout"], answer["scenario"]["layout"])
                done = run(POLYPHONY, "simulate", out, "--format", "json")
                self.assert_ok(done)
                step = json.loads(done.stdout)["step_seconds"]
                self.assertGreater(step, 0.9 * answer["predicted_step"])
                self.assertLess(step, 1.1 * answer["predicted_step"])

    def test_without_out_the_scenario_is_printed_and_the_report_is_told(self):
        done = run(POLYPHONY, "import", FILES / "mixtral_8x22b.sh", "--gpus", "16x8xH100")
        self.assert_ok(done)
        self.assertEqual(json.loads(done.stdout)["layout"]["language"]["ep"], 8)
        for text in ("0 not understood", "--recompute-modules core_attn moe_act layernorm", "EP8 (experts TP1)"):
            self.assertIn(text, " ".join(done.stderr.split()))
        listed = run(POLYPHONY, "import", FILES / "mixtral_8x22b.sh", "--gpus", "16x8xH100", "--out", self.folder / "m.json", "--all")
        self.assertIn("--moe-grouped-gemm", listed.stdout)

    def test_an_option_that_does_not_exist_is_told(self):
        script = self.written("run.sh", SMALL + "--tensor-model-paralel-size 2\n")
        answer = self.imported(script, "--gpus", "8xH100")
        self.assertEqual([(line["setting"], line["place"]) for line in answer["report"]["unknown"]],
                         [("--tensor-model-paralel-size 2", f"{script}:1")])

    def test_what_cannot_be_read_is_refused(self):
        garbage = bytes(range(256)) * 8
        for files, options, named in (
                (["unset.sh", SMALL + "--tensor-model-parallel-size $TP\n"], [], ["unset.sh:1", "$TP", "--env TP="]),

                (["sum.sh", SMALL + "--tensor-model-parallel-size $((GROUP * 2))\n"], [], ["sum.sh:1", "GROUP", "--env GROUP="]),
                (["garbage.bin", garbage], [], ["garbage.bin"]),
                (["garbage.sh", garbage], [], ["garbage.sh"]),
                (["garbage.yaml", garbage], [], ["garbage.yaml"]),
                (["garbage.json", garbage], [], ["garbage.json", "JSON"]),
                (["empty.sh", ""], [], ["empty.sh"]),
                (["quote.sh", "torchrun pretrain_gpt.py --num-layers \"8\n"], [], ["quote.sh:1", "not closed"]),
                # 8 - 3 = 5 blocks on 3 stages; 8 - 3 - 4 = 1 block on none.
                (["first.sh", SMALL + "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3\n"], [],
                 ["first.sh:1", "--decoder-first-pipeline-num-layers", "5 blocks", "3"]),

                (["both.sh", SMALL + "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 4\n"],
                 [], ["both.sh:1", "-pipeline-num-layers"]),
                # Ranks of 4 blocks in virtual stages of 3; 3 stages on 2 ranks; 7 letters for 8 blocks.
                (["virtual.sh", SMALL + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3\n"], [], ["virtual.sh:1", "4 blocks"]),
                (["stages.sh", SMALL + "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|t*3|tL'\n"], [],
                 ["stages.sh:1", "3 stages", "2 pipeline ranks"]),
                (["letters.sh", SMALL + "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|x*4L'\n"], [], ["letters.sh:1", '"x"'])):
            with self.subTest(files[0]):
                self.assert_one_line(run(POLYPHONY, "import", self.written(*files), "--gpus", "8xH100", *options), *named)
        script = FILES / "llama_70b_slurm.sh"
        for options, named in (
                ([FILES / "llava_config.json", "--gpus", "8xH100"], ["llava_config.json", "--model"]),
                ([SCENARIOS / "tiny.json", "--gpus", "8xH100"], ["tiny.json", "scenario", "polyphony sweep"]),
                ([script, "--gpus", "8xH100", "--from", "megatron-ml"], ["--from", "megatron-lm"]),
                ([script], ["--gpus"]),
                ([script, "--gpus", "12x8xH100"], ["--gpus", "96"]),
                ([script, "--gpus", "16x8xZ100"], ["Z100"]),
                ([script, "--device", "H100", "--env", "TP"], ["--env", "NAME=VALUE"]),
                ([script, "--device", "H100", "--out", "/nowhere/s.json"], ["/nowhere"]),
                ([script, FILES / "llama3_8b_titan.toml", "--gpus", "16x8xH100"], ["megatron-lm", "torchtitan"]),
                ([FILES / "none.sh", "--gpus", "8xH100"], ["none.sh"]),
                (["--gpus", "8xH100"], ["file"])):
            with self.subTest(options):
                done = run(POLYPHONY, "import", *options)
                self.assert_one_line(done, *named)
                self.assertEqual(done.stdout, "")

    def test_contradictions_are_told(self):
        both = self.written("both.sh", SMALL + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
                                               "--pipeline-model-parallel-layout 'Ett|tt|tt|ttL'\n")
        self.assertIn("two ways", self.texts(self.imported(both, "--gpus", "8xH100"), "contradictions")[0])
        ranks = self.imported("llama_8b_run.log", "--gpus", "4x8xH100")  # the run printed world_size = 16
        self.assertIn("16", self.texts(ranks, "contradictions")[0])

        self.assertIn("128", " ".join(self.texts(self.imported("llama_70b_slurm.sh", "--gpus", "8x8xH100"), "contradictions")))

    def test_a_layout_that_is_illegal_here_is_written_with_exit_code_3(self):
        # Interleaved 1F1B takes a multiple of 4 microbatches; 12 samples / (2 · 2) are 3.
        script = self.written("odd.sh", SMALL.replace("batch-size 64", "batch-size 12") +
                              "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1\n")
        out = self.folder / "odd.json"
        answer = self.imported(script, "--gpus", "8xH100", "--out", out, code=3)
        self.assertIn("3", answer["illegal"])
        self.assertEqual((answer["layout"], answer["predicted_step"]), ("", None))
        self.assertEqual(json.loads(out.read_text())["layout"]["microbatches"], 3)
        self.assert_one_line(run(POLYPHONY, "simulate", out), "odd.json", "nearest legal: 4")


# name: (model, nodes, data, layout, layout in words)
ROUND_TRIPS = {
    "dense": ("llama-3.1-8b", 2, 8192, 64,
              {"schedule": "interleaved", "microbatches": 16,
               "language": {"tp": 2, "sp": True, "pp": 2, "vpp": 2, "shard": "optimizer", "recompute": "selective", "blocks": [8, 8, 8, 8]}},
              "TP2 SP PP2 VPP2 DP4, ZeRO-1, recompute attention, 8 blocks a stage, interleaved 1F1B, 16 microbatches"),
    "experts": ("qwen3-30b-a3b", 2, 4096, 64,
                {"microbatches": 8, "language": {"tp": 2, "sp": True, "ep": 8, "expert_tp": 1, "shard": "optimizer", "recompute": "full"}},
                "TP2 SP EP8 (experts TP1) DP8, ZeRO-1, recompute all layers, 8 microbatches"),
    "long": ("qwen2.5-32b", 4, 16384, 32,
             {"microbatches": 16, "language": {"tp": 4, "sp": True, "cp": 2, "cp_attention": "ring", "tokens": "zigzag", "pp": 2,
                                               "shard": "optimizer", "shard_ranks": 2, "blocks": [31, 33]}},
             "TP4 SP CP2 (ring) PP2 DP2, ZeRO-1 over 2 of 4 DP·CP ranks, stages of 31 and 33 blocks, 1F1B, 16 microbatches"),
}


class Emits(harness.SystemTest):
    def question(self, name, **layout):
        """The scenario of a round trip, with other keys of its layout."""
        model, nodes, sequence, batch, stated, _ = ROUND_TRIPS[name]
        path = self.folder / f"{name}{len(list(self.folder.glob('*.json')))}.json"
        path.write_text(json.dumps({
            "polyphony": 1, "model": {"language": {"preset": model}}, "cluster": {"node": "hgx-h100", "nodes": nodes},
            "data": {"source": "synthetic", "text": {"tokens": sequence}, "sequence": sequence, "global_batch": batch},
            "training": {"precision": "bf16"}, "layout": {"placement": "homogeneous", **stated, **layout}}))
        return path

    def test_what_is_written_is_read_as_the_same_layout(self):
        for name, (model, nodes, sequence, batch, layout, stated_words) in ROUND_TRIPS.items():
            for framework, file, more in (("megatron-lm", "run.sh", []), ("megatron-bridge", "overrides.txt", ["--from", "megatron-bridge", "--model", model]),
                                          ("ms-swift", "args.yaml", ["--model", model])):
                scenario, words = self.question(name), stated_words
                if framework == "ms-swift":  # shards an optimizer over all ranks
                    scenario = self.question(name, language={key: value for key, value in layout["language"].items() if key != "shard_ranks"})
                    words = words.replace(" over 2 of 4 DP·CP ranks", "")
                with self.subTest(f"{name}, {framework}"):
                    out = self.folder / f"{name}-{framework}"
                    done = run(POLYPHONY, "emit", scenario, "--for", framework, "--out", out, "--format", "json")
                    self.assert_ok(done)
                    self.assertEqual((json.loads(done.stdout)["layout"], json.loads(done.stdout)["cannot"]), (words, []))
                    back = run(POLYPHONY, "import", out / file, "--gpus", f"{nodes}x8xH100", *more, "--format", "json")
                    self.assert_ok(back)
                    answer = json.loads(back.stdout)
                    self.assertEqual((answer["framework"], answer["layout"]), (framework, words))
                    for kind in ("unknown", "contradictions", "approximated"):
                        self.assertEqual(answer["report"][kind], [])
                    data = answer["scenario"]["data"]
                    # needs (megatron-bridge): the overrides or the importer state bf16.
                    self.assertEqual((data["sequence"], data["global_batch"], answer["scenario"]["training"]["precision"]), (sequence, batch, "bf16"))

    def test_the_files_start_the_layout(self):
        out = self.folder / "run"
        done = run(POLYPHONY, "emit", self.question("long"), "--for", "megatron-lm", "--out", out)
        self.assert_ok(done)
        self.assertEqual({path.name for path in out.iterdir()}, {"run.sh", "run.sbatch", "arguments.txt", "README.md"})
        script = (out / "run.sh").read_text()
        for text in ("torchrun --nnodes 4 --nproc_per_node 8", "--pipeline-model-parallel-layout 'Et*31|t*33L'", "--cp-comm-type p2p",
                     "--num-distributed-optimizer-instances 2"):
            self.assertIn(text, script)
        self.assert_ok(run("bash", "-n", out / "run.sh"))
        self.assert_ok(run("bash", "-n", out / "run.sbatch"))
        self.assertIn("#SBATCH --nodes=4", (out / "run.sbatch").read_text())
        self.assertIn(ROUND_TRIPS["long"][5], " ".join((out / "README.md").read_text().split()))
        # Without the accelerators: the script that was written says how many there are.
        back = run(POLYPHONY, "import", out / "run.sh", "--device", "H100", "--format", "json")
        self.assert_ok(back)
        self.assertEqual(json.loads(back.stdout)["layout"], ROUND_TRIPS["long"][5])

    def test_actions_of_torchtitan_are_read_with_their_communication(self):
        order = [" ".join([f"F{r}.{i}" for i in range(3 - r)] + [f"F{r}.{i + 3 - r} B{r}.{i}" if i + 3 - r < 8 else f"B{r}.{i}" for i in range(8)])
                 for r in range(4)]  # 1F1B of four stages and eight microbatches
        scenario = self.question("dense", schedule="1f1b", microbatches=8, actions=order, language={"pp": 4, "shard": "full", "blocks": [7, 9, 9, 7]})
        for target, file, script in (("torchtitan", "polyphony_config.json", None), ("torchtitan@0.2.2", "polyphony.toml", "run.sh")):
            with self.subTest(target):
                out = self.folder / target
                self.assert_ok(run(POLYPHONY, "emit", scenario, "--for", target, "--out", out))
                schedule = out / "schedule.csv"
                rows = schedule.read_text().splitlines()
                # As PyTorch's runtime writes what it runs: with messages, and parameters gathered.
                schedule.write_text("\n".join(f"{r}UNSHARD,{row},{r}SEND_F0,{r}REDUCE_GRAD" for r, row in enumerate(rows)) + "\n")
                options = ["--model", "llama-3.1-8b", "--gpus", "2x8xH100", "--format", "json"]
                # The script names both files by its own folder, which a shell would work out.
                for files in ([out / file], [out / file, schedule], *([[out / script], [out / file, out / script]] if script else [])):
                    back = run(POLYPHONY, "import", *files, *options)
                    self.assert_ok(back)
                    answer = json.loads(back.stdout)
                    self.assertEqual((answer["report"]["unknown"], answer["report"]["approximated"]), ([], []))
                    self.assertEqual(answer["scenario"]["layout"]["actions"], order)
                schedule.unlink()
                alone = run(POLYPHONY, "import", out / file, *options)
                self.assert_ok(alone)
                report = json.loads(alone.stdout)["report"]
                self.assertTrue(any("schedule.csv" in json.dumps(line) for line in report["unknown"]), report)
        # A file that no setting names is told.
        stray = self.folder / "stray.csv"
        stray.write_text("1F0\n")
        odd = json.loads(run(POLYPHONY, "import", FILES / "llama_70b_slurm.sh", stray, "--device", "H100", "--format", "json").stdout)
        self.assertEqual([(line["setting"], line["text"]) for line in odd["report"]["unknown"]],
                         [(str(stray), "is given, but no other file names it")])

    def test_an_older_version_gets_its_own_settings(self):
        out = self.folder / "old"
        done = run(POLYPHONY, "emit", self.question("long"), "--for", "megatron-lm@0.12", "--out", out, "--format", "json")
        self.assert_ok(done)
        self.assertEqual((json.loads(done.stdout)["framework"], json.loads(done.stdout)["version"]), ("megatron-lm", "0.12.0"))
        self.assertIn("--decoder-first-pipeline-num-layers 31", (out / "run.sh").read_text())
        back = run(POLYPHONY, "import", out / "run.sh", "--device", "H100", "--format", "json")
        self.assert_ok(back)
        self.assertEqual(json.loads(back.stdout)["layout"], ROUND_TRIPS["long"][5])
        listed = run(POLYPHONY, "emit", "--versions", "--format", "json")
        self.assert_ok(listed)
        versions = json.loads(listed.stdout)
        self.assertEqual(versions["versions"]["torchtitan"], {"oldest": "0.2.0", "newest": "0.3.0"})
        rows = versions["settings"]
        self.assertIn(("megatron-lm", "0.13.0", "pipeline_model_parallel_layout"), {(row["framework"], row["since"], row["setting"]) for row in rows})
        shown = run(POLYPHONY, "emit", "--versions")
        self.assert_ok(shown)
        self.assertTrue(all(row["setting"] in shown.stdout for row in rows))
        self.assertTrue(all(len(line) <= 80 for line in shown.stdout.splitlines()), shown.stdout)

    def test_what_a_framework_cannot_run_is_named(self):
        for scenario, framework, named in (
                (SCENARIOS / "tiny.json", "megatron-lm", "encoders"),
                (SCENARIOS / "tiny_frozen.json", "megatron-lm", "frozen"),
                (SCENARIOS / "tiny_colocated.json", "megatron-bridge", "placement colocated"),
                (SCENARIOS / "tiny_non_colocated.json", "ms-swift", "ranks of their own"),
                (self.question("dense"), "torchtitan", "ZeRO-1"),
                (self.question("dense", schedule="1f1b", microbatches=1, language={"shard": "full"}), "megatron-lm@0.13.1", "from 0.14.0 on"),
                (self.question("long"), "ms-swift", "some of the data-parallel ranks"),
                (self.question("long", schedule="zero-bubble"), "megatron-lm", "zero-bubble")):
            with self.subTest(f"{scenario.name}, {framework}"):
                out = self.folder / "none"
                done = run(POLYPHONY, "emit", scenario, "--for", framework, "--out", out, "--format", "json")
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertTrue(any(named in what for what in json.loads(done.stdout)["cannot"]), done.stdout)
                self.assertFalse(out.exists())
                shown = run(POLYPHONY, "emit", scenario, "--for", framework, "--out", out)
                self.assertEqual(shown.returncode, 3)
                self.assertIn(f"{framework} cannot run this layout", shown.stdout)
                self.assertIn(named, " ".join(shown.stdout.split()))

    def test_bad_input_is_refused(self):
        scenario = self.question("dense")
        for options, named in (
                ([scenario, "--for", "megatron", "--out", self.folder / "x"], ["--for", "megatron-lm"]),
                ([scenario, "--for", "torchtitan@0.1", "--out", self.folder / "x"], ["--for", "older than 0.2.0"]),
                ([scenario, "--out", self.folder / "x"], ["--for"]),
                ([scenario, "--for", "ms-swift"], ["--out"]),
                ([scenario, "--for", "ms-swift", "--out", "/proc/none/x"], ["/proc/none"]),
                ([SCENARIOS / "vlm_12b_70b_h100.json", "--for", "megatron-bridge", "--out", self.folder / "x"], ["/layout", "--pick"])):
            with self.subTest(options):
                self.assert_one_line(run(POLYPHONY, "emit", *options), *named)


if __name__ == "__main__":
    harness.main()
