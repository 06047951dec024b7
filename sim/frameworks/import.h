// Turns settings of a training framework into a scenario with today's layout, and reports what
// became of every setting: `polyphony import`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/frameworks/report.h"
#include "sim/frameworks/run_settings.h"
#include "sim/frameworks/settings.h"
#include "sim/machines/machine_files.h"
#include "sim/question/gpu_request.h"

namespace polyphony::sim {

// What the files do not say.
struct ImportOptions {
  std::vector<std::string> models;  // config.json files or presets, as AskOptions has them
  std::optional<GpuRequest> gpus;   // all accelerators of the run
  std::string device;               // their name, if the files say how many there are
  std::string images;               // of a sample, as AskOptions has them
  std::optional<std::int64_t> sequence, global_batch;
  std::string nic, price;
  MachineFacts machines = {};   // what files say of the cluster
  double oversubscription = 0;  // of leaf switches in them; 0: not stated
};

struct Imported {
  Framework framework = Framework::megatron_lm;
  std::string stack;  // name of the software stack
  std::string text;   // the scenario, JSON
  Scenario scenario;  // the same as a value
  ImportReport report;
  // Why the layout cannot be predicted here; empty: it can. The scenario has it all the same.
  std::string illegal;
};

// Paths in the scenario are relative to `folder`. Throws InputError that names the setting and its
// place, or the option that is missing.
Imported import_settings(const FrameworkSettings& read, const ImportOptions& options,
                         const LoadText& load, const std::string& folder);

// Returns the settings as RunSettings, without a model or machine of the options. `layers`: of the
// language module, where no setting states them; 0: unknown.
RunSettings run_settings(const FrameworkSettings& read, ImportReport& report, int layers = 0);

}  // namespace polyphony::sim
