// Provides the durations of one measured step to its own Program, or to another Program in which
// something has changed.
//
// For each activity of the other Program, the corresponding measured activity is found, from the
// same activity to any activity of its kind (traces/replay/activity_class.h). If several activities
// of a class match, those of the nearest size are used in turn, so that an unchanged Program gets
// back exactly its own times. Origins of a duration:
//
//   measured   the activity was found, and the cost model predicts the same time for both: its
//              measured time is used
//   scaled     the activity was found, with another size or on another machine.
//              compute, update: measured · model(now) / model(then)
//              message, collective: measured + model(now) - model(then), because the time beyond
//              the model is waking up and queues, which no link shortens. If the measured time was
//              below the model and the new time is shorter: measured · model(now) / model(then)
//              compute of a range of layers that no measured op has: the sum over its layers of
//              model · measured / model of the ops that contained the layer
//   modelled   the activity was not found: model · measured / model over all activities of its
//              kind. Flows share links; the sharing with other flows stays as measured
//
// If a kind was never measured, its time is the cost model's time. Waiting is never replayed: it
// follows from the graph.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/enum_names.h"
#include "shared/hardware/hardware.h"
#include "shared/hardware/pace.h"
#include "traces/replay/node_times.h"

namespace polyphony::traces {

using polyphony::name;  // of the enums below

// The machine for the cost model.
struct Machine {
  Cluster cluster;
  HardwareProfile profile;
  std::optional<PaceModel> pace{};
};
// Returns the cost model's times of the Program on the machine.
CostTable price_on(const Machine& machine, const Program& program, const Compiled& compiled);

// Divides the times of a class of ops by `factor`. `what` is a label or its first words
// ("language", "language forward", "update").
struct Speedup {
  std::string what;
  double factor = 1;
};
// Returns the labels of all activities of a Program, sorted.
std::vector<std::string> class_labels(const Program& program);
// Returns true if `what` is `label` or its first words.
bool is_of(const std::string& label, const std::string& what);

enum class Origin : std::uint8_t { measured, scaled, modelled };
constexpr auto names(Origin) { return names_of<Origin>("measured", "scaled", "modelled"); }
inline constexpr std::size_t kOrigins = 3;

// Total seconds of the activities by the origin of their durations.
using Mixture = std::map<std::string, std::array<Seconds, kOrigins>>;  // by label
std::array<Seconds, kOrigins> total(const Mixture& mixture);

struct ReplayedCosts {
  CostTable costs;
  Mixture mixture;
};

class MeasuredStep {
 public:
  // `timeline` is complete; `machine` is the machine on which it was measured.
  MeasuredStep(const Program& program, const Compiled& compiled, const Timeline& timeline,
               const Machine& machine);

  // Returns the durations of the activities of `program` on `machine`, with the `faster` classes
  // sped up.
  ReplayedCosts costs_of(const Program& program, const Compiled& compiled, const Machine& machine,
                         const std::vector<Speedup>& faster = {}) const;

 private:
  friend class Matching;
  struct Sample {
    Seconds time{}, model{};
    std::uint32_t order = 0;
  };
  struct Sum {
    Seconds time{}, model{};
    std::optional<double> ratio() const;
  };
  using Samples =
      std::map<std::string, std::vector<Sample>>;  // by key; sorted by model, then order

  void add_compute(const Program& program, const Compute& compute, const Sample& sample);

  Machine machine_;
  Samples samples_;
  std::map<std::string, Sum> sums_;      // compute by layer, phase and module; transfers by kind
  std::map<std::string, Seconds> late_;  // by rank and stream
};

}  // namespace polyphony::traces
