#include "sim/commands/chance.h"

#include <algorithm>
#include <iostream>

#include "shared/cost/model_flops.h"
#include "shared/program/work.h"
#include "sim/answers/belief.h"
#include "sim/commands/console.h"
#include "traces/compare/spread.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kLines = 3;  // of errors and extrapolations; JSON has all
// Less of a step than this is not worth a line.
constexpr double kWorthALine = 0.005;
constexpr double kQuantiles[] = {0.5, 0.95, 0.99};
constexpr const char* kKeys[] = {"p50_seconds", "p95_seconds", "p99_seconds"};

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Frameworks count the language module on sequences as long as the batch's longest.
void find_utilization(const Prediction& prediction, Chance& chance) {
  const Program& program = prediction.program;
  const double available = prediction.peak.value * program.ranks * prediction.step().count();
  if (available <= 0) return;
  const Module& language = program.model.modules[language_module(program.model).value];
  std::int64_t longest = 0;
  for (const Sample& sample : program.batch.samples)
    longest = std::max(longest, language_rows(program.model, sample));
  const auto sequences = static_cast<double>(program.batch.samples.size());
  const auto length = static_cast<double>(longest);
  chance.mfu = model_flops(program.model, program.batch, program.precision).value / available;
  chance.megatron_mfu = megatron_flops(language, sequences, length).value / available;
  chance.torchtitan_mfu = torchtitan_flops(language, sequences, length).value / available;
}

}  // namespace

void add_chance_options(Arguments& args) {
  args.add()("jitter",
             "steps drawn with the profile's jitter, and their percentiles: up to 32 on SimGrid, "
             "more as estimates",
             cxxopts::value<int>()->default_value("0"))("jobs", "worker processes; 0: one per core",
                                                        cxxopts::value<int>()->default_value("0"));
}

std::variant<Chance, Infeasible> find_chance(const Arguments& args, const Scenario& scenario,
                                             const Layout& layout, const Prediction& prediction,
                                             const HardwareProfile& profile) {
  Chance chance;
  chance.belief =
      make_belief(prediction.step(), step_effects(scenario, layout, prediction, profile), profile);
  find_utilization(prediction, chance);
  chance.other_software = other_software(scenario.training.software, profile);
  chance.extrapolated = find_extrapolations(prediction.program, profile);
  const int seeds = args.integer("jitter");
  if (seeds < 0)
    throw InputError("--jitter", "", std::to_string(seeds) + " steps", "a number such as 1000");
  if (seeds == 0) return chance;
  if (!profile.certainty.jitter)
    throw InputError("--jitter", "/certainty/jitter",
                     "profile " + profile.name + " knows of no jitter",
                     "`polyphony calibrate` measures it from a traced run of four steps or more");
  Progress progress("jitter");
  auto outcome = jittered_steps(prediction, *profile.certainty.jitter, seeds,
                                prediction.simulated ? Predictor::simulate : Predictor::estimate,
                                args.jobs(), [&](double share) { progress.show(share); });
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
  chance.jittered = std::get<JitteredSteps>(std::move(outcome));
  return chance;
}

std::string interval_text(const SecondsInterval& interval) {
  return seconds_text(interval.low) + " to " + seconds_text(interval.high);
}

void print_chance(const Chance& chance, const HardwareProfile& profile) {
  if (chance.mfu > 0)
    std::cout << "MFU as Megatron-LM would print it " << percent_text(chance.megatron_mfu)
              << ", as torchtitan " << percent_text(chance.torchtitan_mfu)
              << " (language alone, whole sequences, all of it trained)\n";
  const Belief& belief = chance.belief;
  std::cout << "9 of 10: " << interval_text(interval(belief));
  const std::vector<std::string> largest = largest_effects(belief, profile, kLines);
  if (!largest.empty())
    std::cout << "   ±" << percent_text(belief.parameters()) << " from parameters ("
              << joined(largest) << "), ±" << percent_text(belief.residual)
              << " from what the model leaves out";
  std::cout << "\n";
  if (chance.jittered) {
    std::cout << "jitter: ";
    for (const double q : kQuantiles)
      std::cout << (q > kQuantiles[0] ? ", " : "") << quantile_text(chance.jittered->steps, q);
    std::cout << "   (" << chance.jittered->steps.size()
              << (chance.jittered->simulated ? " steps simulated)" : " steps estimated)") << "\n";
  } else if (!profile.certainty.jitter) {
    std::cout << "jitter: not known (polyphony calibrate measures it)\n";
  }
  if (!chance.other_software.empty())
    std::cerr << "warning: the scenario trains with another stack than profile " << profile.name
              << ", which is of " << chance.other_software << "\n";
  std::size_t lines = 0;
  for (const Extrapolation& found : chance.extrapolated) {
    if (found.share < kWorthALine) continue;
    if (lines++ == kLines) break;
    std::cout << "extrapolated: " << found.what << " (" << percent_text(found.share, 0)
              << " of such work)\n";
  }
}

nlohmann::json to_json(const Chance& chance, const HardwareProfile& profile) {
  const SecondsInterval bounds = interval(chance.belief);
  nlohmann::json errors = nlohmann::json::array(), outside = nlohmann::json::array();
  for (std::size_t k = 0; k < chance.belief.effects.size(); ++k)
    errors.push_back(
        {{"parameters", profile.certainty.errors[k]}, {"effect", chance.belief.effects[k]}});
  for (const Extrapolation& found : chance.extrapolated)
    outside.push_back({{"what", found.what}, {"share", found.share}, {"count", found.count}});
  nlohmann::json result = {{"interval90_seconds", {bounds.low.count(), bounds.high.count()}},
                           {"deviation", chance.belief.deviation()},
                           {"parameter_deviation", chance.belief.parameters()},
                           {"residual_deviation", chance.belief.residual},
                           {"errors", errors},
                           {"extrapolated", outside},
                           {"mfu", chance.mfu},
                           {"megatron_mfu", chance.megatron_mfu},
                           {"torchtitan_mfu", chance.torchtitan_mfu},
                           {"other_software", chance.other_software},
                           {"jitter_known", profile.certainty.jitter.has_value()}};
  if (chance.jittered) {
    nlohmann::json& jitter = result["jitter"];
    jitter = {{"steps", chance.jittered->steps.size()},
              {"predictor", chance.jittered->simulated ? "simulate" : "estimate"}};
    for (std::size_t i = 0; i < std::size(kQuantiles); ++i)
      jitter[kKeys[i]] =
          reaches(chance.jittered->steps.size(), kQuantiles[i])
              ? nlohmann::json(traces::quantile(chance.jittered->steps, kQuantiles[i]).count())
              : nlohmann::json();
    jitter["largest_seconds"] = chance.jittered->steps.back().count();
  }
  return result;
}

}  // namespace polyphony::sim
