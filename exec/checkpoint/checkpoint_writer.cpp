#include "exec/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <optional>

#include "exec/device/own_stream.h"
#include "shared/checkpoint/checkpoint_region.h"
#include "shared/error.h"

namespace polyphony::exec {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& folder, std::int64_t step, Rank rank,
                                   const RankState& state, const Program& structure,
                                   const KeptCheckpoints& keep,
                                   std::unique_ptr<PartialCheckpoint> made)
    : folder_(folder), path_(step_folder(folder, step)), step_(step), rank_(rank), keep_(keep) {
  for (const RankState::Group& group : state.groups)
    if (group.first)
      for (const HeldPiece& piece : group.store->pieces()) add(piece, group.store->options().place);
  if (rank_ != Rank(0)) return;
  manifest_.step = step;
  manifest_.optimizer_steps = state.updates;
  manifest_.run = state.run;
  manifest_.bad_steps = state.bad_steps;
  manifest_.world_size = static_cast<int>(structure.ranks);
  manifest_.format = format_name(structure);
  for (const ModuleLayout& grid : structure.layout.modules) manifest_.blocks.push_back(grid.blocks);
  manifest_.parameters = model_parameters(structure.model);
  partial_ = made ? std::move(made) : std::make_unique<PartialCheckpoint>(folder, step);
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::add(const HeldPiece& piece, const ShardIndex& place) {
  const Parameter& spec = piece.parameter->spec;
  const Region region{place, written_part(piece, place)};
  if (piece.repeated || region.elements.size() == 0) return;
  parts_[spec.name] = region.text(spec);
  const auto add = [&](const char* suffix, const torch::Tensor& kept) {
    if (!kept.defined()) return;
    const torch::Tensor part = kept.narrow(0, 0, region.elements.size());
    tensors_.push_back(
        {spec.name + suffix, region.whole_part(spec) ? part.view(spec.local_shape(place)) : part});
    const torch::Device device = kept.device();
    if (device.is_cpu() || (!queued_.empty() && queued_.back().first == device)) return;
    queued_.emplace_back(device, c10::Event(device.type()));
    queued_.back().second.record(default_stream(device));
  };
  add("", piece.value);
  add(".m", piece.first_moment);
  add(".v", piece.second_moment);
  add(".master", piece.master);
}

Bytes CheckpointWriter::size() const {
  Bytes sum{};
  for (const NamedTensor& named : tensors_) {
    const auto bytes = static_cast<std::uint64_t>(named.tensor.nbytes());
    sum += Bytes(static_cast<std::int64_t>(named.tensor.is_cpu() ? bytes : std::bit_ceil(bytes)));
  }
  return sum;
}

// Copies through pinned memory, on a stream of its own.
void CheckpointWriter::copy_from(torch::Device device, c10::Event& queued) {
  const OwnStream stream(device, Priority::normal);
  const c10::StreamGuard on_it(stream.get());
  queued.block(stream.get());
  std::vector<std::pair<torch::Tensor*, torch::Tensor>> copies;
  const auto end = [&] {  // copies on their way must not be read or freed
    stream.get().synchronize();
    for (auto& [tensor, here] : copies) *tensor = here;
  };
  try {
    for (NamedTensor& named : tensors_) {
      if (named.tensor.device() != device || given_up_) continue;
      const torch::Tensor here = torch::empty(
          named.tensor.sizes(), named.tensor.options().device(torch::kCPU).pinned_memory(true));
      here.copy_(named.tensor, /*non_blocking=*/true);
      copies.emplace_back(&named.tensor, here);
    }
  } catch (...) {
    end();
    throw;
  }
  end();
}

bool CheckpointWriter::copy() {
  const torch::NoGradGuard no_grad;
  try {
    for (auto& [device, queued] : queued_) copy_from(device, queued);
    if (!queued_.empty()) return true;
    for (NamedTensor& named : tensors_) {
      if (given_up_) break;
      const torch::Tensor here = torch::empty_like(named.tensor);
      std::memcpy(here.mutable_data_ptr(), named.tensor.const_data_ptr(), named.tensor.nbytes());
      named.tensor = here;
    }
    return true;
  } catch (const std::exception&) {  // no memory
    return false;
  }
}

void CheckpointWriter::write() {
  if (tensors_.empty()) return;  // other ranks write everything that it holds
  const std::string partial = path_ + kPartialSuffix;
  try {
    if (!fs::exists(partial))
      throw InputError(
          partial, "",
          "was created by rank 0, but rank " + std::to_string(rank_.value) + " does not see it",
          kNotShared);
    mine_ = write_safetensors(partial + "/" + rank_file(rank_.value), tensors_, parts_, given_up_);
  } catch (...) {  // told by digest(): rank 0 must not remove the folder while others write
    failure_ = std::current_exception();
    mine_.size = kFailed;
  }
  tensors_.clear();  // copies are freed; LibTorch keeps pinned ones for the next checkpoint
}

TwoNumbers CheckpointWriter::digest() const {
  return {mine_.size.value, static_cast<std::int64_t>(mine_.checksum)};
}

void CheckpointWriter::throw_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

void CheckpointWriter::publish(const std::vector<TwoNumbers>& digests) {
  if (!partial_) return;
  const std::string partial = path_ + kPartialSuffix;
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
    manifest_.files.push_back({rank_file(r),
                               {Bytes(size), static_cast<std::uint64_t>(checksum)},
                               Safetensors(path).metadata()});
  }
  for (const std::string& file : synced_first_) sync_file(file);
  const std::string text = to_json(manifest_);
  SyncedFile file(manifest_file(partial));
  file.write(text.data(), text.size());
  file.finish();
  partial_->publish();
  partial_.reset();
  std::vector<std::int64_t> steps = steps_in(folder_);
  std::erase_if(steps, [&](std::int64_t other) { return other > step_; });
  const auto newest = static_cast<std::size_t>(std::max(1, keep_.newest));
  for (std::size_t i = 0; i + newest < steps.size(); ++i)
    if (steps[i] != keep_.best && steps[i] != keep_.rewind)
      remove_checkpoint(step_folder(folder_, steps[i]));  // keeping one more does no harm
}

}  // namespace polyphony::exec
