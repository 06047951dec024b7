#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>

#include "exec/checkpoint/checkpoint.h"
#include "exec/checkpoint/checkpoint_parts.h"
#include "exec/checkpoint/safetensors.h"
#include "shared/checkpoint/carried_weights.h"
#include "shared/checkpoint/checkpoint_reader.h"
#include "shared/error.h"
#include "shared/scenario_io/run_record_json.h"

namespace polyphony::exec {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " × ") + std::to_string(size);
  return text;
}

constexpr const char* kSameScenario = "resume with the scenario of the run that saved it";

void check_model(const std::string& file, const Manifest& manifest, const Program& structure) {
  std::map<std::string, ModelParameter> saved;
  for (const ModelParameter& parameter : manifest.parameters) saved[parameter.name] = parameter;
  for (const ModelParameter& ours : model_parameters(structure.model)) {
    const auto found = saved.find(ours.name);
    if (found == saved.end())
      throw InputError(file, "/parameters", "is of another model: it has no " + ours.name,
                       kSameScenario);
    if (found->second.shape != ours.shape)
      throw InputError(file, "/parameters",
                       "is of another model: " + ours.name + " is " +
                           shape_text(found->second.shape) + " in the checkpoint, " +
                           shape_text(ours.shape) + " in this model",
                       kSameScenario);
    if (ours.trainable && !found->second.trainable)
      throw InputError(file, "/parameters",
                       ours.name + " was frozen when it was saved and has no optimizer state",
                       kSameScenario);
    saved.erase(found);
  }
  if (!saved.empty())
    throw InputError(file, "/parameters",
                     "is of another model: this model has no " + saved.begin()->first,
                     kSameScenario);
  const std::string format = format_name(structure);
  if (manifest.format != format)
    throw InputError(file, "/format",
                     "is " + manifest.format + ", but this run trains in " + format, kSameScenario);
}

// Fills `target` with the elements of a region of "<parameter><suffix>", which the file has in the
// number format `saved`.
void read_into(CheckpointReader& reader, const Parameter& parameter, const char* suffix,
               const Region& region, const torch::Tensor& target, torch::Dtype saved) {
  const torch::Tensor values = torch::empty({region.elements.size()}, saved);
  reader.read(parameter, suffix, region, dtype_name(saved),
              static_cast<std::byte*>(values.mutable_data_ptr()));
  target.copy_(values.view(target.sizes()));
}
void read_into(CheckpointReader& reader, const Parameter& parameter, const char* suffix,
               const Region& region, const torch::Tensor& target) {
  read_into(reader, parameter, suffix, region, target, target.scalar_type());
}

// Values are whole on this rank unless it keeps only its shard of them.
void load_group(HeldParameters& store, CheckpointReader& reader) {
  const ShardIndex& place = store.options().place;
  const bool full = store.options().shard == Shard::full;
  if (!full)
    for (const LocalParameter* parameter : store.parameters())
      read_into(reader, parameter->spec, "", {place, {0, parameter->spec.local_count(place)}},
                parameter->value);
  for (const HeldPiece& piece : store.pieces()) {
    const Region region{place, piece.elements};
    const auto read = [&](const char* suffix, const torch::Tensor& kept) {
      if (kept.defined()) read_into(reader, piece.parameter->spec, suffix, region, kept);
    };
    if (full) read("", piece.value);
    read(".m", piece.first_moment);
    read(".v", piece.second_moment);
    read(".master", piece.master);
  }
}

// Reads the parameters of another run's checkpoint, which may have another number format.
class EarlierRunWeights {
 public:
  explicit EarlierRunWeights(const CarriedWeights& from)
      : reader_(step_folder(from.checkpoints, from.step), from.manifest),
        saved_(dtype_named(from.manifest.format)) {
    for (const ModelParameter& parameter : from.manifest.parameters) known_.insert(parameter.name);
  }

  // Values are whole on this rank unless it keeps only its shard of them.
  void read(HeldParameters& store) {
    const ShardIndex& place = store.options().place;
    const bool full = store.options().shard == Shard::full;
    if (!full)
      for (const LocalParameter* parameter : store.parameters())
        read_value(parameter->spec, {place, {0, parameter->spec.local_count(place)}},
                   parameter->value);
    for (const HeldPiece& piece : store.pieces()) {
      const Region region{place, piece.elements};
      if (full) read_value(piece.parameter->spec, region, piece.value);
      if (piece.master.defined()) read_precise(piece.parameter->spec, region, piece.master);
    }
  }

 private:
  void read_value(const Parameter& parameter, const Region& region, const torch::Tensor& target) {
    if (target.scalar_type() != saved_) return read_precise(parameter, region, target);
    if (known_.contains(parameter.name)) read_into(reader_, parameter, "", region, target, saved_);
  }
  // Reads master weights where the checkpoint has them: of parameters that were trained in bf16.
  void read_precise(const Parameter& parameter, const Region& region, const torch::Tensor& target) {
    if (!known_.contains(parameter.name)) return;
    const bool master = reader_.has(parameter, ".master");
    read_into(reader_, parameter, master ? ".master" : "", region, target,
              master ? torch::kFloat32 : saved_);
  }

  CheckpointReader reader_;
  torch::Dtype saved_;
  std::set<std::string> known_;
};

}  // namespace

std::optional<std::int64_t> newest_checkpoint(const std::string& folder) {
  const std::vector<std::int64_t> steps = steps_in(folder);
  if (steps.empty()) return {};
  read_manifest(folder, steps.back());
  return steps.back();
}

std::vector<std::vector<int>> newest_blocks(const std::string& folder) {
  const std::vector<std::int64_t> steps = steps_in(folder);
  if (steps.empty()) return {};
  return read_manifest(folder, steps.back()).blocks;
}

namespace {

std::string seen(std::int64_t step) {
  return step < 0 ? "no checkpoint" : "step " + std::to_string(step) + " as the newest checkpoint";
}

// All ranks see the same newest checkpoint, or none (-1).
void agree(const std::string& folder, std::int64_t step, Transport& transport) {
  const auto steps = gather(transport, {step, 0});
  for (std::size_t r = 0; r < steps.size(); ++r)
    if (steps[r].first != step)
      throw InputError(
          folder, "",
          "rank " + std::to_string(r) + " sees " + seen(steps[r].first) + ", rank 0 " + seen(step),
          kNotShared);
  transport.barrier();  // no rank reads before rank 0 has agreed
}

}  // namespace

std::vector<std::string> load_checkpoint(const std::string& folder, std::int64_t step,
                                         Transport& transport, RankState& state,
                                         const Program& structure) {
  const torch::NoGradGuard no_grad;
  agree(folder, step, transport);
  const std::string path = step_folder(folder, step), file = manifest_file(path);
  const Manifest manifest = read_manifest(folder, step);
  check_model(file, manifest, structure);
  RecordDifferences differences;
  if (!manifest.run.empty() && !state.run.empty())
    differences = compare_records(manifest.run, state.run, file);
  if (!differences.another_model.empty())
    throw InputError(file, "/run", "is of another model: " + differences.another_model.front(),
                     kSameScenario);
  CheckpointReader reader(path, manifest);
  for (const RankState::Group& group : state.groups) load_group(*group.store, reader);
  state.updates = manifest.optimizer_steps;
  state.bad_steps = manifest.bad_steps;
  transport.barrier();
  return differences.changed;
}

Loaded load_step(const std::string& folder, std::int64_t step, Transport& transport, Runner& runner,
                 const Program& structure, const std::string& run) {
  RankState state = rank_state(structure, transport.rank(), runner.stores());
  state.run = run;
  std::vector<std::string> changed = load_checkpoint(folder, step, transport, state, structure);
  runner.set_updates(state.updates);
  return {step, std::move(changed), std::move(state.bad_steps)};
}

std::optional<Loaded> load_newest(const std::string& folder, Transport& transport, Runner& runner,
                                  const Program& structure, const std::string& run) {
  const std::optional<std::int64_t> newest = newest_checkpoint(folder);
  if (!newest) {
    agree(folder, -1, transport);
    return {};
  }
  return load_step(folder, *newest, transport, runner, structure, run);
}

Loaded load_weights(const std::string& run_folder, Transport& transport, Runner& runner,
                    const Program& structure, const std::string& run) {
  const torch::NoGradGuard no_grad;
  const CarriedWeights from = find_carried_weights(run_folder, structure.model);
  agree(from.checkpoints, from.step, transport);
  EarlierRunWeights weights(from);
  for (HeldParameters* store : runner.stores()) weights.read(*store);
  transport.barrier();
  Loaded loaded{from.step, {}, {}};
  if (!from.manifest.run.empty() && !run.empty())
    loaded.changed = compare_records(from.manifest.run, run, run_folder).another_model;
  std::erase_if(loaded.changed, [](const std::string& change) {  // pairs that this run adds
    return change.find(".lora_") != std::string::npos &&
           change.find(" was not given") != std::string::npos;
  });
  return loaded;
}

}  // namespace polyphony::exec
