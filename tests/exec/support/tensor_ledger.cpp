#include "tests/exec/support/tensor_ledger.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "exec/torch_pch.h"

namespace polyphony::exec::testing {

struct TensorLedger::State {
  std::mutex mutex;
  std::vector<Block> blocks;  // protected by mutex
  Bytes live{}, most{};       // protected by mutex
};

namespace {

using State = std::shared_ptr<TensorLedger::State>;

struct Open {
  State ledger;
  OpId op;
  bool said = false;  // on this thread
};
thread_local Open open;

// Goes with LibTorch's modes to the threads that work for this one (exec/autograd/beside.h).
struct Carried : c10::DebugInfoBase {
  explicit Carried(Open open_) : from(std::move(open_)) {}
  Open from;
};
constexpr auto kCarried = c10::DebugInfoKind::TEST_INFO;

const Open& here() {
  const auto* carried = dynamic_cast<const Carried*>(c10::ThreadLocalDebugInfo::get(kCarried));
  return open.said || carried == nullptr ? open : carried->from;
}

void say(Open next) {
  // LibTorch's own thread-local is made before the guard, and so goes after it: the guard's end would else
  // give up a second time what is gone.
  c10::ThreadLocalDebugInfo::current();
  static thread_local std::optional<c10::DebugInfoGuard> guard;
  open = std::move(next);
  guard.reset();
  if (open.said) guard.emplace(kCarried, std::make_shared<Carried>(open));
}

struct Entry {
  State ledger;
  std::size_t block;  // position in the ledger's blocks
};
// Blocks of all ledgers, by address: the address is all that a deleter is given.
struct Table {
  std::mutex mutex;
  std::unordered_map<void*, Entry> entries;  // protected by mutex
};
Table& table() {
  static auto* const table = new Table;  // outlives tensors in statics
  return *table;
}
c10::Allocator* inner = nullptr;  // LibTorch's own

void free_block(void* data) {
  Entry entry;
  {
    const std::scoped_lock lock(table().mutex);
    const auto found = table().entries.find(data);
    if (found != table().entries.end()) {
      entry = std::move(found->second);
      table().entries.erase(found);
    }
  }
  if (entry.ledger) {
    const std::scoped_lock lock(entry.ledger->mutex);
    Block& block = entry.ledger->blocks[entry.block];
    block.live = false;
    entry.ledger->live -= block.bytes;
    if (here().ledger == entry.ledger) block.freed = here().op;
  }
  inner->raw_deleter()(data);
}

class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr memory = inner->allocate(bytes);
    const auto& [ledger, op, said] = here();
    if (!ledger || bytes == 0) return memory;
    Entry entry{ledger, 0};
    {
      const std::scoped_lock lock(ledger->mutex);
      entry.block = ledger->blocks.size();
      ledger->blocks.push_back({Bytes(static_cast<std::int64_t>(bytes)), op, {}, true});
      ledger->live += Bytes(static_cast<std::int64_t>(bytes));
      ledger->most = std::max(ledger->most, ledger->live);
    }
    const c10::Device device = memory.device();
    memory.release_context();  // its deleter is inner's raw_deleter, its context the address
    void* const data = memory.get();
    const std::scoped_lock lock(table().mutex);
    table().entries[data] = std::move(entry);
    return {data, data, &free_block, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner->copy_data(to, from, bytes);
  }
};

// In place from the first ledger on; LibTorch keeps the pointer.
void install() {
  static CountingAllocator* const counting = [] {
    inner = c10::GetCPUAllocator();
    auto* const allocator = new CountingAllocator;
    c10::SetCPUAllocator(allocator, /*priority=*/1);
    return allocator;
  }();
  TORCH_CHECK(c10::GetCPUAllocator() == counting, "another allocator took the place");
}

}  // namespace

TensorLedger::TensorLedger() : state_(std::make_shared<State>()) { install(); }
TensorLedger::~TensorLedger() = default;

Bytes TensorLedger::live() const {
  const std::scoped_lock lock(state_->mutex);
  Bytes sum{};
  for (const Block& block : state_->blocks)
    if (block.live) sum += block.bytes;
  return sum;
}

Bytes TensorLedger::most() {
  const std::scoped_lock lock(state_->mutex);
  return std::exchange(state_->most, state_->live);
}

std::vector<Block> TensorLedger::blocks() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->blocks;
}

void TensorLedger::begin_step() {
  const std::scoped_lock lock(state_->mutex);
  for (Block& block : state_->blocks) {
    block.made = {};
    if (!block.live) block = {{}, {}, {}, false};
  }
}

LedgerScope::LedgerScope(TensorLedger* ledger, OpId op)
    : ledger_(open.ledger), op_(open.op), said_(open.said) {
  open_ledger(ledger, op);
}
LedgerScope::~LedgerScope() { say({std::move(ledger_), op_, said_}); }

void open_ledger(TensorLedger* ledger, OpId op) {
  say({ledger ? ledger->state() : nullptr, op, true});
}
OpId open_op() { return here().op; }

}  // namespace polyphony::exec::testing
