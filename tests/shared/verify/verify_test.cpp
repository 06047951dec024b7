#include "shared/verify/verify.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/shared/verify/base_program.h"

using namespace polyphony;
using namespace polyphony::hand_made;

TEST_CASE("verify finds no fault in correct Programs") {
  for (const bool one_f_one_b : {false, true}) {
    for (const int stages : {1, 2, 4}) {
      for (const int lanes : {1, 2}) {
        for (const int tensor : {1, 2, 4}) {
          const auto faults = verify(pipeline({.stages = stages,
                                               .microbatches = 3,
                                               .lanes = lanes,
                                               .tensor = tensor,
                                               .one_f_one_b = one_f_one_b}));
          CHECK_MESSAGE(faults.empty(), text(faults));
        }
      }
    }
  }
  const auto faults = verify(local_bridge());
  CHECK_MESSAGE(faults.empty(), text(faults));
}

// Two microbatches of different sizes, run in opposite order by the two members of a
// tensor-parallel group: the inner collectives differ.
TEST_CASE("verify compares the collectives inside compute ops") {
  Program program = pipeline({.stages = 1, .tensor = 2, .one_f_one_b = false});
  program.sizes[1].tokens = 5;
  REQUIRE(verify(program).empty());
  const OpId first = find(program, Rank(1), "F language[0,3) work 0");
  const OpId second = find(program, Rank(1), "F language[0,3) work 1");
  std::swap(program.ops[first.value].what, program.ops[second.value].what);
  std::swap(program.ops[first.value].buffers, program.ops[second.value].buffers);
  CHECK(kinds(verify(program)) == std::set{FaultKind::unequal_collectives});
}

TEST_CASE("verify finds a group op that one member never runs") {
  Program program = pipeline({.stages = 1, .tensor = 2});
  remove_op(program, find(program, Rank(1), "B language[0,3) work 1"));
  const auto found = kinds(verify(program));
  CHECK(found.count(FaultKind::unequal_collectives) == 1);
  CHECK(found.count(FaultKind::lost_gradient) == 1);
  CHECK(found.count(FaultKind::leaked_buffer) == 1);  // its saved activations
}

TEST_CASE("a frozen parameter group needs no backward, reduction or update") {
  Program program = local_bridge();
  remove_op(program, find(program, Rank(0), "update"));
  CHECK(kinds(verify(program)) == std::set{FaultKind::missing_update});
  for (ParamGroup& params : program.params) params.trainable = false;
  CHECK(verify(program).empty());
}

TEST_CASE("samples without an image need not go through the encoder") {
  Program program = local_bridge();
  const std::int64_t patches = program.batch.samples[0].items[0].tokens;
  program.batch.samples[0].items.erase(program.batch.samples[0].items.begin());
  program.works[0].samples.end = program.works[0].samples.begin;
  program.works[0].items.end = program.works[0].items.begin;
  program.work_rows[0].end -= patches;
  CHECK(verify(program).empty());
}

TEST_CASE("a microbatch that a module never runs is an unused sample") {
  Program program = local_bridge();
  for (Op& op : program.ops) {
    auto* compute = std::get_if<Compute>(&op.what);
    if (compute != nullptr && compute->module == ModuleId(0)) compute->phase = Phase::recompute;
  }
  program.works.push_back(program.works[0]);  // a second image microbatch, which no op runs
  program.sizes.insert(program.sizes.end(), {program.sizes[0], {}});
  CHECK(kinds(verify(program)).count(FaultKind::doubled_sample) == 1);
}

TEST_CASE("verify lists at most `limit` faults") {
  Program program = base();
  for (Message& message : program.messages) message.bytes = Bytes(1);
  CHECK(program.messages.size() == 8);  // 2 lanes × 2 microbatches × 2 directions
  CHECK(verify(program).size() == 8);
  CHECK(verify(program, 3).size() == 3);
}

TEST_CASE("a cycle is reported with its path") {
  Program program = pipeline({.stages = 1, .microbatches = 1});
  const OpId forward = find(program, Rank(0), "F");
  const OpId backward = find(program, Rank(0), "B");
  set_waits(program, forward, {backward});
  const auto faults = verify(program);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].text ==
        "rank 0 F language[0,3) work 0 (op 0) -> rank 0 B language[0,3) work 0 (op 1) -> "
        "rank 0 F language[0,3) work 0 (op 0)");
}

// verify() never reads outside the tables, even if they contain random numbers. (Sanitizers make
// this test strict.)
TEST_CASE("verify does not crash on random numbers anywhere in the tables") {
  std::mt19937_64 random(7);
  const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const auto number = [&] {
    const std::uint32_t interesting[] = {0,  1,    2,           3,           7,
                                         40, 1000, 0x7fffffffu, 0xfffffffeu, 0xffffffffu};
    return interesting[pick(std::size(interesting))];
  };
  const Program sound[] = {base(), local_bridge(), pipeline({.stages = 2, .tensor = 2})};
  int faulty = 0;
  for (int i = 0; i < 2000; ++i) {
    Program program = sound[pick(std::size(sound))];
    Op& op = program.ops[pick(program.ops.size())];
    Message& message = program.messages[pick(program.messages.size())];
    switch (pick(14)) {
      case 0:
        op.stream.value = number();
        break;
      case 1:
        op.group.value = number();
        break;
      case 2:
        op.waits_for = {number(), number()};
        break;
      case 3:
        op.buffers = {number(), number()};
        break;
      case 4:
        program.waits[pick(program.waits.size())].value = number();
        break;
      case 5:
        program.buffer_uses[pick(program.buffer_uses.size())].buffer.value = number();
        break;
      case 6:
        program.exchange_messages[pick(program.exchange_messages.size())].value = number();
        break;
      case 7:
        message.from.value = number();
        break;
      case 8:
        message.rows = static_cast<std::int64_t>(number()) << pick(33);
        break;
      case 9:
        message.to_row = -static_cast<std::int64_t>(number());
        break;
      case 10:
        program.rank_ops[pick(program.rank_ops.size())] = {number(), number()};
        break;
      case 11:
        program.works[pick(program.works.size())].samples = {number(), number()};
        break;
      case 12:
        op.what = Exchange{pick(2) == 0, {number(), number()}};
        break;
      default:
        op.what = Update{{number(), number()}};
        break;
    }
    faulty += verify(program).empty() ? 0 : 1;
  }
  CHECK(faulty > 1000);
}
