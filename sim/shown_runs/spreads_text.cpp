#include "sim/shown_runs/spreads_text.h"

#include "sim/console/console.h"

namespace polyphony::sim {

std::string spreads_text(const std::vector<Spread>& spreads) {
  Table table({"of a sample", "least", "median", "90 %", "99 %", "most"});
  for (const Spread& spread : spreads)
    if (spread.at(1) > 0) {
      std::vector<std::string> row{spread.what};
      for (const double share : {0.0, 0.5, 0.9, 0.99, 1.0})
        row.push_back(count_text(spread.at(share)));
      table.add(row);
    }
  return table.text();
}

}  // namespace polyphony::sim
