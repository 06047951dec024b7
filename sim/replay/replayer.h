// Replays the steps of a measured run. Internal to sim/replay/replay.cpp.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "shared/chance/effects.h"
#include "sim/replay/replay.h"

namespace polyphony::sim {

// A Program to replay, compiled.
struct PlayedProgram {
  Program program;
  Compiled compiled;
  Bytes peak_memory{};
};

class Replayer {
 public:
  Replayer(const traces::Measurement& measured, const HardwareProfile& profile);

  std::size_t steps() const { return programs_.size(); }
  const std::vector<PlayedProgram>& measured_programs() const { return programs_; }
  // Returns the Programs of all steps under the change.
  std::variant<std::vector<PlayedProgram>, Infeasible> changed_programs(
      const ReplayChange& change) const;

  struct Played {
    Timeline timeline;
    traces::Mixture mixture;
  };
  // Replays `program` with the times of step `s`, scaled from the measured machine to `machine`.
  std::variant<Played, Infeasible> play(std::size_t s, const PlayedProgram& program,
                                        const traces::Machine& machine,
                                        const std::vector<traces::Speedup>& faster) const;
  // Returns the step time only, without a Timeline and without modeling shared links. `moved` is
  // applied to the profiles of both machines.
  Seconds step(std::size_t s, const PlayedProgram& program, const traces::Machine& machine,
               const std::vector<traces::Speedup>& faster, const Moved& moved) const;

  const traces::Machine& machine() const { return machine_; }
  traces::Machine changed_machine(const ReplayChange& change) const;

 private:
  const traces::Measurement& measured_;
  traces::Machine machine_;
  std::vector<PlayedProgram> programs_;
  std::vector<traces::MeasuredStep> samples_;
};

}  // namespace polyphony::sim
