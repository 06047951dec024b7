// Comparison of schedules from stage times: closed forms, memory, drawn batches, a user's own
// order, and reading the CSV file of times.
#include "sim/schedules/compared_schedules.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/random.h"
#include "shared/schedule/schedule.h"
#include "sim/schedules/module_actions.h"
#include "sim/schedules/stage_times.h"

namespace polyphony::tests {
namespace {

using sim::ComparedSchedule, sim::CompareOptions, sim::compare_schedules, sim::StageTimes;

StageTimes read(const std::string& rows, int microbatches = 0) {
  return sim::read_stage_times(
      "module,stage,microbatch,forward,backward_input,backward_weight,bytes\n" + rows, "t.csv",
      microbatches);
}
// Stages with 1 s each for forward, input and weight part, and one saved byte.
StageTimes equal(int stages, int microbatches) {
  std::string rows;
  for (int s = 0; s < stages; ++s) rows += "language," + std::to_string(s) + ",all,1,1,1,1\n";
  return read(rows, microbatches);
}
// Eight microbatches of 0 to 5 images over four pieces in each direction.
StageTimes random_times(std::uint64_t seed) {
  std::string rows, language;
  std::uint64_t drawn = 0;
  const auto draw = [&](int below) {
    return std::to_string(1 + static_cast<int>(random_uniform(seed, drawn++) * below));
  };
  for (int k = 0; k < 8; ++k) {
    const int parts = std::stoi(draw(6)) - 1;
    for (int part = 0; part < parts; ++part) {
      const std::string time = draw(4);
      for (int s = 0; s < 4; ++s)
        rows += "vision," + std::to_string(s) + "," + std::to_string(k) + "." +
                std::to_string(part) + "," + time + "," + time + "," + time + ",1\n";
    }
    const std::string time = draw(8);
    for (int s = 0; s < 4; ++s)
      language += "language," + std::to_string(s) + "," + std::to_string(k) + "," + time + "," +
                  time + "," + time + ",2\n";
  }
  return read(rows + language);
}
const ComparedSchedule& row(const sim::ScheduleComparison& comparison, const std::string& name) {
  for (const ComparedSchedule& one : comparison.rows)
    if (one.name == name) return one;
  FAIL("no row " << name);
  return comparison.rows.front();
}
std::string message(const std::string& rows, int microbatches = 0) {
  try {
    read(rows, microbatches);
  } catch (const InputError& wrong) {
    return wrong.what();
  }
  return "read";
}

}  // namespace

TEST_SUITE("compared schedules") {
  // Eight microbatches over four ranks, one second each of forward, input and weight part: (8 + 4 −
  // 1)·3 for GPipe and 1F1B; weight parts fill all but (4 − 1)·(1 + 1 − 1) of a rank's idle time in
  // ZB-H1 (arXiv 2401.10241, table 2). Whatever the stages, 8·4·3 s of work on four ranks are 24.
  TEST_CASE("closed forms of equal stages") {
    const auto result = compare_schedules(equal(4, 8), {.ranks = 4, .placements = 50});
    CHECK(result.bound == Seconds(24));
    for (const char* name : {"gpipe", "1f1b"}) {
      CAPTURE(name);
      CHECK(row(result, name).table.makespan == Seconds(33));
      CHECK(row(result, name).bound == Seconds(33));
    }
    // A search that may run weight parts later is as fast.
    for (const char* name : {"zero-bubble", "dip", "searched"}) {
      CAPTURE(name);
      CHECK(row(result, name).table.makespan == Seconds(27));
      CHECK(row(result, name).bound == Seconds(27));
    }
    CHECK(sim::bubbles(row(result, "1f1b").table)[0] == doctest::Approx(9.0 / 33));
    CHECK(row(result, "1f1b").table.peak[0] == Bytes(4));
    CHECK(row(result, "interleaved").refusal == "needs 8 stages, but there are only 4 pieces");
    CHECK(std::is_sorted(result.rows.begin(), result.rows.end(), [](const auto& a, const auto& b) {
      return a.refusal.empty() && (!b.refusal.empty() || a.table.makespan < b.table.makespan);
    }));
  }

  // Eight pieces: two virtual stages per rank, with bubbles of 1.5 s instead of 3 s per round.
  TEST_CASE("interleaved uses its best setting") {
    const auto result = compare_schedules(equal(8, 8), {.ranks = 4, .placements = 50});
    CHECK(row(result, "1f1b").table.makespan == Seconds(66));
    CHECK(row(result, "interleaved").setting == "vpp 2");
    CHECK(row(result, "interleaved").table.makespan == Seconds(57));  // 48 + 66 − 48 halved
  }

  // DIP (arXiv 2504.14145, introduction): 64 vision layers of 6.75 ms, a third of it forward, and
  // 64 of language of 10.5, over 16 stages, the bottleneck has seven language layers, 73.5 ms: 64 ·
  // 17.25 + 63 · 73.5 = 5734.5 ms, of which 1 − 64 · 69 / 5734.5 = 22.99 % are bubbles (the paper
  // says 22.8); evenly, 69 ms each, it would be 79 · 69 = 5451 ms.
  TEST_CASE("DIP's 37B split: 5734.5 ms, 22.99 % bubbles; 5451 ms if it were even") {
    std::string rows;
    for (int s = 0; s < 64; ++s)
      rows += "vision," + std::to_string(s) + ",all,2.25ms,2.25ms,2.25ms,0\n";
    for (int s = 0; s < 64; ++s)
      rows += "language," + std::to_string(s) + ",all,3.5ms,3.5ms,3.5ms,0\n";
    const auto result = compare_schedules(read(rows, 64), {.ranks = 16, .only = "1f1b"});
    const ComparedSchedule& split = result.rows.at(0);
    CHECK(split.table.makespan.count() == doctest::Approx(5.7345).epsilon(1e-9));
    double rests = 0;
    for (const double share : sim::bubbles(split.table)) rests += share / 16;
    CHECK(rests == doctest::Approx(0.2299).epsilon(1e-3));
    std::string even;
    for (int s = 0; s < 16; ++s) even += "all," + std::to_string(s) + ",all,23ms,23ms,23ms,0\n";
    CHECK(compare_schedules(read(even, 64), {.ranks = 16, .only = "1f1b"})
              .rows.at(0)
              .table.makespan.count() == doctest::Approx(5.451).epsilon(1e-9));
  }

  // The search begins with their stages and orders. With unlimited and with little memory.
  TEST_CASE("searched is never slower than any row that fits") {
    for (const std::int64_t memory : {0, 12, 20})
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        CAPTURE(memory);
        CAPTURE(seed);
        const StageTimes times = random_times(seed);
        CompareOptions options{.ranks = 2 + static_cast<int>(seed % 3), .placements = 60};
        if (memory > 0) options.memory = Bytes(memory);
        const auto result = compare_schedules(times, options);
        const ComparedSchedule& best = row(result, "searched");
        if (best.refusal.empty()) {
          CHECK(best.fits);
          CHECK(result.rows.at(0).table.makespan == best.table.makespan);
        } else {
          CHECK_FALSE(result.rows.at(0).fits);
          CHECK(best.refusal.find("saves") != std::string::npos);
        }
      }
  }

  // One piece each, on a rank each, forwards only: images of microbatch 0 take 3 s each and their
  // half of its text 1 s, those of microbatch 1 take 1 s, and 3 s. After
  // reassignment each microbatch has one part of each kind: 4 s of images, then 4 s of text, and
  // the same for the second: 12 s. In the given order it is 6 + 2 + 6; both have the same amount of
  // work, so no other order is tried.
  TEST_CASE("entrain reassigns parts: 12 s by hand") {
    const StageTimes times = read(
        "vision,0,0.0,3,0,0,0\nvision,0,0.1,3,0,0,0\nvision,0,1.0,1,0,0,0\n"
        "vision,0,1.1,1,0,0,0\nlanguage,0,0,2,0,0,0\nlanguage,0,1,6,0,0,0\n");
    const auto result = compare_schedules(times, {.ranks = 2, .placements = 20});
    CHECK(row(result, "entrain").table.makespan == Seconds(12));
    CHECK(row(result, "entrain").setting == "1 + 1 ranks");
    CHECK(row(result, "non-colocated, reordered").table.makespan == Seconds(14));
  }

  TEST_CASE("entrain: no work is lost, and deferred parts cause no deadlock") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      CAPTURE(seed);
      const StageTimes times = random_times(seed);
      const auto result = compare_schedules(times, {.ranks = 4, .only = "entrain"});
      REQUIRE(result.rows.at(0).refusal == "");
      Seconds busy{}, all{};
      for (const Seconds one : result.rows[0].table.busy) busy += one;
      for (const sim::ModuleTimes& module : times.modules)
        for (const StageCost& cost : module.costs) all += cost.forward + cost.input + cost.weight;
      CHECK(busy.count() == doctest::Approx(all.count()).epsilon(1e-9));
    }
  }

  TEST_CASE("memory: a schedule that does not fit is marked, and the search keeps the limit") {
    const auto result =
        compare_schedules(equal(4, 8), {.ranks = 4, .memory = Bytes(2), .placements = 50});
    CHECK_FALSE(row(result, "1f1b").fits);
    CHECK(row(result, "dip").fits);
    CHECK(*std::max_element(row(result, "dip").table.peak.begin(),
                            row(result, "dip").table.peak.end()) == Bytes(2));
    CHECK(row(result, "dip").table.makespan > Seconds(33));
  }

  TEST_CASE("a user's own order is an additional row") {
    CompareOptions options{.ranks = 4, .placements = 50};
    for (int p = 0; p < 4; ++p)
      options.own.push_back(schedule(ScheduleKind::one_f_one_b).order({4, 1, 8}, p));
    const auto result = compare_schedules(equal(4, 8), options);
    CHECK(row(result, "own").table.makespan == Seconds(33));
    options.own[3].pop_back();
    CHECK(row(compare_schedules(equal(4, 8), options), "own").refusal ==
          "no rank runs B microbatch 7 of stage 3 of language");
  }

  // An encoder and a language module of a stage each, on a rank each, everything one second.
  // After F0 of the encoder both modules run in parallel. The encoder's backward of 1 ends last
  // (backwards take two seconds each):
  //   rank 0: F0 0-1, F1 1-2, B0 4-6, B1 7-9   rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7
  // The makespan is 9 s. Microbatch 1 has two parts of half a second each in the encoder.
  TEST_CASE("a user's own order by module") {
    const std::string file =
        "module,stage,microbatch,forward,backward_input,backward_weight,bytes\n"
        "vision,0,0,1s,1s,1s,1\nvision,0,1.0,0.5s,0.5s,0.5s,1\nvision,0,1.1,0.5s,0.5s,0.5s,1\n"
        "language,0,all,1s,1s,1s,1\n";
    const StageTimes times = sim::read_stage_times(file, "t.csv", 2);
    const std::string own =
        "vision 0F0,vision 0F1,,vision 0B0,vision 0B1\n,\"language 0F0\",language "
        "0B0,language 0F1,language 0B1\n";
    CHECK(sim::names_modules(own, times));
    CHECK_FALSE(sim::names_modules("0F0,0B0\n", times));
    CompareOptions options{.ranks = 2, .placements = 50};
    options.own = sim::read_module_actions(own, "own.csv", times);
    options.own_by_module = true;
    const auto result = compare_schedules(times, options);
    CHECK(row(result, "own").refusal == "");
    CHECK(row(result, "own").table.makespan == Seconds(9));
    const auto refused = [&](const std::string& cell) {
      try {
        sim::read_module_actions("vision 0F0," + cell + "\n", "own.csv", times);
      } catch (const InputError& wrong) {
        return std::string(wrong.what());
      }
      return std::string("read");
    };
    CHECK(refused("audio 0F1")
              .starts_with(
                  "own.csv: line 1: \"audio 0F1\" names a module that is not in the stage times"));
    CHECK(refused("0F1").starts_with("own.csv: line 1: \"0F1\" names no module"));
    CHECK(refused("vision 0F1.1").find("is an action of a part of a microbatch") !=
          std::string::npos);
    CHECK(refused("vision 0X1").find("is not an action") != std::string::npos);
    options.own[0].pop_back();
    CHECK(row(compare_schedules(times, options), "own").refusal ==
          "no rank runs B microbatch 1 of stage 0 of vision");
    options.own[0].push_back({ActionKind::backward, false, 0, 0, 7, Recipe::layout});
    CHECK(row(compare_schedules(times, options), "own").refusal ==
          "has an action of microbatch 7, but there are only 2 microbatches");
  }

  // Microbatches of 0 to 3 images; the encoder has one part per image.
  TEST_CASE(
      "encoders: no schedule beats the bound, drawn batches have about the mean of the given "
      "ones") {
    std::string rows;
    for (int s = 0; s < 4; ++s) {
      for (int k = 0; k < 8; ++k)
        for (int part = 0; part < k % 4; ++part)
          rows += "vision," + std::to_string(s) + "," + std::to_string(k) + "." +
                  std::to_string(part) + ",500ms,500ms,500ms,1\n";
      rows += "language," + std::to_string(s) + ",all,1s,1s,1s,4\n";
    }
    const StageTimes times = read(rows);
    CHECK(times.microbatches == 8);
    const auto result = compare_schedules(times, {.ranks = 4, .draws = 5, .placements = 200});
    // 12 images · 4 pieces · 1.5 s and 8 · 4 · 3 s over four ranks.
    CHECK(result.bound == Seconds(42));
    for (const ComparedSchedule& one : result.rows) {
      CAPTURE(one.name);
      if (!one.refusal.empty()) continue;
      CHECK(one.bound <= one.table.makespan * (1 + 1e-12));
      CHECK(result.bound <= one.table.makespan);
      REQUIRE(one.drawn.size() == 5);
      CHECK(one.drawn.front() < one.drawn.back());
      CHECK(one.drawn.front() > Seconds(24));
    }
    for (const char* name :
         {"encoders first", "bubble filling", "non-colocated, reordered", "1f1b"}) {
      CAPTURE(name);
      CHECK(row(result, name).refusal.empty());
      CHECK(row(result, "dip").table.makespan <= row(result, name).table.makespan);
    }
    CHECK(compare_schedules(times, {.ranks = 4, .only = "1f1b"}).rows.size() == 1);
  }

  TEST_CASE("a table of times is read, or rejected with file, line and column") {
    const StageTimes times = read("v,0,2.1,1ms,2ms,3ms,2kB\nv,0,2.0,1,2,3,\nl,0,all,1,1,1,1\n");
    CHECK(times.microbatches == 3);
    CHECK(times.modules[0].microbatch_of == std::vector<int>{2, 2});
    CHECK(times.modules[0].cost(0, 1) ==
          StageCost{Seconds(1e-3), Seconds(2e-3), Seconds(3e-3), Bytes(2000), {}});
    CHECK(times.modules[1].costs.size() == 3);
    CHECK(message("l,0,0,1,1,x,1\n").starts_with("t.csv: line 2, column backward_weight: "));
    CHECK(message("l,0,0,1,1,-1,1\n").find("must not be negative") != std::string::npos);
    CHECK(message("l,0,zero,1,1,1,1\n").starts_with("t.csv: line 2, column microbatch: "));
    CHECK(message("l,0,0,1,1,1,1\nl,0,0,1,1,1,1\n").find("occurs twice") != std::string::npos);
    CHECK(message("l,0,all,1,1,1,1\n").find("give --microbatches") != std::string::npos);
    CHECK(message("l,0,0,1,1,1,1\nl,1,1,1,1,1,1\n").find("no time for stage 0 and microbatch 1") !=
          std::string::npos);
    CHECK(message("v,0,0,1,1,1,1\nl,0,1,1,1,1,1\n").find("0 rows for microbatch 0") !=
          std::string::npos);
    CHECK_THROWS_WITH_AS(sim::read_stage_times("module,stage\nl,0\n", "t.csv", 0),
                         doctest::Contains("has no column microbatch"), InputError);
  }
}

}  // namespace polyphony::tests
