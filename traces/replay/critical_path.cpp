#include "traces/replay/critical_path.h"

#include <algorithm>
#include <optional>

#include "traces/compare/activity.h"

namespace polyphony::traces {
namespace {

class Walk {
 public:
  Walk(const Program& program, const Timeline& timeline)
      : program_(program), times_(recorded(program, timeline)) {
    const std::vector<std::uint32_t> sets = rendezvous_sets(program);
    together_.resize(program.ops.size());
    std::vector<std::vector<OpId>> members(program.ops.size());
    for (std::size_t op = 0; op < sets.size(); ++op) members[sets[op]].push_back(OpId(op));
    for (std::size_t op = 0; op < sets.size(); ++op) together_[op] = members[sets[op]];
    add_peers();
    before_.resize(program.ops.size());
    std::vector<OpId> last(program.streams.size());
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      OpId& previous = last[program.ops[op].stream.value];
      before_[op] = previous;
      previous = OpId(op);
    }
  }

  std::vector<PathPiece> path() const {
    std::optional<OpId> at;
    for (std::size_t op = 0; op < times_.size(); ++op)
      if (times_[op] && (!at || times_[op]->end > end(*at))) at = OpId(op);
    std::vector<PathPiece> pieces;
    std::vector<char> seen(times_.size(), 0);  // equal ends must not cause a cycle
    while (at) {
      seen[at->value] = 1;
      const std::optional<OpId> previous = latest_before(*at, seen);
      pieces.push_back({*at, previous ? end(*previous) : Seconds(0), end(*at)});
      at = previous;
    }
    std::reverse(pieces.begin(), pieces.end());
    return pieces;
  }

 private:
  Seconds end(OpId op) const { return times_[op.value]->end; }

  // Both ends of a message run together.
  void add_peers() {
    std::vector<std::vector<OpId>> ends(program_.messages.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op)
      if (const auto* exchange = std::get_if<Exchange>(&program_.ops[op].what))
        for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i)
          ends[program_.exchange_messages[i].value].push_back(OpId(op));
    for (const std::vector<OpId>& both : ends)
      for (const OpId one : both)
        for (const OpId other : both)
          if (one != other) together_[one.value].push_back(other);
  }

  std::optional<OpId> latest_before(OpId op, const std::vector<char>& seen) const {
    std::optional<OpId> latest;
    const auto look_at = [&](OpId candidate) {
      if (!candidate.valid() || seen[candidate.value] || !times_[candidate.value]) return;
      if (end(candidate) > end(op)) return;
      if (!latest || end(candidate) > end(*latest)) latest = candidate;
    };
    for (const OpId with : together_[op.value]) {
      look_at(before_[with.value]);
      const Range waits = program_.ops[with.value].waits_for;
      for (auto w = waits.begin; w < waits.end; ++w) look_at(program_.waits[w]);
    }
    return latest;
  }

  const Program& program_;
  std::vector<std::optional<Interval>> times_;
  std::vector<std::vector<OpId>> together_;  // by op, including itself
  std::vector<OpId> before_;                 // by op: the previous op on its stream
};

}  // namespace

std::vector<PathPiece> critical_path(const Program& program, const Timeline& timeline) {
  return Walk(program, timeline).path();
}

}  // namespace polyphony::traces
