// Arithmetic on work sizes, and the grouping of a column's works into kinds.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/work/work_size.h"

namespace polyphony {

// Return the minimum, sum and difference, field by field.
WorkSize least(const WorkSize& a, const WorkSize& b);
WorkSize plus(const WorkSize& a, const WorkSize& b);
WorkSize minus(const WorkSize& a, const WorkSize& b);

// The sizes of one work, one per module of a branch.
using Sizes = std::vector<WorkSize>;

// Groups of works of equal size. If there are many sizes, a kind groups neighbors by tokens
// and has the smallest size among them, field by field. Times and bytes grow in every field, so
// that sums stay lower bounds.
struct WorkKinds {
  std::vector<Sizes> sizes;            // by kind
  std::vector<int> counts;             // number of works of each kind
  std::vector<std::uint16_t> kind_of;  // by work
};
// Returns the kinds of a column's works.
WorkKinds find_kinds(const std::vector<Sizes>& works);

}  // namespace polyphony
