#include "shared/weights/weight_scales.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "shared/error.h"
#include "shared/export/tensor_files_json.h"
#include "shared/weights/number_bytes.h"
#include "shared/weights/pretrained.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using test::TempFolder;

constexpr std::int64_t kHidden = 160, kInner = 200, kVocabulary = 16;

// A Llama of one block, whose matrices have more than one block of 128 × 128.
Module wide_llama() {
  Module m;
  m.name = "language";
  m.kind = ModuleKind::language;
  m.layers = 1;
  m.hidden = kHidden;
  m.heads = m.kv_heads = 2;
  m.head_dim = 80;
  m.ffn = kInner;
  m.gated = true;
  m.vocab = kVocabulary;
  return m;
}

const std::string kDown = "model.layers.0.mlp.down_proj.weight";

// Its tensors: "down" in FP8 with scales of this shape, all others in fp32.
std::vector<TensorToWrite> tensors_with(const std::vector<TensorToWrite>& scales,
                                        const std::string& format = "F8_E4M3") {
  const std::string layer = "model.layers.0.";
  std::vector<TensorToWrite> tensors = {
      {"model.embed_tokens.weight", "F32", {kVocabulary, kHidden}},
      {"model.norm.weight", "F32", {kHidden}},
      {"lm_head.weight", "F32", {kVocabulary, kHidden}},
      {layer + "input_layernorm.weight", "F32", {kHidden}},
      {layer + "post_attention_layernorm.weight", "F32", {kHidden}},
      {layer + "mlp.gate_proj.weight", "F32", {kInner, kHidden}},
      {layer + "mlp.up_proj.weight", "F32", {kInner, kHidden}},
      {kDown, format, {kHidden, kInner}}};
  for (const char* name : {"q", "k", "v", "o"})
    tensors.push_back({layer + "self_attn." + name + "_proj.weight", "F32", {kHidden, kHidden}});
  tensors.insert(tensors.end(), scales.begin(), scales.end());
  return tensors;
}

// The number of row r and column c: any that is not NaN.
std::uint8_t number_at(std::int64_t r, std::int64_t c) {
  return static_cast<std::uint8_t>((7 * r + 3 * c) % 120 + (r % 2 == 0 ? 0 : 128));
}
float scale_number(std::int64_t index) { return 0.5F + static_cast<float>(index); }

std::string data_of(const TensorToWrite& tensor) {
  std::string bytes(static_cast<std::size_t>(tensor.bytes()), '\0');
  if (tensor.name == kDown && is_fp8(tensor.format))
    for (std::int64_t r = 0; r < kHidden; ++r)
      for (std::int64_t c = 0; c < kInner; ++c)
        bytes[static_cast<std::size_t>(r * kInner + c)] = static_cast<char>(number_at(r, c));
  if (tensor.name.ends_with("_scale_inv") || tensor.name.ends_with("_scale"))
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      const float scale = scale_number(static_cast<std::int64_t>(i));
      std::memcpy(bytes.data() + i * sizeof scale, &scale, sizeof scale);
    }
  return bytes;
}

void write_scaled(const std::string& folder, const std::vector<TensorToWrite>& tensors) {
  write_tensor_files(
      folder, "model", tensors, [&](std::size_t i) { return data_of(tensors[i]); }, kLargestFile);
}

std::string checking_scales(const std::vector<TensorToWrite>& tensors) {
  const TempFolder folder;
  write_scaled(folder.path(), tensors);
  Model model;
  model.modules = {wide_llama()};
  try {
    PretrainedModel(model, {{folder.path(), "", "llama"}}).check();
  } catch (const InputError& error) {
    return error.pointer + ": " + error.what_is_wrong;
  }
  return "";
}

// Checks every element of "down" on one rank and on two, which have 100 of the 200 columns each.
void check_values(const TensorToWrite& scales,
                  const std::function<std::int64_t(std::int64_t, std::int64_t)>& scale_index) {
  const TempFolder folder;
  write_scaled(folder.path(), tensors_with({scales}));
  Model model;
  model.modules = {wide_llama()};
  const PretrainedModel weights(model, {{folder.path(), "", "llama"}});
  weights.check();
  const Module& module = model.modules[0];
  for (const Parameter& parameter : parameters(module)) {
    if (parameter.name != "language.block0.down.weight") continue;
    for (const int ranks : {1, 2})
      for (int rank = 0; rank < ranks; ++rank) {
        const ShardIndex shard{.tensor = ranks, .tensor_index = rank};
        const std::int64_t columns = kInner / ranks;
        std::vector<float> read(static_cast<std::size_t>(kHidden * columns));
        weights.find(ModuleId(0))
            ->read(parameter, shard, "F32", reinterpret_cast<std::byte*>(read.data()));
        for (std::int64_t r = 0; r < kHidden; ++r)
          for (std::int64_t c = 0; c < columns; ++c) {
            const std::int64_t column = rank * columns + c;
            const double number = widen_e4m3(number_at(r, column));
            const float expected =
                static_cast<float>(number * scale_number(scale_index(r, column)));
            REQUIRE(read[static_cast<std::size_t>(r * columns + c)] == expected);
          }
      }
  }
}

}  // namespace

TEST_CASE("weights: numbers of FP8") {
  CHECK(widen_e4m3(0x00) == 0);
  CHECK(widen_e4m3(0x38) == 1);
  CHECK(widen_e4m3(0x39) == 1.125);
  CHECK(widen_e4m3(0xB8) == -1);
  CHECK(widen_e4m3(0x01) == std::ldexp(1.0, -9));  // the smallest
  CHECK(widen_e4m3(0x08) == std::ldexp(1.0, -6));  // the smallest with a whole fraction
  CHECK(widen_e4m3(0x7E) == 448);                  // the largest
  CHECK(std::isnan(widen_e4m3(0x7F)));
  CHECK(std::isnan(widen_e4m3(0xFF)));
  CHECK(widen_e5m2(0x3C) == 1);
  CHECK(widen_e5m2(0x01) == std::ldexp(1.0, -16));
  CHECK(widen_e5m2(0x7B) == 57344);
  CHECK(std::isinf(widen_e5m2(0xFC)));
}

TEST_CASE("weights: FP8 numbers are multiplied by the scales of blocks, rows or the whole weight") {
  // ⌈160/128⌉ × ⌈200/128⌉ blocks.
  check_values({kDown + "_scale_inv", "F32", {2, 2}},
               [](std::int64_t r, std::int64_t c) { return r / 128 * 2 + c / 128; });
  check_values({kDown + "_scale", "F32", {kHidden, 1}},
               [](std::int64_t r, std::int64_t) { return r; });
  check_values({kDown + "_scale", "F32", {1}}, [](std::int64_t, std::int64_t) { return 0; });
  check_values({kDown + "_scale", "F32", {}}, [](std::int64_t, std::int64_t) { return 0; });
}

TEST_CASE("weights: FP8 weights without usable scales are refused by name") {
  const TensorToWrite blocks{kDown + "_scale_inv", "F32", {2, 2}};
  CHECK(checking_scales(tensors_with({blocks})) == "");
  CHECK(checking_scales(tensors_with({blocks}, "F8_E5M2")) == "");
  CHECK(checking_scales(
            tensors_with({blocks, {"model.layers.0.mlp.down_proj.input_scale", "F32", {}}})) == "");
  CHECK(checking_scales(tensors_with({}))
            .find("down_proj.weight: is in F8_E4M3, but " + kDown + "_scale_inv and ") !=
        std::string::npos);
  CHECK(checking_scales(tensors_with({{kDown + "_scale_inv", "F32", {2, 3}}}))
            .find("_scale_inv: must be numbers of at least 16 bits with the shape [2, 2] (blocks "
                  "of 128 × 128), [160, 1] (rows) or [1] (got F32 with the shape [2, 3])") !=
        std::string::npos);
  CHECK(
      checking_scales(tensors_with({{kDown + "_scale_inv", "U8", {2, 2}}})).find("(got U8 with") !=
      std::string::npos);
  // Scales of a weight that is not in FP8 mean that something is wrong.
  CHECK(checking_scales(tensors_with({blocks}, "F32")).find("_scale_inv: belongs to the module") !=
        std::string::npos);
  std::vector<TensorToWrite> vector = tensors_with({blocks});
  vector[1].format = "F8_E4M3";
  CHECK(checking_scales(vector).find("/model.norm.weight: is in F8_E4M3 and has 1 dimensions") !=
        std::string::npos);
}

}  // namespace polyphony
