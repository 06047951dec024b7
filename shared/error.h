// The three kinds of failure, and the form each takes.
//   InputError   the user's input is wrong: file, JSON pointer, what is wrong, how to fix it.
//                Caught once, in main; printed as one line, exit code 2
//   Infeasible   an expected "no" (out of memory, illegal layout in a sweep): a return value with
//                its reason; exit code 3 if it is the command's answer
//   CHECK        a bug in this program: always enabled, aborts the command and prints the values
//                (InternalError), exit code 1
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace polyphony {

// Exit codes of every command.
enum class ExitCode : int { ok = 0, failed = 1, bad_input = 2, infeasible = 3 };

// The name of a function's argument, where an error is not about a file: "stack". The command shows
// it as its option: "--stack".
struct Argument {
  std::string name;
};

struct InputError : std::runtime_error {
  std::string file;       // path as the user gave it, or an argument; empty when there is neither
  bool argument = false;  // `file` is an argument
  std::string pointer;    // RFC 6901 JSON pointer ("/layout/vision/tp"); empty when not JSON
  std::string what_is_wrong;
  std::string hint;  // how to fix it; should never be empty
  InputError(std::string file_, std::string pointer_, std::string what_, std::string hint_)
      : std::runtime_error(line(file_, pointer_, what_, hint_)),
        file(std::move(file_)),
        pointer(std::move(pointer_)),
        what_is_wrong(std::move(what_)),
        hint(std::move(hint_)) {}
  InputError(const Argument& argument_, std::string pointer_, std::string what_, std::string hint_)
      : InputError(argument_.name, std::move(pointer_), std::move(what_), std::move(hint_)) {
    argument = true;
  }

  // Returns the line that a command prints: what(), with an argument written as its option.
  std::string command_line() const { return (argument ? "--" : "") + std::string(what()); }

  // Returns the line that what() holds.
  static std::string line(const std::string& file, const std::string& pointer,
                          const std::string& what, const std::string& hint) {
    std::string text = file;
    if (!pointer.empty()) text += (text.empty() ? "" : ": ") + pointer;
    if (!text.empty()) text += ": ";
    text += what;
    if (!hint.empty()) text += " (" + hint + ")";
    return text;
  }
};

struct Infeasible {
  std::string reason;  // one line, names the module, stage or rank concerned
  bool operator==(const Infeasible&) const = default;
};

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line,
                                      const std::string& values) {
  std::ostringstream text;
  text << "internal error: " << condition << " does not hold at " << file << ":" << line;
  if (!values.empty()) text << " (" << values << ")";
  throw InternalError(text.str());
}

}  // namespace polyphony

#define POLYPHONY_CHECK(condition, values)                                                   \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::ostringstream polyphony_check_text;                                               \
      polyphony_check_text << values;                                                        \
      ::polyphony::check_failed(#condition, __FILE__, __LINE__, polyphony_check_text.str()); \
    }                                                                                        \
  } while (false)
