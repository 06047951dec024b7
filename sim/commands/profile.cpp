// polyphony profile: measures this machine.
#include <iostream>

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "sim/commands/command.h"
#include "sim/commands/console.h"
#include "sim/commands/launch.h"
#include "traces/calibrate/machine_profile.h"

namespace polyphony::sim {

int profile_command(int argc, char** argv) {
  Arguments args("profile",
                 "Measures this machine (matrix products, attention, memory, Gloo) and writes its "
                 "hardware profile.",
                 "",
                 "  polyphony profile --ranks 2 --out machine.json\n  polyphony simulate "
                 "scenario.json --profile machine.json");
  args.add()("ranks", "ranks that measure at the same time; at most the cores",
             cxxopts::value<int>()->default_value("2"))(
      "out", "file for the profile", cxxopts::value<std::string>()->default_value("machine.json"))(
      "records", "file for the raw records (JSON lines)", cxxopts::value<std::string>())(
      "name", "name of the profile", cxxopts::value<std::string>()->default_value("this-machine"));
  if (args.parse(argc, argv)) return 0;
  if (args.integer("ranks") < 1)
    throw InputError("--ranks", "", "must be at least 1", "2 shows what Gloo costs");
  LaunchOptions options;
  options.ranks = args.integer("ranks");
  options.arguments = {"--microbench"};
  LaunchResult run;
  {
    Progress progress("profile");
    int ticks = 0;
    options.tick = [&] {
      progress.show(std::min(0.95, ++ticks * 0.2 / 12.0), "measuring");
    };  // about 12 s in all
    run = launch(options);
  }
  if (run.interrupted || run.exit_code != 0) {
    if (run.interrupted || !run.what.empty())
      std::cerr << "profile: " << (run.interrupted ? "interrupted" : run.what) << "\n";
    return run.exit_code ? run.exit_code : static_cast<int>(ExitCode::failed);
  }
  if (args.has("records")) write_file(args.text("records"), run.output);
  const ShippedDevice* core = find_device("cpu-core");
  const HardwareProfile* prior = find_profile(default_profile("cpu-core"));
  POLYPHONY_CHECK(core && prior, "the cpu-core device ships with the program");
  const traces::MachineRecords records = traces::read_machine_records(run.output, "microbenchmark");
  HardwareProfile fitted =
      traces::fit_machine(*prior, core->node_link, records, args.text("name"),
                          "polyphony profile --ranks " + std::to_string(options.ranks));
  if (fitted.gemm_efficiency > 1) {  // faster than the shipped core: what was reached is the peak
    fitted.device.fp32 = fitted.device.fp32 * fitted.gemm_efficiency;
    fitted.attention_efficiency /= fitted.gemm_efficiency;
    fitted.gemm_efficiency = 1;
  }
  write_file(args.text("out"), to_json(fitted) + "\n");
  if (args.json()) {
    std::cout << to_json(fitted) << "\n";
    return 0;
  }
  Table table({"what", "value"});
  table.add({"matrix products, large",
             number_text(fitted.device.fp32.value * fitted.gemm_efficiency / 1e9, 1) +
                 " GFLOP/s a core"});
  table.add({"half speed at", number_text(fitted.gemm_half_size, 0) + " (cube root of m n k)"});
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
