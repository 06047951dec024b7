// Arithmetic of work sizes, and the kinds of works that a column has.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/work/work_size.h"

namespace polyphony {

// Field by field.
WorkSize least(const WorkSize& a, const WorkSize& b);
WorkSize plus(const WorkSize& a, const WorkSize& b);
WorkSize minus(const WorkSize& a, const WorkSize& b);

// One work, of all modules of a branch.
using Sizes = std::vector<WorkSize>;

// Works of a kind are alike; where there are many, a kind is neighbours by tokens, and stands for
// the least of them, field by field: times and bytes grow in every field, so that sums stay lower
// bounds.
struct WorkKinds {
  std::vector<Sizes> sizes;            // by kind
  std::vector<int> counts;             // how many works of each
  std::vector<std::uint16_t> kind_of;  // by work
};
WorkKinds find_kinds(const std::vector<Sizes>& works);

}  // namespace polyphony
