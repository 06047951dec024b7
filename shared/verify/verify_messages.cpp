// Checks messages: each is sent once and received once, both ends have equal shapes, and every row
// of a boundary buffer is written once.
#include <algorithm>
#include <numeric>

#include "shared/verify/verify_checks.h"

namespace polyphony {
namespace {

std::string describe_message(const Program& program, std::size_t i) {
  const Message& message = program.messages[i];
  return "message " + std::to_string(i) + " from " + where(program, message.from) + " to " +
         where(program, message.to);
}

void check_ends(const Program& program, Faults& faults) {
  std::vector<std::uint32_t> sends(program.messages.size()), receives(program.messages.size());
  for (const Op& op : program.ops) {
    const auto* exchange = std::get_if<Exchange>(&op.what);
    if (exchange == nullptr) continue;
    for (std::uint32_t i = exchange->messages.begin; i < exchange->messages.end; ++i) {
      ++(exchange->sends ? sends : receives)[program.exchange_messages[i].value];
    }
  }
  for (std::size_t i = 0; i < program.messages.size(); ++i) {
    const auto report = [&](FaultKind kind, const char* text) {
      faults.add(kind, describe_message(program, i) + text);
    };
    if (sends[i] == 0) report(FaultKind::missing_send, ": no op sends it");
    if (sends[i] > 1) report(FaultKind::duplicate_send, ": sent more than once");
    if (receives[i] == 0) report(FaultKind::missing_receive, ": no op receives it");
    if (receives[i] > 1) report(FaultKind::duplicate_receive, ": received more than once");
  }
}

bool fits(std::int64_t from_row, const Message& message, const Buffer& buffer) {
  return from_row >= 0 && message.rows >= 0 && message.rows <= buffer.rows &&
         from_row <= buffer.rows - message.rows;
}

// All rows of a buffer have the same size, so the bytes of a message follow from its number of
// rows.
bool has_bytes_of(const Message& message, const Buffer& buffer) {
  if (buffer.rows == 0) return message.bytes.value == 0;
  return buffer.bytes.value % buffer.rows == 0 &&
         message.bytes.value == buffer.bytes.value / buffer.rows * message.rows;
}

void check_shapes(const Program& program, Faults& faults) {
  for (std::size_t i = 0; i < program.messages.size(); ++i) {
    const Message& message = program.messages[i];
    const Buffer& from = program.buffers[message.from.value];
    const Buffer& to = program.buffers[message.to.value];
    const char* wrong = nullptr;
    if (from.width != to.width) wrong = ": widths differ";
    if (!fits(message.from_row, message, from)) wrong = ": rows outside the sender's buffer";
    if (!fits(message.to_row, message, to)) wrong = ": rows outside the receiver's buffer";
    if (wrong == nullptr && !(has_bytes_of(message, from) && has_bytes_of(message, to))) {
      wrong = ": its bytes must be those of its rows at both ends";
    }
    if (wrong != nullptr)
      faults.add(FaultKind::shape_mismatch, describe_message(program, i) + wrong);
  }
}

// The buffers that compute ops write and read.
struct ComputeUses {
  std::vector<char> writes, reads;  // by buffer
};

ComputeUses compute_uses(const Program& program) {
  ComputeUses result{std::vector<char>(program.buffers.size()),
                     std::vector<char>(program.buffers.size())};
  for (const Op& op : program.ops) {
    if (!std::holds_alternative<Compute>(op.what)) continue;
    for (std::uint32_t i = op.buffers.begin; i < op.buffers.end; ++i) {
      const BufferUse& use = program.buffer_uses[i];
      if (use.use == Use::write) result.writes[use.buffer.value] = 1;
      if (use.use == Use::read) result.reads[use.buffer.value] = 1;
    }
  }
  return result;
}

// Checks that a boundary buffer is filled by one compute op, or by messages that tile its rows.
void check_rows(const Program& program, Faults& faults) {
  std::vector<std::uint32_t> order(program.messages.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto key = [&](std::uint32_t i) {
    const Message& message = program.messages[i];
    return std::pair(message.to, message.to_row);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });

  std::vector<std::int64_t> covered(program.buffers.size(), 0);  // rows [0, covered) are written
  std::vector<char> sent_from(program.buffers.size(), 0), gap(program.buffers.size(), 0);
  const ComputeUses uses = compute_uses(program);
  for (const std::uint32_t i : order) {
    const Message& message = program.messages[i];
    if (message.rows <= 0) continue;
    sent_from[message.from.value] = 1;
    std::int64_t& until = covered[message.to.value];
    if (message.to_row < until || uses.writes[message.to.value]) {
      faults.add(FaultKind::overlapping_rows,
                 describe_message(program, i) + ": writes rows that another op also writes");
    }
    if (message.to_row > until) gap[message.to.value] = 1;
    until = std::max(until, message.to_row + message.rows);
  }
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != BufferKind::boundary && buffer.kind != BufferKind::boundary_gradient)
      continue;
    if (uses.writes[i] || buffer.zeroed || !(uses.reads[i] || sent_from[i])) continue;
    if (gap[i] || covered[i] < buffer.rows) {
      faults.add(FaultKind::uncovered_rows,
                 where(program, BufferId(i)) + ": it is read, but not all of its rows are written");
    }
  }
}

}  // namespace

void check_messages(const Program& program, Faults& faults) {
  check_ends(program, faults);
  check_shapes(program, faults);
  check_rows(program, faults);
}

}  // namespace polyphony
