// polyphony simulate: how long one step of the scenario's layout takes, where the time goes, and
// what memory it needs.
#include <iostream>
#include <tuple>

#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/execution_trace.h"
#include "sim/cli/what_if.h"
#include "sim/commands/stream.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/prediction/effects.h"
#include "sim/shown/profile_text.h"
#include "traces/format/chrome_json.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kLines = 3;  // of errors and extrapolations; JSON has all
// Less of a step than this is not worth a line.
constexpr double kWorthALine = 0.005;

void print_memory(const StepAnswer& answer) {
  Table table({"stage", "peak", "at", "parameters", "gradients", "optimizer", "activations",
               "boundaries", "of device"});
  const Bytes capacity = answer.figures.device_memory;
  for (const auto& [stage, rank] : worst_by_stage(answer.prediction)) {
    const RankMemory& memory = answer.prediction.memory[rank.value];
    const auto at = [&](BufferKind kind) { return memory.at_peak[static_cast<std::size_t>(kind)]; };
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
  Bytes host{};
  for (const RankMemory& rank : answer.prediction.memory) host = std::max(host, rank.host);
  std::cout << table.text();
  if (host > Bytes(0))
    std::cout << "waiting in the host's memory: " << bytes_text(host) << " of a rank at most\n";
  std::cout << "memory as kept by " << name(answer.profile.stack.memory.keeping) << "\n";
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

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string jitter_text(const StepAnswer& answer) {
  if (!answer.jittered)
    return answer.profile.certainty.jitter
               ? ""
               : "jitter: not known (polyphony calibrate measures it)\n";
  const JitteredSteps& drawn = *answer.jittered;
  return "jitter: " + quantiles_text(drawn.steps, {0.5, 0.95, 0.99}) + "   (" +
         counted(static_cast<std::int64_t>(drawn.steps.size()), "step", "steps") +
         (drawn.simulated ? " simulated)\n" : " estimated)\n");
}

// How sure the answer is, and its MFU beside what frameworks would print.
void print_chance(const StepAnswer& answer) {
  if (answer.figures.model_flops_utilization > 0)
    std::cout << "MFU as Megatron-LM would print it " << percent_text(answer.megatron_mfu)
              << ", as torchtitan " << percent_text(answer.torchtitan_mfu)
              << " (language alone, whole sequences, all of it trained)\n";
  const Belief& belief = answer.belief;
  const SecondsInterval bounds = interval(belief);
  std::cout << "9 of 10: " << seconds_text(bounds.low) << " to " << seconds_text(bounds.high);
  const std::vector<std::string> largest = largest_effects(belief, answer.profile, kLines);
  if (!largest.empty())
    std::cout << "   ±" << percent_text(belief.parameters()) << " from parameters ("
              << joined(largest) << "), ±" << percent_text(belief.residual)
              << " from what the model leaves out";
  std::cout << "\n" << jitter_text(answer);
  if (const std::string text = footing_text(answer.profile); !text.empty())
    std::cout << "how sure: " << text << "\n";
  std::size_t lines = 0;
  for (const Extrapolation& found : answer.extrapolated) {
    if (found.share < kWorthALine) continue;
    if (lines++ == kLines) break;
    std::cout << "extrapolated: " << found.what << " (" << percent_text(found.share, 0)
              << " of such work)\n";
  }
}

void print(const StepAnswer& answer) {
  const Figures& figures = answer.figures;
  std::cout << answer.layout << "\n"
            << "step " << seconds_text(figures.step) << " (±"
            << percent_text(answer.profile.step_error, 0) << ", " << describe(answer.profile)
            << ")   " << count_text(static_cast<std::int64_t>(figures.tokens_per_second_per_rank))
            << " tokens/s/rank   MFU "
            << (figures.model_flops_utilization > 0 ? percent_text(figures.model_flops_utilization)
                                                    : std::string("not known"))
            << "\n"
            << spent_text(figures);
  print_chance(answer);
  std::cout << "\n";
  Table table({"part", "busiest rank (" + std::to_string(answer.busiest.value) + ")",
               "mean of ranks", "of step"});
  const traces::PartTimes& average = answer.mean_parts;
  const traces::PartTimes& busiest = answer.parts[answer.busiest.value];
  for (const traces::Part part : traces::parts_shown(answer.parts)) {
    const auto p = static_cast<std::size_t>(part);
    const bool twofold = part == traces::Part::backward && answer.recomputes;
    table.add({std::string(traces::name(part)) + (twofold ? " and recomputation" : ""),
               seconds_text(busiest[p]), seconds_text(average[p]),
               percent_text(busiest[p] / figures.step)});
  }
  std::cout << table.text() << "\n";
  print_memory(answer);
}

void write_pictures(const Arguments& args, const Scenario& scenario, const StepAnswer& answer) {
  const auto& [program, timeline] = std::tie(answer.prediction.program, answer.prediction.timeline);
  if (args.has("trace"))
    write_file(args.text("trace"),
               traces::write_trace(program, timeline, traces::TraceKind::predicted, 0));
  if (args.has("gantt"))
    write_file(args.text("gantt"),
               traces::svg_file(traces::gantt(program, timeline, {.title = answer.layout}),
                                traces::Theme::light));
  write_execution_trace(args, program, timeline, scenario.cluster, answer.profile);
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
      "  polyphony simulate scenario.json --batches 1000     varying data: memory risk\n"
      "  polyphony simulate scenario.json --execution-trace et     for other simulators");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "estimate", "longest path instead of SimGrid: faster, no contention")(
      "whole",
      "play every rank of a large step, too; without it one of those that do the same stands for "
      "them, where nothing differs from lane to lane")(
      "trace", "write the predicted Timeline as Chrome trace JSON", cxxopts::value<std::string>())(
      "gantt", "write a Gantt chart as SVG", cxxopts::value<std::string>());
  add_execution_trace(args);
  args.add_profile();
  args.add_overrides();
  args.add_schedule();
  args.add()("jitter",
             "steps drawn with the profile's jitter, and their percentiles: up to 32 on SimGrid, "
             "more as estimates",
             cxxopts::value<int>()->default_value("0"))("jobs", "worker processes; 0: one per core",
                                                        cxxopts::value<int>()->default_value("0"));
  add_stream_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<Override> overrides = args.overrides();
  Scenario scenario = load_scenario(args.require("scenario"), overrides);
  apply_schedule(scenario, args.text("schedule"));
  const Layout& layout = require_layout(scenario);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  const Predictor predictor = args.has("estimate") ? Predictor::estimate : Predictor::simulate;
  if (args.has("batches")) return answer_stream(args, scenario, layout, profile);
  StepOptions options{.predictor = predictor,
                      .jitter_steps = args.integer("jitter"),
                      .jobs = args.jobs(),
                      .cores = cores_here(),
                      .trace = args.has("trace"),
                      .memory = free_memory()};
  // What is shown or drawn of each rank needs them all.
  options.fold_large = options.jitter_steps == 0;
  for (const char* shown : {"whole", "trace", "gantt", "execution-trace"})
    options.fold_large = options.fold_large && !args.has(shown);
  const auto outcome = [&] {
    Progress progress("jitter");
    options.progress = [&](double share) { progress.show(share); };
    return answer_step(scenario, layout, typical_batch(scenario), profile, options);
  }();
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
  const auto& answer = std::get<StepAnswer>(outcome);
  std::optional<WhatIf> what_if;
  if (!overrides.empty())
    what_if = {texts_of(overrides),
               answer_unchanged(args.require("scenario"), args.profile(), options), answer.figures};
  write_pictures(args, scenario, answer);
  print_notes(scenario, answer.notes);
  if (args.json()) {
    nlohmann::json json = to_json(answer);
    if (what_if) json.update(to_json(*what_if));
    std::cout << json.dump(2) << "\n";
  } else {
    print(answer);
    if (what_if) std::cout << "\n" << side_by_side(*what_if);
  }
  if (answer.out_of_memory.empty()) return 0;
  std::cerr << scenario.file << ": " << answer.out_of_memory << "\n";
  return static_cast<int>(ExitCode::infeasible);
}

}  // namespace polyphony::sim
