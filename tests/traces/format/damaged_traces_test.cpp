// Damaged and mixed trace files. Those of Kineto: tests/traces/kineto.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/traces/format/played_pipeline.h"

using namespace polyphony;
using namespace polyphony::traces;
using namespace polyphony::traces::test;
using nlohmann::json;

TEST_CASE("damaged files, or files that do not belong together, cause an error or do no harm") {
  const Ran sample;
  const Program& program = sample.program;
  const std::string text = sample.text();
  // Two files concatenated.
  CHECK(message_of(text + text, program).find("not JSON") != std::string::npos);
  // Not UTF-8: in a name that is not read, and in one that is.
  const std::string name = "\"name\": \"F language";
  CHECK(message_of(replaced(text, name, "\"name\": \"\xff\xfe language"), program)
            .find("step.json: ") == 0);
  // Only one of the announced events.
  const std::size_t first = text.find("{\"ph\": \"X\""),
                    second = text.find("{\"ph\": \"X\"", first + 1), last = text.rfind("\n]");
  CHECK(message_of(text.substr(0, second - 2) + text.substr(last), program)
            .find("announces " + std::to_string(program.ops.size()) + " ops and holds 1 (") !=
        std::string::npos);
  // In another order.
  json shuffled = json::parse(text);
  std::reverse(shuffled["traceEvents"].begin(), shuffled["traceEvents"].end());
  CHECK(read_trace(shuffled.dump(), "step.json", program).timeline == sample.timeline);
}

TEST_CASE("ranks with different clocks, and files of two runs, are not one step") {
  const Ran sample;
  const Program& program = sample.program;
  const auto parts_with = [&](Seconds ahead, Seconds error) {
    std::vector<Trace> parts;
    for (std::size_t r = 0; r < program.ranks; ++r) {
      Trace part{{TraceKind::measured, hash(program), 7, program.ranks, Rank(r)},
                 part_of(program, sample.timeline, Rank(r))};
      part.info.clock = ClockNote{{}, error, 0};
      for (OpTime& time : part.timeline.ops)
        if (r == 3) time.start += ahead, time.end += ahead;
      parts.push_back(std::move(part));
    }
    return parts;
  };
  const std::vector<std::string> files{"0.json", "1.json", "2.json", "3.json"};
  // A message from rank 3 arrives at rank 1 a quarter of a second after its send began: if the
  // clock is further ahead, it arrives before it was sent. A twentieth of the longest part is
  // tolerated.
  const Seconds whole = sample.timeline.makespan;
  CHECK(merge(program, parts_with(Seconds(0.25), {}), files).ops.size() == program.ops.size());
  CHECK(merge(program, parts_with(Seconds(0.25) + 0.04 * whole, {}), files).makespan > whole);
  CHECK_THROWS_AS(merge(program, parts_with(Seconds(0.25) + 0.06 * whole, {}), files), InputError);
  try {
    merge(program, parts_with(Seconds(3600), Seconds(1e-5)), files);
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(error.file == "3.json");
    CHECK(error.what_is_wrong.find("clocks differ, or runs are mixed") != std::string::npos);
  }
  CHECK_THROWS_AS(merge(program, parts_with(Seconds(-3600), {}), files), InputError);
  // Within the clock errors that the files state.
  CHECK(merge(program, parts_with(Seconds(3), Seconds(2)), files).makespan > whole);
  CHECK_THROWS_AS(merge(program, parts_with(Seconds(6), Seconds(2)), files), InputError);
}
