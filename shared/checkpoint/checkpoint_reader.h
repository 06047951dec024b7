// Reads parts of parameters from a checkpoint, whatever layout wrote it. Without LibTorch: numbers
// are bytes of the checkpoint's format.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "shared/checkpoint/checkpoint_manifest_json.h"
#include "shared/checkpoint/checkpoint_region.h"
#include "shared/checkpoint/safetensors_header.h"

namespace polyphony {

// Reads the manifest of a step and checks that its files exist and have the right sizes. Throws
// InputError.
Manifest read_manifest(const std::string& checkpoints, std::int64_t step);

// Opens files on demand and verifies the checksum of each once. `manifest` must outlive this
// object.
class CheckpointReader {
 public:
  // `path`: the folder of the step.
  CheckpointReader(std::string path, const Manifest& manifest)
      : path_(std::move(path)), manifest_(manifest) {}

  // Writes the elements of a region of "<parameter><suffix>" (suffix: "", ".m", ".v", ".master") to
  // `out`, in the format `format`, which must be that of the file. Throws InputError if elements
  // are missing, or a file is missing or damaged.
  void read(const Parameter& parameter, const std::string& suffix, const Region& region,
            const std::string& format, std::byte* out);
  // Returns whether the checkpoint has "<parameter><suffix>".
  bool has(const Parameter& parameter, const std::string& suffix);

 private:
  struct Stored {
    const ManifestFile* file;
    Region region;
    std::vector<ElementRun> runs;
  };

  const std::vector<Stored>& stored_of(const Parameter& parameter);
  [[noreturn]] void refuse(const std::string& what) const;
  std::vector<std::byte> data_of(const Stored& stored, const Parameter& parameter,
                                 const std::string& suffix, const std::string& format);
  const SafetensorsHeader& open(const ManifestFile& file);

  std::string path_;
  const Manifest& manifest_;
  std::map<std::string, std::vector<Stored>> stored_;  // by parameter
  std::map<std::string, SafetensorsHeader> open_;      // by file
};

}  // namespace polyphony
