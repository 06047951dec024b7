"""Runs the commands of README.md as they are written: lines of its sh and console blocks that begin with "$ ", "./" or "build/release/".

The first sweep (quickstart.py runs it), set-up, quickstart, test, format and what needs a cluster (torchrun, srun, mpirun) or
minutes are left out by name, and `./run` of an unpacked bundle (gpu_rehearsal.py runs it). Files go to a copy of the tree's layout in a temporary folder (links to everything, runs/ of its own).
"""
import os
import re

import harness
from harness import BUILD, ROOT

NOT_HERE = re.compile(r"sweep scenarios/vlm_12b_70b_h100|scripts/|git |cd |apt|torchrun|srun|mpirun|cmake|ctest|--full|stop-accuracy|-gpu|^\./run ")
BLOCK = re.compile(r"^```(?:sh|bash|console|shell)?[ ]*\n(.*?)^```", re.M | re.S)
INDENTED = re.compile(r"^    (?=\$ |\./|build/release/)(.*)$", re.M)


def commands(text):
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()] + INDENTED.findall(text.replace("\\\n", " "))
    for line in lines:
        match = re.match(r"\s*(?:\$ )?((?:\./|build/release/|polyphony).*?)(\s+#.*)?$", line)
        if match and not NOT_HERE.search(match[1]):
            yield match[1]


class Readme(harness.SystemTest):
    def test_every_quick_command(self):
        tree = self.folder / "tree"
        (tree / "build").mkdir(parents=True)
        for entry in ROOT.iterdir():
            if entry.name not in ("build", "runs", ".git"):
                (tree / entry.name).symlink_to(entry)
        (tree / "build/release").symlink_to(BUILD)
        found = []
        for readme in sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("[!br]*/**/README.md")):
            found += commands(readme.read_text())
        self.assertGreater(len(found), 10)
        for command in dict.fromkeys(found):
            with self.subTest(command):
                done = harness.subprocess.run(["bash", "-c", command], cwd=tree, capture_output=True, text=True, timeout=600,
                                              env=harness.environment(PATH=f"{BUILD}:{os.environ['PATH']}"))
                self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    harness.main()
