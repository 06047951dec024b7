// Not a test: the measurements of scripts/bench_executor inside one rank, on
// scenarios/bench_executor.json:
//   exec_test --test-case="backward bench" --no-skip      (or "step overhead bench", "step flops")
#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/system/process.h"
#include "exec/transport/in_process.h"
#include "exec/worker/prepare.h"
#include "shared/chunk/expand.h"
#include "shared/lower/lower.h"
#include "shared/program/expand_op.h"
#include "tests/shared/support/mutate.h"

namespace polyphony::exec::testing {
namespace {

using torch::Tensor;

Prepared bench_scenario() {
  LaunchEnv launch;
  launch.source = "bench";
  return std::get<Prepared>(prepare("scenarios/bench_executor.json", test::file_text, launch,
                                    "nowhere", Bytes(std::int64_t{64} << 30)));
}

Program first_step(const Prepared& prepared) {
  const Scenario& scenario = prepared.scenario;
  return lower(scenario, *scenario.layout, make_plan(scenario, *scenario.layout),
               prepared.dataset->batch(0));
}

// The runner's chunks of the whole model, driven by hand.
class Chain {
 public:
  explicit Chain(const std::vector<Chunk*>& chunks) : chunks_(chunks) {}

  void forward(const WorkInput& data) {
    Tensor x;
    for (Chunk* chunk : chunks_) x = chunk->forward(0, x, data);
  }
  void backward() {
    Tensor gradient;
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
      gradient = only((*chunk)->backward(0, gradient));
  }
  void backward_split() {
    Tensor gradient;
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
      gradient = only((*chunk)->backward_input(0, gradient));
    for (Chunk* chunk : chunks_) chunk->backward_weight(0);
  }

 private:
  static Tensor only(const std::vector<Tensor>& gradients) {
    return gradients.empty() ? Tensor() : gradients.front();
  }
  std::vector<Chunk*> chunks_;
};

// Time of this thread inside LibTorch's operators during the lifetime of an object. Nested
// operators count once.
class OperatorTime {
 public:
  OperatorTime() {
    now_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION}));
  }
  ~OperatorTime() {
    at::removeCallback(handle_);
    now_ = nullptr;
  }
  OperatorTime(const OperatorTime&) = delete;
  OperatorTime& operator=(const OperatorTime&) = delete;

  double seconds() const { return total_.count(); }
  int operators() const { return operators_; }

 private:
  static bool counts(const at::RecordFunction& function) {
    return std::string_view(function.name()).starts_with("aten::");
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    if (counts(function) && now_->depth_++ == 0) {
      ++now_->operators_;
      now_->start_ = steady_now();
    }
    return nullptr;
  }
  static void end(const at::RecordFunction& function, at::ObserverContext*) {
    if (counts(function) && --now_->depth_ == 0) now_->total_ += steady_now() - now_->start_;
  }

  static thread_local OperatorTime* now_;
  at::CallbackHandle handle_;
  int depth_ = 0, operators_ = 0;
  Seconds start_{0}, total_{0};
};
thread_local OperatorTime* OperatorTime::now_ = nullptr;

// What the measurement adds to one operator, outside of it except for half a clock reading.
double watching_seconds() {
  constexpr int kTries = 5, kCalls = 4000;
  const auto calls = [] {
    const Seconds start = steady_now();
    for (int i = 0; i < kCalls; ++i) at::empty({0});
    return (steady_now() - start).count() / kCalls;
  };
  double plain = 1, watched = 1;
  for (int i = 0; i < kTries; ++i) {
    plain = std::min(plain, calls());
    const OperatorTime now;
    watched = std::min(watched, calls());
  }
  return watched - plain;
}

// Time of the gradient norm, our own loop over all gradients.
double norm_seconds(Runner& runner) {
  const Seconds start = steady_now();
  for (const HeldParameters* store : runner.stores())
    if (store->trains())
      CHECK(store->squared_norm().item<double>() == 0);  // the step has cleared them
  return (steady_now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// FLOPs as the simulator counts them.
double gemm_flops(const Program& program) {
  double flops = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    for (const Kernel& kernel : expand(program, OpId(i)).kernels)
      if (kernel.kind == KernelKind::gemm) flops += kernel.flops.value;
  return flops;
}

}  // namespace

// The split backward does every input part first, then every weight part, as a schedule that fills
// bubbles with weight parts would. The two alternate, so that a slow machine slows both.
TEST_CASE("backward bench" * doctest::skip()) {
  constexpr int kPairs = 7;
  at::set_num_threads(1);
  keep_freed_memory();  // as the worker does
  const Prepared prepared = bench_scenario();
  const Program program = first_step(prepared);
  const WorkInput input =
      pack_inputs(program, Rank(0), *prepared.dataset, {prepared.scenario.data.seed, 0})
          .begin()
          ->second;
  const std::unique_ptr<Transport> transport = std::move(make_in_process(1).front());
  Runner runner(*transport, prepared.scenario, program, {});
  Chain chain(runner.chunks());
  std::vector<double> plain, split;
  for (int i = 0; i < 2 * kPairs + 2; ++i) {
    const bool splits = (i + i / 2) % 2 == 1;  // plain, split, split, plain, ...
    chain.forward(input);
    const Seconds start = steady_now();
    splits ? chain.backward_split() : chain.backward();
    const double taken = (steady_now() - start).count();
    if (i >= 2) (splits ? split : plain).push_back(taken);
  }
  std::printf("backward plain %.6f s  split %.6f s\n", median(plain), median(split));
}

// Time of a step besides tensor work (LibTorch's operators and the gradient norm) and the
// measurement: the runner, planning of rows, autograd's bookkeeping.
TEST_CASE("step overhead bench" * doctest::skip()) {
  constexpr int kWarmUp = 2, kSteps = 5;
  at::set_num_threads(1);
  keep_freed_memory();
  const Prepared prepared = bench_scenario();
  const Program program = first_step(prepared);
  const std::map<WorkId, WorkInput> inputs =
      pack_inputs(program, Rank(0), *prepared.dataset, {prepared.scenario.data.seed, 0});
  const std::unique_ptr<Transport> transport = std::move(make_in_process(1).front());
  Runner runner(*transport, prepared.scenario, program, {});
  const double watching = watching_seconds();
  std::vector<double> steps, outside;
  int operators = 0;
  for (int i = 0; i < kWarmUp + kSteps; ++i) {
    const OperatorTime inside;
    const Seconds start = steady_now();
    runner.train_step(
        program, [&](WorkId work) -> const WorkInput& { return inputs.at(work); }, 1e-3);
    const double taken = (steady_now() - start).count();
    operators = inside.operators();
    const double tensors = inside.seconds() + norm_seconds(runner);
    if (i < kWarmUp) continue;
    steps.push_back(taken);
    outside.push_back(taken - tensors - operators * watching);
  }
  std::printf("step %.6f s  outside tensor work %.6f s  operators %d of %.2f us watching\n",
              median(steps), median(outside), operators, watching * 1e6);
}

TEST_CASE("step flops" * doctest::skip()) {
  std::printf("gemm flops of a step %.0f\n", gemm_flops(first_step(bench_scenario())));
}

}  // namespace polyphony::exec::testing
