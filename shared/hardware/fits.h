// Fitted efficiencies of a GPU generation: which shares of the peaks its kernels reach, and how far
// these numbers can be trusted. The shipped ones are the files of shared/hardware/fits, with their
// sources: fitted to published step times by scripts/fit_profiles, or measured. A device names one,
// or states its own (shared/hardware/device_file_json.h).
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/certainty.h"

namespace polyphony {

// The efficiencies mean the same as in HardwareProfile (shared/hardware/hardware.h).
struct Fit {
  std::string name;    // "h100"; of a device's own fit: the device's name
  std::string device;  // the shipped device whose measurements were fitted; empty: the device's own
  std::string rows;    // the measurements that it is fitted to, in words
  // False: rests on kernel times or on too few steps, so that its error is unknown, and stated like
  // that of a borrowed fit.
  bool calibrated = true;
  double gemm_efficiency = 0, gemm_half_size = 0, grouped_efficiency = 0;
  double attention_efficiency = 0, early_attention_efficiency = 0, attention_backward = 0;
  double attention_half_keys = 0;
  double memory_efficiency = 0, optimizer_bytes_efficiency = 0;
  double gemm_error = 0, attention_error = 0;  // one standard deviation, relative
  FittedRanges fitted;
};

const std::vector<Fit>& shipped_fits();
const Fit* find_fit(const std::string& name);  // null: no such name
std::vector<std::string> fit_names();

}  // namespace polyphony
