#include "sim/question/gpu_request.h"

#include <doctest/doctest.h>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

std::string request_refusal(const std::string& text) {
  try {
    parse_gpus(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("numbers of nodes and of accelerators in each") {
  const GpuRequest both = parse_gpus("64x8xH100");
  CHECK(both.nodes == 64);
  CHECK(both.per_node == 8);
  CHECK(both.device == "H100");
  CHECK(both.node == "hgx-h100");
  CHECK(both.assumed.empty());
  const GpuRequest all = parse_gpus("512xH100");
  CHECK(all.nodes == 64);
  CHECK(all.per_node == 8);
  CHECK(all.assumed.size() == 1);
  const GpuRequest few = parse_gpus("4 × H100");
  CHECK(few.nodes == 1);
  CHECK(few.per_node == 4);
  CHECK(few.node.empty());  // no shipped node has 4
  CHECK(parse_gpus("h100").per_node == 1);
  CHECK(parse_gpus("3x4xH100").nodes == 3);
  CHECK(parse_gpus("2*8*H100").nodes == 2);
}

TEST_CASE("an unknown number of nodes") {
  const GpuRequest least = parse_gpus("?xH100");
  CHECK(least.least);
  CHECK(least.per_node == 8);
  CHECK(parse_gpus("?x4xH100").per_node == 4);
  CHECK_FALSE(parse_gpus("8xH100").least);
}

TEST_CASE("names as vendors and tools write them") {
  for (const char* name :
       {"H100", "h100", "NVIDIA H100", "H100-SXM", "NVIDIA H100 80GB HBM3", "h100_sxm5"})
    CHECK_MESSAGE(parse_gpus(name).device == "H100", name);
  CHECK(parse_gpus("A100-40GB").device != parse_gpus("A100-80GB").device);
  const GpuRequest either = parse_gpus("A100");  // two have this name: the larger
  CHECK(either.device == parse_gpus("A100-80GB").device);
  CHECK(either.assumed.size() == 1);
}

TEST_CASE("what names no accelerators is refused, with what would be understood") {
  CHECK(request_refusal("8xH10").find("H100") != std::string::npos);
  CHECK(request_refusal("8x").find("names no accelerator") != std::string::npos);
  CHECK(request_refusal("").find("names no accelerator") != std::string::npos);
  CHECK(request_refusal("0x8xH100").find("no number of nodes") != std::string::npos);
  CHECK(request_refusal("99999999999x8xH100").find("no number of nodes") != std::string::npos);
  CHECK(request_refusal("2x2x2xH100").find("more than two numbers") != std::string::npos);
  CHECK(request_refusal("12xH100").find("not whole nodes") != std::string::npos);
  CHECK(request_refusal("?x?xH100").find("no number of nodes") != std::string::npos);
  CHECK(request_refusal("8xH100 SXM 40GB") != "");  // has 80
}

}  // namespace polyphony::sim
