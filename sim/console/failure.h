// How a command reports that it has no answer: one line on stderr and, with --format json, one
// object on stdout in place of the answer, {"error": {"file", "pointer", "what", "fix",
// "exit_code"}}.
#pragma once

#include <string>

#include "shared/error.h"

namespace polyphony::sim {

// Thrown where the input is well-formed but there is no answer: a layout does not fit, a link is
// missing, ranks failed.
struct NoAnswer : InputError {
  ExitCode code;
  bool said = false;  // a rank has already reported it on stderr
  NoAnswer(ExitCode code_, const std::string& file_, const std::string& pointer_,
           const std::string& what_, const std::string& hint_ = "")
      : InputError(file_, pointer_, what_, hint_), code(code_) {}
};

// Whether a command line asks for JSON, even if other parts of it are wrong.
bool wants_json(int argc, char** argv);

// Reports the error and returns the exit code. `line`: the text for stderr; empty if it was printed
// already.
int report_failure(const InputError& error, ExitCode code, const std::string& line, bool json);

std::string error_schema();

}  // namespace polyphony::sim
