// Runs the loops that a GPU runs around our kernel bodies (exec/cuda/loops.cuh) with threads of the
// CPU: one thread for each thread of a block, with doubles of CUDA's barrier and warp shuffle. The
// results must have the same bits as those of the CPU's loops (exec/cuda/drive.h), which all other
// tests use. Only the launch itself needs a GPU to be tested.
#include <barrier>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

struct Index {
  unsigned x = 0;
};
thread_local Index threadIdx, blockIdx;
Index blockDim, gridDim;

constexpr unsigned kWarp = 32;
struct Warp {
  std::barrier<> all{kWarp};
  std::uint32_t words[kWarp] = {};
};
struct Block {
  std::barrier<> all;
  std::vector<Warp> warps;
  std::vector<double> memory;
  Block(unsigned threads, std::size_t doubles)
      : all(static_cast<std::ptrdiff_t>(threads)), warps(threads / kWarp), memory(doubles) {}
};
Block* block = nullptr;

void __syncthreads() { block->all.arrive_and_wait(); }

// All lanes of a warp give a word and take that of the lane `step` above, or their own where there is none.
std::uint32_t __shfl_down_sync(std::uint32_t lanes, std::uint32_t word, int step) {
  if (lanes != 0xFFFFFFFFU) throw std::runtime_error("a shuffle of some lanes");
  Warp& warp = block->warps[threadIdx.x / kWarp];
  const unsigned lane = threadIdx.x % kWarp, from = lane + static_cast<unsigned>(step);
  warp.words[lane] = word;
  warp.all.arrive_and_wait();
  const std::uint32_t taken = warp.words[from < kWarp ? from : lane];
  warp.all.arrive_and_wait();
  return taken;
}

}  // namespace

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define POLYPHONY_BLOCK_MEMORY(type, name) type* const name = block->memory.data()

#include "exec/cuda/cross_entropy_body.h"
#include "exec/cuda/glu_body.h"
#include "exec/cuda/loops.cuh"
#include "exec/cuda/norm_body.h"

#include <doctest/doctest.h>

namespace polyphony::exec::kernels {

namespace {

template <class Kernel>
void launch(unsigned blocks, unsigned threads, std::size_t doubles, const Kernel& kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned b = 0; b < blocks; ++b) {
    Block here(threads, doubles);
    block = &here;
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&kernel, b, t] {
        blockIdx.x = b;
        threadIdx.x = t;
        kernel();
      });
  }
}

template <class Body>
void launch_rows_here(const Body& body, const RowShape& shape) {
  const auto columns = static_cast<std::size_t>(shape.packs) * Body::kColumns *
                       sizeof(typename Body::Column) / sizeof(double);
  launch(static_cast<unsigned>(shape.blocks), static_cast<unsigned>(lanes_for(shape.packs)),
         columns + 1, [&] { rows_kernel(body, shape); });
}

using Floats = std::vector<float>;
Floats random(std::size_t count, unsigned seed) {
  std::mt19937 dice(seed);
  std::normal_distribution<float> one;
  Floats all(count);
  for (float& x : all) x = one(dice);
  return all;
}

// Rows of `width` elements; lanes have none, one or two packs of them.
constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidths[] = {3, 130, 2100};
constexpr int kBlocks = 2;

struct NormResults {
  Floats dx, dw;
  bool operator==(const NormResults&) const = default;
};

}  // namespace

TEST_SUITE("fused kernels") {
  TEST_CASE("device loops over rows give the bits of the host's") {
    for (const std::int64_t width : kWidths) {
      CAPTURE(width);
      const auto elements = static_cast<std::size_t>(kRows * width);
      const Floats x = random(elements, 1), dy = random(elements, 2),
                   weight = random(static_cast<std::size_t>(width), 3),
                   scale = random(static_cast<std::size_t>(kRows), 4);
      const RowShape shape{kRows, packs_of<float>(width), kBlocks};
      const auto norm = [&](const auto& drive) {
        NormResults out{Floats(elements), Floats(static_cast<std::size_t>(kBlocks * width))};
        RmsBackward<float> body{};
        body.dy = dy.data();
        body.x = x.data();
        body.weight = weight.data();
        body.scale = scale.data();
        body.dx = out.dx.data();
        body.d_weight = out.dw.data();
        body.width = width;
        drive(body);
        return out;
      };
      const NormResults host = norm([&](const auto& body) { rows(body, shape); });
      CHECK(norm([&](const auto& body) { launch_rows_here(body, shape); }) == host);
      const auto layer = [&](const auto& drive) {
        NormResults out{Floats(elements), Floats(static_cast<std::size_t>(2 * kBlocks * width))};
        LayerBackward<float> body{};
        body.dy = dy.data();
        body.x = x.data();
        body.weight = weight.data();
        body.mean = body.scale = scale.data();
        body.dx = out.dx.data();
        body.d_parameters = out.dw.data();
        body.width = width;
        drive(body);
        return out;
      };
      const NormResults of_layer = layer([&](const auto& body) { rows(body, shape); });
      CHECK(layer([&](const auto& body) { launch_rows_here(body, shape); }) == of_layer);
      const auto statistics = [&](const auto& drive) {
        Floats out(3 * static_cast<std::size_t>(kRows));
        const std::vector<std::int64_t> ids(static_cast<std::size_t>(kRows), width - 1);
        LogitRows<float> body{};
        body.logits = x.data();
        body.ids = ids.data();
        body.largest = out.data();
        body.sums = out.data() + kRows;
        body.labels = out.data() + 2 * kRows;
        body.width = width;
        drive(body);
        return out;
      };
      const Floats sums = statistics([&](const auto& body) { rows(body, shape); });
      CHECK(statistics([&](const auto& body) { launch_rows_here(body, shape); }) == sums);
    }
  }

  TEST_CASE("device loops over packs visit each pack once") {
    const std::int64_t count = 4 * 3 * kEachBlock + 5;  // threads go round; the last pack is short
    const Floats pairs = random(2 * static_cast<std::size_t>(count), 5);
    const auto gate = [&](const auto& drive) {
      Floats y(static_cast<std::size_t>(count));
      drive(GluForward<float>{pairs.data(), y.data(), count, Gate::silu, false});
      return y;
    };
    const Floats host = gate([&](const auto& body) { each(body, packs_of<float>(count)); });
    CHECK(gate([&](const auto& body) {
            launch(2, 64, 0, [&] { each_kernel(body, packs_of<float>(count)); });
          }) == host);
  }
}

}  // namespace polyphony::exec::kernels
