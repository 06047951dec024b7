#include <algorithm>
#include <limits>

#include "shared/error.h"
#include "shared/text/figure_text.h"
#include "traces/format/causality.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces {
namespace {

// Tolerance relative to the longest part: a larger contradiction means that clocks differ or runs
// are mixed. Assumed.
constexpr double kMostApart = 0.05;

void check_clocks(const Program& program, const Timeline& whole,
                  const std::vector<std::size_t>& owner, const std::vector<Trace>& parts,
                  const std::vector<std::string>& files) {
  const auto found = worst_contradiction(program, whole);
  if (!found) return;
  const std::size_t ended = owner[found->ended.value], began = owner[found->began.value];
  Seconds apart{};
  for (const std::size_t p : {ended, began}) {
    if (parts[p].info.clock) apart += parts[p].info.clock->error;
  }
  Seconds longest{};
  for (const Trace& part : parts) {
    if (part.timeline.ops.empty()) continue;
    Seconds first = part.timeline.ops.front().start, last = first;
    for (const OpTime& time : part.timeline.ops) {
      first = std::min(first, time.start);
      last = std::max(last, time.end);
    }
    longest = std::max(longest, last - first);
  }
  if (found->by <= apart + kMostApart * longest) return;
  throw InputError(
      files[began], "/traceEvents",
      describe(program, found->began) + " begins " + seconds_text(found->by) + " after " +
          describe(program, found->ended) + " in " + files[ended] +
          " has ended, although it must begin before: clocks differ, or runs are mixed",
      "give unchanged files of a single run");
}

}  // namespace

Timeline merge(const Program& program, const std::vector<Trace>& parts,
               const std::vector<std::string>& files) {
  POLYPHONY_CHECK(parts.size() == files.size(), parts.size()
                                                    << " parts, " << files.size() << " files");
  constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> owner(program.ops.size(), kNobody);
  Timeline whole;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].info.step != parts[0].info.step || parts[p].info.kind != parts[0].info.kind) {
      throw InputError(files[p], "/polyphony/step", "step or kind differs from that of " + files[0],
                       "give the files of one step");
    }
    for (const OpTime& time : parts[p].timeline.ops) {
      std::size_t& first = owner[time.op.value];
      if (first != kNobody) {
        throw InputError(files[p], "/traceEvents",
                         "op " + std::to_string(time.op.value) + " is also in " + files[first],
                         "give each rank's file once");
      }
      first = p;
      whole.ops.push_back(time);
    }
  }
  const auto missing = std::find(owner.begin(), owner.end(), kNobody);
  if (missing != owner.end()) {
    const auto op = static_cast<std::size_t>(missing - owner.begin());
    throw InputError(files.empty() ? "" : files[0], "/traceEvents",
                     "no file holds op " + std::to_string(op) + " of rank " +
                         std::to_string(program.rank_of(program.ops[op]).value),
                     "give the files of all " + std::to_string(program.ranks) + " ranks");
  }
  std::sort(whole.ops.begin(), whole.ops.end());
  check_clocks(program, whole, owner, parts, files);
  Seconds first = whole.ops.empty() ? Seconds{} : whole.ops.front().start;
  for (const OpTime& time : whole.ops) first = std::min(first, time.start);
  for (OpTime& time : whole.ops) {
    time.start -= first;
    time.end -= first;
    whole.makespan = std::max(whole.makespan, time.end);
  }
  return whole;
}

}  // namespace polyphony::traces
