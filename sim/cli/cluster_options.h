// The options of `ask` and `import` that state the cluster beside --gpus.
#pragma once

#include <string>

#include "sim/cli/command.h"
#include "sim/machines/machine_files.h"

namespace polyphony::sim {

// Adds --cluster, --oversubscription, --nic and --price.
void add_cluster_options(Arguments& args);

struct ClusterOptions {
  MachineFacts machines;
  double oversubscription = 0;  // 0: not stated
  std::string nic, price;       // empty: not stated
};
// Reads the files of --cluster. Throws InputError.
ClusterOptions cluster_options(const Arguments& args);

}  // namespace polyphony::sim
