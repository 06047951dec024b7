// Reads a shell script as far as a launch script needs it: which commands it runs, with which
// words. Nothing is executed.
//   Understood: variables, arrays and +=, defaults (${NAME:-8}), arithmetic ($((A*B))), quotes,
//   continued lines, here-documents, `bash -c "..."`, `if` with tests of strings, integers and
//   emptiness, #SBATCH lines.
//   Not understood: command substitution, loops, files. Words that depend on them keep their text
//   ("$(hostname)"); both branches of a condition that cannot be decided are read.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace polyphony::sim {

struct ShellWord {
  std::string text;
  int line = 0;  // counted from 1
};

struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;             // in the order of the script
  std::map<std::string, std::vector<ShellWord>> variables;  // at its end
  std::map<std::string, std::string> batch;                 // #SBATCH --nodes=4: "nodes", "4"
  std::vector<std::string> notes;                           // what had to be assumed
};

// `set`: variables that the environment would have. Throws InputError with "file:line" where quotes
// or brackets are not closed.
ShellScript read_shell(const std::string& text, const std::string& file,
                       const std::map<std::string, std::string>& set = {});

}  // namespace polyphony::sim
