"""Compares the lists "how to add one more" in the READMEs with the files that a real commit changed.

A list is a section "### To add KIND". Its items begin with files or patterns in backquotes, and its
last paragraph names a commit by its subject (there is none if no commit added only one KIND):
    ### To add a device
    * `shared/hardware/devices/*.json`: its file
    Example commit: Devices: the L40S
Every file of that commit, including tests, must be in the list, and every item of the list must be
an existing file. READMEs and images do not count. Without its tests such a commit changes few
files.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

SECTION = re.compile(r"^### To add ([^\n]+)\n(.*?)(?=^#|\Z)", re.M | re.S)
ITEM = re.compile(r"^\* ((?:`[^`]+`(?:, )?)+)", re.M)
COMMIT = re.compile(r"^Example commit: (.+?)(?=\n\n|\Z)", re.M | re.S)

MOST_FILES = 15


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)


def lists():
    for readme in sorted(ROOT.glob("**/README.md")):
        if "build" in readme.parts or "runs" in readme.parts:
            continue
        for kind, body in SECTION.findall(readme.read_text()):
            patterns = [pattern for item in ITEM.findall(body) for pattern in re.findall(r"`([^`]+)`", item)]
            yield f"{readme.relative_to(ROOT)}: {kind}", patterns, [" ".join(subject.split()) for subject in COMMIT.findall(body.strip())]


def changed(commit):
    """The files that the commit changed, under their current names."""
    files = git("show", "--format=", "--name-only", commit).stdout.split()
    # Move by move: a small file that was edited since then does not resemble what it is today.
    moves = git("log", "--reverse", "--topo-order", "--format=", "-M40%", "-l0", "--diff-filter=R", "--name-status",
                f"{commit}..HEAD").stdout.splitlines()
    for move in filter(None, moves):
        _, old, new = move.split("\t")
        files = [new if file == old else file for file in files]
    return [file for file in files if not file.endswith((".md", ".svg"))]


class HowToAdd(unittest.TestCase):
    def test_there_is_a_list_for_every_kind_of_addition(self):
        kinds = " ".join(name for name, _, _ in lists())
        for kind in ["a layer kind", "a schedule", "a collective algorithm", "an importer", "a device"]:
            self.assertIn(kind, kinds)

    def test_every_listed_file_exists(self):
        for name, patterns, _ in lists():
            self.assertTrue(patterns, name)
            for pattern in patterns:
                self.assertTrue(list(ROOT.glob(pattern)), f"{name}: nothing is called {pattern}")

    def test_lists_name_the_commit_that_followed_them(self):
        named = {name.split(": ")[1] for name, _, subjects in lists() if subjects}
        self.assertLessEqual({"a layer kind", "a schedule", "a collective algorithm", "an importer"}, named)

    def test_a_real_commit_changed_few_files_and_only_listed_ones(self):
        if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
            self.skipTest("no git history")
        log = dict(reversed(line.split("\t", 1)) for line in git("log", "--no-merges", "--format=%H%x09%s").stdout.splitlines())
        for name, patterns, subjects in lists():
            for subject in subjects:
                self.assertTrue(subject in log, f"{name}: no commit is called \"{subject}\"")
                files = changed(log[subject])
                for file in files:
                    self.assertTrue(any(fnmatch.fnmatch(file, pattern) for pattern in patterns),
                                    f"{name}: \"{subject}\" changed {file}, which is not in the list")
                product = [file for file in files if not file.startswith("tests/")]
                self.assertLessEqual(len(product), MOST_FILES, f"{name}: {product}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
