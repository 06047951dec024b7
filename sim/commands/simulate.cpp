// polyphony simulate: how long one step of the scenario's layout takes, where the time goes, and
// what memory it needs.
#include <algorithm>
#include <iostream>
#include <map>

#include "shared/scenario/typical_batch.h"
#include "sim/answers/fitting.h"
#include "sim/answers/predict.h"
#include "sim/commands/chance.h"
#include "sim/commands/command.h"
#include "sim/commands/console.h"
#include "sim/commands/stream.h"
#include "sim/commands/what_if.h"
#include "traces/compare/compare.h"
#include "traces/format/chrome_json.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

// The worst rank of each stage, in the order of stages.
std::vector<std::pair<std::string, Rank>> worst_by_stage(const Prediction& prediction) {
  std::vector<std::pair<std::string, Rank>> worst;
  std::map<std::string, std::size_t> places;
  for (std::uint32_t r = 0; r < prediction.program.ranks; ++r) {
    const std::string stage = stage_name(prediction.program, Rank(r));
    const auto [place, fresh] = places.try_emplace(stage, worst.size());
    if (fresh) worst.emplace_back(stage, Rank(r));
    Rank& held = worst[place->second].second;
    if (prediction.memory[r].peak > prediction.memory[held.value].peak) held = Rank(r);
  }
  return worst;
}

void print_memory(const Scenario& scenario, const Prediction& prediction,
                  const SoftwareStack& stack) {
  Table table({"stage", "peak", "at", "parameters", "gradients", "optimizer", "activations",
               "boundaries", "of device"});
  for (const auto& [stage, rank] : worst_by_stage(prediction)) {
    const RankMemory& memory = prediction.memory[rank.value];
    const auto at = [&](BufferKind kind) { return memory.at_peak[static_cast<std::size_t>(kind)]; };
    const Bytes capacity = scenario.cluster.device.memory;
    table.add({stage, bytes_text(memory.peak), seconds_text(memory.when),
               bytes_text(at(BufferKind::parameter)), bytes_text(at(BufferKind::gradient)),
               bytes_text(at(BufferKind::optimizer)),
               bytes_text(at(BufferKind::tape) + at(BufferKind::workspace)),
               bytes_text(at(BufferKind::boundary) + at(BufferKind::boundary_gradient)),
               capacity.value ? percent_text(static_cast<double>(memory.peak.value) /
                                                 static_cast<double>(capacity.value),
                                             0)
                              : "?"});
  }
  std::cout << table.text() << "memory as kept by " << name(stack.memory.keeping) << "\n";
}

// What a step and a million tokens cost, where power or price are known.
std::string spent_text(const Figures& f) {
  std::string text;
  if (f.energy.value > 0)
    text += "energy " + number_text(f.kilowatt_hours(), 3) + " kWh a step, " +
            number_text(f.kilowatt_hours_per_million_tokens(), 3) +
            " kWh a million tokens (devices)";
  if (f.dollars_per_step > 0)
    text += (text.empty() ? "" : "   ") + std::string("price ") +
            number_text(f.dollars_per_step, 4) + " USD a step, " +
            number_text(f.dollars_per_million_tokens, 4) + " USD a million tokens";
  return text.empty() ? text : text + "\n";
}

struct Answer {
  const Scenario& scenario;
  const HardwareProfile& profile;
  const Prediction& prediction;
  Figures result;
  const Chance& chance;
  const std::vector<traces::PartTimes>& parts;
  Rank critical;
  std::string layout;
};

nlohmann::json to_json(const Answer& answer) {
  nlohmann::json parts;
  for (std::size_t p = 0; p < traces::kParts; ++p)
    parts[traces::name(static_cast<traces::Part>(p))] =
        answer.parts[answer.critical.value][p].count();
  const Figures& result = answer.result;
  nlohmann::json json{{"layout", answer.layout},
                      {"profile", answer.profile.name},
                      {"predictor", answer.prediction.simulated ? "simulate" : "estimate"},
                      {"step_seconds", result.step.count()},
                      {"estimate_seconds", answer.prediction.estimate.step().count()},
                      {"stated_error", answer.profile.step_error},
                      {"chance", to_json(answer.chance, answer.profile)},
                      {"tokens_per_second_per_rank", result.tokens_per_second_per_rank},
                      {"mfu", result.model_flops_utilization},
                      {"peak_memory_bytes", result.peak_memory.value},
                      {"worst_stage", result.worst_stage},
                      {"memory_of", name(answer.profile.stack.memory.keeping)},
                      {"fits", result.fits()},
                      {"busiest_rank", answer.critical.value},
                      {"busiest_rank_seconds", parts}};
  json.update(spent_json(result));
  return json;
}

void print(const Answer& answer) {
  const Figures& result = answer.result;
  std::cout << answer.layout << "\n"
            << "step " << seconds_text(result.step) << " (±"
            << percent_text(answer.profile.step_error, 0) << ", profile " << answer.profile.name
            << ")   " << count_text(static_cast<std::int64_t>(result.tokens_per_second_per_rank))
            << " tokens/s/rank   MFU " << percent_text(result.model_flops_utilization) << "\n"
            << spent_text(result);
  print_chance(answer.chance, answer.profile);
  std::cout << "\n";
  note_shared_cores(answer.scenario);
  Table table({"part", "busiest rank (" + std::to_string(answer.critical.value) + ")",
               "mean of ranks", "of step"});
  const traces::PartTimes average = traces::mean(answer.parts);
  const traces::PartTimes& busiest = answer.parts[answer.critical.value];
  for (std::size_t p = 0; p < traces::kParts; ++p)
    table.add({traces::name(static_cast<traces::Part>(p)), seconds_text(busiest[p]),
               seconds_text(average[p]), percent_text(busiest[p] / result.step)});
  std::cout << table.text() << "\n";
  print_memory(answer.scenario, answer.prediction, answer.profile.stack);
}

void write_pictures(const Arguments& args, const Scenario& scenario, const Layout& layout,
                    const Prediction& prediction) {
  if (args.has("trace"))
    write_file(args.text("trace"), traces::write_trace(prediction.program, prediction.timeline,
                                                       traces::TraceKind::predicted, 0));
  if (args.has("gantt"))
    write_file(args.text("gantt"),
               traces::svg_file(traces::gantt(prediction.program, prediction.timeline,
                                              {.title = describe_layout(scenario, layout)}),
                                traces::Theme::light));
}

int refuse(const Scenario& scenario, const Infeasible& no) {
  std::cerr << scenario.file << ": " << no.reason << "\n";
  return static_cast<int>(ExitCode::infeasible);
}

}  // namespace

int simulate_command(int argc, char** argv) {
  Arguments args(
      "simulate",
      "One training step of the scenario's layout, predicted: time, where it goes, "
      "memory of every stage.",
      "SCENARIO",
      "  polyphony simulate scenarios/rehearse_8.json --gantt step.svg\n  polyphony "
      "simulate scenario.json --trace step.json     open it in ui.perfetto.dev\n  polyphony "
      "simulate "
      "scenarios/rehearse_8.json --set layout.microbatches=8 --set cluster.node.link=1GBps\n"
      "                             what if? The answer beside that as written\n"
      "  polyphony simulate scenario.json --profile calibrated.json --jitter 1000\n"
      "  polyphony simulate scenario.json --batches 1000     varying data: memory risk");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "profile", "hardware profile: a shipped name or a file; default: the scenario's",
      cxxopts::value<std::string>()->default_value(""))(
      "estimate", "longest path instead of SimGrid: faster, no contention")(
      "trace", "write the predicted Timeline as Chrome trace JSON", cxxopts::value<std::string>())(
      "gantt", "write a Gantt chart as SVG", cxxopts::value<std::string>());
  args.add_overrides();
  args.add_schedule();
  add_chance_options(args);
  add_stream_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<Override> overrides = args.overrides();
  Scenario scenario = load_scenario(args.require("scenario"), overrides);
  apply_schedule(scenario, args.text("schedule"));
  const Layout& layout = require_layout(scenario);
  const HardwareProfile profile = load_profile(scenario, args.text("profile"), overrides);
  const Predictor predictor = args.has("estimate") ? Predictor::estimate : Predictor::simulate;
  if (args.has("batches")) return answer_stream(args, scenario, layout, profile);
  const auto outcome = predict(scenario, layout, typical_batch(scenario), profile, predictor);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return refuse(scenario, *no);
  const auto& prediction = std::get<Prediction>(outcome);
  std::optional<Unchanged> unchanged;
  if (!overrides.empty())
    unchanged = answer_unchanged(args.require("scenario"), args.text("profile"), predictor);
  const auto sure = find_chance(args, scenario, layout, prediction, profile);
  if (const auto* no = std::get_if<Infeasible>(&sure)) return refuse(scenario, *no);
  write_pictures(args, scenario, layout, prediction);
  const std::vector<traces::PartTimes> parts =
      traces::part_times(prediction.program, prediction.timeline);
  const Answer answer{scenario,
                      profile,
                      prediction,
                      figures(scenario, prediction),
                      std::get<Chance>(sure),
                      parts,
                      traces::critical_rank(parts),
                      describe_layout(scenario, layout)};
  if (args.json()) {
    nlohmann::json json = to_json(answer);
    if (unchanged) json.update(to_json(*unchanged, answer.result, overrides));
    std::cout << json.dump(2) << "\n";
  } else {
    print(answer);
    if (unchanged) std::cout << "\n" << side_by_side(*unchanged, answer.result);
  }
  if (answer.result.fits()) return 0;
  std::cerr << scenario.file << ": " << out_of_memory_text(scenario, layout, prediction, profile)
            << "\n";
  return static_cast<int>(ExitCode::infeasible);
}

}  // namespace polyphony::sim
