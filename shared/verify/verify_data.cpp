// Checks buffers: each is allocated, written, read and freed in this order. A message is a read of
// one buffer and a write of the other, by the exchange ops that name it. Parameters, gradients and
// optimizer state that no op allocates are resident for the whole step.
#include <algorithm>
#include <tuple>

#include "shared/verify/verify_checks.h"

namespace polyphony {
namespace {

struct Event {
  BufferId buffer{};
  std::uint32_t start = 0;  // node of the op's start; defines the order
  OpId op{};
  std::uint32_t action = 0;  // position inside the op
  Use use = Use::read;
  bool operator<(const Event& other) const {
    return std::tie(buffer, start, op, action) <
           std::tie(other.buffer, other.start, other.op, other.action);
  }
};

// Follows the state of one buffer from use to use. Reports the first fault only.
class BufferLifetime {
 public:
  BufferLifetime(const Program& program, const Order& order, BufferId buffer, bool resident,
                 Faults& faults)
      : program_(program), order_(order), buffer_(buffer), resident_(resident), faults_(faults) {
    if (resident) state_ = State::live;
  }

  void visit(const Event& event) {
    if (faulty_) return;
    switch (event.use) {
      case Use::allocate:
        allocate(event.op);
        break;
      case Use::free:
        free(event.op);
        break;
      case Use::write:
        write(event.op);
        break;
      case Use::read:
      case Use::accumulate:
        read(event.op);
        break;
    }
    uses_.add(order_, event.op);
  }

  void finish() {
    if (state_ == State::live && !resident_ && !faulty_) {
      faults_.add(FaultKind::leaked_buffer, where(program_, buffer_) + ": never freed");
    }
  }

 private:
  enum class State : std::uint8_t { none, live, freed };

  void report(FaultKind kind, OpId op, const char* text) {
    faults_.add(kind, where(program_, buffer_) + ": " + text + " by " + where(program_, op));
    faulty_ = true;
  }

  void allocate(OpId op) {
    if (state_ == State::live) report(FaultKind::double_allocate, op, "allocated again");
    if (state_ == State::freed && !uses_.before(order_, op)) {
      report(FaultKind::double_allocate, op, "allocated again while still in use");
    }
    state_ = State::live;
    allocated_ = op;
    writes_ = Past();
    read_ = OpId();
  }

  bool is_usable(OpId op) {
    if (state_ == State::freed) {
      report(FaultKind::use_after_free, op, "used after it was freed");
    } else if (state_ == State::none || (allocated_.valid() && !order_.before(allocated_, op))) {
      report(FaultKind::read_before_write, op, "used before it is allocated");
    }
    return !faulty_;
  }

  // Rows may arrive by several messages; all must arrive before the first read.
  void write(OpId op) {
    if (!is_usable(op)) return;
    const BufferKind kind = program_.buffers[buffer_.value].kind;
    const bool rows = kind == BufferKind::boundary || kind == BufferKind::boundary_gradient;
    if (rows && read_.valid()) report(FaultKind::read_before_write, read_, "read too early");
    writes_.add(order_, op);
  }

  void read(OpId op) {
    if (!is_usable(op) || resident_) return;
    if (writes_.empty() || !writes_.before(order_, op)) {
      report(FaultKind::read_before_write, op, "read before it is written");
    }
    read_ = op;
  }

  void free(OpId op) {
    if (state_ == State::freed) {
      report(FaultKind::double_free, op, "freed again");
    } else if (state_ == State::none) {
      report(FaultKind::read_before_write, op, "freed before it is allocated");
    } else if (!uses_.before(order_, op)) {
      report(FaultKind::use_after_free, op, "freed while still in use");
    }
    state_ = State::freed;
  }

  const Program& program_;
  const Order& order_;
  BufferId buffer_;
  bool resident_;
  Faults& faults_;
  State state_ = State::none;
  bool faulty_ = false;
  OpId allocated_{}, read_{};
  Past writes_, uses_;
};

// Appends the buffer uses of an op, in their order. Messages come after the allocations and before
// the other uses of the op.
void gather(const Program& program, const Order& order, OpId id, std::vector<Event>& events) {
  // Position of messages: after allocations, before the other uses.
  constexpr std::uint32_t kMessage = 1;
  const Op& op = program.ops[id.value];
  for (std::uint32_t i = op.buffers.begin; i < op.buffers.end; ++i) {
    const BufferUse& use = program.buffer_uses[i];
    const std::uint32_t action = use.use == Use::allocate ? 0 : kMessage + 1 + i - op.buffers.begin;
    events.push_back({use.buffer, order.start(id).position, id, action, use.use});
  }
  const auto* exchange = std::get_if<Exchange>(&op.what);
  if (exchange == nullptr) return;
  for (std::uint32_t i = exchange->messages.begin; i < exchange->messages.end; ++i) {
    const Message& message = program.messages[program.exchange_messages[i].value];
    events.push_back({exchange->sends ? message.from : message.to, order.start(id).position, id,
                      kMessage, exchange->sends ? Use::read : Use::write});
  }
}

bool is_resident(const Program& program, const std::vector<Event>& events, std::size_t begin,
                 std::size_t end) {
  switch (program.buffers[events[begin].buffer.value].kind) {
    case BufferKind::tape:
    case BufferKind::boundary:
    case BufferKind::boundary_gradient:
    case BufferKind::workspace:
    case BufferKind::host:
      return false;
    case BufferKind::parameter:
    case BufferKind::gradient:
    case BufferKind::optimizer:
      break;
  }
  for (std::size_t i = begin; i < end; ++i) {
    if (events[i].use == Use::allocate || events[i].use == Use::free) return false;
  }
  return true;
}

}  // namespace

void check_buffers(const Program& program, const Order& order, Faults& faults) {
  std::vector<Event> events;  // of one rank
  for (const Range& range : program.rank_ops) {
    events.clear();
    for (std::uint32_t op = range.begin; op < range.end; ++op) {
      gather(program, order, OpId(op), events);
    }
    std::sort(events.begin(), events.end());
    for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
      const BufferId buffer = events[begin].buffer;
      while (end < events.size() && events[end].buffer == buffer) ++end;
      BufferLifetime lifetime(program, order, buffer, is_resident(program, events, begin, end),
                              faults);
      for (std::size_t i = begin; i < end; ++i) lifetime.visit(events[i]);
      lifetime.finish();
      if (faults.full()) return;
    }
  }
}

}  // namespace polyphony
