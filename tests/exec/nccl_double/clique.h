// What the ranks of a communicator share in the double of NCCL: who has come to what. Internal to
// tests/exec/nccl_double/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/exec/nccl_double/operation.h"

namespace polyphony::exec::testing::nccl {

struct Clique;

// One ncclCommSplit of all ranks.
struct Split {
  struct Part {
    int color, key;
    bool blocking;
  };
  std::vector<std::optional<Part>> parts;  // by rank of the parent
  std::vector<ncclComm*> made;             // likewise, once all have come; null: none
  bool done = false;
};

// One collective, or one message; `parts` are its ends.
struct Meeting {
  std::vector<const Operation*> parts;
  std::string error;
  std::size_t came = 0, left = 0;
  bool done = false;
};

struct Clique {
  std::string name;
  std::vector<ncclComm*> members;  // by rank; null: not here yet
  std::vector<std::shared_ptr<Split>> splits;
  std::map<std::int64_t, Meeting> collectives;
  std::map<std::tuple<int, int, std::int64_t>, Meeting> messages;  // from, to, number
  // Who has come to connect: ends of messages (from, to, whether it sends), and members for each
  // collective.
  std::set<std::tuple<int, int, bool>> ends;
  std::map<std::string, std::set<int>> kinds;

  std::size_t size() const { return members.size(); }
  bool joined = false;  // all members came, before one of them was ended
  // Returns whether all members are here, and none was ended.
  bool complete() const;
  // Returns "ranks 1 2": those for which `absent` returns true.
  template <class Absent>
  std::string ranks(const Absent& absent) const {
    std::string text;
    for (std::size_t rank = 0; rank < size(); ++rank)
      if (absent(rank)) text += " " + std::to_string(rank);
    return "ranks" + text;
  }
};

// With the lock held, of a member that splits, with all parts there: makes the communicators.
void make_parts(const Clique& parent, Split& split);

// Kernels, in the order of the stream: returns when the operation is done, or when the communicator
// was aborted. Throws if the members' calls do not agree, or do not come.
void run_collective(const Operation& operation, std::int64_t number);
// Messages make progress together.
void run_messages(const std::vector<std::pair<Operation, std::int64_t>>& messages);

}  // namespace polyphony::exec::testing::nccl
