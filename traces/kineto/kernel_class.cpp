#include "traces/kineto/kernel_class.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>
#include <string>

namespace polyphony::traces {
namespace {

struct Row {
  std::string_view part;
  KernelClass kind;
};

using enum KernelClass;

// Names of element-wise kernels contain the names of the functions that they apply, so they are
// matched first.
constexpr Row kKernels[] = {
    {"index_elementwise_kernel", data_movement},
    {"_scatter_gather_elementwise_kernel", data_movement},
    {"direct_copy_kernel", data_movement},
    {"elementwise_kernel", elementwise},
    {"multi_tensor_apply_kernel", optimizer},  // PyTorch _foreach_ and fused optimizers, Apex
    {"split_embedding", embedding},            // FBGEMM, including its optimizers
    {"Adam", optimizer},
    {"adam", optimizer},
    {"adagrad", optimizer},
    {"multi_tensor", optimizer},
    {"triton_poi_", elementwise},
    {"triton_red_", reduction},
    {"triton_per_", reduction},
    {"flash", attention},
    {"Flash", attention},
    {"fmha", attention},
    {"Fmha", attention},
    {"sdpa", attention},
    {"attention", attention},
    {"Attention", attention},
    {"attn", attention},
    {"compute_dot_do_o", attention},  // cuDNN's attention backward, before and after its kernel
    {"convert_dq_to_16bits", attention},
    {"nchwToNhwc", data_movement},
    {"nhwcToNchw", data_movement},
    {"layer_norm", normalisation},
    {"LayerNorm", normalisation},
    {"GammaBeta", normalisation},
    {"batch_norm", normalisation},
    {"BatchNorm", normalisation},
    {"bn_fw", normalisation},
    {"bn_bw", normalisation},
    {"rms_norm", normalisation},
    {"rmsnorm", normalisation},
    {"RMSNorm", normalisation},
    {"RmsNorm", normalisation},
    {"group_norm", normalisation},
    {"GroupNorm", normalisation},
    {"ln_fwd", normalisation},
    {"ln_bwd", normalisation},
    {"RowwiseMoments", normalisation},
    {"ImplicitGemm", convolution},
    {"implicit_gemm", convolution},
    {"implicit_convolve", convolution},
    {"implicit_sgemm", convolution},
    {"conv2d", convolution},
    {"Conv2d", convolution},
    {"conv_depthwise", convolution},
    {"causal_conv1d", convolution},
    {"winograd", convolution},
    {"wgrad", convolution},
    {"dgrad", convolution},
    {"fprop", convolution},
    {"cudnn::cnn", convolution},
    {"scudnn", convolution},
    {"softmax", softmax},
    {"SoftMax", softmax},
    {"Softmax", softmax},
    {"nll_loss", softmax},
    {"cross_entropy", softmax},
    {"CrossEntropy", softmax},
    {"nvjet", gemm},
    {"gemm", gemm},
    {"Gemm", gemm},
    {"GEMM", gemm},
    {"gemv", gemm},
    {"splitKreduce", gemm},
    {"Cijk_", gemm},
    {"grouped_mm", gemm},
    {"matmul", gemm},
    {"cublas", gemm},
    {"dot_kernel", gemm},
    {"embedding", embedding},
    {"Embedding", embedding},
    {"indexing_backward", embedding},
    {"permute_pooled_embs", embedding},
    {"permute_2D", embedding},
    {"linearize_index", embedding},
    {"bounds_check_indices", embedding},
    {"permute_indices_weights", embedding},
    {"RadixSort", sort},
    {"MergeSort", sort},
    {"bitonicSort", sort},
    {"topk", sort},
    {"TopK", sort},
    {"radix_sort", sort},
    {"CatArrayBatchedCopy", data_movement},
    {"transpose", data_movement},
    {"permute", data_movement},
    {"gather", data_movement},
    {"scatter", data_movement},
    {"index_select", data_movement},
    {"indexSelect", data_movement},
    {"indexFunc", data_movement},
    {"copy_device_to_device", data_movement},
    {"reduce", reduction},
    {"Reduce", reduction},
    {"Scan", reduction},
    {"scan", reduction},
    {"max_pool", reduction},
    {"avg_pool", reduction},
    {"histogram", reduction},
    {"dropout", elementwise},
    {"Dropout", elementwise},
    {"elementwise", elementwise},
    {"Elementwise", elementwise},
    {"distribution_", elementwise},
    {"arange", elementwise},
    {"Functor", elementwise},
    {"quantize", elementwise},
    {"cast", elementwise},
};

// Used with the operator that launched a kernel whose name is not conclusive.
constexpr Row kOps[] = {
    {"attention", attention},
    {"aten::mm", gemm},
    {"aten::addmm", gemm},
    {"aten::bmm", gemm},
    {"aten::baddbmm", gemm},
    {"aten::linear", gemm},
    {"aten::matmul", gemm},
    {"aten::_grouped_mm", gemm},
    {"aten::_scaled_mm", gemm},
    {"convolution", convolution},
    {"embedding", embedding},
    {"norm", normalisation},
    {"softmax", softmax},
    {"_loss", softmax},
    {"sort", sort},
    {"topk", sort},
    {"aten::sum", reduction},
    {"aten::mean", reduction},
    {"aten::cumsum", reduction},
    {"aten::copy_", data_movement},
    {"aten::cat", data_movement},
    {"index", data_movement},
    {"_foreach_", optimizer},
    {"_fused_adam", optimizer},
};

// Operators that run on the host. Source: aten/src/ATen/native/native_functions.yaml.
constexpr std::string_view kNoWork[] = {
    "aten::empty",       "aten::view",           "aten::_unsafe_view",
    "aten::as_strided",  "aten::expand",         "aten::transpose",
    "aten::select",      "aten::slice",          "aten::narrow",
    "aten::reshape",     "aten::permute",        "aten::squeeze",
    "aten::unsqueeze",   "aten::detach",         "aten::resolve_",
    "aten::alias",       "aten::split",          "aten::chunk",
    "aten::unbind",      "aten::unflatten",      "aten::flatten",
    "aten::resize_",     "aten::set_",           "aten::lift",
    "aten::is_",         "aten::_reshape_alias", "aten::new_empty",
    "aten::result_type", "aten::item",           "aten::_local_scalar_dense"};
constexpr Row kHostOps[] = {
    {"attention", attention},
    {"_foreach_", optimizer},
    {"_fused_adam", optimizer},
    {"aten::mm", gemm},
    {"aten::mv", gemm},
    {"aten::dot", gemm},
    {"addmm", gemm},
    {"addmv", gemm},
    {"bmm", gemm},
    {"aten::linear", gemm},
    {"aten::matmul", gemm},
    {"grouped_mm", gemm},
    {"scaled_mm", gemm},
    {"convolution", convolution},
    {"conv2d", convolution},
    {"embedding", embedding},
    {"softmax", softmax},
    {"logsumexp", softmax},
    {"_loss", softmax},
    {"cross_entropy", softmax},
    {"aten::normal", elementwise},
    {"vector_norm", reduction},
    {"aten::norm", reduction},
    {"_norm", normalisation},
    {"sort", sort},
    {"topk", sort},
    {"unique", sort},
    {"searchsorted", sort},
    {"aten::sum", reduction},
    {"aten::mean", reduction},
    {"aten::var", reduction},
    {"aten::cum", reduction},
    {"aten::amax", reduction},
    {"aten::amin", reduction},
    {"aten::aminmax", reduction},
    {"aten::argmax", reduction},
    {"aten::max", reduction},
    {"aten::min", reduction},
    {"aten::any", reduction},
    {"aten::all", reduction},
    {"aten::prod", reduction},
    {"aten::bincount", reduction},
    {"aten::count_nonzero", reduction},
    {"copy", data_movement},
    {"aten::to", data_movement},
    {"aten::cat", data_movement},
    {"aten::stack", data_movement},
    {"aten::clone", data_movement},
    {"aten::contiguous", data_movement},
    {"aten::nonzero", data_movement},
    {"aten::repeat", data_movement},
    {"aten::flip", data_movement},
    {"aten::roll", data_movement},
    {"aten::masked_select", data_movement},
    {"index", data_movement},
    {"gather", data_movement},
    {"scatter", data_movement},
    {"_backward", elementwise},
};
// Whole names, without "aten::" and the underscore of operators that work in place.
constexpr std::string_view kElementwise[] = {
    "abs",         "add",         "addcdiv",     "addcmul",    "arange",    "bernoulli",
    "bitwise_and", "bitwise_not", "bitwise_or",  "clamp",      "clamp_min", "clamp_max",
    "cos",         "div",         "eq",          "erf",        "exp",       "exponential",
    "fill",        "floor",       "full",        "full_like",  "ge",        "gelu",
    "gt",          "isfinite",    "isnan",       "le",         "lerp",      "log",
    "log1p",       "logical_and", "logical_not", "logical_or", "lt",        "masked_fill",
    "maximum",     "minimum",     "mul",         "ne",         "neg",       "ones",
    "ones_like",   "pow",         "random",      "reciprocal", "relu",      "remainder",
    "round",       "rsqrt",       "rsub",        "sigmoid",    "sign",      "silu",
    "sin",         "softplus",    "sqrt",        "square",     "sub",       "tanh",
    "tril",        "triu",        "uniform",     "where",      "zero",      "zeros",
    "new_ones",    "new_zeros",   "new_full",    "outer",      "zeros_like"};

std::optional<KernelClass> look_up(std::span<const Row> table, std::string_view text) {
  for (const Row& row : table)
    if (text.find(row.part) != std::string_view::npos) return row.kind;
  return {};
}

std::string only_lower_letters(std::string_view text) {
  std::string letters;
  for (const char c : text)
    if (std::isalpha(static_cast<unsigned char>(c)))
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

}  // namespace

bool is_collective_kernel(std::string_view kernel) {
  if (kernel.starts_with("nccl")) return kernel.find("Kernel") != std::string_view::npos;
  // Kernels of Transformer Engine, PyTorch's symmetric memory, vLLM and TensorRT-LLM, which
  // communicate by load and store.
  for (const std::string_view part :
       {"userbuffers", "one_shot_all_reduce", "two_shot_all_reduce", "multimem_all_reduce",
        "multimem_one_shot", "cross_device_reduce", "nvshmem"})
    if (kernel.find(part) != std::string_view::npos) return true;
  return false;
}

KernelClass kernel_class(std::string_view kernel, std::string_view op) {
  if (is_collective_kernel(kernel)) return collective;
  if (const auto kind = look_up(kKernels, kernel)) return *kind;
  return look_up(kOps, op).value_or(unknown);
}

std::optional<KernelClass> operator_class(std::string_view op) {
  constexpr std::string_view kAten = "aten::";
  if (!op.starts_with(kAten) || op == "aten::t") return {};
  for (const std::string_view name : kNoWork)
    if (op.starts_with(name)) return {};
  std::string_view plain = op.substr(kAten.size());
  if (plain.ends_with('_')) plain.remove_suffix(1);
  if (std::find(std::begin(kElementwise), std::end(kElementwise), plain) != std::end(kElementwise))
    return elementwise;
  return look_up(kHostOps, op).value_or(unknown);
}

KernelClass copy_class(std::string_view event) {
  if (event.starts_with("Memset")) return fill;
  if (event.find("HtoD") != std::string_view::npos) return to_device;
  if (event.find("DtoH") != std::string_view::npos) return to_host;
  return on_device;
}

CollectiveCall collective_call(std::string_view text) {
  const std::string word = only_lower_letters(text);
  const auto has = [&](const char* part) { return word.find(part) != std::string::npos; };
  if (has("allreduce")) return CollectiveCall::all_reduce;
  if (has("reducescatter")) return CollectiveCall::reduce_scatter;
  if (has("allgather")) return CollectiveCall::all_gather;
  if (has("alltoall")) return CollectiveCall::all_to_all;
  if (has("broadcast")) return CollectiveCall::broadcast;
  if (has("send") || has("recv")) return CollectiveCall::send_receive;
  if (has("reduce")) return CollectiveCall::reduce;
  return CollectiveCall::other;
}

}  // namespace polyphony::traces
