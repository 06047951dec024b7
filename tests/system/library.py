"""The installed library: an example outside the tree finds it with find_package, and gives the command's own numbers."""
import json
import shutil

import harness
from harness import BUILD, POLYPHONY, ROOT, SCENARIOS, run


class Library(harness.SystemTest):
    def test_an_example_outside_the_tree(self):
        prefix, example = self.folder / "prefix", self.folder / "example"
        self.assert_ok(run("cmake", "--install", BUILD, "--prefix", prefix))
        shutil.copytree(ROOT / "tests/system/library", example)
        self.assert_ok(run("cmake", "-S", example, "-B", example / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
                           limit=120))
        self.assert_ok(run("cmake", "--build", example / "build", limit=300))
        done = run(example / "build/example", SCENARIOS / "tiny.json", env=harness.environment(PATH=f"{prefix}/bin:/usr/bin:/bin"))
        self.assert_ok(done)
        swept = run(POLYPHONY, "sweep", SCENARIOS / "tiny.json", "--format", "json", limit=120)
        self.assert_ok(swept)
        best = json.loads(swept.stdout)["ranked"][0]
        self.assertIn(f"best layout: {best['layout']}", done.stdout)
        missing = run(example / "build/example", self.folder / "missing.json")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("missing.json", missing.stderr)
        # The installed command works alone, and says what it is.
        said = run(prefix / "bin/polyphony", "--version")
        self.assert_ok(said)
        self.assertRegex(said.stdout, r"polyphony \d+\.\d+\.\d+")
        self.assert_ok(run(prefix / "bin/polyphony", "simulate", SCENARIOS / "tiny.json"))


if __name__ == "__main__":
    harness.main()
