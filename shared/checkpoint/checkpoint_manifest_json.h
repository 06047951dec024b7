// The manifest of a checkpoint (exec/checkpoint/checkpoint.h).
//   {"polyphony_checkpoint": 3, "checksum": "41d2…", "step": 40, "optimizer_steps": 40,
//   "world_size": 4, "format": "F32", "blocks": [[], [3, 5]], "run": "{…}",
//    "parameters": [{"name": "language.head.output.weight", "shape": [64, 32], "trainable": true},
//    …], "files": [{"name": "rank-0.safetensors", "size": 5120, "checksum": "9e37…", "slices":
//    {"language.head.output.weight": "rows 1/2", …}}, …]}
//
// `checksum` is the FNV-1a hash of the manifest without it (compact, keys sorted). `run` is a
// record of the scenario (shared/scenario_io/run_record_json.h). Version 2, which has neither, can
// be read. A slice is a region of the parameter (shared/checkpoint/checkpoint_region.h), written as
// in the file's own metadata.
// `optimizer_steps` is AdamW's step count. It is smaller than `step` by the number of updates that
// were skipped because of non-finite values or spikes. What a run knows of these steps is
// "bad_steps": {"skipped": 0, "rewinds": 1, "passed_over": 17, "seen": [[39, 2.25, 0.5], …]};
// absent if it knows nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shared/checkpoint/bad_step_state.h"
#include "shared/chunk/parameters.h"
#include "shared/files/files.h"
#include "shared/model/model.h"

namespace polyphony {

// A parameter of the model. model_parameters() returns all of them in module and stack order.
struct ModelParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  bool trainable = true;  // has optimizer state
  bool operator==(const ModelParameter&) const = default;
};
std::vector<ModelParameter> model_parameters(const Model& model);

struct ManifestFile {
  std::string name;
  FileDigest digest;
  std::map<std::string, std::string> slices;  // parameter -> Region::text()
};
struct Manifest {
  std::int64_t step = 0;
  std::int64_t optimizer_steps = 0;
  int world_size = 1;
  std::string format;                    // of the values, by its safetensors name
  std::vector<std::vector<int>> blocks;  // ModuleLayout::blocks by module, of the run that wrote it
  std::string run;                       // run_record() of its scenario; empty: not recorded
  BadStepState bad_steps;
  std::vector<ModelParameter> parameters;
  std::vector<ManifestFile> files;
};
std::string to_json(const Manifest& manifest);
// Throws InputError with file and JSON pointer.
Manifest parse_manifest(const std::string& text, const std::string& file);

}  // namespace polyphony
