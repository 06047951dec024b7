"""polyphony validate: exit codes, output, and that every row of the JSON has its id and a prediction or a reason."""
import json

import harness
from harness import POLYPHONY, SCENARIOS, run

HEADER = ("id,model,layers,hidden,heads,ffn,vocab,seq,gpus,gpu_type,tp,pp,dp,microbatch,global_batch,recompute,precision,"
          "measured_metric,measured_value,unit,shard,mlp,experts,trainable,attention_kind,stack")
ROW = ("mine_1,GPT,4,1024,8,4096,32000,1024,8,A100-80GB-SXM,1,1,8,1,16,none,bf16,iteration_time,100,ms,none,plain,0,full,mha,"
       "fsdp")


class Validate(harness.SystemTest):
    def csv(self, *lines):
        path = self.folder / f"rows_{len(list(self.folder.iterdir()))}.csv"
        path.write_text("\n".join([HEADER, *lines]) + "\n")
        return path

    def test_rows_used_and_rows_skipped(self):
        wrong = ROW.replace("mine_1", "mine_2").replace(",8,A100", ",16,A100")
        done = run(POLYPHONY, "validate", self.csv(ROW, wrong), "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        self.assertGreater(rows["mine_1"]["predicted"], 0)
        self.assertIsNone(rows["mine_2"]["predicted"])
        self.assertIn("contradiction: gpus 16", rows["mine_2"]["reason"])
        table = run(POLYPHONY, "validate", self.csv(ROW, wrong))
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn("contradiction: gpus 16", table.stdout)
        self.assertEqual(table.stderr, "")  # no progress output without a terminal

    def test_bad_input(self):
        for name, command, words in (
                ("no file", ["validate"], ["needs a file"]),
                ("no such file", ["validate", self.folder / "missing.csv"], ["missing.csv"]),
                ("not a number", ["validate", self.csv(ROW.replace(",1024,8,4096", ",1k,8,4096"))], ["line 2, column hidden", "1k"]),
                ("cells", ["validate", self.csv(ROW + ",more")], ["line 2", "27 cells"]),
                ("no such number", ["validate", self.csv(ROW), "--set", "h100.speed=1"], ["h100", "speed"]),
                ("sets nothing", ["validate", self.csv(ROW), "--set", "h100.gemm_efficiency"], ["is not of the form NAME.KEY=VALUE"]),
                ("nothing published", ["validate", SCENARIOS / "tiny.json"], ["published"])):
            with self.subTest(name):
                self.assert_one_line(run(POLYPHONY, *command), *words)

    def test_shipped_rows_and_scenarios(self):
        files = sorted((SCENARIOS / "published").glob("*.csv")) + sorted((SCENARIOS / "published").glob("*.json"))
        done = run(POLYPHONY, "validate", *files, "--format", "json", limit=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertGreater(len(result["rows"]), 300)
        for row in result["rows"]:
            self.assertEqual("reason" in row, row["predicted"] is None, row["id"])
        self.assertLessEqual({"known", "foreign", "borrowed", "all"}, {row["footing"] for row in result["coverage"]})
        for row in result["coverage"]:
            inside = [interval["inside"] for interval in row["intervals"]]
            self.assertEqual(inside, sorted(inside), row["block"])
            self.assertLessEqual(inside[-1], row["rows"], row["block"])
        self.assertEqual(sum(one["pairs"] for one in result["order"]["bins"]), result["order"]["pairs"])

    def test_given_stage_times(self):
        """Published stage times: within 15 % where the language model dominates, and gains of the aware split in the published order."""
        files = sorted((SCENARIOS / "published").glob("cornstarch-stages_*.json"))
        self.assertEqual(len(files), 8)
        done = run(POLYPHONY, "validate", *files, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["id"].split("_", 1)[1].split(".")[0]: row for row in json.loads(done.stdout)["rows"]}
        for name, row in rows.items():
            if not name.startswith("sss"):
                self.assertLess(abs(row["error"]), 0.15, name)

        def order(what):
            return sorted(("sss", "ssm", "llm", "mml"), key=lambda name: rows[name + "_unaware"][what] / rows[name + "_aware"][what])

        self.assertEqual(order("predicted"), order("measured"))
        self.assertNotIn("effects", rows["llm_aware"])  # errors of a profile do not apply to them

    def test_a_row_outside_of_the_fits_is_judged(self):
        foreign = ROW.replace("mine_1", "mine_2").replace(",fsdp", ",polyphony")
        done = run(POLYPHONY, "validate", self.csv(ROW, foreign), "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual([row["footing"] for row in result["rows"]], ["known", "foreign"])
        self.assertEqual([(row["footing"], row["rows"]) for row in result["coverage"]],
                         [("known", 1), ("foreign", 1), ("known", 1), ("foreign", 1), ("all", 2)])


if __name__ == "__main__":
    harness.main()
