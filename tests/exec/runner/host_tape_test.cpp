// Offloading of saved activations to host memory and back, for every kind of layer, trained or not,
// recomputed or not. While offloaded, only a chunk's inputs are left on the device; the backward is
// bitwise identical.
#include "exec/runner/host_tape.h"

#include "tests/exec/chunk/tape_setups.h"
#include "tests/exec/support/tensor_ledger.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

struct Run {
  std::vector<Tensor> gradients;  // of inputs, then of parameters
  std::int64_t there = 0, away = 0, back = 0;
};

Run run(const Setup& setup, bool moves) {
  exec::Chunk chunk(setup.module, setup.layers, {}, {}, setup.options);
  torch::manual_seed(7);
  std::vector<Tensor> inputs;
  for (const auto& [rows, width] : setup.inputs)
    inputs.push_back(torch::randn({rows, width}, setup.options.dtype));
  Run result;
  TensorLedger ledger;
  const LedgerScope scope(&ledger);
  std::vector<std::int64_t> shape;
  HostTape tape;
  {
    std::optional<TapeWatch> watch;
    if (moves) watch.emplace();
    const Tensor output = chunk.forward(0, inputs, setup.input);
    if (moves) tape = watch->tape(output);
    shape = output.sizes().vec();
  }
  result.there = ledger.live().value;
  if (moves) {
    tape.to_host();
    result.away = ledger.live().value;
    tape.to_device();
    result.back = ledger.live().value;
  }
  if (setup.options.trainable || setup.options.input_grad)
    result.gradients =
        chunk.backward(0, shape.empty() ? Tensor() : torch::ones(shape, setup.options.dtype));
  for (LocalParameter& parameter : chunk.parameters())
    if (parameter.grad.defined()) result.gradients.push_back(parameter.grad.clone());
  return result;
}

bool equal_bits(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || torch::equal(a, b));
}

}  // namespace

TEST_SUITE("host tape") {
  TEST_CASE("every layer's saved activations are offloaded completely and restored") {
    int moved = 0;
    for (const Setup& setup : all_setups(torch::kFloat64)) {
      CAPTURE(setup.name);
      const Run stays = run(setup, false), goes = run(setup, true);
      CHECK(goes.there == stays.there);
      CHECK(goes.back == goes.there);
      // Inputs are counted separately; what is left is the result of the forward pass, if it is
      // saved.
      CHECK(goes.away <= goes.there / 10);
      moved += goes.away < goes.there ? 1 : 0;
      REQUIRE(goes.gradients.size() == stays.gradients.size());
      for (std::size_t g = 0; g < goes.gradients.size(); ++g)
        CHECK(equal_bits(goes.gradients[g], stays.gradients[g]));
    }
    CHECK(moved > 100);
  }

  TEST_CASE("earlier tensors stay, dropped ones are not moved") {
    const Tensor before = torch::ones({1000});
    Tensor kept;
    HostTape tape;
    {
      TapeWatch watch;
      kept = before * 2;
      const Tensor returned = (kept + 1).sum();
      tape = watch.tape(returned);
    }
    CHECK(tape.bytes() == 4000);  // kept alone
    tape.to_host();
    CHECK(before.sum().item<double>() == 1000);
    tape.to_device();
    CHECK(kept.sum().item<double>() == 2000);
  }
}
