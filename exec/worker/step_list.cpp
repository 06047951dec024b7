#include "exec/worker/step_list.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "shared/error.h"

namespace polyphony::exec {
namespace {

// Reads a step at the front of the text; returns false if there is none.
bool take_step(std::string_view& text, std::int64_t& step) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (failed != std::errc() || step < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_part(std::string_view text, StepList::Part& part) {
  if (!take_step(text, part.first)) return false;
  part.last = part.first + 1;
  if (text.empty()) return true;
  if (text.front() != ':') return false;
  text.remove_prefix(1);
  return take_step(text, part.last) && text.empty() && part.last > part.first;
}

}  // namespace

bool StepList::contains(std::int64_t step) const {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Part& part) { return step >= part.first && step < part.last; });
}

std::int64_t StepList::largest() const {
  std::int64_t most = -1;
  for (const Part& part : parts) most = std::max(most, part.last - 1);
  return most;
}

std::int64_t StepList::smallest() const {
  std::int64_t least = parts.empty() ? -1 : parts.front().first;
  for (const Part& part : parts) least = std::min(least, part.first);
  return least;
}

StepList parse_step_list(const std::string& text, const std::string& option) {
  StepList list;
  if (text.empty()) return list;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    StepList::Part part;
    if (!take_part(std::string_view(text).substr(begin, end - begin), part))
      throw InputError(option, "",
                       "\"" + text +
                           "\" must be steps (from 0) or ranges FIRST:LAST, separated "
                           "by commas",
                       "e.g. " + option + " 5, or " + option + " 5,8:10");
    list.parts.push_back(part);
    begin = end + 1;
  }
  return list;
}

}  // namespace polyphony::exec
