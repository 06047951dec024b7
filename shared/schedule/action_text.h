// Reads and writes the actions of a pipeline's ranks as text.
//   One action: F0.3, B1.0, I1.2 or W1.2 (kind, stage "." microbatch). F0.3+B7.1 is a pair.
//   F0.3:full is a forward with a recipe (none, selective, full, offload).
//
// Compact form: a version line, one line per pipeline rank, and a hash of everything before it
// (FNV-1a, 64 bits). The hash line is optional, e.g. in files written by hand.
//     polyphony actions 1
//     F0.0 F0.1 B0.0 B0.1
//     F1.0 B1.0 F1.1 B1.1
//     hash 8f1c6a0e2b4d9c37
//
// CSV form, as PyTorch's pipelining writes and loads schedules: one row per rank, one action per
// cell: 0F3, 1B0, 2I0, 2W0, (0F3;7B1)OVERLAP_F_B. In an empty cell the rank is idle. Cells of
// communication (0SEND_F3, 1RECV_B0, 2UNSHARD, 2RESHARD, 2REDUCE_GRAD) are skipped: compile() makes
// messages and collectives of its own. The suffix in 0F3:full is an extension of this program.
//
// Errors: InputError that names the file, the line, and the text that is not an action.
#pragma once

#include <string>
#include <vector>

#include "shared/schedule/action.h"

namespace polyphony {

std::string to_text(const Actions& actions);
// Reads actions separated by spaces. `where` is used in errors: "line 3", or a JSON pointer.
Actions read_actions(const std::string& text, const std::string& file, const std::string& where);

std::string compact_text(const std::vector<Actions>& orders);
// `columns`: the column of each action, by rank, ascending; actions without a column go to the next
// one. The first action of a pair gives the pair's column.
std::string csv_text(const std::vector<Actions>& orders,
                     const std::vector<std::vector<int>>& columns = {});
// Reads either form; one list of actions per rank.
std::vector<Actions> read_orders(const std::string& text, const std::string& file);

}  // namespace polyphony
