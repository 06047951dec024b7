// Reads what nccl-tests (all_reduce_perf and the other programs) printed, or wrote as JSON with
// `-J FILE`: the time of a collective at many sizes, among the ranks that the header lists.
//
//   size [bytes]  count  type  redop  root  time [us]  algbw  busbw  #wrong
//   (out of place, then in place)
//
// The out-of-place columns are used. The collective is read from the header ("Collective test
// starting: …"). Without it, the ratio busbw ÷ algbw tells it: 2(n − 1)/n for all-reduce, (n − 1)/n
// for all-gather and reduce-scatter. All-to-all has the same ratio and, like all-gather, the redop
// "none", so a table without header is rejected if it could be either.
//
// Throws InputError with "file:line" if there are no rows or no ranks, if a row is truncated, if
// the times are the CPU's (-C), or if #wrong is above 0. Source: nccl-tests 2.19.6, src/common.cu
// (columns), src/util.cu (header, JSON), doc/PERFORMANCE.md (the factors).
#pragma once

#include <string>
#include <vector>

#include "shared/units.h"
#include "shared/work/work_size.h"

namespace polyphony::traces {

struct CollectiveTimes {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 0;
  int nodes = 1;  // number of different host names in the header
  struct Row {
    Bytes bytes{};  // size of the whole array
    Seconds time{};
  };
  std::vector<Row> rows;    // in the order of the table
  std::string device = {};  // of the first rank, "NVIDIA H100 80GB HBM3"; empty: not stated
};
// Parses a table, or JSON. `file` is used in messages.
CollectiveTimes read_nccl_tests(const std::string& text, const std::string& file);

}  // namespace polyphony::traces
