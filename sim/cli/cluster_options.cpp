#include "sim/cli/cluster_options.h"

#include "shared/files/files.h"
#include "shared/files/whole.h"

namespace polyphony::sim {

void add_cluster_options(Arguments& args) {
  args.add()(
      "cluster",
      "a file about the machines; repeatable: NCCL's topology (NCCL_TOPO_DUMP_FILE), Slurm's "
      "topology.conf or topology.yaml, output of nccl-tests",
      cxxopts::value<std::vector<std::string>>(), "FILE")(
      "oversubscription",
      "rate of a leaf switch's NICs over that of its uplinks (of topology.conf; default: 1)",
      cxxopts::value<double>(),
      "X")("nic", "rate of a NIC: 400Gbps (default: the files', else the accelerator's usual one)",
           cxxopts::value<std::string>())("price", "of an accelerator: 2.50USD/GPUh",
                                          cxxopts::value<std::string>());
}

ClusterOptions cluster_options(const Arguments& args) {
  ClusterOptions options;
  options.nic = args.text("nic");
  options.price = args.text("price");
  if (args.has("cluster"))
    options.machines = read_machine_files(args.repeated("cluster"), read_file);
  if (args.has("oversubscription")) {
    options.oversubscription = args.real("oversubscription");
    if (!(options.oversubscription >= 1 && options.oversubscription <= 1024))
      throw InputError("--oversubscription", "", "must be 1 to 1024",
                       "2: uplinks have half the rate");
  }
  return options;
}

}  // namespace polyphony::sim
