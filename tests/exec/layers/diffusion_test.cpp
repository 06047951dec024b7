#include "exec/layers/diffusion.h"

#include "tests/exec/reference/reference_diffusion.h"
#include "tests/exec/support/tiny_diffusion.h"
#include "tests/exec/support/tiny_model.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

void check_same_bits(const FlowResult& a, const FlowResult& b) {
  CHECK(a.loss == b.loss);
  CHECK(torch::equal(a.conditioning, b.conditioning));
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (std::size_t i = 0; i < a.gradients.size(); ++i)
    CHECK(torch::equal(a.gradients[i], b.gradients[i]));
}

// |a − b| relative to the larger of |b| and a millionth of all gradients.
void check_near(const Tensor& a, const Tensor& b, double all) {
  const double allowed = 1e-9 * std::max(b.norm().item<double>(), 1e-6 * all);
  CHECK((a - b).norm().item<double>() <= allowed);
}

// Loss and gradients of a microbatch, item by item.
FlowResult reference(const Module& module, FlowChain& names, const FlowWork& work) {
  Tensors values;
  for (const LocalParameter* parameter : names.parameters())
    values[parameter->spec.name] = parameter->value.clone().requires_grad_();
  const Tensor conditioning = work.conditioning.clone().requires_grad_();
  Tensor loss = torch::zeros({}, torch::kFloat64);
  std::int64_t first = 0, first_read = 0;
  for (std::size_t i = 0; i < work.input.times.size(); ++i) {
    const std::int64_t rows = work.input.latent_lengths[i], read = work.input.condition_lengths[i];
    loss =
        loss + reference_flow_error(module, values,
                                    {work.input.latents.narrow(0, first, rows),
                                     work.input.noise.narrow(0, first, rows), work.input.times[i],
                                     conditioning.narrow(0, first_read, read)});
    first += rows;
    first_read += read;
  }
  loss = loss * (work.input.latent_scale * module.loss_weight);
  loss.backward();
  FlowResult result{loss.item<double>(), conditioning.grad(), {}};
  for (const LocalParameter* parameter : names.parameters())
    result.gradients.push_back(values.at(parameter->spec.name).grad());
  return result;
}

}  // namespace

TEST_SUITE("diffusion") {
  TEST_CASE("loss and gradients equal those of the plain reference") {
    for (const int condition : {14, 0}) {
      const Module module = tiny_diffusion(condition);
      FlowWork work = uneven_flow(module, torch::kFloat64);
      if (condition == 0) work.conditioning = torch::zeros({16, 0}, torch::kFloat64);
      FlowChain chain(module, kWhole, flow_options(torch::kFloat64), nullptr);
      const FlowResult found = run(chain, work);
      const FlowResult expected = reference(module, chain, work);
      CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-12));
      double all = 0;
      for (const Tensor& gradient : expected.gradients) all += gradient.pow(2).sum().item<double>();
      for (std::size_t i = 0; i < found.gradients.size(); ++i) {
        CAPTURE(chain.parameters()[i]->spec.name);
        check_near(found.gradients[i], expected.gradients[i], std::sqrt(all));
        CHECK(found.gradients[i].abs().max().item<double>() > 1e-9);  // perturbed: none is zero
      }
      if (condition > 0) check_near(found.conditioning, expected.conditioning, std::sqrt(all));
    }
  }

  TEST_CASE("split, chunked and recomputed backwards are bitwise identical") {
    const Module module = tiny_diffusion();
    const ChunkOptions options = flow_options(torch::kFloat32);
    const FlowWork work = uneven_flow(module, torch::kFloat32);
    FlowChain plain(module, kWhole, options, nullptr);
    const FlowResult expected = run(plain, work);
    FlowChain split(module, kWhole, options, nullptr);
    check_same_bits(run(split, work, true), expected);
    for (const std::vector<LayerRange>& cut : {kTwo, kCut}) {
      FlowChain chain(module, cut, options, nullptr);
      check_same_bits(run(chain, work, true), expected);
    }
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      ChunkOptions again = options;
      again.recompute = recompute;
      for (const bool split_too : {false, true}) {
        FlowChain recomputing(module, kTwo, again, nullptr);
        check_same_bits(run(recomputing, work, split_too), expected);
      }
    }
  }

  TEST_CASE("a frozen module passes the same gradient on; unwanted gradients are not computed") {
    const Module module = tiny_diffusion();
    const FlowWork work = uneven_flow(module, torch::kFloat64);
    ChunkOptions options = flow_options(torch::kFloat64);
    FlowChain plain(module, kTwo, options, nullptr);
    const FlowResult expected = run(plain, work);
    options.edge_grad = false;
    FlowChain first(module, kTwo, options, nullptr);
    const FlowResult without = run(first, work);
    CHECK_FALSE(without.conditioning.defined());
    for (std::size_t i = 0; i < expected.gradients.size(); ++i)
      CHECK(torch::equal(without.gradients[i], expected.gradients[i]));
    options.edge_grad = true;
    options.trainable = false;
    FlowChain frozen(module, kTwo, options, nullptr);
    frozen.forward(0, work);
    CHECK(torch::equal(frozen.backward(0), expected.conditioning));
  }

  TEST_CASE("microbatches without items, and gradients of several microbatches") {
    const Module module = tiny_diffusion();
    const ChunkOptions options = flow_options(torch::kFloat64);
    FlowChain chain(module, kTwo, options, nullptr);
    const FlowWork nothing = flow_work(module, {}, torch::kFloat64);
    CHECK(chain.forward(0, nothing).item<double>() == 0);
    CHECK(chain.backward(0).size(0) == 0);
    for (const LocalParameter* parameter : chain.parameters())
      CHECK(parameter->grad.abs().sum().item<double>() == 0);
    // One microbatch of two items, or each item in a microbatch of its own.
    const FlowWork both = flow_work(module, {{16, 5}, {6, 3}}, torch::kFloat64);
    const FlowResult together = run(chain, both);
    FlowChain apart(module, kTwo, options, nullptr);
    double loss = 0;
    for (std::int64_t i = 0; i < 2; ++i) {
      FlowWork one = both;
      const auto item = static_cast<std::size_t>(i);
      const std::int64_t first = i * 16, first_read = i * 5;
      one.input.latent_lengths = {both.input.latent_lengths[item]};
      one.input.condition_lengths = {both.input.condition_lengths[item]};
      one.input.times = {both.input.times[item]};
      one.input.latents = both.input.latents.narrow(0, first, one.input.latent_lengths[0]);
      one.input.noise = both.input.noise.narrow(0, first, one.input.latent_lengths[0]);
      one.conditioning = both.conditioning.narrow(0, first_read, one.input.condition_lengths[0]);
      loss += apart.forward(7, one).item<double>();
      apart.backward(7);
    }
    CHECK(loss == doctest::Approx(together.loss).epsilon(1e-13));
    for (std::size_t i = 0; i < together.gradients.size(); ++i)
      check_near(apart.parameters()[i]->grad, together.gradients[i],
                 together.gradients[0].norm().item<double>());
  }

  TEST_CASE("a language module takes gradients from both losses") {
    // Text of two samples; the first conditions an item. The slopes of the sum of both losses along
    // random directions of each of the language module's tensors: differences over 2h = 2e-5, error
    // h²/6 · third derivative and 1e-16/h of rounding.
    const TestWork text = make_work({{{}, 5, 2}, {{}, 3, 3}}, torch::kFloat64, 3);
    Module module = tiny_diffusion(16);
    FlowWork work = flow_work(module, {{9, 5}}, torch::kFloat64);
    const ChunkOptions options = flow_options(torch::kFloat64);
    Chunk blocks(tiny_language(), {0, 3}, {}, {}, options);
    Chunk head(tiny_language(), {3, 4}, {}, {}, options);
    FlowChain diffusion(module, kTwo, options, nullptr);
    const auto forward = [&](std::uint64_t id) {
      const Tensor x = blocks.forward(id, torch::zeros({0, 16}, torch::kFloat64), text.input);
      work.conditioning = x.narrow(0, 0, 5);
      return std::pair(x, head.forward(id, x, text.input) + diffusion.forward(id, work));
    };
    const Tensor x = forward(0).first;
    Tensor gradient = head.backward(0, Tensor()).front();
    gradient.narrow(0, 0, 5).add_(diffusion.backward(0));
    blocks.backward(0, gradient);
    const double h = 1e-5;
    for (LocalParameter& parameter : blocks.parameters()) {
      const Tensor direction = torch::randn_like(parameter.value);
      const auto loss_at = [&](double step) {
        parameter.value.add_(direction, step);
        const double loss = forward(1).second.item<double>();
        parameter.value.sub_(direction, step);
        blocks.drop(1);
        head.drop(1);
        for (std::size_t i = 0; i < diffusion.size(); ++i) diffusion[i].drop(1);
        return loss;
      };
      const double slope = (parameter.grad * direction).sum().item<double>();
      CAPTURE(parameter.spec.name);
      CHECK(std::abs((loss_at(h) - loss_at(-h)) / (2 * h) - slope) < 1e-6 * std::abs(slope) + 1e-9);
    }
  }

  TEST_CASE("bf16 is as close to fp64 as its roundings allow") {
    // Relative to fp64 from the same bf16 weights, latents and noise: u = 2⁻⁸, a block stores 16
    // values one after another (two norms, qkv, attention, out, gate; norm, query, attention, out,
    // sum; norm, fc1, activation, fc2, gate), three of them, with 2 at each end: √52·u for the
    // loss, independent roundings. Gradients: fp32's error times 2¹⁶, both one draw of random
    // signs: 4 between them.
    const Module module = tiny_diffusion();
    const auto run_in = [&](torch::Dtype dtype) {
      FlowWork work = uneven_flow(module, torch::kBFloat16);
      work.input.latents = work.input.latents.to(dtype);
      work.input.noise = work.input.noise.to(dtype);
      work.conditioning = work.conditioning.to(dtype);
      FlowChain chain(module, kTwo, flow_options(dtype), nullptr);
      for (LocalParameter* parameter : chain.parameters())
        parameter->value.copy_(initial_value(parameter->spec, {}, 1, torch::kBFloat16, true));
      return run(chain, work);
    };
    const FlowResult half = run_in(torch::kBFloat16), single = run_in(torch::kFloat32),
                     wide = run_in(torch::kFloat64);
    CHECK(std::abs(half.loss / wide.loss - 1) < std::sqrt(52.0) / 256);
    double half_error = 0, single_error = 0, all = 0;
    for (std::size_t i = 0; i < wide.gradients.size(); ++i) {
      CHECK((half.gradients[i].scalar_type() == torch::kFloat32));
      half_error +=
          (half.gradients[i].to(torch::kFloat64) - wide.gradients[i]).pow(2).sum().item<double>();
      single_error +=
          (single.gradients[i].to(torch::kFloat64) - wide.gradients[i]).pow(2).sum().item<double>();
      all += wide.gradients[i].pow(2).sum().item<double>();
    }
    MESSAGE("gradients: bf16 " << std::sqrt(half_error / all) << ", fp32 "
                               << std::sqrt(single_error / all));
    CHECK(std::sqrt(half_error) < 4 * 65536 * std::sqrt(single_error));
    CHECK(half_error < 0.01 * all);
  }
}
