// Mutations of profiler traces (traces/samples): some tens of events of each, with all kinds of
// keys; occasionally whole files, plain and gzip.
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/fuzz/fuzz.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/temp_folder.h"
#include "tests/traces/nsys/made_report.h"
#include "traces/kernels/played_kernels.h"
#include "traces/kineto/kineto.h"
#include "traces/kineto/summary.h"
#include "traces/nsys/nsys.h"

namespace polyphony {
namespace {

using namespace traces;

constexpr const char* kSamples[] = {"nccl_data", "sampled_rank-0", "sampled_rank-1",
                                    "llama_8b_eager", "qwen3_30b_eager"};

std::string packed_sample(const std::string& name) {
  return test::file_text("traces/samples/" + name + ".json.gz");
}
std::string plain(const std::string& packed) {
  const ByteSource source = unpacked(bytes_of(packed), "sample");
  std::string text, block(1 << 16, '\0');
  while (const std::size_t count = source(block.data(), block.size())) text.append(block, 0, count);
  return text;
}

// Selects the first two events of every category and phase, four collectives, and the events with
// the same correlations.
std::string cut(const std::string& text) {
  nlohmann::json whole = nlohmann::json::parse(text), kept = nlohmann::json::array();
  std::map<std::string, int> seen;
  std::vector<std::int64_t> wanted;
  const auto correlation = [](const nlohmann::json& event) {
    return event.value("args", nlohmann::json::object()).value("correlation", std::int64_t{-1});
  };
  for (const auto& event : whole["traceEvents"]) {
    const std::string name = event.value("name", "");
    const bool collective = name.find("nccl") != std::string::npos;
    const std::string kind = event.value("ph", "") + event.value("cat", "") +
                             (collective                     ? "nccl"
                              : name.starts_with("Profiler") ? "step"
                                                             : "");
    if (++seen[kind] > (collective ? 4 : 2)) continue;
    if (event.value("cat", "").find("cuda_") != 0) wanted.push_back(correlation(event));
    kept.push_back(event);
  }
  for (const auto& event : whole["traceEvents"])
    if (event.value("cat", "").starts_with("cuda_") &&
        std::find(wanted.begin(), wanted.end(), correlation(event)) != wanted.end() &&
        correlation(event) >= 0)
      kept.push_back(event);
  whole["traceEvents"] = kept;
  whole.erase("INFO");
  return whole.dump(1);
}

void read_all(const std::string& text) {
  RankSet ranks = rank_set({read_kineto(bytes_of(text), "t.json")});
  collective_rows(ranks);
  product_rows(ranks);
  kernel_rows(ranks);
  const RecordedGraph recorded = recorded_graph(ranks);
  const std::vector<Seconds> played = play(recorded.graph, recorded.lags);
  for (std::size_t point = 0; point < played.size(); ++point)
    CHECK(std::abs((played[point] - recorded.times[point]).count()) < 1e-3);
  const auto check_adds_up = [](const DeviceTimes& times) {
    Nanoseconds sum = times.idle;
    for (const ClassTime& time : times.classes) sum += time.wall;
    CHECK(sum == times.span);
  };
  check_adds_up(ranks.times[0].whole);
  for (const StepTimes& step : ranks.times[0].steps) check_adds_up(step.times);
}

}  // namespace

TEST_CASE("fuzz: profilers' traces") {
  std::vector<std::string> originals;
  for (const char* name : kSamples) originals.push_back(cut(plain(packed_sample(name))));
  fuzz::check_reader(
      [&](std::uint64_t seed) {
        const std::string& original = originals[seed % originals.size()];
        return seed % 4 == 0 ? test::mutated_lines(seed, original, " :,\"[]{}")
                             : test::mutated_json(seed, original);
      },
      read_all);
}

TEST_CASE("fuzz: profilers' traces, whole") {
  std::vector<std::string> packed;
  for (const char* name : kSamples) packed.push_back(packed_sample(name));
  const std::string text = plain(packed[1]);
  for (std::uint64_t seed = 0; seed < std::max<std::uint64_t>(fuzz::rounds() / 50, 10); ++seed) {
    for (const std::string& damaged :
         {test::mutated_lines(seed, text, " :,\"[]{}"),
          test::mutated_lines(seed, packed[seed % packed.size()], " ")}) {
      try {
        read_all(damaged);
      } catch (const InputError& error) {
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
      }
    }
  }
}

// Databases of which some bytes are changed, or that are truncated.
TEST_CASE("fuzz: reports of Nsight Systems") {
  const test::TempFolder folder;
  const std::string path = folder / "r.sqlite";
  {
    made::Report report(path);
    made::add_steps(report);
  }
  const std::string original = test::slurp(path);
  fuzz::check_reader(
      [&](std::uint64_t seed) {
        std::mt19937_64 draw(seed);
        std::string text = original;
        for (std::uint64_t left = draw() % 20; left > 0; --left)
          text[draw() % text.size()] = static_cast<char>(draw());
        if (seed % 16 == 0) text.resize(draw() % text.size());
        return text;
      },
      [&](const std::string& text) {
        test::spill(path, text);
        for (const DeviceTrace& trace : read_nsys(path, "iteration")) {
          const RankTimes times = rank_times(trace);
          CHECK(times.whole.span >= times.whole.idle);
        }
      });
}

}  // namespace polyphony
