"""Training from published weights and exporting them, as a user does it: a folder in Hugging Face layout, without other programs."""
import array
import json
import random
import shutil
import struct

import harness
from harness import run

CONFIG = {"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "vocab_size": 32, "tie_word_embeddings": False}


def shapes(vocabulary=32):
    tensors = {"model.embed_tokens.weight": [vocabulary, 16], "model.norm.weight": [16], "lm_head.weight": [vocabulary, 16]}
    for i in range(2):
        layer = f"model.layers.{i}."
        tensors |= {layer + "input_layernorm.weight": [16], layer + "post_attention_layernorm.weight": [16],
                    layer + "self_attn.q_proj.weight": [16, 16], layer + "self_attn.k_proj.weight": [8, 16],
                    layer + "self_attn.v_proj.weight": [8, 16], layer + "self_attn.o_proj.weight": [16, 16],
                    layer + "mlp.gate_proj.weight": [24, 16], layer + "mlp.up_proj.weight": [24, 16], layer + "mlp.down_proj.weight": [16, 24]}
    return tensors


def save(folder, tensors):
    """Writes model.safetensors and config.json; returns the values."""
    folder.mkdir(parents=True)
    draw, header, data, values = random.Random(5), {}, b"", {}
    for name, shape in tensors.items():
        values[name] = array.array("f", [draw.gauss(0, 0.3) for _ in range(shape[0] * (shape[1] if len(shape) > 1 else 1))])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values[name])]}
        data += values[name].tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    return values


def load(file):
    raw = file.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = array.array("f", raw[8 + size + begin:8 + size + end])
    return tensors


class Weights(harness.SystemTest):
    def scenario(self, rate, **layout):
        text = {"polyphony": 1, "model": {"language": {"weights": "published"}}, "cluster": {"node": "this-machine", "ranks": 2},
                "data": {"source": "synthetic", "text": {"tokens": 8}, "global_batch": 4},
                "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": layout},
                "training": {"precision": "fp32", "learning_rate": rate, "steps": 2}}
        (self.folder / "scenario.json").write_text(json.dumps(text))
        return self.folder / "scenario.json"

    def polyphony(self, *arguments):
        return run(harness.BUILD / "polyphony", *arguments, limit=120)

    def test_there_and_back(self):
        published = save(self.folder / "published", shapes())
        scenario, out = self.scenario(0, tp=2, sp=True), self.folder / "run"
        self.assert_ok(self.polyphony("run", scenario, "--out", out))
        self.assert_ok(self.polyphony("export", out, "--hf", self.folder / "back/"))
        self.assertEqual(load(self.folder / "back/model.safetensors"), published)
        config = json.loads((self.folder / "back/config.json").read_text())
        self.assertEqual({k: config[k] for k in CONFIG}, CONFIG)
        self.assertEqual(config["torch_dtype"], "float32")
        self.assertTrue((self.folder / "back/tokenizer.json").exists())
        # A second export does not touch the first.
        again = self.polyphony("export", out, "--hf", self.folder / "back")
        self.assertEqual(again.returncode, 2)
        self.assertIn("exists already", again.stderr)
        # A run that resumes needs the folder no more: its checkpoint has the weights.
        shutil.move(self.folder / "published/model.safetensors", self.folder / "gone")
        self.assert_ok(self.polyphony("run", scenario, "--out", out, "--resume", "--steps", "3"))
        fresh = self.polyphony("run", scenario, "--out", out, "--fresh")
        self.assertEqual(fresh.returncode, 2)
        self.assertIn("has neither model.safetensors nor", fresh.stderr)

    def test_training_changes_what_is_exported(self):
        published = save(self.folder / "published", shapes())
        self.assert_ok(self.polyphony("run", self.scenario(0.01, pp=2), "--out", self.folder / "run"))
        answer = self.polyphony("export", self.folder / "run", "--hf", self.folder / "back", "--format", "json")
        self.assert_ok(answer)
        model = json.loads(answer.stdout)["models"][0]
        self.assertEqual((model["kind"], model["tensors"], model["copied"]), ("model", len(published), ["tokenizer.json"]))
        back = load(self.folder / "back/model.safetensors")
        self.assertEqual(set(back), set(published))
        self.assertTrue(all(back[name] != published[name] for name in published))

    def test_a_composite_model_with_parts_that_are_missing(self):
        """One folder gives all modules; those without tensors begin at random if that is asked for."""
        published = save(self.folder / "llava", shapes())
        tower = {"model_type": "clip_vision_model", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
                 "image_size": 8, "patch_size": 4}
        (self.folder / "llava/config.json").write_text(json.dumps({"model_type": "llava", "vision_config": tower, "text_config": CONFIG}))
        text = {"polyphony": 1, "model": {"weights": "llava", "language": {"train": "frozen"}}, "cluster": {"node": "this-machine", "ranks": 2},
                "data": {"source": "synthetic", "text": {"tokens": 8}, "images": {"per_sample": 1}, "global_batch": 4},
                "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": {"tp": 2}},
                "training": {"precision": "fp32", "learning_rate": 0.01, "steps": 2}}
        scenario = self.folder / "scenario.json"
        scenario.write_text(json.dumps(text))
        refused = self.polyphony("run", scenario, "--out", self.folder / "run")
        self.assertEqual(refused.returncode, 2)
        self.assertIn('has no tensor "…embeddings.patch_embedding.weight", which the module "vision" begins with', refused.stderr)
        done = self.polyphony("run", scenario, "--out", self.folder / "run", "--weights-partial")
        self.assert_ok(done)
        self.assertIn("randomly initialized, because the folder of weights has no tensors of it: vision, projector", done.stderr)
        self.assert_ok(self.polyphony("export", self.folder / "run", "--hf", self.folder / "back"))
        back = load(next((self.folder / "back").glob("**/language*/model.safetensors")))
        self.assertEqual(back, published)

    def test_wrong_files_are_refused_before_ranks_start(self):
        scenario = self.scenario(0)
        wrong = shapes()
        wrong["model.layers.1.mlp.up_proj.weight"] = [24, 15]
        save(self.folder / "published", wrong)
        done = self.polyphony("run", scenario, "--out", self.folder / "run")
        self.assertEqual(done.returncode, 2)
        self.assertIn("model.layers.1.mlp.up_proj.weight: must have the shape [24, 16]", done.stderr)
        file = self.folder / "published/model.safetensors"
        file.write_bytes(file.read_bytes()[:-1])
        done = self.polyphony("run", scenario, "--out", self.folder / "run")
        self.assertEqual(done.returncode, 2)
        self.assertIn("its header describes", done.stderr)
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    harness.main()
