"""polyphony completion and --version: the words that a shell completes are those of the program."""
import re

import harness
from harness import BUILD, POLYPHONY, ROOT, run


class Completion(harness.SystemTest):
    def completed(self, *words):
        """What bash offers for the last of the words."""
        quoted = " ".join(f"'{word}'" for word in words)
        script = (f"source <({POLYPHONY} completion bash); COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _polyphony; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = run("bash", "-c", script, env=harness.environment(PATH=f"{BUILD}:/usr/bin:/bin"))
        self.assert_ok(done)
        return done.stdout.split()

    def test_every_command_lists_its_options(self):
        commands = run(POLYPHONY, "--list-commands").stdout.split()
        self.assertIn("sweep", commands)
        usage = run(POLYPHONY, "--help").stdout
        for command in commands:
            with self.subTest(command):
                self.assertIn(f"  {command} ", usage)
                if command == "profile":  # its verbs have options of their own
                    continue
                done = run(POLYPHONY, command, "--list-options")
                self.assert_ok(done)
                options = done.stdout.split()
                self.assertIn("--help", options)
                self.assertIn("--format", options)
                text = run(POLYPHONY, command, "--help").stdout
                for option in options:
                    self.assertIn(option, text)
                for line in text.split("\nExamples\n")[0].splitlines():
                    self.assertLessEqual(len(line), 80, line)
                self.assertNotIn('(default: "")', text)
        self.assertLessEqual(max(len(line) for line in usage.splitlines()), 80)
        self.assertNotIn("--save-rank", run(POLYPHONY, "sweep", "--help").stdout)  # an earlier name, which works

    def test_a_shell_completes_commands_options_and_files(self):
        self.assertEqual(self.completed("polyphony", "swe"), ["sweep"])
        self.assertEqual(self.completed("polyphony", "sweep", "--save-r"), ["--save-row"])
        self.assertIn("README.md", self.completed("polyphony", "sweep", "README"))
        zsh = run(POLYPHONY, "completion", "zsh")
        self.assertIn("bashcompinit", zsh.stdout)
        self.assert_one_line(run(POLYPHONY, "completion", "fish"), "bash or zsh")

    def test_the_version_is_the_projects(self):
        version = re.search(r"project\(polyphony VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        done = run(POLYPHONY, "--version")
        self.assert_ok(done)
        self.assertRegex(done.stdout, rf"^polyphony {version} \(commit (unknown|[0-9a-f]+\+?), GNU .*\)\n$")
        self.assertIn(f"## {version}", (ROOT / "CHANGELOG.md").read_text())


if __name__ == "__main__":
    harness.main()
