"""The tools of `polyphony mcp`, asked by the package's own client over standard input and output."""
import json
import unittest

import harness
from harness import CACHE, POLYPHONY, ROOT, SCENARIOS, run

PYTHON = CACHE / "python/bin/python"
TINY = SCENARIOS / "tiny.json"


@unittest.skipUnless(PYTHON.exists(), "scripts/setup python has not run")
class Agents(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = run(PYTHON, ROOT / "tests/system/agents/client.py", TINY, limit=300,
                   env=harness.environment(PYTHONPATH=ROOT / "sim/python", POLYPHONY_COMMAND=POLYPHONY, PYTHONDONTWRITEBYTECODE=1))
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.said = json.loads(done.stdout)

    def test_tools_and_their_page(self):
        self.assertEqual(set(self.said["tools"]), {"ask", "sweep", "simulate", "why", "plan", "emit", "explain"})
        self.assertEqual(set(self.said["tools"]["ask"]["required"]), {"model", "gpus"})
        self.assertIn("Never conclude from a tie", self.said["instructions"])

    def test_answers_are_those_of_the_command(self):
        whole = harness.answer("ask", "--model", "llama-3.1-8b", "--gpus", "8xH100")
        self.assertEqual(self.said["whole"], whole)
        asked = self.said["ask"]["answer"]
        self.assertEqual([row["step_seconds"] for row in asked["rows"][:2]], [row["step_seconds"] for row in whole["ranked"][:2]])
        self.assertIn(whole["simplest"] + 1, [row["row"] for row in asked["rows"]])
        self.assertLess(len(self.said["ask"]["text"]), 12000)
        self.assertAlmostEqual(self.said["simulate"]["answer"]["step_seconds"], whole["ranked"][0]["step_seconds"])
        for tool in ("plan", "why"):
            self.assertEqual(self.said[tool]["answer"], harness.answer(tool, TINY))
        self.assertEqual(self.said["sweep"]["answer"]["rows"][0]["step_seconds"], harness.answer("sweep", TINY)["ranked"][0]["step_seconds"])
        self.assertEqual(self.said["changed"]["answer"], harness.answer("simulate", TINY, "--set", "layout.microbatches=2"))
        self.assertEqual([one["answer"] for one in self.said["both"]], [harness.answer("why", TINY), harness.answer("plan", TINY)])
        self.assertEqual(self.said["schema"], json.loads(run(POLYPHONY, "schema", "simulate").stdout))

    def test_errors_say_what_to_do(self):
        self.assertTrue(self.said["wrong"]["error"])
        self.assertIn('/layout/placement: unknown value "homogenous" (did you mean "homogeneous"?)', self.said["wrong"]["text"])
        self.assertTrue(self.said["too_large"]["error"])
        self.assertIn("no layout fits", self.said["too_large"]["text"])
        self.assertIn("number of microbatches per step", self.said["explain"]["text"])
        self.assertTrue(self.said["unknown"]["error"])


if __name__ == "__main__":
    harness.main()
