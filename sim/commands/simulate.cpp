// polyphony simulate: predicts how long one step of the scenario's layout takes, where the time
// goes, and what memory it needs.
#include <iostream>
#include <tuple>

#include "shared/check/check.h"
#include "shared/files/free_memory.h"
#include "shared/scenario/typical_batch.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/execution_trace.h"
#include "sim/cli/what_if.h"
#include "sim/commands/stream.h"
#include "sim/console/console.h"
#include "sim/shown/step_text.h"
#include "traces/format/chrome_json.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

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
      "Predicts one training step of the scenario's layout: its time, where the time goes, the "
      "memory of every stage.",
      "SCENARIO",
      "  polyphony simulate scenarios/rehearse_8.json --gantt step.svg\n"
      "  polyphony simulate scenario.json --trace step.json     open it in ui.perfetto.dev\n"
      "  polyphony simulate scenarios/rehearse_8.json --set layout.microbatches=8 "
      "--set cluster.node.link=1GBps\n"
      "                             what if? Compared with the scenario as written\n"
      "  polyphony simulate scenario.json --profile calibrated.json --jitter 1000\n"
      "  polyphony simulate scenario.json --batches 1000     varying data: memory risk\n"
      "  polyphony simulate scenario.json --execution-trace et     for other simulators");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "estimate", "estimate by the longest path instead of SimGrid: faster, without contention")(
      "whole",
      "simulate every rank of a large step; without it one data-parallel replica stands for all, "
      "where all do the same work")("trace", "write the predicted Timeline as Chrome trace JSON",
                                    cxxopts::value<std::string>())(
      "gantt", "write a Gantt chart as SVG", cxxopts::value<std::string>());
  add_execution_trace(args);
  args.add_profile();
  args.add_overrides();
  args.add_phase();
  args.add_schedule();
  args.add()("jitter",
             "draw so many steps with the profile's variance and print their percentiles: up to 32 "
             "by SimGrid, more as estimates",
             cxxopts::value<int>()->default_value("0"))("jobs", "threads; 0: one per core",
                                                        cxxopts::value<int>()->default_value("0"));
  add_stream_options(args);
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  args.check_outputs({"trace", "gantt"});
  const std::vector<Override> overrides = args.overrides();
  Scenario scenario = open_scenario(args, overrides);
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
  // Traces and pictures show every rank: nothing may be folded for them.
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
    what_if = {texts_of(overrides), answer_unchanged(args, options), answer.figures};
  if (args.json()) {
    write_pictures(args, scenario, answer);
    nlohmann::json json = to_json(answer);
    if (what_if) json.update(to_json(*what_if));
    std::cout << json.dump(2) << "\n";
  } else {
    std::cout << step_text(answer, scenario, layout);
    if (what_if) std::cout << "\n" << side_by_side(*what_if);
    std::cout.flush();
    write_pictures(args, scenario, answer);
  }
  print_notes(scenario, answer.notes);
  if (answer.out_of_memory.empty()) return 0;
  std::cerr << scenario.file << ": " << answer.out_of_memory << "\n";
  return static_cast<int>(ExitCode::infeasible);
}

}  // namespace polyphony::sim
