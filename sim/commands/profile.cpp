// polyphony profile: measures this machine, or reads what nccl-tests measured on another.
#include <iostream>

#include "shared/hardware/device_file_json.h"
#include "shared/hardware/hardware_json.h"
#include "shared/hardware/roofline.h"
#include "sim/cli/command.h"
#include "sim/commands/profile_verbs.h"
#include "sim/console/console.h"
#include "sim/launching/launch.h"
#include "traces/calibrate/collective_fit.h"
#include "traces/calibrate/machine_profile.h"

namespace polyphony::sim {
namespace {

// The roofline profile of a device, its collectives as a table of nccl-tests has them.
int profile_of_table(const Arguments& args) {
  const std::string file = args.text("nccl-tests"), name = args.require("device");
  const ShippedDevice* shipped = find_device(name);
  if (shipped == nullptr && !is_profile_file(name))
    throw InputError("--device", "", "no device \"" + name + "\" ships with the program",
                     suggest(name, device_names()));
  const ShippedDevice device = shipped ? *shipped : read_own_device(read_file(name), name);
  const HardwareProfile prior = roofline_profile(device);
  if (prior.collectives == CollectiveLibrary::gloo)
    throw InputError("--device", "", name + " has neither NCCL nor RCCL",
                     "an accelerator: " + suggest("", device_names()));
  Cluster cluster;
  cluster.device = device.device;
  cluster.node_link = device.node_link;
  cluster.fabric_link = device.fabric_link;
  cluster.domain = device.domain;
  cluster.peer_link = device.peer_link;
  const traces::CollectiveTimes times = traces::read_nccl_tests(read_file(file), file);
  traces::CollectiveFit fit = traces::fit_collective(prior, cluster, times, file);
  fit.profile.name = args.text("name");
  fit.profile.source += "; collectives: " + file;
  write_file(args.text("out"), readable_json(fit.profile, args.text("out")) + "\n");
  if (args.json()) {
    std::cout << to_json(fit.profile) << "\n";
    return 0;
  }
  Table table({"what", "shipped", "measured"});
  const std::string where = times.nodes > 1 ? "between nodes" : "inside a node";
  table.add(
      {"of its links a ring reaches, " + where, percent_text(fit.before), percent_text(fit.after)});
  table.add({"error over " + count_text(fit.rows) + " arrays of 16 MiB or more",
             percent_text(fit.error_before), percent_text(fit.error_after)});
  std::cout << table.text();
  std::cerr << name << ": " << times.ranks << " ranks on " << times.nodes
            << (times.nodes == 1 ? " node" : " nodes") << "; wrote " << args.text("out") << "\n";
  return 0;
}

}  // namespace

int profile_command(int argc, char** argv) {
  if (argc > 1 && is_profile_verb(argv[1])) return profile_verb(argc, argv);
  Arguments args(
      "profile",
      "Measures this machine (GEMMs, attention, memory, Gloo) and writes its hardware profile; or "
      "corrects a shipped profile by a table of nccl-tests; or shows, compares, merges and checks "
      "profiles (polyphony profile show --help).",
      "[show|diff|merge|check]",
      "  polyphony profile --ranks 2 --out machine.json\n  polyphony simulate "
      "scenario.json --profile machine.json\n  polyphony profile --nccl-tests "
      "all_reduce.txt --device H100 --out cluster.json\n  polyphony profile show H100\n  polyphony "
      "profile diff h100-roofline ours.json");
  args.add()("ranks", "ranks that measure at the same time; at most the cores",
             cxxopts::value<int>()->default_value("2"))(
      "out", "file for the profile", cxxopts::value<std::string>()->default_value("machine.json"))(
      "records", "file for the raw records (JSON lines)", cxxopts::value<std::string>())(
      "name", "name of the profile", cxxopts::value<std::string>()->default_value("this-machine"))(
      "nccl-tests",
      "instead of measuring: the output of all_reduce_perf or a like test, with its header",
      cxxopts::value<std::string>())(
      "device",
      "with --nccl-tests: the device that it ran on, a shipped one or a "
      "device file",
      cxxopts::value<std::string>());
  if (args.parse(argc, argv)) return 0;
  if (args.has("nccl-tests")) return profile_of_table(args);
  if (args.integer("ranks") < 1)
    throw InputError("--ranks", "", "must be at least 1", "with 2 ranks Gloo is measured too");
  LaunchOptions options;
  options.command.ranks = args.integer("ranks");
  options.command.arguments = {"--microbench"};
  options.label = "profile";
  LaunchResult run;
  {
    Progress progress("profile");
    int ticks = 0;
    options.tick = [&] {
      progress.show(std::min(0.95, ++ticks * 0.2 / 12.0), "measuring");
    };  // about 12 s in all
    run = launch(options);
  }
  if (run.interrupted || run.exit_code != 0) throw no_answer(run, "profile");
  if (args.has("records")) write_file(args.text("records"), run.output);
  const ShippedDevice* core = find_device("cpu-core");
  const HardwareProfile* prior = find_profile(default_profile("cpu-core"));
  POLYPHONY_CHECK(core && prior, "the cpu-core device ships with the program");
  const traces::MachineRecords records = traces::read_machine_records(run.output, "microbenchmark");
  const HardwareProfile fitted =
      traces::fit_machine(*prior, core->node_link, records, args.text("name"),
                          "polyphony profile --ranks " + std::to_string(options.command.ranks));
  write_file(args.text("out"), readable_json(fitted, args.text("out")) + "\n");
  if (args.json()) {
    std::cout << to_json(fitted) << "\n";
    return 0;
  }
  Table table({"what", "value"});
  table.add({"large GEMMs in fp32",
             number_text(fitted.device.fp32.value * fitted.gemm_efficiency / 1e9, 1) +
                 " GFLOP/s a core"});
  table.add({"large GEMMs in bf16",
             number_text(fitted.device.bf16.value * fitted.gemm_efficiency / 1e9, 1) +
                 " GFLOP/s a core"});
  table.add(
      {"GEMMs reach half of this at", "m·n·k = (" + number_text(fitted.gemm_half_size, 0) + ")³"});
  table.add(
      {"memory",
       number_text(fitted.device.memory_rate.value * fitted.memory_efficiency / 1e9, 1) + " GB/s"});
  table.add({"dispatch", seconds_text(fitted.dispatch)});
  table.add({"message latency", seconds_text(fitted.message_latency)});
  table.add(
      {"message rate",
       number_text(core->node_link.rate.value * fitted.message_efficiency / 1e9, 2) + " GB/s"});
  table.add({"all-reduce hop", seconds_text(fitted.collective_latency)});
  std::cout << table.text();
  std::cerr << "wrote " << args.text("out") << "\n";
  return 0;
}

}  // namespace polyphony::sim
