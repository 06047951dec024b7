// Parity: distributed training in any layout computes the same as tests/exec/reference/reference.h
// does with whole weights and single samples.
//   A case names a layout, a model and data. run_case() trains it with the executor, gathers the
//   shards on rank 0 through Parameter::cut, and compares: loss, global norm, every gradient (from
//   AdamW's first moment after step 1, m = (1−β1)·clip·g), every parameter after the update, and
//   the predictions of an evaluation afterwards.
//
//   It also checks that copies of a parameter are bitwise equal; that each stream ran the Program's
//   ops in order, none before the ops it waits for; that inner collectives are those of expand()
//   (RunnerOptions::check_collectives); that every message and collective moves the Program's bytes
//   (tests/exec/support/counted_transport.h); and that the peak of each rank's tensors over a step
//   is the Program's within 2 % (tests/exec/parity/parity_memory.h).
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
  bool diffusion = false;  // a diffusion module after the language module, on some samples
  bool deep = false;       // features of an inner vision layer enter an inner language layer
  int experts = 0;         // of the language module; 2 per token, and a shared one
  bool audio = false;      // an audio encoder in addition to that of images, and audio clips
  std::function<void(Model&)> variant;  // changes the modules; may be empty
  bool oblong = false;                  // most images have 2 × 4 or 4 × 2 patches
  bool text_only = false;               // no sample has an image or a clip
  bool language_only = false;           // and the model has no encoder
  NumberFormat precision = NumberFormat::fp64;
  Fp8Scaling fp8 = Fp8Scaling::off;
  double clip_norm = 0.5;  // below the norm of these models' gradients: clips
  int steps = 1;
  PlannerCosts planner_costs = {};
  std::uint64_t drawn = 0;  // not 0: seed with which the samples of every step are drawn
};

// All layouts × conditions (tests/exec/parity/parity_cases.cpp). Below also the cases in fp32,
// those with many steps, and those that are also run over processes.
std::vector<Case> parity_cases();
// Scaled-down versions of published language models, each on layouts of every kind.
std::vector<Case> published_cases();
// Their layouts: a chain of 3 + 4 blocks, or 4 blocks after an encoder on other ranks. With experts
// also expert parallelism; with tied embeddings no layout that shards parameters.
std::vector<Case> model_layouts(bool sparse, bool tied);
std::vector<Case> single_precision_cases();
// Every mask, alone and with every assignment of tokens (tests/exec/parity/parity_masks.cpp).
std::vector<Case> mask_cases();
// Cases with a planner (tests/exec/parity/parity_planned.cpp).
std::vector<Case> planned_cases();
std::vector<Case> searched_cases();
std::vector<Case> offload_cases();
std::vector<Case> curve_cases();
const Case& named(const std::vector<Case>& cases, const std::string& name);
std::vector<Case> gloo_cases();
// One case for each seed from `first` (or POLYPHONY_FIRST_SEED) whose draw the executor can run; up
// to eight ranks.
std::vector<Case> random_cases(std::uint64_t first, std::uint64_t count);
// Returns how many seeds to try: POLYPHONY_SEEDS (scripts/nightly), or `in_ci`.
std::uint64_t seeds_asked(std::uint64_t in_ci);
// Returns every `step`-th case, which CI runs; all cases if POLYPHONY_SEEDS is set. scripts/nightly
// also runs all cases by "parity table" and "everything, with late kernels".
std::vector<Case> sampled(std::size_t step, const std::vector<Case>& cases);

// A change of the language module that the matrix pairs with every other feature
// (tests/exec/parity/parity_models.cpp). `experts`: its number of experts (0: unchanged).
struct ModelFeature {
  std::string name;
  int experts;
  std::function<void(Module&)> change;
};
const std::vector<ModelFeature>& model_features();

// Every feature alone and in pairs (tests/exec/parity/parity_matrix.cpp); `refused`: number of
// pairs that no layout can have.
struct Matrix {
  std::vector<Case> cases;
  int refused = 0;
};
Matrix parity_matrix();

// The scenario and data set of a case.
Scenario make_scenario(const Case& c);
std::unique_ptr<Dataset> make_dataset(const Case& c, const Scenario& scenario);

// Errors relative to the reference: the largest over steps and tensors.
struct Outcome {
  double loss = 0;
  double norm = 0;
  double gradient = 0;  // ‖g − g_ref‖ ÷ max(‖g_ref‖, 1e-6·‖all gradients‖)
  double parameter = 0;
  std::string worst_gradient, worst_parameter;  // their tensors
  std::string fault;                            // a fault other than a numerical error; empty: none
  double memory = 0;                            // |a rank's peak ÷ the Program's − 1|
  std::string worst_memory = {};
  std::vector<QueuedCounts> counts = {};  // of rank 0's steps, on a queued device
  double all_gradients = 0;               // ‖g − g_ref‖ ÷ ‖g_ref‖ over all tensors together
};
// Collective over the layout's ranks; the outcome is rank 0's.
Outcome run_case(Transport& transport, const Case& c, torch::Device device = torch::kCPU);
Outcome run_in_process(const Case& c);
// Runs each rank on a queued device of its own (tests/exec/device_double/queued_device.h), whose
// exchanges are queued, too. Memory is not compared.
Outcome run_queued(const Case& c);
// Trains the case on a device for each rank, with groups that queue, as on GPUs of one's own
// (tests/exec/device_double/device_world.h).
Outcome run_on_devices(const Case& c);
// Returns the first step's Program of all ranks, with turns.
Program whole_program(const Case& c);

// Describes what is out of tolerance; empty if nothing is.
std::string complaint(const Case& c, const Outcome& outcome);

}  // namespace polyphony::exec::testing
