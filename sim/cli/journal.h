// A file of what a sweep has predicted so far: JSON lines, one an answer, appended as they arrive.
//   {"polyphony_sweep": 1, "question": "9f…"}
//   {"key": "estimate …", "answer": "…", "check": "9f…"}      check: FNV-1a of key and answer
// A sweep that was killed continues from it, and a repeated sweep predicts nothing again. Naming
// the files of several machines joins the parts of one sweep. A line that is cut off or damaged is
// ignored: its answer is predicted again. Throws InputError if a file is the journal of another
// question or no journal, std::runtime_error if the disk fails.
#pragma once

#include <string>
#include <vector>

#include "shared/files/descriptor.h"
#include "sim/sweep/known_answers.h"

namespace polyphony::sim {

class Journal {
 public:
  // Reads those of `paths` that exist into `known`. New answers are appended to the first, which is
  // created.
  Journal(const std::vector<std::string>& paths, const std::string& question, KnownAnswers& known);

 private:
  void append(const std::string& text);

  std::string path_;
  Descriptor file_;
};

}  // namespace polyphony::sim
