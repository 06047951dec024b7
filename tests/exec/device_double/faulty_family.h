// A family in which this member fails at its first split.
#pragma once

#include <functional>
#include <utility>

#include "exec/device/device_family.h"

namespace polyphony::exec::testing {

class FaultyFamily : public DeviceFamily {
 public:
  FaultyFamily(FamilyPointer inner, std::function<void()> fault)
      : inner_(std::move(inner)), fault_(std::move(fault)) {}
  bool ready() override { return inner_->ready(); }
  void split(const DevicePart& mine) override {
    if (const auto fault = std::exchange(fault_, {})) fault();
    inner_->split(mine);
  }
  DeviceBackend part() override { return inner_->part(); }
  void abort() override { inner_->abort(); }

 private:
  FamilyPointer inner_;
  std::function<void()> fault_;
};

}  // namespace polyphony::exec::testing
