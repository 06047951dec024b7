"""Every command that reads the folder of a run, against every kind of data that a run can train on."""
import json

import harness
from harness import POLYPHONY, SCENARIOS, run


class DataSources(harness.SystemTest):
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
