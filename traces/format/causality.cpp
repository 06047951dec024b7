#include "traces/format/causality.h"

#include <map>
#include <utility>
#include <vector>

namespace polyphony::traces {
namespace {

class Search {
 public:
  explicit Search(const Timeline& timeline) : timeline_(timeline) {}
  void look(OpId ended, OpId began) {
    const Seconds by = timeline_.ops[began.value].start - timeline_.ops[ended.value].end;
    if (by > Seconds(0) && (!worst_ || by > worst_->by)) worst_ = {ended, began, by};
  }
  const std::optional<Contradiction>& worst() const { return worst_; }

 private:
  const Timeline& timeline_;
  std::optional<Contradiction> worst_;
};

// Of one collective: the member that left first, and the member that entered last.
struct Members {
  OpId first_out, last_in;
};

}  // namespace

std::optional<Contradiction> worst_contradiction(const Program& program, const Timeline& timeline) {
  Search search(timeline);
  std::vector<OpId> sender(program.messages.size()), receiver(program.messages.size());
  std::map<std::pair<GroupId, std::uint32_t>, Members> calls;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const OpId op(i);
    if (const auto* exchange = std::get_if<Exchange>(&program.ops[i].what)) {
      for (auto m = exchange->messages.begin; m < exchange->messages.end; ++m)
        (exchange->sends ? sender : receiver)[program.exchange_messages[m].value] = op;
    } else if (const auto* call = std::get_if<Collective>(&program.ops[i].what)) {
      const auto [known, first] = calls.try_emplace({call->group, call->sequence}, Members{op, op});
      Members& members = known->second;
      if (first) continue;
      if (timeline.ops[i].end < timeline.ops[members.first_out.value].end) members.first_out = op;
      if (timeline.ops[i].start > timeline.ops[members.last_in.value].start) members.last_in = op;
    }
  }
  for (std::size_t m = 0; m < sender.size(); ++m)
    if (sender[m].valid() && receiver[m].valid()) search.look(receiver[m], sender[m]);
  for (const auto& [key, members] : calls) search.look(members.first_out, members.last_in);
  return search.worst();
}

}  // namespace polyphony::traces
