#include "exec/checkpoint/background_save.h"

#include <utility>

#include "exec/transport/barrier.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

constexpr Seconds kSlice{0.5};

}  // namespace

BackgroundSave::~BackgroundSave() {
  if (writer_) writer_->give_up();
  thread_.wait();
}

void BackgroundSave::begin(std::unique_ptr<CheckpointWriter> writer, How how) {
  POLYPHONY_CHECK(!begun(), "a checkpoint begins while another is written");
  writer_ = std::move(writer);
  stage_ = Stage::writing;
  if (how.meets) transport_.barrier();  // the folder exists
  copying_ = 1;
  // No lock: the thread could be kept from running while it holds one.
  thread_.start([this, copies = how.copies] {
    const bool copied = copies && writer_->copy();
    if (!copied) writer_->write();  // reads the state: the next update waits
    copying_.store(0, std::memory_order_release);
    futex_wake_all(copying_);
    if (copied) writer_->write();
  });
}

void BackgroundSave::wait_for_copy() {
  while (copying_.load(std::memory_order_acquire) != 0) futex_wait(copying_, 1, kSlice);
}

void BackgroundSave::go_on() {
  if (stage_ == Stage::publishing) {
    stage_ = Stage::none;
    writer_.reset();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return;
  }
  const std::vector<TwoNumbers> digests = gather(transport_, writer_->digest());
  writer_->throw_failure();
  stage_ = Stage::publishing;
  thread_.start([this, digests] {
    try {
      writer_->publish(digests);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void BackgroundSave::finish() {
  if (!begun()) return;
  while (begun()) {
    thread_.wait();
    go_on();
  }
  transport_.barrier();  // rank 0 has published
}

}  // namespace polyphony::exec
