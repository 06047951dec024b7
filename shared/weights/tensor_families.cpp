#include "shared/weights/tensor_families.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/weights/arrange.h"

namespace polyphony {
namespace {

using namespace arrange;

template <AttentionKind kind>
bool mixes_by(const Module& module, int block) {
  return block_at(module, block).attention == kind;
}

std::vector<TensorRow> joined_rows(std::vector<TensorRow> rows,
                                   const std::vector<TensorRow>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

// The rows of most language models, whose norms multiply by `norm_offset` + weight.
std::vector<TensorRow> decoder(double norm_offset = 0) {
  return {{"embedding.weight", {"embed_tokens.weight"}, same},
          {"head.norm.weight", {"norm.weight"}, same, norm_offset},
          {"head.output.weight", {"^lm_head.weight"}, same},
          {"norm1.weight", {"input_layernorm.weight"}, same, norm_offset},
          {"qkv.*", {"self_attn.q_proj.*", "self_attn.k_proj.*", "self_attn.v_proj.*"}, by_group},
          {"q_norm.weight", {"self_attn.q_norm.weight"}, same, norm_offset},
          {"k_norm.weight", {"self_attn.k_norm.weight"}, same, norm_offset},
          {"out.*", {"self_attn.o_proj.*"}, same}};
}
std::vector<TensorRow> second_norm(double norm_offset = 0) {
  return {{"norm2.weight", {"post_attention_layernorm.weight"}, same, norm_offset}};
}
std::vector<TensorRow> gated_mlp() {
  return {{"gate_up.*", {"mlp.gate_proj.*", "mlp.up_proj.*"}, alternating},
          {"down.*", {"mlp.down_proj.*"}, same}};
}
std::vector<TensorRow> experts_of_qwen() {
  return {{"router.weight", {"mlp.gate.weight"}, same},
          {"router.choice_bias", {"mlp.gate.e_score_correction_bias"}, same},
          {"experts.gate_up.weight",
           {"mlp.experts.{e}.gate_proj.weight", "mlp.experts.{e}.up_proj.weight"},
           alternating},
          {"experts.down.weight", {"mlp.experts.{e}.down_proj.weight"}, same}};
}

std::vector<TensorRow> llama() {
  return joined_rows(joined_rows(decoder(), second_norm()), gated_mlp());
}
std::vector<TensorRow> mixtral() {
  return joined_rows(
      joined_rows(decoder(), second_norm()),
      {{"router.weight", {"block_sparse_moe.gate.weight"}, same},
       {"experts.gate_up.weight",
        {"block_sparse_moe.experts.{e}.w1.weight", "block_sparse_moe.experts.{e}.w3.weight"},
        alternating},
       {"experts.down.weight", {"block_sparse_moe.experts.{e}.w2.weight"}, same}});
}
std::vector<TensorRow> qwen_moe() {
  return joined_rows(joined_rows(decoder(), second_norm()), experts_of_qwen());
}
std::vector<TensorRow> gemma() {
  return joined_rows(joined_rows(decoder(1), gated_mlp()),
                     {{"post_norm1.weight", {"post_attention_layernorm.weight"}, same, 1},
                      {"norm2.weight", {"pre_feedforward_layernorm.weight"}, same, 1},
                      {"post_norm2.weight", {"post_feedforward_layernorm.weight"}, same, 1}});
}
std::vector<TensorRow> gpt_oss() {
  return joined_rows(joined_rows(decoder(), second_norm()),
                     {{"sinks.weight", {"self_attn.sinks"}, same},
                      {"router.*", {"mlp.router.*"}, same},
                      {"experts.gate_up.weight", {"mlp.experts.gate_up_proj"}, transposed_experts},
                      {"experts.gate_up.bias", {"mlp.experts.gate_up_proj_bias"}, same},
                      {"experts.down.weight", {"mlp.experts.down_proj"}, transposed_experts},
                      {"experts.down.bias", {"mlp.experts.down_proj_bias"}, same}});
}
// Queries are computed from a latent row, or from the input itself.
bool latent_query(const Module& module, int) { return module.query_rank > 0; }
bool plain_query(const Module& module, int) { return module.query_rank == 0; }
std::vector<TensorRow> deepseek() {
  return joined_rows(joined_rows(joined_rows(joined_rows(decoder(), second_norm()), gated_mlp()),
                                 experts_of_qwen()),
                     {{"shared.gate_up.weight",
                       {"mlp.shared_experts.gate_proj.weight", "mlp.shared_experts.up_proj.weight"},
                       alternating},
                      {"shared.down.weight", {"mlp.shared_experts.down_proj.weight"}, same},
                      {"q_down.weight", {"self_attn.q_a_proj.weight"}, same},
                      {"q_down_norm.weight", {"self_attn.q_a_layernorm.weight"}, same},
                      {"kv_down.weight", {"self_attn.kv_a_proj_with_mqa.weight"}, latent_keys},
                      {"kv_down_norm.weight", {"self_attn.kv_a_layernorm.weight"}, same},
                      {"kv_up.weight", {"self_attn.kv_b_proj.weight"}, same},
                      {.parameter = "q_up.weight",
                       .tensors = {"self_attn.q_b_proj.weight"},
                       .arrange = latent_queries,
                       .applies = latent_query},
                      {.parameter = "q_up.weight",
                       .tensors = {"self_attn.q_proj.weight"},
                       .arrange = latent_queries,
                       .applies = plain_query}});
}
std::vector<TensorRow> qwen_next() {
  // Before decoder()'s row of all blocks.
  const TensorRow linear_out{.parameter = "out.weight",
                             .tensors = {"linear_attn.out_proj.weight"},
                             .arrange = same,
                             .applies = mixes_by<AttentionKind::linear>};
  std::vector<TensorRow> rows = decoder(1);
  rows.insert(rows.begin() + 1, linear_out);  // the first row is searched for
  return joined_rows(
      joined_rows(joined_rows(joined_rows(std::move(rows), second_norm(1)), gated_mlp()),
                  experts_of_qwen()),
      {{"shared.gate_up.weight",
        {"mlp.shared_expert.gate_proj.weight", "mlp.shared_expert.up_proj.weight"},
        alternating},
       {"shared.down.weight", {"mlp.shared_expert.down_proj.weight"}, same},
       {"shared.gate.weight", {"mlp.shared_expert_gate.weight"}, same},
       {"linear_in.weight",
        {"linear_attn.in_proj_qkvz.weight", "linear_attn.in_proj_ba.weight"},
        linear_input},
       {"linear_conv.weight", {"linear_attn.conv1d.weight"}, linear_convolution},
       {"linear_decay.weight", {"linear_attn.A_log"}, same},
       {"linear_decay.bias", {"linear_attn.dt_bias"}, same},
       {"linear_norm.weight", {"linear_attn.norm.weight"}, same}});
}
std::vector<TensorRow> lfm2() {
  return {{"embedding.weight", {"embed_tokens.weight"}, same},
          {"head.norm.weight", {"embedding_norm.weight"}, same},
          {"head.output.weight", {"^lm_head.weight"}, same},
          {"norm1.weight", {"operator_norm.weight"}, same},
          {"qkv.*", {"self_attn.q_proj.*", "self_attn.k_proj.*", "self_attn.v_proj.*"}, by_group},
          {"q_norm.weight", {"self_attn.q_layernorm.weight"}, same},
          {"k_norm.weight", {"self_attn.k_layernorm.weight"}, same},
          {"conv_in.weight", {"conv.in_proj.weight"}, three_per_channel},
          {"conv.weight", {"conv.conv.weight"}, one_channel_each},
          {.parameter = "out.weight",
           .tensors = {"self_attn.out_proj.weight"},
           .arrange = same,
           .applies = mixes_by<AttentionKind::full>},
          {.parameter = "out.weight",
           .tensors = {"conv.out_proj.weight"},
           .arrange = same,
           .applies = mixes_by<AttentionKind::convolution>},
          {"norm2.weight", {"ffn_norm.weight"}, same},
          {"gate_up.weight", {"feed_forward.w1.weight", "feed_forward.w3.weight"}, alternating},
          {"down.weight", {"feed_forward.w2.weight"}, same}};
}

// Encoders of CLIP's form: learned positions, LayerNorm, biases.
std::vector<TensorRow> clip() {
  return {{"patch_embedding.weight", {"embeddings.patch_embedding.weight"}, patches},
          {"patch_embedding.bias", {"embeddings.patch_embedding.bias"}, same},
          {"patch_embedding.class_token", {"embeddings.class_embedding"}, one_row},
          {"patch_embedding.position", {"embeddings.position_embedding.weight"}, same},
          {"input_norm.*", {"pre_layrnorm.*"}, same},  // the published spelling
          {"norm.*", {"post_layernorm.*"}, same},
          {"norm1.*", {"layer_norm1.*"}, same},
          {"qkv.*", {"self_attn.q_proj.*", "self_attn.k_proj.*", "self_attn.v_proj.*"}, by_group},
          {"out.*", {"self_attn.out_proj.*"}, same},
          {"norm2.*", {"layer_norm2.*"}, same},
          {"fc1.*", {"mlp.fc1.*"}, same},
          {"fc2.*", {"mlp.fc2.*"}, same}};
}
// InternViT, by the names of its own code and by those of transformers.
std::vector<TensorRow> intern_own() {
  return {{"patch_embedding.weight", {"embeddings.patch_embedding.weight"}, patches},
          {"patch_embedding.bias", {"embeddings.patch_embedding.bias"}, same},
          {"patch_embedding.class_token", {"embeddings.class_embedding"}, one_table},
          {"patch_embedding.position", {"embeddings.position_embedding"}, one_table},
          {"norm1.*", {"norm1.*"}, same},
          {"qkv.*", {"attn.qkv.*"}, joined_by_kind},
          {"out.*", {"attn.proj.*"}, same},
          {"scale1.weight", {"ls1"}, same},
          {"norm2.*", {"norm2.*"}, same},
          {"fc1.*", {"mlp.fc1.*"}, same},
          {"fc2.*", {"mlp.fc2.*"}, same},
          {"scale2.weight", {"ls2"}, same}};
}
std::vector<TensorRow> intern() {
  return {{"patch_embedding.weight", {"embeddings.patch_embeddings.projection.weight"}, patches},
          {"patch_embedding.bias", {"embeddings.patch_embeddings.projection.bias"}, same},
          {"patch_embedding.class_token", {"embeddings.cls_token"}, one_table},
          {"patch_embedding.position", {"embeddings.position_embeddings"}, one_table},
          {"norm.*", {"layernorm.*"}, same},
          {"norm1.*", {"layernorm_before.*"}, same},
          {"qkv.*", {"attention.q_proj.*", "attention.k_proj.*", "attention.v_proj.*"}, by_group},
          {"out.*", {"attention.projection_layer.*"}, same},
          {"scale1.weight", {"lambda_1"}, same},
          {"norm2.*", {"layernorm_after.*"}, same},
          {"fc1.*", {"mlp.fc1.*"}, same},
          {"fc2.*", {"mlp.fc2.*"}, same},
          {"scale2.weight", {"lambda_2"}, same}};
}
std::vector<TensorRow> pixtral() {
  return {{"patch_embedding.weight", {"patch_conv.weight"}, patches},
          {"input_norm.*", {"ln_pre.*"}, same},
          {"norm1.*", {"attention_norm.*"}, same},
          {"qkv.*", {"attention.q_proj.*", "attention.k_proj.*", "attention.v_proj.*"}, by_group},
          {"out.*", {"attention.o_proj.*"}, same},
          {"norm2.*", {"ffn_norm.*"}, same},
          {"gate_up.*", {"feed_forward.gate_proj.*", "feed_forward.up_proj.*"}, alternating},
          {"down.*", {"feed_forward.down_proj.*"}, same}};
}
// Its patches have a kernel for each of two frames; a still image is both of them.
std::vector<TensorRow> qwen_tower() {
  return {{.parameter = "patch_embedding.weight",
           .tensors = {"patch_embed.proj.weight"},
           .arrange = two_frames,
           .sums = true},
          {"norm.*", {"merger.ln_q.*"}, same},
          {"norm1.*", {"norm1.*"}, same},
          {"qkv.*", {"attn.qkv.*"}, joined_by_kind},
          {"out.*", {"attn.proj.*"}, same},
          {"norm2.*", {"norm2.*"}, same},
          {"fc1.*", {"mlp.fc1.*"}, same},
          {"fc2.*", {"mlp.fc2.*"}, same},
          {"gate_up.*", {"mlp.gate_proj.*", "mlp.up_proj.*"}, alternating},
          {"down.*", {"mlp.down_proj.*"}, same}};
}
std::vector<TensorRow> whisper() {
  return {{"conv1.weight", {"conv1.weight"}, three_frames},
          {"conv1.bias", {"conv1.bias"}, same},
          {"conv2.weight", {"conv2.weight"}, three_frames},
          {"conv2.bias", {"conv2.bias"}, same},
          {"norm.*", {"layer_norm.*"}, same},
          {"norm1.*", {"self_attn_layer_norm.*"}, same},
          {"qkv.weight",
           {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
           by_group},
          {"qkv.bias", {"self_attn.q_proj.bias", "", "self_attn.v_proj.bias"}, by_group},
          {"out.*", {"self_attn.out_proj.*"}, same},
          {"norm2.*", {"final_layer_norm.*"}, same},
          {"fc1.*", {"fc1.*"}, same},
          {"fc2.*", {"fc2.*"}, same}};
}

std::vector<TensorFamily> make_families() {
  constexpr const char* kLayers = "layers.{i}.";
  const std::vector<const char*> tables = {"rotary_emb.inv_freq"};
  std::vector<TensorFamily> families;
  const auto language = [&](std::vector<std::string> types, std::vector<TensorRow> rows) {
    families.push_back(
        {std::move(types), ModuleKind::language, std::move(rows), "model.", kLayers, tables});
  };
  language({"llama", "mistral", "qwen2", "qwen3", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl",
            "qwen2_5_vl_text"},
           llama());
  language({"mixtral"}, mixtral());
  language({"qwen3_moe"}, qwen_moe());
  language({"gemma3_text"}, gemma());
  language({"gpt_oss"}, gpt_oss());
  language({"deepseek_v2", "deepseek_v3", "kimi_k2"}, deepseek());
  families.back().later_blocks = true;
  language({"qwen3_next"}, qwen_next());
  language({"lfm2"}, lfm2());
  families.push_back({{"clip_vision_model", "siglip_vision_model"},
                      ModuleKind::vision,
                      clip(),
                      "",
                      "encoder.layers.{i}.",
                      // The norm of the pooled token, which no other row passes.
                      {"position_ids", "head.", "post_layernorm."}});
  families.push_back(
      {{"pixtral"}, ModuleKind::vision, pixtral(), "", "transformer.layers.{i}.", {}});
  families.push_back(
      {{"intern_vit_6b"}, ModuleKind::vision, intern_own(), "", "encoder.layers.{i}.", {}});
  families.push_back({{"internvl_vision"}, ModuleKind::vision, intern(), "", "encoder.layer.{i}."});
  families.push_back({{"qwen2_vl", "qwen2_vl_vision", "qwen2_5_vl", "qwen2_5_vl_vision"},
                      ModuleKind::vision,
                      qwen_tower(),
                      "visual.",
                      "blocks.{i}.",
                      // The projector's part of the merger is a module of its own.
                      {"rotary_pos_emb.inv_freq", "merger.mlp.0.weight", "merger.mlp.0.bias",
                       "merger.mlp.2.weight", "merger.mlp.2.bias"}});
  families.push_back({{"whisper"},
                      ModuleKind::audio,
                      whisper(),
                      "model.encoder.",
                      kLayers,
                      {"embed_positions.weight"}});
  families.push_back({{"llava", "llava_next"},
                      ModuleKind::projector,
                      {{"fc1.*", {"linear_1.*"}, same}, {"fc2.*", {"linear_2.*"}, same}},
                      "multi_modal_projector.",
                      "",
                      {}});
  families.push_back({{"qwen2_vl", "qwen2_5_vl"},
                      ModuleKind::projector,
                      {{"fc1.*", {"mlp.0.*"}, same}, {"fc2.*", {"mlp.2.*"}, same}},
                      "visual.merger.",
                      "",
                      {"ln_q.weight", "ln_q.bias"}});
  return families;
}
const std::vector<TensorFamily>& families() {
  static const std::vector<TensorFamily> all = make_families();
  return all;
}

// Replaces "*" by "weight" or "bias". Returns false if `parameter` is not the row's.
bool is_of(const char* row, const std::string& parameter, std::string& kind) {
  const std::string text = row;
  if (!text.ends_with("*")) return text == parameter;
  const std::string stem = text.substr(0, text.size() - 1);
  for (const char* one : {"weight", "bias"})
    if (parameter == stem + one) {
      kind = one;
      return true;
    }
  return false;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  if (const std::size_t place = text.find(what); place != std::string::npos)
    text.replace(place, what.size(), by);
  return text;
}

}  // namespace

const TensorFamily* find_tensor_family(ModuleKind kind, const std::string& type) {
  for (const TensorFamily& family : families())
    if (family.kind == kind &&
        std::find(family.types.begin(), family.types.end(), type) != family.types.end())
      return &family;
  return nullptr;
}

std::string blocks_of(const TensorFamily& family) {
  const std::string block = family.block;
  return block.substr(0, block.find('{'));
}

std::vector<std::string> tensor_family_types(ModuleKind kind) {
  std::vector<std::string> types;
  for (const TensorFamily& family : families())
    if (family.kind == kind) types.insert(types.end(), family.types.begin(), family.types.end());
  return types;
}

FoundRow find_tensor_row(const TensorFamily& family, const Module& module,
                         const Parameter& parameter) {
  std::string name = parameter.name.substr(module.name.size() + 1), in_front;
  int block = -1;
  if (constexpr std::string_view kBlock = "block"; name.starts_with(kBlock)) {
    const std::size_t dot = name.find('.');
    const std::string index = name.substr(kBlock.size(), dot - kBlock.size());
    in_front = replaced(family.block, "{i}", index);
    block = std::stoi(index);
    name = name.substr(dot + 1);
  }
  FoundRow found;
  for (const TensorRow& row : family.rows) {
    std::string kind;
    if (!is_of(row.parameter, name, kind) ||
        (row.applies != nullptr && !row.applies(module, block)))
      continue;
    found.row = &row;
    for (const char* tensor : row.tensors) {
      const std::string text = replaced(tensor, "*", kind);
      found.tensors.push_back(text.empty() || text.front() == '^' ? text : in_front + text);
    }
    return found;
  }
  return found;
}

}  // namespace polyphony
