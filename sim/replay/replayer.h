// The steps of a measured run, played: internal to sim/replay/replay.cpp.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "shared/chance/effects.h"
#include "sim/replay/replay.h"

namespace polyphony::sim {

// A Program that runs, and the step whose times it is played with.
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
  // Of each step's batch under the change.
  std::variant<std::vector<PlayedProgram>, Infeasible> changed_programs(
      const ReplayChange& change) const;

  struct Played {
    Timeline timeline;
    traces::Mixture mixture;
  };
  // `program` with step `s`'s times; `moved` changes every profile.
  std::variant<Played, Infeasible> play(std::size_t s, const PlayedProgram& program,
                                        const traces::Machine& machine,
                                        const std::vector<traces::Speedup>& faster) const;
  // Without a Timeline, and without shared links.
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
