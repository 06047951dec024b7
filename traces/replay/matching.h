// How activities of a Program find theirs among those of a measured step, and what time they are given:
// internal to traces/replay/measured_step.cpp, whose header says the rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/replay/activity_class.h"
#include "traces/replay/measured_step.h"

namespace polyphony::traces {

// Keys of MeasuredStep::sums_ and late_.
// Of the step scalars a key of their own: a few bytes say nothing of gradients.
std::string kind_key(const Program& program, const Node& node);
std::string stream_key(const Program& program, const Op& op);
std::string layer_key(const Program& program, const Compute& compute, int layer);
// Of all layers: the phase's, that of phases like it, the module's, the narrowest first.
std::vector<std::string> phase_keys(const Program& program, const Compute& compute);

class Matching {
 public:
  Matching(const MeasuredStep& from, const Program& program, const Compiled& compiled,
           const Machine& machine);
  ReplayedCosts run(const std::vector<Speedup>& faster);

 private:
  using Sample = MeasuredStep::Sample;
  // Samples of one key and size, and how many activities take from them.
  struct Pool {
    const Sample* first = nullptr;
    std::size_t size = 0, takers = 0, taken = 0;
  };
  struct Duration {
    Seconds time{};
    Origin origin = Origin::modelled;
    double of_model = 0;  // of the modelled ones: their time over the model's
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
  CostTable then_, now_;                // its model on the measured machine, and on the changed one
  std::vector<ActivityClass> classes_;  // by node
  std::map<std::pair<std::string, std::size_t>, Pool> pools_;  // by key and position in its samples
  std::vector<Pool*> pool_;                                    // by node
};

}  // namespace polyphony::traces
