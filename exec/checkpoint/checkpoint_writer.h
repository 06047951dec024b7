// Writes one checkpoint in several steps, which saving at once (exec/checkpoint/checkpoint.h) and
// saving in the background (exec/checkpoint/background_save.h) make at different times:
//   construction   rank 0 creates the folder of the incomplete checkpoint, if it was not made
//                  before; between that and write() all ranks must have met
//   copy()         optional: copies the state; afterwards training may change it
//   write()        writes and syncs this rank's file; a failure is kept
//   digest()       what rank 0 must know of it
//   publish()      rank 0: manifest, rename, removal of checkpoints that need not be kept
// A checkpoint that is not published is removed on destruction.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/checkpoint/checkpoint.h"
#include "exec/checkpoint/checkpoint_parts.h"
#include "exec/checkpoint/partial_checkpoint.h"
#include "exec/checkpoint/safetensors.h"
#include "exec/on_device.h"
#include "shared/checkpoint/checkpoint_manifest_json.h"

namespace polyphony::exec {

class CheckpointWriter {
 public:
  CheckpointWriter(const std::string& folder, std::int64_t step, Rank rank, const RankState& state,
                   const Program& structure, const KeptCheckpoints& keep,
                   std::unique_ptr<PartialCheckpoint> made = {});
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  std::int64_t step() const { return step_; }
  // Returns the host memory that copies take: LibTorch's pinned blocks are powers of two.
  Bytes size() const;
  // Returns whether everything is copied; else, if there is no memory, the rest is read by write().
  // May be called on another thread. Of a device's tensors it copies what the device's default
  // stream had queued when this object was made.
  bool copy();
  void write();
  // May be called on another thread: write() soon fails.
  void give_up() { given_up_ = true; }
  // After write(): size and checksum of this rank's file.
  TwoNumbers digest() const;
  void throw_failure() const;  // throws what write() failed with, if it failed
  void publish(const std::vector<TwoNumbers>& digests);
  // Makes publish() sync these files before the checkpoint counts.
  void sync_first(std::vector<std::string> files) { synced_first_ = std::move(files); }

 private:
  void add(const HeldPiece& piece, const ShardIndex& place);
  void copy_from(torch::Device device, c10::Event& queued);

  std::string folder_, path_;
  std::int64_t step_;
  Rank rank_;
  KeptCheckpoints keep_;
  std::vector<std::string> synced_first_;
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> parts_;  // which part of each parameter the file has
  std::vector<std::pair<torch::Device, c10::Event>> queued_;  // end of what each device had queued
  FileDigest mine_;
  std::exception_ptr failure_;
  std::atomic<bool> given_up_{false};
  Manifest manifest_;                           // rank 0: without the files
  std::unique_ptr<PartialCheckpoint> partial_;  // rank 0
};

}  // namespace polyphony::exec
