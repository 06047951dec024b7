// Orders of a pipeline's ranks as text.
//   Actions: F0.3 B1.0 I1.2 W1.2: kind, stage . microbatch; F0.3+B7.1 is a pair; F0.3:full is a forward
//   with a recipe (none, selective, full, offload).
//   Compact form: versioned, one line a rank along the pipeline, closed by a hash of all before it
//   (FNV-1a, 64 bits; may be left out by whoever writes one by hand):
//     polyphony actions 1
//     F0.0 F0.1 B0.0 B0.1
//     F1.0 B1.0 F1.1 B1.1
//     hash 8f1c6a0e2b4d9c37
//   CSV: as PyTorch's pipelining writes and loads compute-only schedules: a row a rank, a cell a
//   action, 0F3 1B0 2I0 2W0, (0F3;7B1)OVERLAP_F_B; an empty cell rests; 0F3:full is ours.
// Errors: InputError naming file, line, and the text that is no action.
#pragma once

#include <string>
#include <vector>

#include "shared/schedule/action.h"

namespace polyphony {

std::string to_text(const Actions& actions);
// `where`: "line 3", a JSON pointer.
Actions read_actions(const std::string& text, const std::string& file, const std::string& where);

std::string compact_text(const std::vector<Actions>& orders);
// `columns`: of each action, by rank, rising; actions not named stand in the next one. Of a pair the first's.
std::string csv_text(const std::vector<Actions>& orders,
                     const std::vector<std::vector<int>>& columns = {});
// Either form.
std::vector<Actions> read_orders(const std::string& text, const std::string& file);

}  // namespace polyphony
