// polyphony init: asks a few questions, and writes a scenario with comments.
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "shared/files/files.h"
#include "shared/files/whole.h"
#include "sim/cli/command.h"
#include "sim/commands/commands.h"
#include "sim/console/console.h"
#include "sim/question/commented.h"
#include "sim/question/question.h"

namespace polyphony::sim {
namespace {

std::string read_answer(const std::string& question) {
  std::cerr << question << ": " << std::flush;
  std::string line;
  if (!std::getline(std::cin, line)) {
    std::cerr << "\n";
    throw InputError("standard input", "", "ended before \"" + question + "\" was answered",
                     "answer each question with a line; an empty line takes the default");
  }
  line.erase(0, line.find_first_not_of(" \t"));
  while (!line.empty() && (line.ends_with(' ') || line.ends_with('\t') || line.ends_with('\r')))
    line.pop_back();
  return line;
}

// Asks until the answer is accepted; if no person is asked, a refused answer is an error.
void ask_for(const std::string& question, const std::function<void(const std::string&)>& take) {
  while (true) {
    const std::string answer = read_answer(question);
    try {
      return take(answer);
    } catch (const InputError& error) {
      if (isatty(STDIN_FILENO) == 0) throw;
      std::cerr << error.what() << "\n";
    }
  }
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Asks the questions. What an answer makes impossible is refused at that answer.
AskedScenario ask_all(const std::string& folder) {
  AskOptions question;
  AskedScenario asked;
  const auto accept = [&](AskOptions changed) {
    asked = asked_scenario(changed, read_file, folder);
    question = std::move(changed);
  };
  question.gpus = parse_gpus("H100");
  ask_for("Model: config.json, folder or preset; an encoder and a language model are two words",
          [&](const std::string& answer) {
            AskOptions changed = question;
            changed.models = words_of(answer);
            accept(changed);
          });
  ask_for("GPUs: 8xH100, 64x8xH100", [&](const std::string& answer) {
    AskOptions changed = question;
    changed.gpus = parse_gpus(answer, "GPUs");
    if (changed.gpus.least)
      throw InputError("GPUs", "", "a scenario states how many there are",
                       "polyphony ask --gpus " + answer + " finds out how many are needed");
    accept(changed);
  });
  ask_for("Tokens of a sequence [8k]", [&](const std::string& answer) {
    AskOptions changed = question;
    if (!answer.empty()) changed.sequence = parse_count(answer, "Tokens of a sequence");
    accept(changed);
  });
  if (nlohmann::json::parse(asked.text)["data"].contains("images"))
    ask_for("Images of a sample: 8, 8x1024 patches, 8x448px [a quarter of the tokens]",
            [&](const std::string& answer) {
              AskOptions changed = question;
              changed.images = answer;
              accept(changed);
            });
  ask_for("What is trained: projector,lora:language [all]", [&](const std::string& answer) {
    AskOptions changed = question;
    changed.train = answer;
    accept(changed);
  });
  ask_for("Samples of a step [4 Mi tokens]", [&](const std::string& answer) {
    AskOptions changed = question;
    if (!answer.empty()) changed.global_batch = parse_count(answer, "Samples of a step");
    accept(changed);
  });
  return asked;
}

}  // namespace

int init_command(int argc, char** argv) {
  Arguments args("init",
                 "Asks for a model, GPUs and data, and writes a scenario with comments. The same "
                 "without questions: polyphony ask --save.",
                 "[FILE]",
                 "  polyphony init my.json\n"
                 "  printf 'llama-3.1-8b\\n8xH100\\n\\n\\n\\n' | polyphony init my.json    without "
                 "a terminal: an answer a line");
  args.add()("file", "file to write; it must not exist",
             cxxopts::value<std::string>()->default_value("scenario.json"), "FILE");
  args.positional({"file"});
  if (args.parse(argc, argv)) return 0;
  const std::string file = args.text("file");
  if (std::filesystem::exists(file))
    throw InputError(file, "", "exists already", "remove it, or name another file");
  args.check_outputs({"file"});
  const AskedScenario asked = ask_all(std::filesystem::path(file).parent_path().string());
  write_file(file, commented(asked));
  if (args.json()) {
    std::cout << nlohmann::json{{"file", file}, {"assumed", asked.assumed}}.dump(2) << "\n";
    return 0;
  }
  std::cout << file << " is written. Next:\n  polyphony sweep " << file
            << "    which layout is fastest?\n  polyphony schema > scenario.schema.json    all "
               "keys, for your editor\n";
  return 0;
}

}  // namespace polyphony::sim
