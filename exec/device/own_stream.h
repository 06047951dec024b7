// A stream of a device that has one user at a time.
//
// c10's pools hand out 32 streams of a priority in turn, so two users can get the same one, and
// then wait for each other's kernels. These streams are made one by one, and go to the next user
// when the previous one has released them.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

// urgent: kernels of the stream get multiprocessors before those of other streams. Messages and
// collectives are urgent: they are short, and a peer waits for them.
enum class Priority : std::uint8_t { normal, urgent };

class OwnStream {
 public:
  OwnStream(torch::Device device, Priority priority);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  const c10::Stream& get() const { return stream_; }

 private:
  torch::Device device_;
  Priority priority_;
  c10::Stream stream_;
};

}  // namespace polyphony::exec
