#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "exec/checkpoint/checkpoint.h"
#include "exec/checkpoint/checkpoint_parts.h"
#include "exec/checkpoint/safetensors.h"
#include "shared/checkpoint/checkpoint_region.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kFailed(-1);  // used as a file's size

// Returns the part of this rank's share of a parameter that no rank before it holds. A
// tensor-parallel share begins with the elements that the rank owns (shared/chunk/parameters.h).
Interval written_part(const HeldPiece& piece, const ShardIndex& place) {
  std::int64_t owned = 0;
  for (const ElementRun& run : piece.parameter->spec.owned_runs(place)) {
    POLYPHONY_CHECK(run.local == owned, piece.parameter->spec.name << " owns another part");
    owned += run.count;
  }
  return {piece.elements.begin,
          std::max(piece.elements.begin, std::min(piece.elements.end, owned))};
}

// Writes this rank's file. If other ranks write everything that it holds, it writes none and the
// size is 0.
FileDigest write_slices(const std::string& partial, Rank rank, const RankState& state) {
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> written;
  for (const RankState::Group& group : state.groups) {
    if (!group.first) continue;
    const ShardIndex& place = group.store->options().place;
    for (const HeldPiece& piece : group.store->pieces()) {
      const Parameter& spec = piece.parameter->spec;
      const Region region{place, written_part(piece, place)};
      if (piece.repeated || region.elements.size() == 0) continue;
      written[spec.name] = region.text(spec);
      const auto add = [&](const char* suffix, const torch::Tensor& kept) {
        if (!kept.defined()) return;
        const torch::Tensor part = kept.narrow(0, 0, region.elements.size());
        tensors.push_back({spec.name + suffix,
                           region.whole_part(spec) ? part.view(spec.local_shape(place)) : part});
      };
      add("", piece.value);
      add(".m", piece.first_moment);
      add(".v", piece.second_moment);
      add(".master", piece.master);
    }
  }
  if (written.empty()) return {};
  if (!fs::exists(partial))
    throw InputError(
        partial, "",
        "was created by rank 0, but rank " + std::to_string(rank.value) + " does not see it",
        kNotShared);
  return write_safetensors(partial + "/" + rank_file(rank.value), tensors, written);
}

// Removes the folder on destruction unless it has been marked as complete.
class Partial {
 public:
  Partial(const std::string& folder, const std::string& path) : path_(path) {
    std::error_code error;
    fs::create_directories(folder, error);
    for (const std::string& stale : partial_checkpoints(folder)) remove_checkpoint(stale);
    if (!fs::create_directory(path_, error) && error)
      throw InputError(path_, "", "cannot be created: " + error.message(),
                       "choose a writable folder");
  }
  ~Partial() {
    if (!published_) remove_checkpoint(path_);
  }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

  // From here on the folder is the checkpoint. An existing checkpoint of the same step is swapped
  // with it and removed.
  void publish(const std::string& folder, const std::string& path) {
    sync_folder(path_);
    std::error_code error;
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
      remove_checkpoint(path);  // there is no old one, or the file system cannot swap
      fs::rename(path_, path, error);
      if (error)
        throw InputError(path, "", "cannot be created: " + error.message(),
                         "choose another folder");
      published_ = true;
    }
    sync_folder(folder);
  }

 private:
  std::string path_;
  bool published_ = false;
};

void write_manifest(const std::string& partial, std::int64_t step, const RankState& state,
                    const Program& structure, const std::vector<TwoNumbers>& digests) {
  Manifest manifest;
  manifest.step = step;
  manifest.optimizer_steps = state.updates;
  manifest.run = state.run;
  manifest.world_size = static_cast<int>(structure.ranks);
  manifest.format = format_name(structure);
  for (const ModuleLayout& grid : structure.layout.modules) manifest.blocks.push_back(grid.blocks);
  manifest.parameters = model_parameters(structure.model);
  for (std::uint32_t r = 0; r < digests.size(); ++r) {
    const auto [size, checksum] = digests[r];
    if (size == 0) continue;
    if (size == kFailed.value)
      throw InputError(partial, "", "rank " + std::to_string(r) + " could not write its part",
                       "the message of that rank has the reason");
    const std::string path = partial + "/" + rank_file(r);
    std::error_code error;
    if (std::cmp_not_equal(fs::file_size(path, error), size) || error)
      throw InputError(
          path, "",
          "rank " + std::to_string(r) + " has written its part, but rank 0 does not see it",
          kNotShared);
    ManifestFile file{rank_file(r),
                      {Bytes(size), static_cast<std::uint64_t>(checksum)},
                      Safetensors(path).metadata()};
    manifest.files.push_back(std::move(file));
  }
  const std::string text = to_json(manifest);
  SyncedFile file(manifest_file(partial));
  file.write(text.data(), text.size());
  file.finish();
}

}  // namespace

void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     const RankState& state, const Program& structure,
                     const KeptCheckpoints& keep) {
  const std::string path = step_folder(folder, step), partial = path + kPartialSuffix;
  std::optional<Partial> owner;
  if (transport.rank().value == 0) owner.emplace(folder, partial);
  transport.barrier();
  // A rank that fails says so before it throws: rank 0 must not clean up under ranks that still
  // write.
  std::optional<InputError> failure;
  FileDigest mine;
  try {
    mine = write_slices(partial, transport.rank(), state);
  } catch (const InputError& error) {
    failure = error;
    mine.size = kFailed;
  }
  const auto digests =
      gather(transport, {mine.size.value, static_cast<std::int64_t>(mine.checksum)});
  if (failure) throw *failure;
  if (owner) {
    write_manifest(partial, step, state, structure, digests);
    owner->publish(folder, path);
    owner.reset();
    std::vector<std::int64_t> steps = steps_in(folder);
    std::erase_if(steps, [&](std::int64_t other) { return other > step; });
    const auto newest = static_cast<std::size_t>(std::max(1, keep.newest));
    for (std::size_t i = 0; i + newest < steps.size(); ++i)
      if (steps[i] != keep.best)
        remove_checkpoint(step_folder(folder, steps[i]));  // keeping one more does no harm
  }
  transport.barrier();
}

void save_checkpoint(const std::string& folder, std::int64_t step, Transport& transport,
                     Runner& runner, const Program& structure, const std::string& run,
                     const KeptCheckpoints& keep) {
  RankState state = rank_state(structure, transport.rank(), runner.stores());
  state.updates = runner.updates();
  state.run = run;
  save_checkpoint(folder, step, transport, state, structure, keep);
}

}  // namespace polyphony::exec
