#include "shared/weights/tensor_folder.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "shared/error.h"
#include "shared/export/tensor_files_json.h"
#include "shared/weights/pretrained.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using test::spill;
using test::TempFolder;

void write(const std::string& folder, const std::vector<TensorToWrite>& tensors,
           Bytes largest = kLargestFile) {
  write_tensor_files(
      folder, "model", tensors,
      [&](std::size_t i) {
        return std::string(static_cast<std::size_t>(tensors[i].bytes()),
                           static_cast<char>('a' + i));
      },
      largest);
}

std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const InputError& error) {
    return error.file.substr(error.file.rfind('/') + 1) + error.pointer + ": " +
           error.what_is_wrong + " | " + error.hint;
  }
  return "";
}
std::string opening(const std::string& folder) {
  return refusal([&] { TensorFolder opened(folder); });
}

const std::vector<TensorToWrite> kTensors = {
    {"a", "F32", {2, 3}}, {"b", "BF16", {4}}, {"c", "F16", {5, 2}}};

// A Llama of one block, as transformers would save it.
Module small_llama() {
  Module m;
  m.name = "language";
  m.kind = ModuleKind::language;
  m.layers = 1;
  m.hidden = 8;
  m.heads = m.kv_heads = 2;
  m.head_dim = 4;
  m.ffn = 12;
  m.gated = true;
  m.vocab = 16;
  return m;
}
std::vector<TensorToWrite> llama_tensors() {
  const std::string layer = "model.layers.0.";
  std::vector<TensorToWrite> tensors = {{"model.embed_tokens.weight", "F32", {16, 8}},
                                        {"model.norm.weight", "F32", {8}},
                                        {"lm_head.weight", "F32", {16, 8}},
                                        {layer + "input_layernorm.weight", "F32", {8}},
                                        {layer + "post_attention_layernorm.weight", "F32", {8}},
                                        {layer + "mlp.gate_proj.weight", "F32", {12, 8}},
                                        {layer + "mlp.up_proj.weight", "F32", {12, 8}},
                                        {layer + "mlp.down_proj.weight", "F32", {8, 12}}};
  for (const char* name : {"q", "k", "v", "o"})
    tensors.push_back({layer + "self_attn." + name + "_proj.weight", "F32", {8, 8}});
  return tensors;
}
std::string checking(const std::vector<TensorToWrite>& tensors, const std::string& type = "llama") {
  const TempFolder folder;
  write(folder.path(), tensors);
  Model model;
  model.modules = {small_llama()};
  return refusal([&] { PretrainedModel(model, {{folder.path(), "", type}}).check(); });
}

}  // namespace

TEST_CASE("weights: tensors are found in one file and in several") {
  for (const std::int64_t largest : {std::int64_t{1000}, std::int64_t{25}}) {
    const TempFolder folder;
    write(folder.path(), kTensors, Bytes(largest));
    CHECK(std::filesystem::exists(folder / "model.safetensors") == (largest == 1000));
    const TensorFolder opened(folder.path());
    CHECK(opened.tensors().size() == 3);
    const StoredTensor* b = opened.find("b");
    REQUIRE(b != nullptr);
    CHECK(b->format == "BF16");
    CHECK(b->shape == std::vector<std::int64_t>{4});
    CHECK(std::memcmp(opened.data(*b), "bbbbbbbb", 8) == 0);
    CHECK(opened.find("d") == nullptr);
  }
}

TEST_CASE("weights: folders that cannot be used are refused by name, with what to do") {
  const TempFolder folder;
  CHECK(opening(folder / "absent").find("is not a folder") != std::string::npos);
  CHECK(opening(folder.path()).find("has neither model.safetensors nor") != std::string::npos);
  spill(folder / "pytorch_model.bin", "pickle");
  const std::string pickled = opening(folder.path());
  CHECK(pickled.find("pytorch_model.bin: is a file of pickled objects") == 0);
  CHECK(pickled.find("save_pretrained") != std::string::npos);
  spill(folder / "model.safetensors", "short");
  CHECK(opening(folder.path()).find("not a complete safetensors file") != std::string::npos);
}

TEST_CASE("weights: an index that contradicts its files is refused") {
  const TempFolder folder;
  write(folder.path(), kTensors, Bytes(25));
  const std::string index = folder / "model.safetensors.index.json";
  const std::string text = test::slurp(index);
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), by);
    spill(index, changed);
    return opening(folder.path());
  };
  CHECK(with("\"b\"", "\"x\"").find("does not hold this tensor") != std::string::npos);
  CHECK(with("model-00001", "../model-00001").find("must be the name of a .safetensors file") !=
        std::string::npos);
  CHECK(with("\"weight_map\"", "\"weights\"").find("has no object \"weight_map\"") !=
        std::string::npos);
  CHECK(with("model-00001-of", "model-00009-of") != "");
}

TEST_CASE("weights: missing, surplus and misshapen tensors are refused by name") {
  CHECK(checking(llama_tensors()) == "");
  std::vector<TensorToWrite> tensors = llama_tensors();
  tensors.pop_back();  // o_proj
  CHECK(checking(tensors).find("/model.layers.0.self_attn.o_proj.weight: is missing: "
                               "language.block0.out.weight needs it, with the shape [8, 8]") !=
        std::string::npos);
  tensors = llama_tensors();
  tensors[5].shape = {13, 8};
  CHECK(checking(tensors).find("must have the shape [12, 8] for language.block0.gate_up.weight "
                               "(got [13, 8])") != std::string::npos);
  tensors = llama_tensors();
  tensors.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {8}});
  CHECK(checking(tensors).find("q_proj.bias: belongs to the module \"language\", which has no "
                               "parameter for it") != std::string::npos);
  tensors = llama_tensors();
  tensors[5].format = "U8";
  CHECK(checking(tensors).find("quantized weights are not read") != std::string::npos);
  tensors = llama_tensors();
  tensors.push_back({"other.embed_tokens.weight", "F32", {16, 8}});
  CHECK(checking(tensors).find("has 2 tensors") != std::string::npos);
  CHECK(checking(llama_tensors(), "mamba").find("\"mamba\" cannot be read") != std::string::npos);
  // Quantized weights have other names.
  tensors = llama_tensors();
  tensors[5].name += "_blocks";
  CHECK(checking(tensors).find("belongs to a quantized weight") != std::string::npos);
  // A file of the bare model has no root. Its blocks are known all the same.
  tensors = llama_tensors();
  for (TensorToWrite& tensor : tensors)
    if (tensor.name.starts_with("model.")) tensor.name = tensor.name.substr(6);
  tensors.push_back({"pooler.weight", "F32", {8}});
  CHECK(checking(tensors) == "");
  tensors.push_back({"layers.1.input_layernorm.weight", "F32", {8}});
  CHECK(checking(tensors).find("layers.1.input_layernorm.weight: belongs to the module") !=
        std::string::npos);
  // Buffers are not parameters.
  tensors = llama_tensors();
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}});
  CHECK(checking(tensors) == "");
}

TEST_CASE("weights: blocks after the last one are those of multi-token prediction, in DeepSeek's") {
  std::vector<TensorToWrite> tensors = llama_tensors();
  tensors.push_back({"model.layers.1.embed_tokens.weight", "F32", {16, 8}});
  CHECK(checking(tensors).find("layers.1.embed_tokens.weight: belongs to the module") !=
        std::string::npos);  // found below the one root, not taken for another model
  CHECK(checking(tensors, "deepseek_v3").find("is missing") == std::string::npos);
}

}  // namespace polyphony
