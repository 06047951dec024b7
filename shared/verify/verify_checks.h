// The checks that verify() runs, in the order in which it runs them. For verify*.cpp only.
// Each check iterates over the Program once, and sorts at most inside one rank or buffer.
// All checks after check_indices() require that it found no fault. An Order requires a graph
// without cycles.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shared/graph/compile.h"
#include "shared/program/program.h"
#include "shared/verify/verify.h"

namespace polyphony {

// Collects faults, up to a limit.
class Faults {
 public:
  explicit Faults(std::size_t limit) : limit_(limit) {}
  void add(FaultKind kind, std::string text) {
    if (!full()) list_.push_back({kind, std::move(text)});
  }
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  std::vector<Fault> take() { return std::move(list_); }

 private:
  std::size_t limit_;
  std::vector<Fault> list_;
};

// The place of a node in three orders that are consistent with the graph: its topological position,
// the length of its longest path from a source, and the negated length of its longest path to a
// sink. A predecessor is smaller in all three. Two unordered nodes rarely have the same order in
// all three.
struct Moment {
  std::uint32_t position = 0, depth = 0, rise = 0;
  bool before(const Moment& other) const {
    return position < other.position && depth < other.depth && rise < other.rise;
  }
};

// Decides whether one op ends before another starts.
class Order {
 public:
  explicit Order(const Compiled& compiled);
  Moment start(OpId op) const { return at(compiled_.op_start[op.value]); }
  Moment end(OpId op) const { return at(compiled_.op_end[op.value]); }
  bool before(OpId a, OpId b) const { return a == b || end(a).before(start(b)); }

 private:
  struct Level {
    std::uint32_t depth = 0, rise = 0;
  };
  Moment at(std::uint32_t node) const { return {node, levels_[node].depth, levels_[node].rise}; }
  const Compiled& compiled_;
  std::vector<Level> levels_;  // by node
};

// A set of ops, for the question whether all of them have ended before another op starts.
class Past {
 public:
  void add(const Order& order, OpId op);
  bool empty() const { return !last_.valid(); }
  // Returns true if all added ops end before `op` starts.
  bool before(const Order& order, OpId op) const;

 private:
  OpId last_{};
  Moment others_{};  // the latest ends of the ops added before `last_`
  bool has_others_ = false;
};

void check_indices(const Program& program, Faults& faults);
void check_messages(const Program& program, Faults& faults);
void check_collectives(const Program& program, Faults& faults);
void check_buffers(const Program& program, const Order& order, Faults& faults);
// If the graph has a cycle, `order` is null and only counts are checked.
void check_gradients(const Program& program, const Order* order, Faults& faults);
void check_samples(const Program& program, Faults& faults);

// Each returns a description for fault messages:
// "rank 1 F language[0,3) work 2 (op 17)"
std::string where(const Program& program, OpId op);
// "rank 1 boundary buffer 9"
std::string where(const Program& program, BufferId buffer);
// "rank 1 language[0,3)"
std::string where(const Program& program, ParamGroupId params);

}  // namespace polyphony
