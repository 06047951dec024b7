#include "exec/worker/microbench.h"

#include <torch/version.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "exec/system/process.h"

namespace polyphony::exec {
namespace {

using nlohmann::json;

// Returns the median seconds of one call, from batches of calls until the time is used up.
double median_seconds(Seconds budget, const std::function<void()>& call) {
  call();
  std::vector<double> samples;
  const Seconds end = steady_now() + budget;
  while (samples.size() < 5 || (steady_now() < end && samples.size() < 2000)) {
    const Seconds start = steady_now();
    call();
    samples.push_back((steady_now() - start).count());
  }
  std::nth_element(samples.begin(),
                   samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                   samples.end());
  return samples[samples.size() / 2];
}

// Times a third of a layer's three GEMMs in bf16, the weight gradient accumulated in fp32
// (exec/autograd/wide_gradient.h).
double narrow_seconds(Seconds budget, const torch::Tensor& a, const torch::Tensor& b) {
  const torch::Tensor x = a.to(torch::kBFloat16), weight = b.to(torch::kBFloat16);
  torch::Tensor y = torch::empty_like(x), gradient = torch::zeros_like(b);
  return median_seconds(budget,
                        [&] {
                          at::mm_out(y, x, weight);
                          at::mm_out(y, x, weight.t());
                          gradient.addmm_(y.to(torch::kFloat32).t(), x.to(torch::kFloat32));
                        }) /
         3;
}

double attention_backward_seconds(Seconds budget, const torch::Tensor& values) {
  const torch::AutoGradMode enable(true);
  const torch::Tensor q = values.clone().set_requires_grad(true),
                      k = values.clone().set_requires_grad(true),
                      v = values.clone().set_requires_grad(true);
  const torch::Tensor output = at::scaled_dot_product_attention(q, k, v),
                      gradient = torch::rand_like(output);
  return median_seconds(budget, [&] {
    torch::autograd::grad({output}, {q, k, v}, {gradient}, /*retain_graph=*/true);
  });
}

// Makes the same number of calls on every rank, or a collective would hang. The number is derived
// from rank 0's first, timed calls.
struct CollectiveTime {
  double median = 0,
         processor =
             0;  // seconds per call: wall time, and processor time of all threads of this rank
};
CollectiveTime collective_time(Communicator& group, Seconds budget,
                               const std::function<void()>& call) {
  call();
  const Seconds start = steady_now();
  for (int i = 0; i < 3; ++i) call();
  torch::Tensor calls = torch::tensor(
      std::clamp(budget.count() / std::max(1e-6, (steady_now() - start).count() / 3), 5.0, 500.0),
      torch::kFloat64);
  group.all_reduce(calls, Reduction::max);
  const auto count = static_cast<std::size_t>(calls.item<double>());
  std::vector<double> samples(count);
  const Seconds processor = process_processor_now();
  for (double& sample : samples) {
    const Seconds before = steady_now();
    call();
    sample = (steady_now() - before).count();
  }
  const double each = (process_processor_now() - processor).count() / static_cast<double>(count);
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count / 2),
                   samples.end());
  return {samples[count / 2], each};
}

}  // namespace

std::string run_microbench(Transport& transport, const MicrobenchOptions& options) {
  const torch::NoGradGuard no_grad;
  std::string lines = json{{"record", "machine"},
                           {"format", 1},
                           {"software", std::string("torch ") + TORCH_VERSION + ", Gloo"}}
                          .dump() +
                      "\n";
  const auto add = [&](const json& record) { lines += record.dump() + "\n"; };
  const std::vector<std::int64_t> squares{32, 64, 128, 256, 512};
  const std::vector<std::int64_t> message_sizes{1 << 10, 16 << 10, 256 << 10, 4 << 20};
  const int total = static_cast<int>(4 * squares.size() + 3 + 4 + 10 +
                                     (transport.world_size() > 1 ? 2 * message_sizes.size() : 0));
  int done = 0;
  const auto advance = [&] {
    if (options.progress) options.progress(++done, total);
  };
  for (const std::int64_t n : squares) {
    for (const std::int64_t m : {std::int64_t{256}, std::int64_t{2048}}) {
      const torch::Tensor a = torch::rand({m, n}), b = torch::rand({n, n});
      torch::Tensor c = torch::empty({m, n});
      add({{"record", "gemm"},
           {"m", m},
           {"n", n},
           {"k", n},
           {"seconds", median_seconds(options.per_point, [&] { at::mm_out(c, a, b); })}});
      advance();
      add({{"record", "gemm"},
           {"format", "bf16"},
           {"m", m},
           {"n", n},
           {"k", n},
           {"seconds", narrow_seconds(options.per_point, a, b)}});
      advance();
    }
  }
  for (const std::int64_t bytes :
       {std::int64_t{256} << 10, std::int64_t{4} << 20, std::int64_t{64} << 20}) {
    const torch::Tensor from = torch::rand({bytes / 4});
    torch::Tensor to = torch::empty_like(from);
    add({{"record", "memcpy"}, {"bytes", bytes}, {"seconds", median_seconds(options.per_point, [&] {
                                                    to.copy_(from);
                                                  })}});
    advance();
  }
  for (const std::int64_t tokens : {std::int64_t{32}, std::int64_t{256}}) {
    constexpr std::int64_t kBatch = 32, kHeads = 4, kWidth = 32;
    const torch::Tensor q = torch::rand({kBatch, kHeads, tokens, kWidth});
    const double flops = 4.0 * static_cast<double>(kBatch * kHeads * tokens * tokens * kWidth);
    add({{"record", "attention"},
         {"flops", flops},
         {"seconds",
          median_seconds(options.per_point, [&] { at::scaled_dot_product_attention(q, q, q); })}});
    advance();
    add({{"record", "attention"},
         {"backward", true},
         {"flops", 2.5 * flops},
         {"seconds", attention_backward_seconds(options.per_point, q)}});
    advance();
  }
  for (const std::int64_t rows : {std::int64_t{256}, std::int64_t{4096}}) {
    constexpr std::int64_t kWidth = 512;
    const torch::Tensor x = torch::rand({rows, kWidth}), y = torch::rand({rows, kWidth}),
                        weight = torch::rand({kWidth});
    torch::Tensor to = torch::empty_like(x);
    const std::int64_t one = rows * kWidth * 4;  // bytes of one tensor
    const auto pass = [&](std::int64_t sides, const std::function<void()>& call) {
      add({{"record", "pass"},
           {"bytes", sides * one},
           {"seconds", median_seconds(options.per_point, call)}});
      advance();
    };
    pass(3, [&] { at::add_out(to, x, y); });
    pass(3, [&] { at::mul_out(to, x, y); });
    pass(2, [&] { at::silu_out(to, x); });
    pass(2, [&] { at::gelu_out(to, x); });
    pass(2, [&] { at::rms_norm(x, {kWidth}, weight); });
  }
  if (transport.world_size() > 1) {
    std::vector<Rank> all;
    for (int r = 0; r < transport.world_size(); ++r) all.emplace_back(static_cast<std::size_t>(r));
    const std::unique_ptr<Communicator> world = transport.make_group("microbench", all);
    for (const std::int64_t bytes : message_sizes) {
      torch::Tensor data = torch::zeros({bytes / 4});
      // A round trip between ranks 0 and 1; half of it is one message.
      const CollectiveTime round_trip = collective_time(*world, options.per_point, [&] {
        const Rank self = transport.rank();
        if (self.value == 0) {
          transport.send(data, Rank(1), 1);
          transport.receive(data, Rank(1), 2);
        } else if (self.value == 1) {
          transport.receive(data, Rank(0), 1);
          transport.send(data, Rank(0), 2);
        }
      });
      add({{"record", "message"}, {"bytes", bytes}, {"seconds", round_trip.median / 2}});
      advance();
      const CollectiveTime reduce = collective_time(
          *world, options.per_point, [&] { world->all_reduce(data, Reduction::sum); });
      add({{"record", "all_reduce"},
           {"ranks", transport.world_size()},
           {"bytes", bytes},
           {"seconds", reduce.median},
           {"processor_seconds", reduce.processor}});
      advance();
    }
  }
  return transport.rank().value == 0 ? lines : "";
}

}  // namespace polyphony::exec
