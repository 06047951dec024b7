#include "exec/worker/run_checkpoints.h"

#include <iostream>
#include <utility>

#include "shared/files/free_memory.h"

namespace polyphony::exec {

bool RunCheckpoints::due(std::int64_t step) {
  made_.reset();
  if (transport_.rank() != Rank(0) || options_.checkpoint_every.count() <= 0 || !lacks(step) ||
      steady_now() - last_ < options_.checkpoint_every)
    return false;
  // An earlier one that is not published yet has the only folder that may be incomplete.
  if (!begun()) made_ = std::make_unique<PartialCheckpoint>(folder_, step);
  return true;
}

void RunCheckpoints::begin(std::int64_t step, Contents contents, bool agreed) {
  const bool meets = !agreed || begun();
  finish();
  newest_ = step;
  waited_.during([&] {
    auto writer =
        std::make_unique<CheckpointWriter>(folder_, step, transport_.rank(), contents.state,
                                           structure_, contents.keep, std::exchange(made_, {}));
    writer->sync_first(std::move(contents.synced_first));
    const bool room = has_room(writer->size());
    save_.begin(std::move(writer), {.copies = room, .meets = meets});
    if (!room) save_.finish();
  });
  last_ = steady_now();
}

void RunCheckpoints::write(std::int64_t step, const Contents& contents) {
  made_.reset();
  newest_ = step;
  for (const std::string& file : contents.synced_first) sync_file(file);
  save_checkpoint(folder_, step, transport_, contents.state, structure_, contents.keep);
  last_ = steady_now();
}

void RunCheckpoints::go_on() {
  waited_.during([this] { save_.go_on(); });
}

void RunCheckpoints::finish() {
  if (begun()) waited_.during([this] { save_.finish(); });
}

void RunCheckpoints::wait_for_copy() {
  if (save_.copies()) waited_.during([this] { save_.wait_for_copy(); });
}

// Returns whether the hosts of all ranks have memory for copies, with a tenth to spare; decided
// once, at the first checkpoint, when everything else is allocated. Collective.
bool RunCheckpoints::has_room(Bytes copies) {
  if (!options_.saves_beside) return false;
  if (!room_) {
    const Bytes free = free_memory();
    const bool short_here =
        free.value > 0 && free.value / options_.ranks_of_host < copies.value + copies.value / 10;
    torch::Tensor ranks = torch::tensor({short_here ? 1.0 : 0.0}, torch::kFloat64);
    control_.sum(ranks);
    room_ = ranks.item<double>() == 0;
    if (!*room_ && transport_.rank() == Rank(0))
      std::cerr << "polyphony-worker: training waits for checkpoints: there is no host memory for "
                   "copies of them\n";
  }
  return *room_;
}

}  // namespace polyphony::exec
