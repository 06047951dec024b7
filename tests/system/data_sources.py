"""Every command that reads the folder of a run, against every kind of data that a run can train on."""
import json
import math
import random
import struct
import wave
import zlib

import harness
from harness import POLYPHONY, SCENARIOS, run


TOKENIZER = {"added_tokens": [{"id": 5, "content": "</s>", "special": True, "normalized": False, "lstrip": False, "rstrip": False,
                               "single_word": False}],
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
             "model": {"type": "BPE", "merges": [], "vocab": {"?": 0, "h": 1, "i": 2, "l": 3, "o": 4}}}


def write_tone(path, hertz, seconds, rate=22050):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(2 * math.pi * hertz * i / rate))) for i in range(int(seconds * rate))))


def write_tokens(name, documents):
    """Writes a pair of files of token ids as Megatron-LM's preprocess_data.py does."""
    lengths = [len(document) for document in documents]
    begins = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    count = len(documents)
    name.with_suffix(".bin").write_bytes(b"".join(struct.pack(f"<{len(ids)}H", *ids) for ids in documents))
    name.with_suffix(".idx").write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) + struct.pack(f"<{count}i", *lengths) +
                                         struct.pack(f"<{count}q", *begins) + struct.pack(f"<{count + 1}q", *range(count + 1)))


def write_image(path, gray, side=16):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes([gray] * 3 * side)) * side)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", rows) + chunk(b"IEND", b""))


class DataSources(harness.SystemTest):
    def clips(self, name, count, seed):
        """Writes JSON lines about low and high tones of a tenth to a quarter of a second."""
        draw, lines = random.Random(seed), []
        for i in range(count):
            high = i % 2
            clip = f"{name}-{i}.wav"
            write_tone(self.folder / clip, draw.uniform(2000, 3000) if high else draw.uniform(200, 400), draw.uniform(0.1, 0.25))
            lines.append({"audio": clip, "conversations": [{"from": "human", "value": "<audio>?"}, {"from": "gpt", "value": "h" if high else "l"}]})
        (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def audio_scenario(self):
        self.clips("train", 24, 1)
        self.clips("test", 8, 2)
        (self.folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (self.folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
        scenario = {
            "polyphony": 1,
            "model": {"audio": {"layers": 2, "hidden": 32, "heads": 4, "ffn": 64, "mel_bins": 16, "audio_tokens": 10},
                      "projector": {"from": "audio", "merge": 2},
                      "language": {"from": "projector", "layers": 2, "hidden": 32, "heads": 4, "kv_heads": 2, "ffn": 64, "vocab": 16}},
            "cluster": {"node": "this-machine", "ranks": 2},
            "data": {"source": {"dataset": "train.jsonl", "held_out": "test.jsonl", "tokenizer": "tokenizer.json", "template": "plain"},
                     "sequence": 16, "global_batch": 8},
            "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": {"pp": 2}},
            "training": {"precision": "fp32", "learning_rate": 3e-3, "steps": 60}}
        path = self.folder / "audio.json"
        path.write_text(json.dumps(scenario))
        return path

    def reads(self, scenario, changed="layout.microbatches=2", again="layout.microbatches=4"):
        """Runs the scenario with traces, then every command that reads what the run left."""
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", out, "--steps", 6, "--trace-steps", "3:6", limit=120))
        resolved = out / "scenario.json"
        commands = {
            "compare": [out],
            "calibrate": [out, "--out", self.folder / "fitted.json"],
            "compare, calibrated": [out, "--profile", self.folder / "fitted.json"],
            "replay": [out],
            "replay, changed": [out, "--set", changed],
            "replay, varied": [out, "--vary", again],
            "report": [out, "--training", out, "--calibrated", self.folder / "fitted.json", "--out", self.folder / "report.html"],
            "simulate": [resolved],
            "simulate, batches": [resolved, "--batches", 3],
            "simulate, prediction": [resolved, "--format", "json"],
            "why": [resolved],
            "plan": [resolved],
        }
        for name, arguments in commands.items():
            with self.subTest(name):
                done = run(POLYPHONY, name.split(",")[0], *arguments)
                self.assert_ok(done)
                if name == "simulate, prediction":
                    (self.folder / "prediction.json").write_text(done.stdout)
        page = (self.folder / "report.html").read_text()
        self.assertIn("<svg", page)
        done = run(POLYPHONY, "watch", out, "--once", "--prediction", self.folder / "prediction.json", "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(json.loads(done.stdout)["steps"], 6)
        return page

    def test_drawn_samples(self):
        self.reads(SCENARIOS / "tiny.json")

    def test_recorded_samples(self):
        data = self.folder / "mix.jsonl"
        lines = [{"items": [["image", 16], ["text", 4 + i % 5, 3]]} for i in range(24)]
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.reads(self.scenario(data={"source": {"recorded": str(data)}, "images": None, "text": None, "global_batch": 8}))

    def test_easy_vqa(self):
        layout = {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 4, "all": {"pp": 2}}
        page = self.reads(self.scenario(base="easy_vqa.json", layout=layout, data={"global_batch": 16}))
        self.assertIn("one block moved to the earlier", page)  # its plan, made for the samples of the data set

    def test_audio(self):
        self.reads(self.audio_scenario())

    def test_a_model_learns_to_tell_tones_apart(self):
        out = self.folder / "run"
        done = run(POLYPHONY, "run", self.audio_scenario(), "--out", out, "--evaluate-every", 60, "--evaluate-samples", 8, limit=120)
        self.assert_ok(done)
        self.assertIn("audio clips cut at 10 tokens", done.stdout + done.stderr)
        held_out = [line for line in map(json.loads, (out / "metrics.jsonl").read_text().splitlines()) if "accuracy" in line][-1]
        # Without hearing, half of the answers are right.
        self.assertEqual(held_out["accuracy"], 1.0, held_out)

    def token_scenario(self, source, name="scenario.json", **changes):
        """Sequences that count up: of each token the next one follows."""
        write_tokens(self.folder / "corpus", [[(7 * d + i) % 64 for i in range(40 + d)] for d in range(12)])
        write_tokens(self.folder / "held", [[(5 + i) % 64 for i in range(97)]])
        return self.scenario(name=name, base="tiny_text_only.json", data={"source": source, "text": None, "global_batch": 8}, **changes)

    def test_token_file(self):
        self.reads(self.token_scenario({"tokens": str(self.folder / "corpus")}))

    def test_a_model_learns_from_a_token_file(self):
        scenario = self.token_scenario({"tokens": str(self.folder / "corpus.bin"), "held_out": str(self.folder / "held")},
                                       training={"learning_rate": 1e-2})
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", out, "--steps", 150, "--evaluate-every", 150, limit=120))
        held_out = [line for line in harness.metrics(out) if "held_out_loss" in line][-1]
        self.assertEqual(held_out["held_out"], 6)  # 96 tokens that have a next one, in samples of 16
        self.assertLess(held_out["held_out_loss"], 0.5)  # of a model that knows nothing: log(64) = 4.2

    def test_an_id_that_the_vocabulary_lacks(self):
        scenario = self.token_scenario({"tokens": str(self.folder / "corpus")}, model={"language": {"vocab": 40}})
        done = run(POLYPHONY, "run", scenario, "--out", self.folder / "run", limit=120)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"corpus\.bin: token \d+ \(sequence \d+, byte \d+, counted from 0\) has the id \d+, "
                                      r"but ids must be from 0 to 39")

    def mixture(self):
        """Images with answers, a text, and token ids: 16, 11 and 35 samples."""
        lines = []
        for i in range(16):
            write_image(self.folder / f"{i}.png", 16 * i)
            lines.append({"image": f"{i}.png", "conversations": [{"from": "human", "value": "<image>?"}, {"from": "gpt", "value": "hi" if i < 8 else "lo"}]})
        (self.folder / "seen.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (self.folder / "page.txt").write_text("hillohoil" * 18)
        (self.folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (self.folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
        write_tokens(self.folder / "corpus", [[(7 * d + i) % 64 for i in range(40 + d)] for d in range(12)])
        write_tokens(self.folder / "held", [[(5 + i) % 64 for i in range(33)]])
        tokenizer = str(self.folder / "tokenizer.json")
        return {"mixture": [
            {"dataset": str(self.folder / "seen.jsonl"), "held_out": str(self.folder / "seen.jsonl"), "tokenizer": tokenizer,
             "template": "plain", "weight": 3},
            {"text": str(self.folder / "page.txt"), "tokenizer": tokenizer},
            {"tokens": str(self.folder / "corpus"), "held_out": str(self.folder / "held"), "weight": 2}]}

    def test_mixture(self):
        data = {"source": self.mixture(), "images": None, "text": None, "global_batch": 12}
        scenario = self.scenario(data=data)
        self.reads(scenario)
        # Six samples of twelve have an image; in the batches that were recorded, too.
        batches = [json.loads(line) for line in (self.folder / "run/trace/batches.jsonl").read_text().splitlines()]
        for batch in batches:
            kinds = [item[0] for sample in batch["samples"] for item in sample["items"]]
            self.assertEqual(kinds.count("image"), 6, batch)
        done = run(POLYPHONY, "sweep", self.scenario(name="search.json", data=data, layout=None, search={"placement": "homogeneous"}), "--estimate", "--top", 2)
        self.assert_ok(done)

    def test_a_mixture_continues_in_mid_epoch_and_does_not_depend_on_the_layout(self):
        data = {"source": self.mixture(), "images": None, "text": None, "global_batch": 12}
        scenario, out, other = self.scenario(data=data), self.folder / "run", self.folder / "other"
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", out, "--steps", 8, "--evaluate-every", 4, limit=120))
        held_out = [line for line in harness.metrics(out) if "held_out" in line][-1]
        self.assertEqual(held_out["held_out"], 16 + 2)
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", other, "--steps", 3, limit=120))
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", other, "--steps", 8, "--resume", limit=120))
        self.assertEqual(harness.losses(other), harness.losses(out))
        alone = self.scenario(name="alone.json", data=data, cluster={"ranks": 1}, layout={"microbatches": 2, "all": {"pp": 1}})
        self.assert_ok(run(POLYPHONY, "run", alone, "--out", self.folder / "alone", "--steps", 8, limit=120))
        for step, loss in harness.losses(self.folder / "alone").items():
            self.assertAlmostEqual(loss, harness.losses(out)[step], delta=1e-4)

    def test_a_report_does_without_a_data_set_that_is_gone(self):
        data = self.folder / "mix.jsonl"
        data.write_text(json.dumps({"items": [["image", 16], ["text", 5, 3]]}) + "\n")
        out = self.folder / "run"
        scenario = self.scenario(data={"source": {"recorded": str(data)}, "images": None, "text": None, "global_batch": 8})
        self.assert_ok(run(POLYPHONY, "run", scenario, "--out", out, "--steps", 4, "--trace-steps", "2:4"))
        data.unlink()
        done = run(POLYPHONY, "report", out, "--out", self.folder / "report.html")
        self.assert_ok(done)
        self.assertIn("its stages are not drawn", done.stderr)
        self.assertIn(str(data), done.stderr)


if __name__ == "__main__":
    harness.main()
