#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "exec/checkpoint.h"
#include "exec/checkpoint_parts.h"
#include "exec/safetensors.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " × ") + std::to_string(size);
  return text;
}

void check_model(const std::string& file, const Manifest& manifest, const Program& structure) {
  constexpr const char* kHint = "resume with the scenario that it was saved from";
  std::map<std::string, ModelParameter> saved;
  for (const ModelParameter& parameter : manifest.parameters) saved[parameter.name] = parameter;
  for (const ModelParameter& ours : model_parameters(structure.model)) {
    const auto found = saved.find(ours.name);
    if (found == saved.end())
      throw InputError(file, "/parameters", "is of another model: it has no " + ours.name, kHint);
    if (found->second.shape != ours.shape)
      throw InputError(file, "/parameters",
                       "is of another model: " + ours.name + " is " +
                           shape_text(found->second.shape) + " there, " + shape_text(ours.shape) +
                           " here",
                       kHint);
    if (ours.trainable && !found->second.trainable)
      throw InputError(file, "/parameters",
                       ours.name + " was frozen when it was saved, and has no optimizer state",
                       kHint);
    saved.erase(found);
  }
  if (!saved.empty())
    throw InputError(file, "/parameters",
                     "is of another model: this one has no " + saved.begin()->first, kHint);
  const std::string format = format_name(structure);
  if (manifest.format != format)
    throw InputError(file, "/format", "is " + manifest.format + ", this run trains in " + format,
                     kHint);
}

// Opens the checkpoint's files as they are needed, each verified once.
class SliceReader {
 public:
  SliceReader(std::string path, const Manifest& manifest)
      : path_(std::move(path)), manifest_(manifest) {}

  // Calls use(file, part, parts) for every stored slice of the parameter.
  void each(const Parameter& parameter,
            const std::function<void(const Safetensors&, int, int)>& use) {
    std::set<int> found;
    int wanted = 1;
    for (const ManifestFile& file : manifest_.files) {
      const auto slice = file.slices.find(parameter.name);
      if (slice == file.slices.end()) continue;
      const auto [part, parts] = parse(file, parameter, slice->second);
      wanted = parts;
      found.insert(part);
      use(open(file), part, parts);
    }
    if (std::cmp_not_equal(found.size(), wanted))
      throw InputError(path_ + "/manifest.json", "/files",
                       "names " + std::to_string(found.size()) + " of " + std::to_string(wanted) +
                           " slices of " + parameter.name,
                       "restore the manifest, or use another checkpoint");
  }

 private:
  std::pair<int, int> parse(const ManifestFile& file, const Parameter& parameter,
                            const std::string& text) const {
    Slice slice{parameter, true, 0, 1};
    const std::size_t space = text.find(' '), slash = text.find('/');
    if (parameter.cut != Cut::replicated && space < slash && slash != std::string::npos) {
      slice.part = std::atoi(text.c_str() + space) - 1;
      slice.parts = std::atoi(text.c_str() + slash + 1);
    }
    const std::int64_t size = parameter.shape[parameter.cut == Cut::columns ? 1 : 0];
    if (slice.part < 0 || slice.part >= slice.parts || slice.text() != text ||
        size % slice.parts != 0)
      throw InputError(path_ + "/manifest.json", "/files",
                       file.name + ": \"" + text + "\" is no slice of " + parameter.name,
                       "restore the manifest, or use another checkpoint");
    return {slice.part, slice.parts};
  }

  const Safetensors& open(const ManifestFile& file) {
    const auto found = open_.find(file.name);
    if (found != open_.end()) return found->second;
    const std::string name = path_ + "/" + file.name;
    if (digest(name) != file.digest)
      throw InputError(name, "", "is damaged: its checksum is not the manifest's",
                       "remove " + path_ + " to resume from the checkpoint before it");
    return open_.emplace(file.name, Safetensors(name)).first->second;
  }

  std::string path_;
  const Manifest& manifest_;
  std::map<std::string, Safetensors> open_;
};

// The rows (columns) that two slices of one axis of `size` share.
struct Overlap {
  std::int64_t begin, end, from,
      to;  // in the axis; where they begin in the stored and in the local slice
  Overlap(std::int64_t size, int part, int parts, int my_part, int my_parts) {
    const std::int64_t stored = size * part / parts, local = size * my_part / my_parts;
    begin = std::max(stored, local);
    end = std::min(size * (part + 1) / parts, size * (my_part + 1) / my_parts);
    from = begin - stored;
    to = begin - local;
  }
};

void load_parameter(const HeldSlice& held, SliceReader& reader, const std::string& path) {
  const Parameter& parameter = held.slice.parameter;
  const std::int64_t axis = parameter.cut == Cut::columns ? 1 : 0;
  const std::int64_t size = parameter.shape[static_cast<std::size_t>(axis)];
  reader.each(parameter, [&](const Safetensors& file, int part, int parts) {
    const Overlap overlap(size, part, parts, held.slice.part, held.slice.parts);
    if (overlap.begin >= overlap.end) return;
    const auto copy = [&](const std::string& name, const torch::Tensor& target) {
      const torch::Tensor stored = file.read(name);
      if (stored.sizes().vec() !=
              parameter.local_shape({.tensor = parts, .tensor_index = part}) ||
          stored.scalar_type() != target.scalar_type())
        throw InputError(path, "",
                         name + " has another shape or number format than the manifest says",
                         "restore the checkpoint's files");
      const std::int64_t length = overlap.end - overlap.begin;
      target.narrow(axis, overlap.to, length).copy_(stored.narrow(axis, overlap.from, length));
    };
    copy(parameter.name, held.parameter->value);
    if (!held.first_moment.defined()) return;
    copy(parameter.name + ".m", held.first_moment);
    copy(parameter.name + ".v", held.second_moment);
  });
}

}  // namespace

std::optional<std::int64_t> newest_checkpoint(const std::string& folder) {
  const std::vector<std::int64_t> steps = steps_in(folder);
  if (steps.empty()) return {};
  read_manifest(folder, steps.back());
  return steps.back();
}

void load_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure) {
  const torch::NoGradGuard no_grad;
  const auto steps = gather(transport, {step, 0});
  for (std::size_t r = 0; r < steps.size(); ++r)
    if (steps[r].first != step)
      throw InputError(folder, "",
                       "rank " + std::to_string(r) + " sees step " +
                           std::to_string(steps[r].first) +
                           " as the newest checkpoint, rank 0 step " + std::to_string(step),
                       kNotShared);
  const std::string path = step_folder(folder, step);
  const Manifest manifest = read_manifest(folder, step);
  check_model(path + "/manifest.json", manifest, structure);
  SliceReader reader(path, manifest);
  for (const HeldSlice& held : held_slices(runner, structure, transport.rank()))
    load_parameter(held, reader, path);
  runner.set_updates(manifest.optimizer_steps);
  transport.barrier();
}

}  // namespace polyphony::exec
