#include "sim/schedules/order_text.h"

#include <algorithm>

#include "shared/schedule/action_text.h"

namespace polyphony::sim {

std::string order_text(const ComparedSchedule& row, bool csv) {
  std::vector<Actions> orders;
  bool one_chain = true;
  for (const std::vector<TimedAction>& rank : row.table.ranks) {
    orders.emplace_back();
    for (const TimedAction& timed : rank) {
      orders.back().push_back(timed.action);
      one_chain = one_chain && timed.action.branch == 0;
    }
  }
  if (one_chain && row.costs.branches.size() == 1)
    return csv ? csv_text(orders) : compact_text(orders);
  std::string text;
  for (const Actions& rank : orders) {
    std::string line;
    for (Action action : rank) {
      const BranchCosts& branch = row.costs.branches[action.branch];
      action.branch = 0;
      std::string cell = csv_text({{action}});
      cell.erase(cell.find_last_not_of("\r\n") + 1);
      if (branch.works() != row.costs.microbatches) {  // "0F22" becomes "0F13.1"
        const std::vector<int>& of = branch.microbatch_of;
        const int microbatch = of[action.work];
        const auto first = std::find(of.begin(), of.end(), microbatch) - of.begin();
        cell = cell.substr(0, cell.find_first_of("FBIW") + 1) + std::to_string(microbatch) + "." +
               std::to_string(static_cast<long>(action.work) - first);
      }
      line += (line.empty() ? "" : ",") + branch.name + " " + cell;
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace polyphony::sim
