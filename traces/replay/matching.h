// Matches the activities of a Program with those of a measured step, and computes their durations.
// Internal to traces/replay/measured_step.cpp; the rules are in its header, measured_step.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/replay/activity_class.h"
#include "traces/replay/measured_step.h"

namespace polyphony::traces {

// Keys of MeasuredStep::sums_ and late_. Step scalars have a key of their own: the time of a few
// bytes is not representative of gradients.
std::string kind_key(const Program& program, const Node& node);
std::string stream_key(const Program& program, const Op& op);
std::string layer_key(const Program& program, const Compute& compute, int layer);
// Returns keys that cover all layers: of the phase, of similar phases, of the module; the most
// specific key first.
std::vector<std::string> phase_keys(const Program& program, const Compute& compute);

class Matching {
 public:
  Matching(const MeasuredStep& from, const Program& program, const Compiled& compiled,
           const Machine& machine);
  ReplayedCosts run(const std::vector<Speedup>& faster);

 private:
  using Sample = MeasuredStep::Sample;
  // Samples of one key and size, and the number of activities that use them.
  struct Pool {
    const Sample* first = nullptr;
    std::size_t size = 0, takers = 0, taken = 0;
  };
  struct Duration {
    Seconds time{};
    Origin origin = Origin::modelled;
    double of_model = 0;  // origin `modelled`: the time over the cost model's time
  };

  static std::vector<Sample>::const_iterator nearest_of(const std::vector<Sample>& samples,
                                                        Seconds size);
  void find_pools();
  Pool* pool_of(std::uint32_t node);
  Duration duration(std::uint32_t node);
  Duration from_sample(const Sample& sample, std::uint32_t node) const;
  Duration from_layers(std::uint32_t node, const Compute& compute) const;
  void add_lateness(CostTable& costs) const;

  const MeasuredStep& from_;
  const Program& program_;
  const Compiled& compiled_;
  const Machine& machine_;
  CostTable then_, now_;  // the cost model on the measured machine, and on the changed one
  std::vector<ActivityClass> classes_;                         // by node
  std::map<std::pair<std::string, std::size_t>, Pool> pools_;  // by key and position in its samples
  std::vector<Pool*> pool_;                                    // by node
};

}  // namespace polyphony::traces
