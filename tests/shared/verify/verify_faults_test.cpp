// Each kind of fault, seeded in an otherwise correct Program: verify() must report that kind and no
// other.
#include <doctest/doctest.h>

#include <functional>

#include "tests/shared/verify/base_program.h"

using namespace polyphony;
using namespace polyphony::hand_made;

namespace {

Exchange& exchange(Program& program, Rank rank, const char* description) {
  return std::get<Exchange>(program.ops[find(program, rank, description).value].what);
}

// Replaces the messages of the exchange.
void set_messages(Program& program, Exchange& exchange, const std::vector<MessageId>& messages) {
  auto& all = program.exchange_messages;
  exchange.messages.begin = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), messages.begin(), messages.end());
  exchange.messages.end = static_cast<std::uint32_t>(all.size());
}

MessageId first_message(const Program& program, const Exchange& exchange) {
  return program.exchange_messages[exchange.messages.begin];
}

BufferId tape_of(const Program& program, OpId op) {
  const Range uses = program.ops[op.value].buffers;
  for (std::uint32_t i = uses.begin; i < uses.end; ++i) {
    const BufferId buffer = program.buffer_uses[i].buffer;
    if (program.buffers[buffer.value].kind == BufferKind::tape) return buffer;
  }
  FAIL("no tape");
  return {};
}

struct Seeded {
  const char* about;
  FaultKind kind;
  std::function<void(Program&)> spoil;
};

const char* const kSendForward = "send 1 message to rank 2";
const char* const kReceiveForward = "receive 1 message from rank 0";

std::vector<Seeded> message_faults() {
  return {
      {"a message to a buffer that does not exist", FaultKind::bad_index,
       [](Program& p) { p.messages[0].to = BufferId(p.buffers.size()); }},
      {"an op that waits for an op of another rank", FaultKind::bad_index,
       [](Program& p) {
         set_waits(p, find(p, Rank(2), "F language[2,4) work 0"), {find(p, Rank(0), "F")});
       }},
      {"a send that leaves its message out", FaultKind::missing_send,
       [](Program& p) { set_messages(p, exchange(p, Rank(0), kSendForward), {}); }},
      {"a receive that leaves its message out", FaultKind::missing_receive,
       [](Program& p) { set_messages(p, exchange(p, Rank(2), kReceiveForward), {}); }},
      {"a message sent twice", FaultKind::duplicate_send,
       [](Program& p) {
         Exchange& ends = exchange(p, Rank(0), kSendForward);
         const MessageId message = first_message(p, ends);
         set_messages(p, ends, {message, message});
       }},
      {"a message received twice", FaultKind::duplicate_receive,
       [](Program& p) {
         Exchange& ends = exchange(p, Rank(2), kReceiveForward);
         const MessageId message = first_message(p, ends);
         set_messages(p, ends, {message, message});
       }},
      {"widths that differ", FaultKind::shape_mismatch,
       [](Program& p) {
         Buffer& to = p.buffers[p.messages[0].to.value];
         to.width = 4;
         to.bytes = Bytes(64);
       }},
      {"bytes that are not those of the rows", FaultKind::shape_mismatch,
       [](Program& p) { p.messages[0].bytes = Bytes(127); }},
      {"rows written by two messages", FaultKind::overlapping_rows,
       [](Program& p) {
         const MessageId first = first_message(p, exchange(p, Rank(0), kSendForward));
         const MessageId again(p.messages.size());
         p.messages.push_back(p.messages[first.value]);
         set_messages(p, exchange(p, Rank(0), kSendForward), {first, again});
         set_messages(p, exchange(p, Rank(2), kReceiveForward), {first, again});
       }},
      {"a row that no message writes", FaultKind::uncovered_rows,
       [](Program& p) {
         p.messages[0].rows = 3;
         p.messages[0].bytes = Bytes(96);
       }},
      {"sends in the order opposite to the receives", FaultKind::cycle,
       [](Program& p) {
         const OpId first = find(p, Rank(0), kSendForward);
         OpId second{};
         const Range range = p.rank_ops[0];
         for (std::uint32_t op = range.begin; op < range.end; ++op) {
           if (p.ops[op].stream == p.ops[first.value].stream) second = OpId(op);
         }
         REQUIRE(second != first);
         std::swap(p.ops[first.value].what, p.ops[second.value].what);
       }},
      {"an op that waits for a later one of its stream", FaultKind::cycle,
       [](Program& p) {
         set_waits(p, find(p, Rank(0), "F language[0,2) work 0"),
                   {find(p, Rank(0), "B language[0,2) work 0")});
       }},
  };
}

std::vector<Seeded> buffer_faults() {
  return {
      {"a forward that does not wait for its input", FaultKind::read_before_write,
       [](Program& p) { set_waits(p, find(p, Rank(2), "F language[2,4) work 0"), {}); }},
      {"saved activations that no op writes", FaultKind::read_before_write,
       [](Program& p) {
         drop_use(p, find(p, Rank(0), "F language[0,2) work 0"), Use::write, BufferKind::tape);
       }},
      {"saved activations that no op allocates", FaultKind::read_before_write,
       [](Program& p) {
         drop_use(p, find(p, Rank(0), "F language[0,2) work 0"), Use::allocate, BufferKind::tape);
       }},
      {"an output freed before it is sent", FaultKind::use_after_free,
       [](Program& p) {
         const OpId send = find(p, Rank(0), kSendForward);
         const BufferId out = p.buffer_uses[p.ops[send.value].buffers.begin].buffer;
         drop_use(p, send, Use::free, BufferKind::boundary);
         add_use(p, find(p, Rank(0), "F language[0,2) work 0"), out, Use::free);
       }},
      {"saved activations freed twice", FaultKind::double_free,
       [](Program& p) {
         const OpId op = find(p, Rank(0), "B language[0,2) work 0");
         add_use(p, op, tape_of(p, op), Use::free);
       }},
      {"saved activations allocated twice", FaultKind::double_allocate,
       [](Program& p) {
         const OpId op = find(p, Rank(0), "B language[0,2) work 0");
         add_use(p, op, tape_of(p, op), Use::allocate);
       }},
      {"saved activations never freed", FaultKind::leaked_buffer,
       [](Program& p) {
         drop_use(p, find(p, Rank(0), "B language[0,2) work 0"), Use::free, BufferKind::tape);
       }},
  };
}

std::vector<Seeded> gradient_faults() {
  return {
      {"a backward without its weight part", FaultKind::lost_gradient,
       [](Program& p) {
         const OpId op = find(p, Rank(0), "B language[0,2) work 1");
         std::get<Compute>(p.ops[op.value].what).phase = Phase::backward_input;
       }},
      {"a backward run twice", FaultKind::doubled_gradient,
       [](Program& p) { repeat_op(p, find(p, Rank(0), "B language[0,2) work 0")); }},
      {"a gradient never reduced", FaultKind::missing_reduction,
       [](Program& p) {
         for (const Rank rank : {Rank(0), Rank(1)}) {
           remove_op(p, find(p, rank, "all_reduce language[0,2)"));
         }
       }},
      {"a gradient reduced twice", FaultKind::doubled_reduction,
       [](Program& p) {
         for (const Rank rank : {Rank(0), Rank(1)}) {
           const OpId copy = repeat_op(p, find(p, rank, "all_reduce language[0,2)"));
           std::get<Collective>(p.ops[copy.value].what).sequence = 1;
         }
       }},
      {"a reduction that does not wait for the last backward", FaultKind::early_reduction,
       [](Program& p) { set_waits(p, find(p, Rank(0), "all_reduce language[0,2)"), {}); }},
      {"parameters never updated", FaultKind::missing_update,
       [](Program& p) { remove_op(p, find(p, Rank(0), "update")); }},
      {"an update that does not wait for the reduction", FaultKind::missing_update,
       [](Program& p) { set_waits(p, find(p, Rank(0), "update"), {}); }},
      {"parameters updated twice", FaultKind::doubled_update,
       [](Program& p) { repeat_op(p, find(p, Rank(0), "update")); }},
      {"a sample in no microbatch", FaultKind::unused_sample,
       [](Program& p) {
         p.works[1].samples.end = p.works[1].samples.begin;
         p.works[1].rows.end = p.works[1].rows.begin;
       }},
      {"a sample in two microbatches", FaultKind::doubled_sample,
       [](Program& p) {
         const auto begin = static_cast<std::uint32_t>(p.work_samples.size());
         p.work_samples.insert(p.work_samples.end(), {1, 0});
         p.works[1].samples = {begin, begin + 2};
         p.work_rows[1].end *= 2;
       }},
      {"one member reduces fewer bytes", FaultKind::unequal_collectives,
       [](Program& p) {
         const OpId op = find(p, Rank(1), "all_reduce language[0,2)");
         std::get<Collective>(p.ops[op.value].what).bytes = Bytes(999);
       }},
      {"one member runs another kind", FaultKind::unequal_collectives,
       [](Program& p) {
         const OpId op = find(p, Rank(3), "all_reduce step scalars");
         std::get<Collective>(p.ops[op.value].what).kind = CollectiveKind::all_reduce_max;
       }},
      {"one member counts its collectives wrongly", FaultKind::unequal_collectives,
       [](Program& p) {
         const OpId op = find(p, Rank(1), "all_reduce language[0,2)");
         std::get<Collective>(p.ops[op.value].what).sequence = 1;
       }},
  };
}

void check_seeded(const std::vector<Seeded>& cases) {
  for (const Seeded& seeded : cases) {
    CAPTURE(seeded.about);
    Program program = base();
    seeded.spoil(program);
    const std::vector<Fault> faults = verify(program);
    INFO(text(faults));
    CHECK(kinds(faults) == std::set{seeded.kind});
  }
}

}  // namespace

TEST_CASE("verify reports each seeded fault and no other") {
  check_seeded(message_faults());
  check_seeded(buffer_faults());
  check_seeded(gradient_faults());
}

TEST_CASE("every kind of fault is seeded") {
  std::set<FaultKind> seeded;
  for (const auto& cases : {message_faults(), buffer_faults(), gradient_faults()}) {
    for (const Seeded& one : cases) seeded.insert(one.kind);
  }
  CHECK(seeded.size() == names(FaultKind{}).size());
}
