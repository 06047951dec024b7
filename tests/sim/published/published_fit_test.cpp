// Errors of the shipped profiles on the committed rows must not exceed what the fit reached.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/judged/summary.h"
#include "sim/published/scenarios.h"

namespace polyphony::sim {
namespace {

std::map<std::string, BlockSummary> summaries_of(const std::vector<std::string>& blocks,
                                                 bool memory) {
  std::vector<PublishedRow> rows;
  std::vector<std::string> unknown;
  for (const std::string& block : blocks) {
    const std::string file = "scenarios/published/" + block + ".csv";
    for (PublishedRow& row : read_published(read_file(file), file, unknown)) {
      if (is_memory(row.metric) != memory) continue;
      if (memory && row.key_value_rank) row.block = "latent";  // of their own
      rows.push_back(std::move(row));
    }
  }
  CHECK(unknown.empty());
  auto results = run_published(rows, {}, [](double) {});
  fit_naive(results);
  std::map<std::string, BlockSummary> found;
  for (BlockSummary& summary : summarize_blocks(results)) found[summary.block] = summary;
  return found;
}

}  // namespace

TEST_CASE("published step times: complete rows") {
  const auto found = summaries_of({"sc21", "seqsel", "mpt", "vtrain", "simumax"}, false);
  const auto mean = [&](const char* block) { return found.at(block).complete.ours.mean; };
  // Aims of the project. Two sites with one layout differ by 2 to 6 %.
  CHECK((7 * mean("sc21") + 4 * mean("seqsel")) / 11 <= 0.05);
  CHECK(mean("mpt") <= 0.08);
  CHECK(mean("vtrain") <= 0.12);
  CHECK(mean("simumax") <= 0.06);
  for (const auto& [block, summary] : found) {
    CAPTURE(block);
    CHECK(summary.skipped < summary.rows);
    if (summary.complete.naive.count > 0)
      CHECK(summary.complete.ours.mean < summary.complete.naive.mean);
  }
  CHECK(found.at("vtrain").complete.ours.count == 85);  // one outlier
}

TEST_CASE("devices of few rows: errors, and intervals of a borrowed fit") {
  std::vector<std::string> unknown;
  const std::string file = "scenarios/published/few/blackwell.csv";
  const auto results =
      run_published(read_published(read_file(file), file, unknown), {}, [](double) {});
  CHECK(unknown.empty());
  std::map<std::string, std::vector<double>> errors;
  for (const RowResult& result : results) {
    CAPTURE(result.row.id);
    REQUIRE(result.error);
    errors[result.device].push_back(std::abs(*result.error));
    if (result.device == "b200") continue;
    CHECK(result.certainty.footing == Footing::borrowed);
  }
  const auto mean = [&](const char* device) {
    const std::vector<double>& of = errors.at(device);
    return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
  };
  CHECK(errors.at("gb300").size() == 11);
  CHECK(mean("gb300") <= 0.14);
  CHECK(errors.at("b300").size() == 8);
  CHECK(mean("b300") <= 0.17);
}

TEST_CASE("published memory: complete rows") {
  const auto found = summaries_of({"simumax", "seqsel"}, true);
  // No parameter is fitted to these rows.
  CHECK(found.at("simumax").complete.ours.mean <= 0.015);
  CHECK(found.at("simumax").complete.ours.count == 15);
  CHECK(found.at("latent").complete.ours.mean <= 0.015);
  CHECK(found.at("seqsel").complete.ours.mean <= 0.03);
  CHECK(found.at("seqsel").assumed.ours.mean <= 0.03);
}

TEST_CASE("own runs are predicted with the attention kernels that they ran") {
  const std::string file = "scenarios/published/own_llama_8b_4_layers.json";
  const std::string text = read_file(file);
  const auto step = [&](const std::string& kernels) {
    std::string other = text;
    const std::string as_written = R"("attention": "flash")";
    REQUIRE(text.find(as_written) != std::string::npos);
    other.replace(text.find(as_written), as_written.size(), R"("attention": ")" + kernels + '"');
    return run_scenario(other, file, open_scenario(file), {}).at(0).step.count();
  };
  CHECK(run_scenario(text, file, open_scenario(file), {}).at(0).step.count() == step("flash"));
  // scenarios/measured/h100_kernels.csv, causal, 2 x 32 heads of 4,096 tokens: FlashAttention-2
  // takes 951 + 2,805 us, cuDNN 473.2 + 1,474 us; here 16 times half of it.
  CHECK(step("flash") - step("cudnn") == doctest::Approx(16 * 0.9044e-3).epsilon(0.1));
}

}  // namespace polyphony::sim
