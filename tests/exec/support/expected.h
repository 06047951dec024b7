// The GEMMs that expand() predicts for a stage of tests/exec/support/tiny_model.h, and those that
// ATen was called for.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "shared/chunk/expand.h"
#include "tests/exec/support/tiny_model.h"

namespace polyphony::exec::testing {

inline const WorkSize& size_for(const TestWork& work, const Module& module) {
  if (module.kind == ModuleKind::vision) return work.vision;
  return module.kind == ModuleKind::projector ? work.projector : work.language;
}

inline ChunkContext context_of(const Stage& stage, int tp) {
  return {
      .tp = tp,
      .sp = stage.options.sequence_parallel && tp > 1,
      .tp_pieces = stage.options.tp_pieces,
      .recompute = stage.options.recompute,
      .recomputed = stage.options.recomputed,
      .precision = stage.options.dtype == torch::kFloat64 ? NumberFormat::fp64 : NumberFormat::fp32,
      .input_grad = stage.options.input_grad,
      .weight_grad = stage.options.trainable};
}

inline std::vector<Stage> in_pieces(std::vector<Stage> stages, int pieces) {
  for (Stage& stage : stages) stage.options.tp_pieces = pieces;
  return stages;
}

// [m, k] × [k, n] products that ATen was asked for on this thread, as "m n k"; of a batch with one matrix, of all
// its rows.
using Product = std::string;
inline Product product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k);
}
inline thread_local std::vector<Product>* products = nullptr;
inline std::unique_ptr<at::ObserverContext> record_product(const at::RecordFunction& function) {
  const std::string name = function.name();
  const std::size_t first = name == "aten::mm" ? 0 : 1;
  if (name == "aten::bmm") {
    const torch::Tensor a = function.inputs()[0].toTensor(), b = function.inputs()[1].toTensor();
    if (b.stride(0) == 0) products->push_back(product(a.size(0) * a.size(1), b.size(2), a.size(2)));
    return nullptr;
  }
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::addmm_") return nullptr;
  const torch::Tensor a = function.inputs()[first].toTensor(),
                      b = function.inputs()[first + 1].toTensor();
  products->push_back(product(a.size(0), b.size(1), a.size(1)));
  return nullptr;
}
template <class Body>
std::vector<Product> products_of(Body body) {
  std::vector<Product> seen;
  products = &seen;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&record_product).needsInputs(true));
  body();
  at::removeCallback(handle);
  std::sort(seen.begin(), seen.end());
  return seen;
}
inline std::vector<Product> expected_products(const Expansion& expansion) {
  std::vector<Product> all;
  for (const Kernel& kernel : expansion.kernels) {
    if (kernel.kind != KernelKind::gemm) continue;
    all.insert(all.end(), static_cast<std::size_t>(kernel.launches),
               product(kernel.m, kernel.n, kernel.k));
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace polyphony::exec::testing
