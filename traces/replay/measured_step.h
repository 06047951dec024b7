// One measured step as a source of durations: for its own Program, and for another in which something has
// changed.
//   An activity of the other Program is looked for among the measured ones, from this very one to its kind at
//   all (traces/replay/activity_class.h). Of several of a class those of the nearest size are taken in
//   action, so that a Program that has not changed gets every time back that was its own.
//     measured   found, and the cost model makes the same time of both: its measured time
//     scaled     found, of another size or on another machine.
//                compute, update: measured · model(now) / model(then)
//                message, collective: measured + model(now) - model(then): what it took beyond the model is waking
//                up and queues, which no link shortens; · their ratio where it took less and gets shorter
//                compute of other layers than any measured op: each layer's model · measured / model of the ops
//                that held the layer
//     modelled   not found: model · measured / model of all of its kind; flows share links, the others'
//                sharing stays as measured
// Its time is the cost model's own where a kind was never seen. Waiting is never replayed: it follows from the graph.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/hardware/hardware.h"
#include "shared/hardware/pace.h"
#include "traces/replay/node_times.h"

namespace polyphony::traces {

// What the cost model reckons with.
struct Machine {
  Cluster cluster;
  HardwareProfile profile;
  std::optional<PaceModel> pace{};
};
CostTable price_on(const Machine& machine, const Program& program, const Compiled& compiled);

// A class of ops that is so many times as fast: a label, or its first words ("language",
// "language forward", "update").
struct Speedup {
  std::string what;
  double factor = 1;
};
// The labels of a Program's activities, sorted.
std::vector<std::string> class_labels(const Program& program);
bool is_of(const std::string& label, const std::string& what);

enum class Origin : std::uint8_t { measured, scaled, modelled };
inline constexpr std::size_t kOrigins = 3;
const char* name(Origin origin);

// Seconds of activities by where their durations are from.
using Mixture = std::map<std::string, std::array<Seconds, kOrigins>>;  // by label
std::array<Seconds, kOrigins> total(const Mixture& mixture);

struct ReplayedCosts {
  CostTable costs;
  Mixture mixture;
};

class MeasuredStep {
 public:
  // `machine`: as it was measured.
  MeasuredStep(const Program& program, const Compiled& compiled, const Timeline& timeline,
               const Machine& machine);

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
  using Samples = std::map<std::string, std::vector<Sample>>;  // by key; by model, then in order

  void add_compute(const Program& program, const Compute& compute, const Sample& sample);

  Machine machine_;
  Samples samples_;
  std::map<std::string, Sum> sums_;  // of compute by layer, phase and module; of transfers by kind
  std::map<std::string, Seconds> late_;  // by rank and stream
};

}  // namespace polyphony::traces
