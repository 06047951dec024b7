#include "traces/format/op_journal.h"

#include <doctest/doctest.h>

#include <sstream>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

JournalStep step_of(std::uint64_t number) {
  JournalStep step{number, 77, number % 2 == 1, {Seconds(1), Seconds(1.5)}, Seconds(2e-5), {}};
  for (std::size_t op = 0; op < 3; ++op)
    step.ops.push_back({OpId(op), Seconds(2 + static_cast<double>(op)),
                        Seconds(2.5 + static_cast<double>(op)), Seconds(op == 1 ? -1 : 0.25)});
  return step;
}

std::string two_steps() {
  return journal_head() + journal_entry(ClockSample{Seconds(10), Seconds(5), Seconds(1e-4)}) +
         journal_entry(step_of(4)) + journal_entry(step_of(5)) +
         journal_entry(ClockSample{Seconds(20), Seconds(5.5), Seconds(2e-4)});
}

std::size_t steps_in(const std::string& bytes) {
  std::istringstream in(bytes);
  return JournalReader(in, "journal").steps().size();
}

}  // namespace

TEST_CASE("a journal returns the recorded steps in any order") {
  std::istringstream in(two_steps());
  JournalReader reader(in, "journal");
  CHECK(reader.steps() == std::vector<std::uint64_t>{4, 5});
  CHECK(reader.read(5) == step_of(5));
  CHECK(reader.read(4) == step_of(4));
  CHECK_FALSE(reader.read(6).has_value());
}

TEST_CASE("a clock is interpolated between two samples and constant outside") {
  std::istringstream in(two_steps());
  const JournalReader reader(in, "journal");
  CHECK(reader.clock().offset(Seconds(3)).count() == 5);
  CHECK(reader.clock().offset(Seconds(10)).count() == 5);
  CHECK(reader.clock().offset(Seconds(14)).count() == doctest::Approx(5.2));  // 5 + 4/10 of 0.5
  CHECK(reader.clock().offset(Seconds(99)).count() == 5.5);
  CHECK(reader.clock().drift() == doctest::Approx(0.05));  // half a second in ten
  CHECK(reader.clock().error() == Seconds(2e-4));

  JournalStep moved{1,     0,
                    false, {Seconds(10), Seconds(12)},
                    {},    {{OpId(0), Seconds(14), Seconds(20), Seconds(1)}}};
  move_to(reader.clock(), moved);
  CHECK(moved.data.start.count() == 15);
  CHECK(moved.data.end.count() == doctest::Approx(17.1));
  CHECK(moved.ops[0].start.count() == doctest::Approx(19.2));
  CHECK(moved.ops[0].end.count() == doctest::Approx(25.5));
  CHECK(moved.ops[0].processor == Seconds(1));  // a duration, independent of clocks
}

TEST_CASE("a journal truncated anywhere keeps every complete step before") {
  const std::string whole = two_steps();
  const std::size_t first =
                        (journal_head() + journal_entry(ClockSample{}) + journal_entry(step_of(4)))
                            .size(),
                    second = first + journal_entry(step_of(5)).size();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    CAPTURE(size);
    CHECK(steps_in(whole.substr(0, size)) == (size < first ? 0 : size < second ? 1 : 2));
  }
}

TEST_CASE("a journal damaged in the middle, or another file, is rejected") {
  std::string damaged = two_steps();
  damaged[damaged.size() / 2] ^= 1;
  CHECK_THROWS_AS(steps_in(damaged), InputError);
  CHECK_THROWS_AS(steps_in("{\"traceEvents\": []}"), InputError);
  CHECK_THROWS_AS(steps_in(journal_head() + journal_entry(ClockSample{Seconds(2), {}, {}}) +
                           journal_entry(ClockSample{Seconds(1), {}, {}})),
                  InputError);  // time goes on
}

}  // namespace polyphony::traces
