#include "sim/frameworks/shell_words.h"

#include <doctest/doctest.h>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

std::string words_of(const ShellScript& script, std::size_t command) {
  std::string text;
  for (const ShellWord& word : script.commands.at(command))
    text += (text.empty() ? "" : "|") + word.text;
  return text;
}
std::string one(const std::string& text, const std::map<std::string, std::string>& set = {}) {
  return words_of(read_shell(text, "run.sh", set), 0);
}

}  // namespace

TEST_CASE("shell: variables, defaults and arithmetic are expanded") {
  CHECK(one("A=2\nrun --tp $A --pp ${A} --dp $((8 / (A * 2)))\n") == "run|--tp|2|--pp|2|--dp|2");
  CHECK(one("run --tp ${TP:-4}\n") == "run|--tp|4");
  CHECK(one("run --tp ${TP:-4}\n", {{"TP", "8"}}) == "run|--tp|8");
  CHECK(one("A=1; B=\"x $A y\"\nrun $B \"$B\" '$B'\n") == "run|x|1|y|x 1 y|$B");
  CHECK(one("run $(hostname) $NOT_SET\n") == "run|$(hostname)|$NOT_SET");
  CHECK(one("export A=3 B=$((A + 1))\nrun $A ${B}x\n") == "run|3|4x");
}

TEST_CASE("shell: arrays keep their words, and strings of options are split") {
  CHECK(one("A=(--x 1  # why\n  --y\n)\nA+=(--z \"two words\")\nrun \"${A[@]}\"\n") ==
        "run|--x|1|--y|--z|two words");
  CHECK(one("A=(\"--x 1\" --y)\nrun ${A[@]}\n") == "run|--x|1|--y");
  CHECK(one("O=\"  --x 1 \\\n  --y\n\"\nrun $O\n") == "run|--x|1|--y");
  CHECK(one("run a \\\n   b\n") == "run|a|b");
}

TEST_CASE("shell: words know the line where they stand") {
  const ShellScript script = read_shell(
      "A=(\n  --x 1\n  --y 2\n)\nO=\"--a 1 \\\n --b 2\"\nrun \"${A[@]}\" $O\n", "run.sh");
  const std::vector<ShellWord>& words = script.commands.at(0);
  REQUIRE(words.size() == 9);
  CHECK(words[1].line == 2);
  CHECK(words[3].line == 3);
  CHECK(words[5].line == 5);
  CHECK(words[7].line == 6);
}

TEST_CASE("shell: conditions that can be decided choose one branch") {
  const std::string text =
      "if [[ \"$T\" == \"fp8\" ]] || [ $N -gt 4 ]; then\n  A=1\nelif [ -z \"$E\" ]; then\n  "
      "A=2\nelse\n  A=3\nfi\nrun $A\n";
  CHECK(one(text, {{"T", "fp8"}}) == "run|1");
  CHECK(one(text, {{"N", "8"}}) == "run|1");
  CHECK(one(text) == "run|2");
  CHECK(one(text, {{"E", "x"}}) == "run|3");
  CHECK(one("if [ $N -gt 1 ] && [ $N -lt 4 ]; then A=in; else A=out; fi\nrun $A\n", {{"N", "3"}}) ==
        "run|in");
  const ShellScript unknown =
      read_shell("A=0\nif grep -q x file; then\n  A=1\nfi\nrun $A\n", "run.sh");
  CHECK(words_of(unknown, unknown.commands.size() - 1) == "run|1");
  REQUIRE(unknown.notes.size() == 1);
  CHECK(unknown.notes[0].find("line 2") != std::string::npos);
}

TEST_CASE("shell: commands inside bash -c, here-documents and #SBATCH lines are read") {
  const ShellScript inside = read_shell(
      "C=\"cd x; python a.py --tp 2\"\nsrun bash -x -c \"$C\" 2>&1 | tee log\n", "run.sh");
  bool found = false;
  for (std::size_t i = 0; i < inside.commands.size(); ++i)
    found |= words_of(inside, i) == "python|a.py|--tp|2";
  CHECK(found);
  const ShellScript document = read_shell(
      "sbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node 8\nsrun python a.py "
      "--tp $T\nEOF\nlast\n",
      "run.sh", {{"T", "2"}});
  CHECK(document.batch.at("nodes") == "4");
  CHECK(document.batch.at("gpus-per-node") == "8");
  CHECK(words_of(document, document.commands.size() - 1) == "last");
  bool started = false;
  for (std::size_t i = 0; i < document.commands.size(); ++i)
    started |= words_of(document, i) == "srun|python|a.py|--tp|2";
  CHECK(started);
}

TEST_CASE("shell: what is not closed is refused with its line") {
  CHECK_THROWS_WITH_AS(read_shell("a\nb \"c\nd\n", "run.sh"), doctest::Contains("run.sh:2"),
                       InputError);
  CHECK_THROWS_WITH_AS(read_shell("A=(1\n2\n", "run.sh"), doctest::Contains("run.sh:1"),
                       InputError);
}

TEST_CASE("shell: arrays that double themselves end") {
  std::string text = "A=(1 2 3 4 5 6 7 8)\n";
  for (int i = 0; i < 40; ++i) text += "A+=(\"${A[@]}\")\n";
  CHECK_THROWS_WITH_AS(read_shell(text, "run.sh"), doctest::Contains("too many words"), InputError);
  std::string deep = "run ";
  for (int i = 0; i < 5000; ++i) deep += "${A:-";
  CHECK_THROWS_AS(read_shell(deep, "run.sh"), InputError);
}

}  // namespace polyphony::sim
