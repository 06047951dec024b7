"""Runs the commands of scenarios/TRAINING.md on a small language model: data set, two stages, exports."""
import json
import random
import re

import harness
import weights
from harness import BUILD, ROOT

LETTERS = [chr(c) for c in range(ord("!"), ord("~") + 1)] + ["Ġ", "Ċ"]


def save_model(folder):
    """Writes a small Llama with a tokenizer of one id per character."""
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)}
    weights.save(folder, weights.shapes(vocabulary=len(LETTERS) + 1))
    config = {**weights.CONFIG, "vocab_size": len(LETTERS) + 1}
    (folder / "config.json").write_text(json.dumps(config))
    end = {"id": len(LETTERS), "content": "</s>", "special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
    tokenizer = {"added_tokens": [end], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
                 "decoder": {"type": "ByteLevel"},
                 "model": {"type": "BPE", "merges": [], "vocab": vocabulary}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))


class TrainYourOwn(harness.SystemTest):
    def commands(self):
        text = (ROOT / "scenarios/TRAINING.md").read_text().split("## Your data")[0]
        for line in re.findall(r"^    ((?:scripts|build/release)/[^#\n]*)", text, re.M):
            yield line.strip()

    def test_every_command(self):
        tree = self.folder / "tree"
        (tree / "build").mkdir(parents=True)
        for entry in ROOT.iterdir():
            if entry.name not in ("build", "runs", ".git"):
                (tree / entry.name).symlink_to(entry)
        (tree / "build/release").symlink_to(BUILD)
        save_model(tree / "small")
        commands = list(self.commands())
        self.assertEqual(len(commands), 7)
        for command in commands:
            if command == "scripts/setup weights":  # 3 GB
                continue
            if command.startswith("scripts/vqa_conversations"):
                command += " --weights small --steps 3,2 --batch 8 --sequence 128"
            command = command.replace("--evaluate-every 100 --evaluate-samples 200", "--evaluate-every 2 --evaluate-samples 16")
            with self.subTest(command):
                done = harness.subprocess.run(["bash", "-c", command], cwd=tree, capture_output=True, text=True, timeout=600, env=harness.environment())
                self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        runs = tree / "runs/vqa"
        for stage, steps in (("align", 3), ("tune", 2)):
            lines = [json.loads(line) for line in (runs / stage / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual(sum("loss" in line for line in lines), steps)
            held_out = [line for line in lines if "accuracy" in line]
            self.assertEqual(held_out[-1]["held_out"], 16)
            self.assertGreater(held_out[-1]["held_out_loss"], 0)
            self.assertEqual(len(list((runs / stage).glob("events.out.tfevents.*"))), 1)
        # Stage 1 leaves the frozen language model as it was, bit for bit; stage 2 changes it.
        before = weights.load(tree / "small/model.safetensors")
        self.assertEqual(weights.load(runs / "aligned/language/model.safetensors"), before)
        after = weights.load(runs / "model/language/model.safetensors")
        self.assertEqual(after.keys(), before.keys())
        self.assertNotEqual(after, before)
        self.assertTrue((runs / "model/language/tokenizer.json").is_file())
        # The tokenizer has no chat template: that of the conversations goes with it.
        template = (runs / "model/language/chat_template.jinja").read_text()
        self.assertIn("for message in messages", template)
        self.assertIn("eos_token", template)
        self.assertTrue((runs / "model/vision/config.json").is_file())

    def test_patience(self):
        """At a learning rate of 0 no evaluation is better than the first one; a run that resumes remembers it."""
        save_model(self.folder / "small")
        (self.folder / "page.txt").write_text("to be or not to be, that is the question")
        text = {"polyphony": 1, "model": {"language": {"weights": "small"}}, "cluster": {"node": "this-machine", "ranks": 2},
                "data": {"source": {"text": "page.txt", "tokenizer": "small/tokenizer.json", "held_out": "page.txt"}, "sequence": 8, "global_batch": 4},
                "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": {"tp": 2}},
                "training": {"precision": "fp32", "learning_rate": 0, "steps": 9}}
        (self.folder / "scenario.json").write_text(json.dumps(text))
        command = [BUILD / "polyphony", "run", self.folder / "scenario.json", "--out", self.folder / "run", "--stop-patience", "3"]
        refused = harness.run(*command, limit=120)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("requires --evaluate-every", refused.stderr)
        self.assert_ok(harness.run(*command, "--evaluate-every", "1", "--steps", "2", limit=120))
        self.assert_ok(harness.run(*command, "--evaluate-every", "1", "--resume", limit=120))
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(sum("loss" in line for line in lines), 4)

    def test_evaluation_of_layouts(self):
        """Held-out samples are counted once, and their loss is the same, whichever ranks predict their labels."""
        save_model(self.folder / "small")
        (self.folder / "page.txt").write_text("to be or not to be, that is the question " * 4)
        found, answers = {}, {}
        for name, layout in (("dp", {}), ("cp", {"cp": 2, "tokens": "zigzag"}), ("tp", {"tp": 2}), ("pp", {"pp": 2})):
            text = {"polyphony": 1, "model": {"language": {"weights": "small"}}, "cluster": {"node": "this-machine", "ranks": 2},
                    "data": {"source": {"text": "page.txt", "tokenizer": "small/tokenizer.json", "held_out": "page.txt"}, "sequence": 8, "global_batch": 4},
                    "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": layout},
                    "training": {"precision": "fp32", "learning_rate": 0, "steps": 1}}
            (self.folder / f"{name}.json").write_text(json.dumps(text))
            self.assert_ok(harness.run(BUILD / "polyphony", "run", self.folder / f"{name}.json", "--out", self.folder / name, "--evaluate-every", "1",
                                       "--save-answers", limit=120))
            lines = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]
            found[name] = next(line for line in lines if "accuracy" in line)
            answers[name] = (self.folder / name / "answers.jsonl").read_text()
        self.assertEqual(len({line["held_out"] for line in found.values()}), 1, found)
        self.assertEqual(len({line["accuracy"] for line in found.values()}), 1, found)
        for line in found.values():
            self.assertAlmostEqual(line["held_out_loss"], found["dp"]["held_out_loss"], delta=1e-5, msg=found)
        self.assertEqual(len(set(answers.values())), 1, answers)
        lines = [json.loads(line) for line in answers["cp"].splitlines()]
        self.assertEqual([line["sample"] for line in lines], list(range(found["cp"]["held_out"])))
        self.assertEqual(sum(line["right"] for line in lines), round(found["cp"]["accuracy"] * len(lines)))
        self.assertEqual("t" + "".join(line["wanted"] for line in lines), "to be or not to be, that is the question " * 4)
        for line in lines:
            self.assertEqual(len(line["predicted"]), len(line["labels"]))
            self.assertEqual(line["right"], line["answer"] == line["wanted"])

    def test_a_damaged_data_set(self):
        """Skipped samples are counted and named; too many end the run before any rank starts."""
        save_model(self.folder / "small")
        folder = self.folder
        draw = random.Random(3)
        lines = [json.dumps({"conversations": [{"from": "human", "value": "say " + c}, {"from": "gpt", "value": c * draw.randint(1, 9)}]})
                 for c in "abcdefgh"]
        text = {"polyphony": 1, "model": {"language": {"weights": "small"}}, "cluster": {"node": "this-machine", "ranks": 2},
                "data": {"source": {"dataset": "chat.jsonl", "tokenizer": "small/tokenizer.json", "template": "plain", "most_left_out": 0.2},
                         "sequence": 9, "global_batch": 4},
                "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 2, "all": {"tp": 2}},
                "training": {"precision": "fp32", "steps": 2}}
        (folder / "scenario.json").write_text(json.dumps(text))
        (folder / "chat.jsonl").write_text("\n".join(lines + ['{"conversations": [']))
        done = harness.run(BUILD / "polyphony", "run", folder / "scenario.json", "--out", folder / "run", limit=120)
        self.assert_ok(done)
        self.assertIn("1 of 9 samples are skipped: 1: not a JSON object (first: sample 8)", done.stdout + done.stderr)
        self.assertIn("are cut at 9 tokens", done.stdout + done.stderr)
        (folder / "chat.jsonl").write_text("\n".join(lines[:1] + ["[]", "{}"]))
        done = harness.run(BUILD / "polyphony", "run", folder / "scenario.json", "--out", folder / "run", limit=120)
        self.assertEqual(done.returncode, 2)
        self.assertIn("2 of 3 samples are skipped", done.stderr)

    def test_scan_shows_what_is_trained_on(self):
        save_model(self.folder / "small")
        turns = [[("human", "say a"), ("gpt", "aaa"), ("human", "and b"), ("gpt", "b\nb")], [("human", "say c"), ("gpt", "c")]]
        (self.folder / "chat.jsonl").write_text("\n".join(
            json.dumps({"conversations": [{"from": speaker, "value": value} for speaker, value in each]}) for each in turns))
        scenario = self.folder / "scenario.json"
        text = {"polyphony": 1, "model": {"language": {"weights": "small"}}, "cluster": {"node": "this-machine", "ranks": 1},
                "data": {"source": {"dataset": "chat.jsonl", "tokenizer": "small/tokenizer.json", "template": "vicuna"}, "sequence": 400, "global_batch": 2},
                "training": {"precision": "fp32"}}
        scenario.write_text(json.dumps(text))
        done = harness.run(BUILD / "polyphony", "scan", scenario, "--show", 2, "--format", "json")
        self.assert_ok(done)
        shown = json.loads(done.stdout)["samples"]
        self.assertEqual([sample["sample"] for sample in shown], [0, 1])
        first = shown[0]["parts"]
        self.assertEqual([part["trained"] for part in first], [False, True, False, True])
        self.assertEqual([part["text"] for part in first], ["USER: say a ASSISTANT: ", "aaa</s>", "USER: and b ASSISTANT: ", "b\nb</s>"])
        # One id a character, and one for </s>: 4 + 4 are trained on, and all but the last are read.
        self.assertEqual(shown[0]["language_tokens"], 23 + 4 + 23 + 4 - 1)
        self.assertEqual(shown[0]["trained_tokens"], 8)
        done = harness.run(BUILD / "polyphony", "scan", scenario, "--show", 1)
        self.assert_ok(done)
        self.assertIn("\n  trained   aaa</s>\n", done.stdout)
        self.assertIn("\n  trained   b\\n\n            b</s>\n", done.stdout)
        for wrong, named in (([scenario, "--show", 0], "must be at least 1"), ([scenario, self.folder / "chat.jsonl", "--show", 1], "leave out the data set"),
                             ([ROOT / "scenarios/tiny.json", "--show", 1], "has no conversations to show")):
            refused = harness.run(BUILD / "polyphony", "scan", *wrong)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(named, refused.stderr)


if __name__ == "__main__":
    harness.main()
