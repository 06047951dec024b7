// What a sweep has worked out so far, in a file: JSON lines, one an answer, appended as they arrive.
//   {"polyphony_sweep": 1, "question": "9f…"}
//   {"key": "estimate …", "answer": "…", "check": "9f…"}      check: FNV-1a of key and answer
// A sweep that was killed goes on from it, and a sweep that is asked again works out nothing. Parts of
// one sweep, from several machines, are joined by naming all their files. A line that is cut off or
// damaged is left out: it is worked out again.
// Errors: InputError, of another question or no journal; std::runtime_error when the disk fails.
#pragma once

#include <string>
#include <vector>

#include "shared/files/descriptor.h"
#include "sim/sweep/known_answers.h"

namespace polyphony::sim {

class Journal {
 public:
  // Reads `paths`, as far as they are there, into `known`; new answers go to the end of the first,
  // which is made.
  Journal(const std::vector<std::string>& paths, const std::string& question, KnownAnswers& known);

 private:
  void append(const std::string& text);

  std::string path_;
  Descriptor file_;
};

}  // namespace polyphony::sim
