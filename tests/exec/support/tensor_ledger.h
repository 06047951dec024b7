// Records which blocks of tensor memory a rank has, and between which of its ops: a CPU allocator
// for tests, in front of LibTorch's own.
//   A block belongs to the ledger that is open on the thread that allocates it, or on the thread
//   for which that one works (exec/autograd/beside.h), whichever thread frees it. The ledger
//   records the ops in which it was allocated and freed. Bytes are those requested, before any
//   rounding.
//   Without an open ledger the allocator adds nothing.
// Does not see: memory that is not a tensor's (graphs, queues, strings), threads without a ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shared/ids.h"
#include "shared/units.h"

namespace polyphony::exec::testing {

struct Block {
  Bytes bytes{};
  OpId made, freed;  // invalid: outside any op
  bool live = true;
};

class TensorLedger {
 public:
  TensorLedger();
  ~TensorLedger();
  TensorLedger(const TensorLedger&) = delete;
  TensorLedger& operator=(const TensorLedger&) = delete;

  Bytes live() const;  // of all blocks that are not freed
  Bytes most();        // that lived at once since the last call
  std::vector<Block> blocks() const;
  // Forgets blocks that were freed; those that live count as made outside any op.
  void begin_step();

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;  // blocks may outlive the ledger
};

// This thread's blocks go to `ledger` (null: to none), as of `op`, until the end of the scope.
class LedgerScope {
 public:
  explicit LedgerScope(TensorLedger* ledger, OpId op = {});
  ~LedgerScope();
  LedgerScope(const LedgerScope&) = delete;
  LedgerScope& operator=(const LedgerScope&) = delete;

 private:
  std::shared_ptr<TensorLedger::State> ledger_;  // what was open before
  OpId op_;
  bool said_;
};
// The same, until the thread's next call: for call-backs that begin and end an op.
void open_ledger(TensorLedger* ledger, OpId op);
OpId open_op();  // of this thread

}  // namespace polyphony::exec::testing
