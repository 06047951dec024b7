// Orders of turns below each other, all on one axis.
#include <algorithm>

#include "shared/schedule/orders.h"
#include "shared/text/figure_text.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

constexpr double kWidth = 1000, kLeft = 58, kRight = 12, kRank = 12, kGap = 3, kTitle = 22;
constexpr double kThin = 0.35;  // turns that together are thinner are drawn as one

const char* class_of(TurnKind kind) {
  switch (kind) {
    case TurnKind::forward:
      return "forward";
    case TurnKind::backward:
    case TurnKind::backward_input:
      return "backward";
    case TurnKind::backward_weight:
      return "weight";
  }
  return "";
}

}  // namespace

std::string orders_chart(const std::vector<OrdersRow>& rows) {
  double span = 1e-12;
  for (const OrdersRow& row : rows) span = std::max(span, row.table->makespan.count());
  Canvas canvas(kWidth, "schedules");
  const auto x = [&](Seconds at) { return kLeft + (kWidth - kLeft - kRight) * at.count() / span; };
  double y = canvas.legend(0, 14,
                           {{"forward", "forward"},
                            {"forward tint", "encoder: lighter"},
                            {"backward", "backward"},
                            {"weight", "backward (weights)"},
                            {"row", "rests"}});
  for (const OrdersRow& row : rows) {
    y += kTitle;
    canvas.text(0, y - 6, "title", row.title);
    for (std::size_t rank = 0; rank < row.table->ranks.size(); ++rank) {
      canvas.text(kLeft - 8, y + kRank - 3, "rank end", "rank " + std::to_string(rank));
      canvas.rect(kLeft, y, x(row.table->makespan) - kLeft, kRank, "row");
      const std::vector<TimedTurn>& turns = row.table->ranks[rank];
      for (std::size_t i = 0; i < turns.size(); ++i) {
        const Seconds start = turns[i].start;
        std::size_t longest = i;
        while (i + 1 < turns.size() && x(turns[i + 1].end) - x(start) < kThin)
          if (++i; turns[i].end - turns[i].start > turns[longest].end - turns[longest].start)
            longest = i;
        const Turn& turn = turns[longest].turn;
        const bool tint = turn.branch + std::size_t{1} < row.costs->branches.size() &&
                          turn.kind != TurnKind::backward_weight;
        if (turns[i].end <= start) continue;
        canvas.rect(x(start), y, x(turns[i].end) - x(start), kRank,
                    std::string(class_of(turn.kind)) + (tint ? " tint" : ""),
                    describe(turn) + " of " + row.costs->branches[turn.branch].name + ": " +
                        seconds_text(turns[i].end - start));
      }
      y += kRank + kGap;
    }
  }
  return canvas.finish(y + 8);
}

}  // namespace polyphony::traces
