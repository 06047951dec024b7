#include "traces/compare/shared_cores.h"

#include <algorithm>
#include <cmath>

namespace polyphony::traces {
namespace {

// Returns true for a compute op or update that waits for no other rank and has a processor time.
bool computes_alone(const Op& op, const OpTime& time) {
  if (time.processor.count() <= 0) return false;
  const bool compute = std::holds_alternative<Compute>(op.what) && !op.group.valid();
  return compute || std::holds_alternative<Update>(op.what);
}

}  // namespace

std::vector<CoreShare> find_shared_cores(const Program& program,
                                         const std::vector<Timeline>& steps) {
  std::vector<RecordedStep> recorded;
  for (const Timeline& step : steps) recorded.push_back({&program, &step});
  return find_shared_cores(recorded);
}

std::vector<CoreShare> find_shared_cores(const std::vector<RecordedStep>& steps) {
  std::vector<CoreShare> ranks(steps.empty() ? 0 : steps.front().program->ranks);
  for (std::uint32_t r = 0; r < ranks.size(); ++r) ranks[r].rank = Rank(r);
  for (const RecordedStep& step : steps)
    for (const OpTime& time : step.timeline->ops) {
      const Op& op = step.program->ops[time.op.value];
      if (!computes_alone(op, time)) continue;
      CoreShare& rank = ranks[step.program->rank_of(op).value];
      rank.recorded += time.end - time.start;
      rank.processor += time.processor;
    }
  std::erase_if(ranks, [](const CoreShare& rank) {
    return rank.processor.count() <= 0 || rank.ratio() <= kSharedCore;
  });
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const CoreShare& a, const CoreShare& b) { return a.ratio() > b.ratio(); });
  return ranks;
}

std::string describe(const std::vector<CoreShare>& shared) {
  std::string text;
  for (const CoreShare& rank : shared) {
    const auto waited = std::lround(100 * (1 - rank.processor / rank.recorded));
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank.rank.value) +
            " waited for its core " + std::to_string(waited) + " % of the time that it computed";
  }
  return text;
}

void take_waiting(const Program& program, const Timeline& timeline,
                  const std::vector<CoreShare>& shared, Activity& activity) {
  for (const OpTime& time : timeline.ops) {
    const Op& op = program.ops[time.op.value];
    const Rank rank = program.rank_of(op);
    const bool waited = std::any_of(shared.begin(), shared.end(),
                                    [&](const CoreShare& other) { return other.rank == rank; });
    if (!waited || !computes_alone(op, time)) continue;
    const Seconds waiting = std::max(Seconds(0), time.end - time.start - time.processor);
    const Range parts = activity.of[time.op.value];
    if (parts.size() == 0) continue;
    Interval& last = activity.intervals[parts.end - 1];
    last.end = std::max(last.start, last.end - waiting);
  }
}

}  // namespace polyphony::traces
