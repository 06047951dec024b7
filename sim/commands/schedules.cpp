// polyphony schedules: verifies, simulates, draws and writes an order of actions, of a file or a
// named schedule; or compares schedules by times alone.
#include <iostream>

#include "shared/check/check.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/schedule/action_text.h"
#include "shared/text/json_form.h"
#include "sim/cli/command.h"
#include "sim/commands/schedule_times.h"
#include "sim/console/console.h"
#include "sim/schedules/ordered_step.h"
#include "sim/schedules/schedules_json.h"
#include "sim/shown/schedules_text.h"

namespace polyphony::sim {
int schedules_command(int argc, char** argv) {
  Arguments args(
      "schedules",
      "Verifies the order in which the ranks of a pipeline run their actions, simulates it with a "
      "scenario's layout, draws it and writes it to a file. With --times, compares schedules by "
      "the "
      "times of stages alone, without a scenario.\n\n"
      "ORDER is the name of a schedule (" +
          joined(enum_names(kLastSchedule)) +
          ") or a file, in one of two forms:\n"
          "  text  as in shared/schedule/action_text.h; --out writes it\n"
          "  CSV   as torch.distributed.pipelining loads it: one line per rank, one action per "
          "cell: 0F0 forward (of stage 0, microbatch 0), 0B0 backward, 2I0 input gradient, 2W0 "
          "weight gradient; no SEND or RECV\n"
          "0F3:full states what the backward of that forward recomputes: none, selective, full, or "
          "offload.\n\n"
          "--times FILE is a CSV with these columns:\n"
          "  module           in the order of the data; the last one is fed by all others\n"
          "  stage            0, 1, …: the finest units that the module can be split into\n"
          "  microbatch       0, 1, …, or all, or a part of one: 3.0, 3.1\n"
          "  forward, backward_input, backward_weight  seconds, or with a unit: 1.5ms\n"
          "  bytes            optional: kept from the forward for the backward\n"
          "  message          optional: seconds to send to the next stage\n"
          "It takes ORDER or --all. Each row of the answer is a schedule at its best setting:\n"
          "  a schedule's name          all modules as one pipeline\n"
          "  encoders first             all encoder forwards, then the last module's schedule, "
          "then "
          "all encoder backwards, on the same ranks\n"
          "  bubble filling             encoders run in the bubbles of the last module (Optimus)\n"
          "  non-colocated, reordered   encoders on their own ranks; the best of three orders of "
          "microbatches (DistTrain)\n"
          "  entrain                    encoders on their own ranks; parts of microbatches are "
          "assigned anew (Entrain)\n"
          "  modalities in parallel     each encoder on ranks of its own (Cornstarch)\n"
          "  dip                        every rank has stages of every module (DIP)\n"
          "  own                        --schedule FILE: a file as above over all modules as one "
          "pipeline, or a CSV whose cells name the module: vision 0F3, language 1B0\n"
          "  searched                   the stages of the rows above, in an order that a search "
          "found\n"
          "Above bound: percent above the fastest step that any order of the same stages could "
          "reach, and that any division into stages could reach.",
      "ORDER, or --times CSV --ranks N",
      "  polyphony schedules zb-v --scenario scenarios/rehearse_8.json --set layout.language.vpp=2 "
      "--out order.csv\n"
      "  polyphony schedules order.csv --scenario scenarios/rehearse_8.json --gantt step.svg\n"
      "  polyphony schedules --times scenarios/times/vlm.csv --ranks 4 --all --gantt page.svg\n"
      "  polyphony schedules --times scenarios/times/vlm.csv --ranks 4 searched --out order.csv\n"
      "  polyphony run scenarios/rehearse_8.json --schedule order.csv");
  args.add()("order", "a schedule's name, or a file", cxxopts::value<std::string>())(
      "scenario", "scenario file with a layout", cxxopts::value<std::string>())(
      "gantt", "write a Gantt chart as SVG", cxxopts::value<std::string>())(
      "out",
      "write the order to a file: a CSV if its name ends in .csv, else our own form; with --times "
      "the "
      "order of the quickest row that fits",
      cxxopts::value<std::string>())("times", "CSV of the times of stages",
                                     cxxopts::value<std::string>())(
      "all", "with --times: every schedule")("schedule",
                                             "with --times: a file of actions, as one more row",
                                             cxxopts::value<std::string>())(
      "ranks", "with --times: ranks of the pipeline", cxxopts::value<int>())(
      "microbatches", "with --times: how many, where every row of the CSV says all",
      cxxopts::value<int>())(
      "memory",
      "with --times: memory of a rank for saved activations (60GiB); needs the "
      "column bytes",
      cxxopts::value<std::string>())(
      "draws", "with --times: random batches of the given microbatches, for intervals",
      cxxopts::value<int>());
  args.add_profile();
  args.add_overrides();
  args.add_phase();
  args.add_csv();
  args.positional({"order"});
  if (args.parse(argc, argv)) return 0;
  if (args.has("times")) {
    compare_times(args);
    return 0;
  }
  if (args.has("schedule"))
    throw InputError("--schedule", "", "needs --times", "without it give the file as ORDER");
  if (args.csv())
    throw InputError("--format csv", "", "needs --times", "--out order.csv writes an order");
  args.check_outputs({"out", "gantt"});
  const std::vector<Override> overrides = args.overrides();
  Scenario scenario = open_scenario(args, overrides);
  apply_schedule(scenario, args.require("order"));
  const Layout& layout = require_layout(scenario);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  require_memory(scenario, layout, {});
  const auto outcome = order_step(scenario, layout, typical_batch(scenario), profile);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
  if (const auto* no = std::get_if<IllegalOrder>(&outcome))
    throw InputError(args.text("order"), "", no->why,
                     "--out writes a schedule's own order, to compare");
  const auto& answer = std::get<OrderedStep>(outcome);
  if (args.has("out"))
    write_file(args.text("out"), args.text("out").ends_with(".csv") ? columns_csv(answer.orders)
                                                                    : compact_text(answer.orders));
  if (args.has("gantt")) write_file(args.text("gantt"), ordered_chart(answer));
  if (args.json())
    std::cout << to_json(answer).dump(2) << "\n";
  else
    std::cout << ordered_text(answer);
  return 0;
}

}  // namespace polyphony::sim
