// Held-out errors of the file next to the rows, and summaries of parts of a block.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "shared/hardware/devices.h"
#include "shared/hardware/shipped_certainty.h"
#include "sim/console/console.h"
#include "sim/judged/held_out.h"
#include "sim/judged/summary.h"

namespace polyphony::sim {
namespace {

RowResult predicted(const std::string& block, const std::string& device, const std::string& stack,
                    const std::string& precision, int experts, double error) {
  RowResult result;
  result.row.block = block;
  result.row.precision = precision;
  result.row.experts = experts;
  result.device = device;
  result.stack = stack;
  result.error = error;
  return result;
}

}  // namespace

TEST_CASE("held-out errors: parsing, rejection, match with the shipped profiles") {
  const char* text =
      R"({"held_out": 1, "profiles": "a", "blocks": {"mpt": {"family_out":
          {"rows": 2, "mean": 0.1, "median": 0.1, "worst": -0.15, "bias": -0.05}}}})";
  CHECK(is_held_out(text, "h.json"));
  CHECK_FALSE(is_held_out(R"({"published": []})", "s.json"));
  const HeldOut read = read_held_out(text, "h.json");
  CHECK(read.profiles == "a");
  REQUIRE(read.blocks.at("mpt").family_out);
  CHECK(read.blocks.at("mpt").family_out->worst == -0.15);
  CHECK_FALSE(read.blocks.at("mpt").scale_out);
  CHECK_THROWS_AS(read_held_out(R"({"held_out": 2, "profiles": "a", "blocks": {}})", "h.json"),
                  InputError);
  const std::string file = "scenarios/published/held_out.json";
  const HeldOut shipped = read_held_out(read_file(file), file);
  // scripts/fit_profiles --write updates the file.
  CHECK(shipped.profiles == profiles_digest());
  CHECK(profiles_digest().size() == 16);
  // shared/hardware/shipped_certainty.cpp has the stacks that were fitted, and the widths that it
  // printed.
  for (const SoftwareStack& stack : shipped_stacks()) {
    const Footing footing = footing_of(find_device("H100")->device, *find_fit("h100"), stack.name);
    CHECK_MESSAGE((footing == Footing::known) == shipped.stacks.contains(stack.name), stack.name);
  }
  REQUIRE(shipped.widths);
  const auto certainty = [](Footing footing) {
    return shipped_certainty(*find_fit("h100"), footing);
  };
  const auto agree = [](double ships, double fitted) {
    return std::abs(ships / fitted - 1) < 0.02;  // rounded when copied
  };
  CHECK(agree(*certainty(Footing::known).residual, shipped.widths->known));
  CHECK(agree(*certainty(Footing::foreign).residual, shipped.widths->foreign));
  CHECK(agree(*certainty(Footing::borrowed).residual, shipped.widths->borrowed));
  CHECK(agree(*certainty(Footing::known).layout_error, shipped.widths->layout));
  CHECK(agree(*certainty(Footing::known).tensor_error, shipped.widths->tensor));
  for (const ParameterError& error : certainty(Footing::known).errors)
    if (error.contains("grouped_efficiency"))
      CHECK(agree(error.at("grouped_efficiency"), shipped.widths->experts));
}

TEST_CASE("parts: by GPU and kind, by format, and across blocks by framework") {
  std::vector<RowResult> rows{
      predicted("a", "h100", "megatron-bridge", "fp8-cs", 0, 0.1),
      predicted("a", "h100", "megatron-bridge", "bf16", 0, -0.3),
      predicted("a", "gb200", "megatron-bridge", "nvfp4", 0, 0.2),
      predicted("a", "gb200", "megatron-bridge", "mxfp8", 8, 0.5),
      predicted("b", "a100-40", "fsdp", "bf16", 0, 0.0),
      predicted("b", "a100-80", "fsdp", "amp_bf16", 0, 0.4),
  };
  const std::vector<Part> parts = summarize_parts(rows);
  const auto find = [&](const std::string& of, const std::string& part) -> const Part* {
    for (const Part& p : parts)
      if (p.of == of && p.part == part) return &p;
    return nullptr;
  };
  REQUIRE(find("a", "H100 dense"));
  CHECK(find("a", "H100 dense")->all.ours.mean == doctest::Approx(0.2));
  CHECK(find("a", "H100 dense")->all.ours.bias == doctest::Approx(-0.1));
  CHECK(find("a", "GB200 NVFP4")->all.ours.count == 1);
  CHECK(find("a", "fp8")->all.ours.count == 2);
  CHECK(find("Megatron Core, Bridge", "GB200 MoE")->all.ours.mean == doctest::Approx(0.5));
  // One GPU generation, one format: the block has no parts.
  CHECK(find("b", "A100 dense") == nullptr);
  CHECK(find("fsdp", "A100 dense")->all.ours.count == 2);
}

}  // namespace polyphony::sim
