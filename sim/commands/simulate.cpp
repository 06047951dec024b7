// polyphony simulate: predicts how long one step of the scenario's layout takes, where the time
// goes, and what memory it needs.
#include <cmath>
#include <iostream>
#include <tuple>

#include "shared/check/check.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/json_form.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/execution_trace.h"
#include "sim/cli/what_if.h"
#include "sim/commands/stream.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/prediction/effects.h"
#include "sim/shown/headline.h"
#include "sim/shown/profile_text.h"
#include "sim/shown/sweep_text.h"
#include "sim/text/layout_words.h"
#include "traces/format/chrome_json.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kLines = 3;  // of errors and extrapolations; JSON has all
// Less of a step than this is not worth a line.
constexpr double kWorthALine = 0.005;
// Figures that differ by less are printed once.
constexpr double kSame = 0.005;

void print_memory(const StepAnswer& answer, const Scenario& scenario) {
  const Figures& figures = answer.figures;
  const Bytes capacity = figures.device_memory;
  Table table({"stage", "peak memory", "reached at", "parameters", "gradients", "optimizer",
               "activations", "boundaries"});
  for (const auto& [stage, rank] : worst_by_stage(answer.prediction)) {
    const RankMemory& memory = answer.prediction.memory[rank.value];
    const auto at = [&](BufferKind kind) { return memory.at_peak[static_cast<std::size_t>(kind)]; };
    table.add({stage, bytes_text(memory.peak), seconds_text(memory.when),
               bytes_text(at(BufferKind::parameter)), bytes_text(at(BufferKind::gradient)),
               bytes_text(at(BufferKind::optimizer)),
               bytes_text(at(BufferKind::tape) + at(BufferKind::workspace)),
               bytes_text(at(BufferKind::boundary) + at(BufferKind::boundary_gradient))});
  }
  std::cout << table.text(screen_columns());
  Bytes host{};
  for (const RankMemory& rank : answer.prediction.memory) host = std::max(host, rank.host);
  if (host > Bytes(0))
    std::cout << paragraph("Activations offloaded to the host: at most " + bytes_text(host) +
                           " of a rank.");
  std::string text =
      "Buffers live as long as in " + std::string(name(answer.profile.stack.memory.keeping)) + ".";
  if (capacity.value > 0 && figures.fits()) {
    const bool over = figures.peak_memory > scenario.memory_limit();
    const std::string margin = percent_text(scenario.memory_margin(), 0);
    text += over ? " Less than " + margin +
                       " of the device's memory stay free: it may run out, because fragmentation, "
                       "NCCL buffers and workspaces are not modeled."
                 : " A search leaves " + margin +
                       " free: fragmentation, NCCL buffers and workspaces are not modeled.";
  }
  std::cout << paragraph(text);
}

// What a step and a million tokens cost, where power or price are known.
std::string spent_text(const Figures& f) {
  std::string text;
  if (f.energy)
    text += "energy " + number_text(f.kilowatt_hours(), 3) + " kWh a step, " +
            number_text(f.kilowatt_hours_per_million_tokens(), 3) +
            " kWh a million tokens (devices)";
  if (f.dollars_per_step > 0)
    text += (text.empty() ? "" : "; ") + std::string("price ") +
            number_text(f.dollars_per_step, 4) + " USD a step, " +
            number_text(f.dollars_per_million_tokens, 4) + " USD a million tokens";
  return text;
}

std::string jitter_text(const StepAnswer& answer) {
  if (!answer.jittered)
    return answer.profile.certainty.jitter ? ""
                                           : "Variance from step to step: not in this profile "
                                             "(polyphony calibrate measures it).";
  const JitteredSteps& drawn = *answer.jittered;
  return "jitter: " + quantiles_text(drawn.steps, {0.5, 0.95, 0.99}) + "   (" +
         counted(static_cast<std::int64_t>(drawn.steps.size()), "step", "steps") +
         (drawn.simulated ? " simulated)" : " estimated)");
}

// What Megatron-LM and torchtitan would print for this step.
std::string frameworks_text(const StepAnswer& answer) {
  const double full = answer.megatron_full.value / 1e12, half = answer.megatron_half.value / 1e12;
  std::string text = "Megatron-LM would print " + number_text(full, 1) + " TFLOP/s/GPU";
  if (std::abs(half / full - 1) > kSame)
    text += " before core 0.12 (all of the attention matrix), " + number_text(half, 1) +
            " from core 0.12 on (half of causal attention)";
  return text + "; torchtitan an MFU of " + percent_text(answer.torchtitan_mfu) +
         ". Both count the language module alone, on whole sequences, all of it trained.";
}

void print_certainty(const StepAnswer& answer) {
  const Belief& belief = answer.belief;
  std::string text = "Interval: by " + describe(answer.profile) + ".";
  if (const std::string basis = footing_text(answer.profile); !basis.empty()) text += " " + basis;
  if (const std::vector<std::string> largest = largest_effects(belief, answer.profile, kLines);
      !largest.empty())
    text += " Half of it: " + percent_text(belief.parameters()) +
            " from the profile's parameters (" + joined(largest) + "), " +
            percent_text(belief.residual) + " from what the model leaves out.";
  std::cout << paragraph(text);
  if (const std::string jitter = jitter_text(answer); !jitter.empty())
    std::cout << paragraph(jitter);
  std::size_t lines = 0;
  for (const Extrapolation& found : answer.extrapolated) {
    if (found.share < kWorthALine) continue;
    if (lines++ == kLines) break;
    std::cout << paragraph("Beyond the profile's measurements: " + found.what + " (" +
                           percent_text(found.share, 0) + " of that work).");
  }
}

void print(const StepAnswer& answer, const Scenario& scenario, const Layout& layout) {
  const Figures& figures = answer.figures;
  const SecondsInterval bounds = interval(answer.belief);
  std::cout << headline(scenario, answer.profile);
  std::cout << paragraph(layout_words(scenario.model, layout, scenario.cluster));
  std::cout << "\nstep " << seconds_text(figures.step) << "   90 % interval "
            << seconds_text(bounds.low) << " to " << seconds_text(bounds.high) << "\n"
            << count_text(static_cast<std::int64_t>(figures.tokens_per_second_per_rank))
            << " tokens/s/" << rank_word(scenario.cluster) << "   MFU "
            << (figures.model_flops_utilization > 0 ? percent_text(figures.model_flops_utilization)
                                                    : std::string("not known"))
            << "   memory " << memory_of_device(figures.peak_memory, figures.device_memory)
            << " on " << figures.worst_stage << "\n";
  if (const std::string spent = spent_text(figures); !spent.empty()) std::cout << paragraph(spent);
  if (answer.megatron_mfu > 0 && rank_word(scenario.cluster) == std::string("GPU"))
    std::cout << paragraph(frameworks_text(answer));
  print_certainty(answer);
  std::cout << "\n";
  Table table({"part", "busiest rank (" + std::to_string(answer.busiest.value) + ")",
               "share of step", "mean of ranks"});
  const traces::PartTimes& average = answer.mean_parts;
  const traces::PartTimes& busiest = answer.parts[answer.busiest.value];
  for (const traces::Part part : traces::parts_shown(answer.parts)) {
    const auto p = static_cast<std::size_t>(part);
    const bool twofold = part == traces::Part::backward && answer.recomputes;
    const std::string what = part == traces::Part::idle ? "idle (bubble)" : traces::name(part);
    table.add({what + (twofold ? " and recomputation" : ""), seconds_text(busiest[p]),
               percent_text(busiest[p] / figures.step), seconds_text(average[p])});
  }
  std::cout << table.text(screen_columns()) << "\n";
  print_memory(answer, scenario);
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
  Scenario scenario = open_scenario(args.require("scenario"), overrides);
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
    what_if = {texts_of(overrides),
               answer_unchanged(args.require("scenario"), args.profile(), options), answer.figures};
  if (args.json()) {
    write_pictures(args, scenario, answer);
    nlohmann::json json = to_json(answer);
    if (what_if) json.update(to_json(*what_if));
    std::cout << json.dump(2) << "\n";
  } else {
    print(answer, scenario, layout);
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
