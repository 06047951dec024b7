#include "traces/kineto/kernel_class.h"

#include <doctest/doctest.h>

using namespace polyphony;
using namespace polyphony::traces;

TEST_CASE("kernels are classified by their names in PyTorch's profiles") {
  const auto kind = [](const char* kernel) { return kernel_class(kernel, ""); };
  CHECK(kind("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)") ==
        KernelClass::collective);
  CHECK(kind("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") ==
        KernelClass::collective);
  CHECK(kind("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT") == KernelClass::gemm);
  CHECK(kind("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(...)") ==
        KernelClass::gemm);
  CHECK(kind("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32>(...)") ==
        KernelClass::convolution);
  // cuDNN's attention kernels contain "fprop", like its convolutions.
  CHECK(kind("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7") ==
        KernelClass::attention);
  CHECK(kind("void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float>(...)") ==
        KernelClass::normalisation);
  // The name of an element-wise kernel contains the function that it computes, which may look like
  // another class.
  CHECK(
      kind("void at::native::vectorized_elementwise_kernel<4, softmax_like_functor<float>>(int)") ==
      KernelClass::elementwise);
  CHECK(
      kind(
          "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(...)") ==
      KernelClass::data_movement);
  // An optimizer inside the backward of an embedding counts as embedding.
  CHECK(kind("void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel(...)") ==
        KernelClass::embedding);
  CHECK(kind("my_kernel") == KernelClass::unknown);
  CHECK(kernel_class("my_kernel", "aten::mm") == KernelClass::gemm);
}

TEST_CASE("copies are classified by direction") {
  CHECK(copy_class("Memcpy HtoD (Pinned -> Device)") == KernelClass::to_device);
  CHECK(copy_class("Memcpy DtoH (Device -> Pageable)") == KernelClass::to_host);
  CHECK(copy_class("Memcpy DtoD (Device -> Device)") == KernelClass::on_device);
  CHECK(copy_class("Memcpy PtoP (Device -> Device)") == KernelClass::on_device);
  CHECK(copy_class("Memset (Device)") == KernelClass::fill);
}

TEST_CASE("collectives are recognized by kernel, annotation and argument") {
  CHECK(collective_call("ncclDevKernel_AllGather_RING_LL") == CollectiveCall::all_gather);
  CHECK(collective_call("nccl:_all_gather_base") == CollectiveCall::all_gather);
  CHECK(collective_call("_reduce_scatter_base") == CollectiveCall::reduce_scatter);
  CHECK(collective_call("allreduce_coalesced") == CollectiveCall::all_reduce);
  CHECK(collective_call("all_to_allv") == CollectiveCall::all_to_all);
  CHECK(collective_call("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t") ==
        CollectiveCall::send_receive);
  CHECK(collective_call("ncclDevKernel_Generic") == CollectiveCall::other);
}

// nccl-tests, doc/PERFORMANCE.md: S/t times 2(n-1)/n, (n-1)/n or 1.
TEST_CASE("bus bandwidth over algorithm bandwidth") {
  CHECK(bus_factor(CollectiveCall::all_reduce, 8) == doctest::Approx(1.75));
  CHECK(bus_factor(CollectiveCall::all_to_all, 8) == doctest::Approx(0.875));
  CHECK(bus_factor(CollectiveCall::broadcast, 8) == 1);
}
