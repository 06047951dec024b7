"""Checks the output of commands with --format json against `polyphony schema`."""
import copy
import json

import harness
from harness import POLYPHONY, SCENARIOS, run

TINY, REHEARSE = SCENARIOS / "tiny.json", SCENARIOS / "rehearse_8.json"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def faults(value, schema, root, at=""):
    """The places where a value violates its schema; supports the keywords of JSON Schema that ours use."""
    known = {"$schema", "title", "description", "$defs", "$ref", "type", "properties", "required", "additionalProperties", "items",
             "anyOf", "minItems", "maxItems", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "pattern", "default", "examples"}
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
    found = []
    if "anyOf" in schema and all(faults(value, one, root, at) for one in schema["anyOf"]):
        found.append(f"{at}: none of those it may be")
    kind = schema.get("type")
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else (int, float)):
            return found + [f"{at}: no {kind}"]
    elif kind is not None and not isinstance(value, TYPES[kind]):
        return found + [f"{at}: no {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: not one of {schema['enum']}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: {len(value)} items")
        for i, item in enumerate(value):
            found += faults(item, schema.get("items", {}), root, f"{at}/{i}")
    if isinstance(value, dict):
        found += [f"{at}: {key} is missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            own = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if own is False:
                found.append(f"{at}: {key} is not in the schema")
            elif own is not True:
                found += faults(item, own, root, f"{at}/{key}")
    return found


class Schemas(harness.SystemTest):
    def answer(self, *command, codes=(0,)):
        done = run(POLYPHONY, *command, "--format", "json", limit=120)
        self.assertIn(done.returncode, codes, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr}")
        return json.loads(done.stdout)

    def holds(self, of, *command, codes=(0,)):
        """The output obeys its schema, and the schema is strict: removing a required key or adding a key is a violation."""
        with self.subTest(" ".join(map(str, command))):
            answer = self.answer(*command, codes=codes)
            schema = json.loads(run(POLYPHONY, "schema", of).stdout)
            self.assertEqual(faults(answer, schema, schema), [])
            inner = answer[0] if isinstance(answer, list) else answer
            self.assertGreater(len(inner), 0)
            own = schema["items"] if isinstance(answer, list) else schema
            for key in inner:
                if "anyOf" not in own:
                    self.assertIn("description", own["properties"][key], key)
                for change in ("wrong", "missing"):
                    other = copy.deepcopy(answer)
                    of_key = other[0] if isinstance(answer, list) else other
                    if change == "wrong":
                        of_key[key] = {"no": {"such": ["thing"]}}
                    elif key in own.get("required", []):
                        del of_key[key]
                    else:
                        continue
                    # A map of arbitrary values, such as a whole profile, accepts any object.
                    if change == "wrong" and own.get("properties", {}).get(key) and not faults(of_key[key], own["properties"][key], schema):
                        continue
                    if "anyOf" in own and key == "profile":
                        continue
                    self.assertNotEqual(faults(other, schema, schema), [], f"{change} {key}")
            other = copy.deepcopy(answer)
            (other[0] if isinstance(answer, list) else other)["no_such_key"] = 1
            self.assertNotEqual(faults(other, schema, schema), [])
            return answer

    def test_of_a_step(self):
        self.holds("simulate", "simulate", REHEARSE)
        self.holds("simulate", "simulate", REHEARSE, "--set", "layout.microbatches=8", "--estimate")
        jitter = self.holds("simulate", "simulate", SCENARIOS / "stage_times.json", "--estimate")
        self.assertNotIn("jitter", jitter["chance"])
        large = self.folder / "large.json"  # 70B on one node: the output states that it does not fit, and why
        large.write_text(json.dumps({
            "polyphony": 1, "about": "made by a test", "model": {"language": {"preset": "llama-3-70b"}},
            "cluster": {"node": "hgx-h100"}, "data": {"source": "synthetic", "text": {"tokens": 4096}, "sequence": 4096, "global_batch": 8},
            "layout": {"placement": "homogeneous", "language": {"tp": 8}}, "training": {"precision": "bf16"}}))
        self.assertIn("out_of_memory", self.holds("simulate", "simulate", large, "--estimate", codes=(3,)))
        self.holds("why", "why", REHEARSE)
        self.holds("plan", "plan", TINY)
        self.holds("stream", "simulate", TINY, "--batches", 3)

    def test_of_a_question(self):
        question = ["ask", "--model", "llama-3.1-8b", "--global-batch", 64, "--seq", "4k", "--gpus"]
        self.holds("ask", *question, "8xH100")
        self.assertIn("least_nodes", self.holds("ask", *question, "?x1xH100"))

    def test_of_schedules(self):
        self.holds("schedules", "schedules", "--times", SCENARIOS / "times/vlm.csv", "--ranks", 4, "--all")

    def test_of_a_run(self):
        out = self.folder / "run"
        self.assert_ok(run(POLYPHONY, "run", TINY, "--out", out, "--steps", 12, "--trace-steps", "3:12", limit=120))
        fitted = self.folder / "fitted.json"
        self.holds("compare", "compare", out)
        self.holds("calibrate", "calibrate", out, "--out", fitted)
        self.holds("calibrate", "calibrate", out, out / "trace/step-3.rank-0.json", out / "trace/step-3.rank-1.json", "--scenario", TINY)
        answer = self.holds("simulate", "simulate", TINY, "--profile", fitted, "--jitter", 40, "--estimate")
        self.assertIsNone(answer["chance"]["jitter"]["p99_seconds"])  # 40 steps are too few for a 99th percentile
        self.holds("replay", "replay", out, "--set", "cluster.node.link=100MBps")
        prediction = self.folder / "prediction.json"
        prediction.write_text(json.dumps(self.answer("simulate", TINY)))
        self.holds("watch", "watch", out, "--prediction", prediction, codes=(0, 1))

    def test_of_profiles(self):
        self.holds("profile", "profile", "show", "H100")
        self.holds("profile-diff", "profile", "diff", "H100", "H200")
        today = SCENARIOS / "llama_8b_long.json"
        step = self.answer("simulate", today, "--estimate", codes=(0, 3))["step_seconds"]
        self.holds("profile-check", "profile", "check", "H100")
        self.holds("profile-check", "profile", "check", "H100", "--scenario", today, "--step-time", f"{step}s", codes=(0, 1))
        self.holds("calibrate", "calibrate", "--scenario", today, "--step-time", f"{step}s")

    def test_of_published_rows(self):
        rows = SCENARIOS / "published/mpt.csv"
        self.holds("fit-smallest", "validate", rows, SCENARIOS / "published/held_out.json", "--fit-smallest")

    def test_of_traces_and_errors(self):
        self.holds("trace", "trace", harness.ROOT / "traces/samples/nccl_data.json.gz")
        self.holds("error", "simulate", self.folder / "missing.json", codes=(2,))


if __name__ == "__main__":
    harness.main()
