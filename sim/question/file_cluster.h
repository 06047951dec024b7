// A cluster from what files about machines say (sim/machines/machine_files.h), beside what a person
// asks for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/machines/machine_files.h"
#include "sim/question/gpu_request.h"

namespace polyphony::sim {

// Returns the shipped name of the device of the files; empty if they name none that ships. Throws
// InputError if they name two.
std::string device_of(const MachineFacts& facts);
// Throws InputError that names `option` if the accelerators contradict the files: another device,
// more accelerators a node.
void check_gpus(const MachineFacts& facts, const GpuRequest& request, const std::string& option);

// Returns the accelerators that `text` asks for (parse_gpus), checked against the files; if it is
// empty, those of the files. Throws InputError that names `option` if neither says which, and as
// check_gpus() does.
GpuRequest gpus_of(const MachineFacts& facts, const std::string& text, const std::string& option);

// Writes links, NICs, domains and leaf switches of the files into a scenario's value of "cluster".
// A `nic` that is there stays. `oversubscription`: NICs' rate over uplinks' rate of leaf switches;
// 0: not stated. Adds to `assumed` what the files say, and what of it has no effect.
void add_machine_facts(const MachineFacts& facts, const GpuRequest& gpus, double oversubscription,
                       nlohmann::ordered_json& cluster, std::vector<std::string>& assumed);

}  // namespace polyphony::sim
