// Tables of nccl-tests (all_reduce_perf and its sisters), as printed: how long collectives of many
// sizes took among the ranks that the table's head lists.
//   size [bytes]  count  type  redop  root  time [us]  algbw  busbw  #wrong   (out of place; then in place)
// Out of place is read. Which collective it was, the head says ("Collective test starting: …"), or
// busbw ÷ algbw does: 2(n − 1)/n all-reduce, (n − 1)/n all-gather and reduce-scatter (all-to-all has
// the same, so that without a head it is told by its redop "none", which all-gather shares: refused).
// Errors: InputError with "file:line": no rows, no ranks, a row that is cut, #wrong above 0.
// Source: nccl-tests, src/common.cu (columns), doc/PERFORMANCE.md (the factors).
#pragma once

#include <string>
#include <vector>

#include "shared/units.h"
#include "shared/work/work_size.h"

namespace polyphony::traces {

struct CollectiveTimes {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 0;
  int nodes = 1;  // host names in the head
  struct Row {
    Bytes bytes{};  // the whole array
    Seconds time{};
  };
  std::vector<Row> rows;  // as printed
};
CollectiveTimes read_nccl_tests(const std::string& text, const std::string& file);

}  // namespace polyphony::traces
