// Parity: training over ranks, in any layout, is what tests/exec/reference/reference.h computes for whole
// weights and lone samples.
//   A case names a layout and what trains on what. run_case() trains on it with the executor,
//   gathers the shards on rank 0 through Parameter::cut, and compares: loss, global norm, every
//   gradient (from AdamW's first moment after step 1, m = (1−β1)·clip·g), every parameter after the
//   update, the predictions of an evaluation afterwards. It also checks: copies of a parameter are
//   equal bits; each stream ran the Program's ops in order, none before what it waits for; inner
//   collectives are expand()'s (RunnerOptions::check_collectives); every message and collective
//   moves the Program's bytes (tests/exec/support/counted_transport.h); the peak of each rank's tensors
//   over a step is the Program's within 2 % (tests/exec/parity/parity_memory.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/transport/communicator.h"
#include "shared/scenario/scenario.h"
#include "tests/exec/device_double/queued_device.h"

namespace polyphony::exec::testing {

struct Case {
  std::string name;  // unique
  Layout layout;
  std::vector<ModuleKind> frozen;
  std::vector<ModuleKind> lora;
  bool diffusion = false;  // a diffusion module behind the language module, on some samples
  bool deep = false;       // features of an inner vision layer enter an inner language layer
  int experts = 0;         // of the language module; 2 a token, and a shared one
  bool audio = false;      // an audio encoder beside that of images, and clips
  std::function<void(Model&)> variant;  // changes the modules; may be empty
  bool text_only = false;               // no sample has an image or a clip
  bool language_only = false;           // nor has the model an encoder
  NumberFormat precision = NumberFormat::fp64;
  double clip_norm = 0.5;  // below the norm of these models' gradients: clips
  int steps = 1;
  std::uint64_t drawn = 0;  // not 0: samples of every step are drawn by chance, by this seed
};

// All layouts × conditions (tests/exec/parity/parity_cases.cpp); those of fp32; long ones; those to run
// over processes too.
std::vector<Case> parity_cases();
// Published language models, scaled down, each on layouts of every kind.
std::vector<Case> published_cases();
// Their layouts: of a chain of 3 + 4 blocks, or of 4 behind an encoder elsewhere; with experts also
// those that deal them out, with tied embeddings none that shards parameters.
std::vector<Case> model_layouts(bool sparse, bool tied);
std::vector<Case> single_precision_cases();
// Every mask, alone and with every deal of tokens (tests/exec/parity/parity_masks.cpp).
std::vector<Case> mask_cases();
// Under a planner (tests/exec/parity/parity_planned.cpp).
std::vector<Case> planned_cases();
std::vector<Case> searched_cases();
std::vector<Case> offload_cases();
std::vector<Case> curve_cases();
const Case& named(const std::vector<Case>& cases, const std::string& name);
std::vector<Case> gloo_cases();
// One for each seed from `first` on (or from POLYPHONY_FIRST_SEED) whose draw the executor runs; of up to eight ranks.
std::vector<Case> random_cases(std::uint64_t first, std::uint64_t count);
// How many seeds to try: POLYPHONY_SEEDS (scripts/nightly), else so many.
std::uint64_t seeds_asked(std::uint64_t in_ci);

// A change of the language module, which then has so many experts (0: as before), that the matrix
// pairs with every other feature (tests/exec/parity/parity_models.cpp).
struct ModelFeature {
  std::string name;
  int experts;
  std::function<void(Module&)> change;
};
const std::vector<ModelFeature>& model_features();

// Every feature alone and in pairs (tests/exec/parity/parity_matrix.cpp); `refused`: pairs that no layout
// can have.
struct Matrix {
  std::vector<Case> cases;
  int refused = 0;
};
Matrix parity_matrix();

// What a case trains on.
Scenario make_scenario(const Case& c);
std::unique_ptr<Dataset> make_dataset(const Case& c, const Scenario& scenario);

// Errors relative to the reference, the worst over steps and tensors.
struct Outcome {
  double loss = 0;
  double norm = 0;
  double gradient = 0;  // ‖g − g_ref‖ ÷ max(‖g_ref‖, 1e-6·‖all gradients‖)
  double parameter = 0;
  std::string worst_gradient, worst_parameter;  // their tensors
  std::string fault;  // anything that is not a matter of degree; empty: none
  double memory = 0;  // |a rank's peak ÷ the Program's − 1|
  std::string worst_memory = {};
  std::vector<QueuedCounts> counts = {};  // of rank 0's steps, on a queued device
};
// Collective over the layout's ranks; the outcome is rank 0's.
Outcome run_case(Transport& transport, const Case& c, torch::Device device = torch::kCPU);
Outcome run_in_process(const Case& c);
// Each rank on a queued device of its own (tests/exec/device_double/queued_device.h), whose exchanges are queued, too.
// What its memory holds is not compared.
Outcome run_queued(const Case& c);

// What is out of tolerance, in words; empty: nothing.
std::string complaint(const Case& c, const Outcome& outcome);

}  // namespace polyphony::exec::testing
