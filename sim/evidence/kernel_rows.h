// What profiles of GPUs measured of a step, as rows for a fit: the time of each group of kernels
// (shared/cost/kernel_groups.h), beside the time that a hardware profile predicts for it.
//
//   rank     Each trace is of a rank of the scenario's Program: the one with its number. If it
//            does not state its number, or only representative ranks were lowered
//            (shared/lower/fold.h): the one whose GEMMs have the FLOPs that are nearest to the
//            trace's or, without recorded shapes, one of the same pipeline stage. Times of several
//            traces are added up
//   GEMMs    If the shapes of GEMMs were recorded and no stack feature changes them, each shape is
//            priced as such: it needs no match with the scenario
//   match    The FLOPs of the recorded shapes must be those of the rank within kMostApart.
//            Otherwise the trace is not of this layout and batch, or not of whole steps: only its
//            GEMMs are used then, and a note says so. Without recorded shapes this cannot be
//            checked
//   linear   Of ranks with linear attention, whose kernels have no common names, only GEMMs count
//   whole    The step time of traces that lack a group, such as that of the optimizer, is not used
//   joined   Groups that a trace does not tell apart make one row: GEMMs and those of experts that
//            ran one by one; the two directions of attention if the kernels' names do not say
//            which; all that an eager attention consists of
//
// Does not model: kernels that are slower because others run beside them.
#pragma once

#include <string>
#include <vector>

#include "shared/cost/kernel_groups.h"
#include "sim/evidence/step_evidence.h"

namespace polyphony::sim {

// Largest relative difference between the FLOPs of a trace and of the Program. Assumed: the counts
// differ by small GEMMs such as routers.
inline constexpr double kMostApart = 0.05;
// Relative deviation between a kernel's times in two runs of the same job. Assumed: clocks differ
// from one GPU to the next by as much.
inline constexpr double kKernelNoise = 0.02;
// The same of grouped GEMMs, whose time the profile's form misses by as much
// (scenarios/measured/README.md).
inline constexpr double kGroupedNoise = 0.125;

struct KernelRow {
  std::string name;  // its groups: "GEMMs", "attention forward and backward"
  std::vector<KernelGroup> groups;
  Seconds measured{};        // of a step
  double noise = 0;          // relative deviation, kKernelNoise included
  std::int64_t kernels = 0;  // in a step
  std::string longest;       // the kernel with the most time, and its share
  double longest_share = 0;
};

class KernelRows {
 public:
  // `evidence` must have kernels, and outlive the result. Throws InputError as quick_step() does,
  // and if a trace states neither its steps nor shapes, or no kernels of the scenario are in them.
  KernelRows(const StepEvidence& evidence, const HardwareProfile& profile);

  const std::vector<KernelRow>& rows() const { return rows_; }
  // Returns the predicted time of each row.
  std::vector<Seconds> predicted(const HardwareProfile& profile) const;
  // Whether the traces are of whole steps of the scenario, as far as that is known.
  bool whole() const { return matched_ && missing_.empty(); }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  GroupTimes times(const HardwareProfile& profile) const;
  void choose_ranks(const HardwareProfile& profile);
  int stage_of(std::uint32_t rank) const;
  void check_flops(const HardwareProfile& profile);
  void make_rows(const HardwareProfile& profile);
  void find_missing(const GroupTimes& expected);
  void add_row(std::vector<KernelGroup> groups, const GroupTimes& expected);
  Seconds gemms_by_shape(const HardwareProfile& profile) const;

  const StepEvidence& evidence_;
  Program program_;
  std::vector<Rank> ranks_;  // by trace
  bool by_shape_ = false, matched_ = true;
  std::string missing_;  // groups that a step has and the traces lack
  std::vector<KernelRow> rows_;
  std::vector<std::string> notes_;
};

// Returns the keys of the parameters that rows with these groups measure directly.
std::vector<std::string> measured_keys(const std::vector<KernelRow>& rows,
                                       const HardwareProfile& profile);

}  // namespace polyphony::sim
