// Draws schedules (orders of actions) below each other, on one axis.
#include <algorithm>

#include "shared/enum_names.h"
#include "shared/schedule/orders.h"
#include "shared/text/figure_text.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

constexpr double kWidth = 1000, kRank = 12, kRankSpace = 3, kTitle = 22;

const char* class_of(ActionKind kind) {
  constexpr auto kClasses = names_of<ActionKind>("forward", "backward", "backward", "weight");
  return kClasses[kind];
}

}  // namespace

std::string orders_chart(const std::vector<OrdersRow>& rows) {
  double span = 1e-12;
  for (const OrdersRow& row : rows) span = std::max(span, row.table->makespan.count());
  Canvas canvas(kWidth, "schedules");
  const auto x = [&](Seconds at) {
    return kRowsLeft + (kWidth - kRowsLeft - kRowsRight) * at.count() / span;
  };
  double y = canvas.legend(0, 14,
                           {{"forward", "forward"},
                            {"forward tint", "encoder: lighter"},
                            {"backward", "backward"},
                            {"weight", "backward (weights)"},
                            {"row", "idle"}});
  for (const OrdersRow& row : rows) {
    y += kTitle;
    canvas.text(0, y - 6, "title", row.title);
    for (std::size_t rank = 0; rank < row.table->ranks.size(); ++rank) {
      canvas.text(kRowsLeft - 8, y + kRank - 3, "rank end", "rank " + std::to_string(rank));
      canvas.rect(kRowsLeft, y, x(row.table->makespan) - kRowsLeft, kRank, "row");
      const std::vector<TimedAction>& actions = row.table->ranks[rank];
      for (std::size_t i = 0; i < actions.size(); ++i) {
        const Seconds start = actions[i].start;
        std::size_t longest = i;
        while (i + 1 < actions.size() && x(actions[i + 1].end) - x(start) < kThin)
          if (++i;
              actions[i].end - actions[i].start > actions[longest].end - actions[longest].start)
            longest = i;
        const Action& action = actions[longest].action;
        const bool tint = action.branch + std::size_t{1} < row.costs->branches.size() &&
                          action.kind != ActionKind::backward_weight;
        if (actions[i].end <= start) continue;
        canvas.rect(x(start), y, x(actions[i].end) - x(start), kRank,
                    std::string(class_of(action.kind)) + (tint ? " tint" : ""),
                    describe(action) + " of " + row.costs->branches[action.branch].name + ": " +
                        seconds_text(actions[i].end - start));
      }
      y += kRank + kRankSpace;
    }
  }
  return canvas.finish(y + 8);
}

}  // namespace polyphony::traces
