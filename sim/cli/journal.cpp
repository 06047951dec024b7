#include "sim/cli/journal.h"

#include <fcntl.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/fnv.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

std::string head_of(const std::string& question) {
  return json{{"polyphony_sweep", 1}, {"question", question}}.dump() + "\n";
}

std::string check_of(const std::string& key, const std::string& answer) {
  Fnv check;
  check.add(key);
  check.add(answer);
  return check.digits();
}

void read_journal(const std::string& text, const std::string& path, const std::string& question,
                  KnownAnswers& known) {
  const json head = json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (!head.is_object() || !head.contains("polyphony_sweep"))
    throw InputError(path, "", "is not the journal of a sweep",
                     "name another file; a sweep makes it");
  if (head.value("question", "") != question)
    throw InputError(path, "", "is of another question: scenario or profile have changed since",
                     "name another file, or remove it");
  for (std::size_t at = text.find('\n'); at != std::string::npos && at + 1 < text.size();) {
    const std::size_t end = text.find('\n', at + 1);
    if (end == std::string::npos) break;
    const json line = json::parse(text.substr(at + 1, end - at - 1), nullptr, false);
    at = end;
    if (!line.is_object() || !line.contains("key")) continue;
    const std::string key = line.value("key", ""), answer = line.value("answer", "");
    if (line.value("check", "") == check_of(key, answer)) known.add(key, answer);
  }
}

}  // namespace

Journal::Journal(const std::vector<std::string>& paths, const std::string& question,
                 KnownAnswers& known)
    : path_(paths.front()),
      file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail_to_write(path_, errno);
  const std::string own = read_records(path_);
  if (!own.empty()) read_journal(own, path_, question, known);
  for (std::size_t other = 1; other < paths.size(); ++other)
    read_journal(read_records(paths[other]), paths[other], question, known);
  if (own.empty()) append(head_of(question));
  // A last line that was cut off must not swallow the next.
  if (!own.empty() && own.back() != '\n') append("\n");
  known.learned = [this](const std::string& key, const std::string& answer) {
    append(json{{"key", key}, {"answer", answer}, {"check", check_of(key, answer)}}.dump() + "\n");
  };
}

void Journal::append(const std::string& text) {
  if (const int error = write_all(file_, text.data(), text.size())) fail_to_write(path_, error);
}

}  // namespace polyphony::sim
