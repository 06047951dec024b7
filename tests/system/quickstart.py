"""scripts/quickstart --short, the first command of README.md: every step of the tour ends well and the page is whole."""
import harness
from harness import BUILD, ROOT, run


class Quickstart(harness.SystemTest):
    def test_the_short_tour(self):
        runs = self.folder / "runs"
        done = run(ROOT / "scripts/quickstart", "--short", "--build", BUILD, limit=900, env=harness.environment(POLYPHONY_RUNS=runs))
        self.assert_ok(done)
        self.assertIn("== 6. Report", done.stdout)
        page = (runs / "quickstart/report.html").read_text()
        for text in ("non-colocated", "colocated", "homogeneous", "<svg", "Held-out questions"):
            self.assertIn(text, page)
        self.assertEqual(page.count("<html"), 1)

    def test_unknown_options_are_refused(self):
        done = run(ROOT / "scripts/quickstart", "--fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--help", done.stderr)


if __name__ == "__main__":
    harness.main()
