// The double of a GPU runs late, counts host waits, and exposes missing ordering.
#include "tests/exec/device_double/queued_device.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <doctest/doctest.h>

using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

struct Late {
  explicit Late(std::int64_t longest) { delay_kernels(longest, 7); }
  ~Late() { delay_kernels(0, 0); }
};

c10::Stream other_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

}  // namespace

TEST_SUITE("queued device") {
  TEST_CASE(
      "operators give the CPU's results, forward and backward, and the host waits only for the "
      "last") {
    const torch::Device device = queued_device(0);
    torch::manual_seed(1);
    const Tensor x = torch::randn({5, 8}), w = torch::randn({8, 8});
    const auto loss = [](const Tensor& rows, const Tensor& matrix) {
      const Tensor hidden = torch::gelu(torch::layer_norm(rows.matmul(matrix), {8}));
      return torch::softmax(torch::cat({hidden, rows}, 1), 1).slice(1, 0, 4).pow(2).sum();
    };
    Tensor here = w.clone().requires_grad_(), there = w.to(device).requires_grad_();
    loss(x, here).backward();
    const Tensor rows = x.to(device);
    take_counts(device);
    const Late late(200);
    loss(rows, there).backward();
    const QueuedCounts counts = take_counts(device);
    CHECK(counts.host_waits() == 0);
    CHECK(counts.kernels > 10);
    CHECK(torch::allclose(there.grad().cpu(), here.grad(), 1e-6, 1e-7));
    CHECK(take_counts(device).host_waits() == 1);  // the copy to the host
  }

  TEST_CASE("a stream that does not wait reads unwritten memory; one that waits does not") {
    const torch::Device device = queued_device(0);
    const c10::Stream beside = other_stream(device);
    const Late late(2000);
    for (const bool waits : {false, true}) {
      CAPTURE(waits);
      Tensor x = torch::zeros({1}, torch::dtype(torch::kFloat64).device(device));
      drain(device);
      for (int i = 0; i < 20; ++i) x.add_(1);  // 20 ms in the middle
      Tensor read;
      {
        c10::Event made(device.type());
        made.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
        const c10::StreamGuard guard(beside);
        if (waits) made.block(beside);
        read = x.clone();
        x.record_stream(beside);
      }
      drain(device);
      CHECK((read.item<double>() == 20) == waits);
    }
  }

  TEST_CASE(
      "memory that the host frees is poisoned in its stream's order, after the streams it was "
      "recorded on") {
    const torch::Device device = queued_device(0);
    const c10::Stream beside = other_stream(device);
    for (const bool recorded : {false, true}) {
      CAPTURE(recorded);
      Tensor x = torch::ones({64}, torch::dtype(torch::kFloat64).device(device));
      drain(device);
      Tensor read;
      {
        const Late late(5000);
        const c10::StreamGuard guard(beside);
        Tensor busy = torch::zeros({64}, x.options());
        for (int i = 0; i < 10; ++i) busy.add_(1);
        read = x + busy;
        if (recorded) x.record_stream(beside);
        x = Tensor();
        drain(device);
      }
      CHECK((read.sum().item<double>() == 64 * 11) == recorded);
    }
  }

  TEST_CASE("host waits are counted by name") {
    const torch::Device device = queued_device(1);
    Tensor x = torch::ones({3}, device);
    take_counts(device);
    x.sum().item<float>();
    x.cpu();
    torch::ones({3}).to(device);
    torch::ones({3}).pin_memory().to(device, torch::kFloat32, /*non_blocking=*/true);
    x.nonzero();
    const QueuedCounts counts = take_counts(device);
    CHECK(counts.waits == std::map<std::string, std::int64_t>{{"aten::nonzero", 1},
                                                              {"copy to the device", 1},
                                                              {"copy to the host", 1},
                                                              {"item", 1}});
  }
}
