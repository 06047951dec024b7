// A ring of slots through which rank 0 tells every other rank about a step
// (shared/step/step_record.h).
//   Step s uses slot s modulo kPlanSlots, with one letter per rank (Transport::post). A rank that
//   has read its letter leaves an acknowledgment. Rank 0 reuses a slot once all ranks have
//   acknowledged it, so it is never more than the ring's length ahead, and the store holds no more
//   than that. After all ranks have read the last letter (end) and rank 0 has returned
//   from drain(), nothing is left in the store.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/transport/communicator.h"
#include "shared/step/step_record.h"

namespace polyphony::exec {

inline constexpr int kPlanSlots = 4;

// Rank 0's end. Used by one thread.
class PlanWriter {
 public:
  explicit PlanWriter(Transport& transport) : transport_(transport) {}
  // Posts one letter per rank (the one for rank 0 is ignored). Steps must be posted in order. Waits
  // until the slot is free.
  void post(std::uint64_t step, const std::vector<std::string>& letters);
  // Returns when everything posted has been read.
  void drain();

 private:
  void await_read(std::uint64_t step);

  Transport& transport_;
  std::uint64_t unread_ = 0,
                next_ = 0;  // steps whose letters may not have been read: [unread_, next_)
  bool begun_ = false;
};

// The end of the other ranks. Used by one thread at a time.
class PlanReader {
 public:
  PlanReader(Transport& transport, std::uint64_t first) : transport_(transport), next_(first) {}
  // Returns the letter of `step`, which must follow the step read before. After the end letter it
  // always returns the end.
  StepLetter read(std::uint64_t step);
  // Reads all letters up to the end.
  void finish();

 private:
  Transport& transport_;
  std::uint64_t next_;
  bool ended_ = false;
};

}  // namespace polyphony::exec
