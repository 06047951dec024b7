// Predictions as the text that journals keep, and the cache of such answers.
#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "sim/sweep/candidate.h"
#include "sim/sweep/known_answers.h"

namespace polyphony::sim {
namespace {

Candidate predicted() {
  Candidate c;
  c.figures.step = Seconds(0.1);
  c.figures.tokens = 4096;
  c.figures.peak_memory = Bytes(123);
  c.figures.worst_stage = "language stage 0";
  c.estimate = Seconds(1.0 / 3);
  c.simulated = true;
  c.ops = 77;
  c.parts[1] = Seconds(0.05);
  c.effects = {0.25, -1e-17};
  c.idle.emplace();
  (*c.idle)[2] = Seconds(0.02);
  c.lowerings = 2;
  return c;
}

}  // namespace

TEST_CASE("a prediction read from its text is the prediction, bit by bit") {
  Candidate direct, read;
  direct.text = read.text = "kept";
  direct.why_not = read.why_not = "no prediction yet";
  adopt(Predicted(predicted()), direct);
  read_answer(to_text(Predicted(predicted())), read);
  for (const Candidate* c : {&direct, &read}) {
    CHECK(c->text == "kept");
    CHECK(c->why_not.empty());
    CHECK(c->figures.step == Seconds(0.1));
    CHECK(c->figures.peak_memory == Bytes(123));
    CHECK(c->figures.worst_stage == "language stage 0");
    CHECK(c->estimate == Seconds(1.0 / 3));
    CHECK(c->parts == predicted().parts);
    CHECK(c->effects == predicted().effects);
    CHECK(c->idle == predicted().idle);
    CHECK(c->lowerings == 2);
  }
}

TEST_CASE("what has no prediction keeps the reason") {
  Candidate candidate;
  read_answer(to_text(Predicted(Infeasible{"no link"})), candidate);
  CHECK(candidate.why_not == "no link");
  read_answer(TaskFailed{"stopped"}, candidate);
  CHECK(candidate.why_not == "stopped");
  read_answer(std::string("damaged"), candidate);
  CHECK(candidate.why_not == "damaged");
}

TEST_CASE("a 95th percentile is infinite if a batch does not fit, and absent without an answer") {
  using P95 = std::variant<Seconds, Infeasible>;
  Candidate candidate;
  read_p95(TaskFailed{"stopped"}, candidate);
  read_p95(to_text(P95(Infeasible{"too large"})), candidate);
  CHECK_FALSE(candidate.p95);
  read_p95(to_text(P95(Seconds(2.5))), candidate);
  CHECK(candidate.p95 == Seconds(2.5));
  const Seconds infinite(std::numeric_limits<double>::infinity());
  CHECK(to_text(P95(infinite)) == R"({"p95":null})");
  read_p95(to_text(P95(infinite)), candidate);
  CHECK(candidate.p95 == infinite);
}

TEST_CASE("an answer is learned once, a failure never") {
  KnownAnswers known;
  std::vector<std::string> learned;
  known.learned = [&](const std::string& key, const std::string&) { learned.push_back(key); };
  int asked = 0;
  const auto ask = [&] {
    return known.ask(1, {"a", "b"},
                     [&](std::size_t i) {
                       ++asked;
                       return R"({"error": "of the text, not of the task"})" + std::to_string(i);
                     },
                     {});
  };
  const auto first = ask();
  CHECK(std::holds_alternative<std::string>(first[0]));
  CHECK(std::holds_alternative<std::string>(first[1]));
  ask();
  CHECK(asked == 2);
  CHECK(learned == std::vector<std::string>{"a", "b"});
  CHECK(known.reused() == 2);
  const auto failing =
      known.ask(1, {"c"}, [](std::size_t) -> std::string { throw std::runtime_error("no"); }, {});
  CHECK(std::get<TaskFailed>(failing[0]).what == "no");
  CHECK(known.size() == 2);
  known.stopped = [] { return true; };
  const auto stopped = known.ask(1, {"a", "d"}, [](std::size_t) { return std::string("x"); }, {});
  CHECK(std::holds_alternative<std::string>(stopped[0]));
  CHECK(std::get<TaskFailed>(stopped[1]).what == "stopped");
}

}  // namespace polyphony::sim
