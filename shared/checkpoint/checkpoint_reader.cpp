#include "shared/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "shared/checkpoint/tensor_size.h"
#include "shared/error.h"
#include "shared/files/run_paths.h"
#include "shared/files/whole.h"

namespace polyphony {
namespace {

std::string missing(const Parameter& parameter, std::int64_t elements) {
  return std::to_string(elements) + " of " + std::to_string(parameter.count()) + " elements of " +
         parameter.name;
}

}  // namespace

Manifest read_manifest(const std::string& checkpoints, std::int64_t step) {
  const std::string path = step_folder(checkpoints, step), file = manifest_file(path);
  const std::string hint = "remove " + path + " to resume from the checkpoint before it";
  Manifest manifest = parse_manifest(read_whole(file, kRecords, hint), file);
  if (manifest.step != step)
    throw InputError(file, "/step",
                     "is " + std::to_string(manifest.step) + ", but the folder is of step " +
                         std::to_string(step),
                     hint);
  for (const ManifestFile& entry : manifest.files) {
    const std::string name = path + "/" + entry.name;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(name, error);
    if (error) throw InputError(name, "", "is missing: " + error.message(), hint);
    if (std::cmp_not_equal(size, entry.digest.size.value))
      throw InputError(name, "",
                       "has " + std::to_string(size) + " bytes, but must have " +
                           std::to_string(entry.digest.size.value),
                       hint);
  }
  return manifest;
}

void CheckpointReader::read(const Parameter& parameter, const std::string& suffix,
                            const Region& region, const std::string& format, std::byte* out) {
  const auto width = static_cast<std::size_t>(element_bytes(format));
  const std::vector<ElementRun> wanted = region.runs(parameter);
  for (const Stored& stored : stored_of(parameter)) {
    const std::vector<ElementCopy> copies = overlap(stored.runs, wanted);
    if (copies.empty()) continue;
    const std::vector<std::byte> data = data_of(stored, parameter, suffix, format);
    for (const ElementCopy& copy : copies)
      std::memcpy(out + static_cast<std::size_t>(copy.to) * width,
                  data.data() + static_cast<std::size_t>(copy.from) * width,
                  static_cast<std::size_t>(copy.count) * width);
  }
}

bool CheckpointReader::has(const Parameter& parameter, const std::string& suffix) {
  const std::vector<Stored>& stored = stored_of(parameter);
  return !stored.empty() && open(*stored.front().file).entries.contains(parameter.name + suffix);
}

// Returns every stored region of the parameter. Together they must cover it.
const std::vector<CheckpointReader::Stored>& CheckpointReader::stored_of(
    const Parameter& parameter) {
  const auto found = stored_.find(parameter.name);
  if (found != stored_.end()) return found->second;
  std::vector<Stored> list;
  std::int64_t elements = 0;
  for (const ManifestFile& file : manifest_.files) {
    const auto slice = file.slices.find(parameter.name);
    if (slice == file.slices.end()) continue;
    const std::optional<Region> region = parse_region(parameter, slice->second);
    if (!region)
      refuse(file.name + ": \"" + slice->second + "\" is not a slice of " + parameter.name);
    const bool again =
        std::any_of(list.begin(), list.end(), [&](const Stored& s) { return s.region == *region; });
    if (again) continue;
    list.push_back({&file, *region, region->runs(parameter)});
    elements += region->elements.size();
  }
  if (elements == parameter.count()) return stored_[parameter.name] = std::move(list);
  const bool slices = std::all_of(list.begin(), list.end(), [&](const Stored& s) {
    return s.region.whole_part(parameter) && s.region.place.tensor == list[0].region.place.tensor;
  });
  if (slices && !list.empty() && !parameter.expert)
    refuse("names " + std::to_string(list.size()) + " of " +
           std::to_string(list[0].region.place.tensor) + " slices of " + parameter.name);
  refuse("names " + missing(parameter, elements));
}

void CheckpointReader::refuse(const std::string& what) const {
  throw InputError(manifest_file(path_), "/files", what,
                   "restore the manifest, or use another checkpoint");
}

std::vector<std::byte> CheckpointReader::data_of(const Stored& stored, const Parameter& parameter,
                                                 const std::string& suffix,
                                                 const std::string& format) {
  const std::string file = path_ + "/" + stored.file->name, name = parameter.name + suffix;
  const SafetensorsHeader& header = open(*stored.file);
  const auto found = header.entries.find(name);
  if (found == header.entries.end())
    throw InputError(file, "", "has no tensor \"" + name + "\"", kSafetensorsDamaged);
  const SafetensorsHeader::Entry& entry = found->second;
  const std::vector<std::int64_t> flat = {stored.region.elements.size()};
  const bool fits = stored.region.whole_part(parameter)
                        ? entry.shape == parameter.local_shape(stored.region.place)
                        : entry.shape == flat;
  if (!fits || entry.format != format)
    throw InputError(path_, "", name + " has another shape or number format than in the manifest",
                     "restore the files of the checkpoint");
  std::vector<std::byte> data(static_cast<std::size_t>(entry.end - entry.begin));
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(header.data_begin + entry.begin);
  stream.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  if (!stream)
    throw InputError(file, "", "cannot be read at tensor \"" + name + "\"", kSafetensorsDamaged);
  return data;
}

const SafetensorsHeader& CheckpointReader::open(const ManifestFile& file) {
  const auto found = open_.find(file.name);
  if (found != open_.end()) return found->second;
  const std::string name = path_ + "/" + file.name;
  if (digest(name) != file.digest)
    throw InputError(name, "", "is damaged: its checksum differs from the manifest's",
                     "remove " + path_ + " to resume from the checkpoint before it");
  return open_.emplace(file.name, read_safetensors_header(name)).first->second;
}

}  // namespace polyphony
