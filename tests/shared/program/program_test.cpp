#include "shared/program/program.h"

#include <doctest/doctest.h>

#include "tests/shared/support/hand_made.h"

using namespace polyphony;
using namespace polyphony::hand_made;

TEST_CASE("equal Programs have equal hashes, and every change changes the hash") {
  const Program program = pipeline({});
  CHECK(hash(program) == hash(pipeline({})));
  const auto changed = [&](auto change) {
    Program copy = program;
    change(copy);
    return hash(copy) != hash(program);
  };
  CHECK(changed([](Program& p) { p.totals.loss_tokens += 1; }));
  CHECK(changed([](Program& p) { p.model.modules[0].rope_theta = 500000; }));
  CHECK(changed([](Program& p) { p.batch.samples[1].items[0].loss_tokens -= 1; }));
  CHECK(changed([](Program& p) { p.batch.samples[1].items[0].columns = 1; }));
  CHECK(changed([](Program& p) { p.streams[0].name = "compute "; }));
  CHECK(changed([](Program& p) { p.messages[0].to_row = 1; }));
  CHECK(changed([](Program& p) { std::get<Compute>(p.ops[0].what).phase = Phase::recompute; }));
  CHECK(changed([](Program& p) { std::swap(p.ops[0], p.ops[1]); }));
  CHECK(changed([](Program& p) { p.params[0].trainable = false; }));
}

TEST_CASE("describe() returns a short description of an op") {
  const Program program = pipeline({.stages = 2, .microbatches = 1, .lanes = 2});
  const auto has = [&](std::size_t rank, const char* text) {
    return find(program, Rank(rank), text).valid();
  };
  CHECK(has(0, "F language[0,2) work 0"));
  CHECK(has(3, "B language[2,4) work 1"));
  CHECK(has(0, "send 1 message to rank 2"));
  CHECK(has(3, "receive 1 message from rank 1"));
  CHECK(has(0, "all_reduce language[0,2)"));
  CHECK(has(0, "all_reduce step scalars"));
  CHECK(has(0, "update"));
}
