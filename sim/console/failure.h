// How a command that has no answer says so: one line on stderr and, with --format json, one object on
// stdout in the answer's place, {"error": {"file", "pointer", "what", "fix", "exit_code"}}.
#pragma once

#include <string>

#include "shared/error.h"

namespace polyphony::sim {

// The question is well-formed, but there is no answer: it does not fit, a link is missing, ranks failed.
struct NoAnswer : InputError {
  ExitCode code;
  bool said = false;  // on stderr, by a rank
  NoAnswer(ExitCode code_, const std::string& file_, const std::string& pointer_,
           const std::string& what_, const std::string& hint_ = "")
      : InputError(file_, pointer_, what_, hint_), code(code_) {}
};

// Whether a command line asks for JSON, also one that is wrong elsewhere.
bool wants_json(int argc, char** argv);

// Says it; returns the exit code. `line`: what stderr says; empty: it has been said.
int report_failure(const InputError& error, ExitCode code, const std::string& line, bool json);

std::string error_schema();

}  // namespace polyphony::sim
