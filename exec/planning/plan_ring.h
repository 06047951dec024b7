// A ring of slots through which rank 0 tells every other rank about a step (shared/step/step_record.h).
//   Step s is in slot s modulo kPlanSlots: a letter for each rank (Transport::post). Who has taken
//   theirs leaves an acknowledgement; rank 0 writes a slot again when all have, so that it is never
//   more than the ring ahead and the store holds no more than that. After the last letter (end) has
//   been read by all nothing is left there.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/transport/communicator.h"
#include "shared/step/step_record.h"

namespace polyphony::exec {

inline constexpr int kPlanSlots = 4;

// Of rank 0. Used by one thread.
class PlanWriter {
 public:
  explicit PlanWriter(Transport& transport) : transport_(transport) {}
  // `letters`: by rank; that of rank 0 is not used. Steps in their order. Waits for the slot.
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

// Of the other ranks. Used by one thread at a time.
class PlanReader {
 public:
  PlanReader(Transport& transport, std::uint64_t first) : transport_(transport), next_(first) {}
  // What is told of `step`, which is the one after that read before. After the end: the end.
  StepLetter read(std::uint64_t step);
  // Reads on to the end.
  void finish();

 private:
  Transport& transport_;
  std::uint64_t next_;
  bool ended_ = false;
};

}  // namespace polyphony::exec
