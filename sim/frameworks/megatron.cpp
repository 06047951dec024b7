#include <algorithm>
#include <set>
#include <sstream>

#include "shared/error.h"
#include "shared/text/figure_text.h"
#include "sim/frameworks/pipeline_layout.h"
#include "sim/frameworks/translate.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

// ---- names

// Options that begin with "no_" and are not the opposite of another.
bool is_own_no(const std::string& key) {
  static const char* const kOwn[] = {
      "no_load_", "no_save_",          "no_weight_decay",      "no_rope_freq",
      "no_sync_", "no_initialization", "no_persist_layer_norm"};
  return std::any_of(std::begin(kOwn), std::end(kOwn),
                     [&](const char* own) { return key.starts_with(own); });
}

std::string opposite(const std::string& value) { return is_off(value) ? "true" : "false"; }

// Names of one thing; the first is the destination of today's Megatron-LM.
const std::vector<std::pair<const char*, const char*>> kOtherNames{
    {"tensor_model_parallel_size", "model_parallel_size"},
    {"decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"},
    {"decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"},
    {"norm_epsilon", "layernorm_epsilon"},
    {"num_experts", "num_moe_experts"},
    {"fp8", "fp8_format"},
    {"swiglu", "gated_linear_unit"},
    {"rotary_base", "rope_theta"},
    {"microbatch_group_size_per_vp_stage", "microbatch_group_size_per_virtual_pipeline_stage"},
    {"freeze_language_model", "freeze_LM"},
    {"freeze_vision_model", "freeze_ViT"},
    {"freeze_language_model", "freeze_llm"},
    {"freeze_vision_model", "freeze_vit"},
    {"freeze_vision_projection", "freeze_aligner"},
    {"seq_length", "max_length"},
    {"seq_length", "sequence_length"},
    {"optimizer_offload_fraction", "optimizer_cpu_offload_fraction"},
};

Setting canonical(Setting setting) {
  std::string& key = setting.key;
  if (key == "disable_bias_linear" || key == "no_bias_linear") {
    key = "add_bias_linear";
    setting.value = opposite(setting.value);
  } else if (key == "share_embeddings_and_output_weights") {
    key = "untie_embeddings_and_output_weights";
    setting.value = opposite(setting.value);
  } else if (key == "recompute_activations" || key == "checkpoint_activations") {
    if (!is_off(setting.value)) {
      setting.value = key == "checkpoint_activations" ? "full" : "selective";
      key = "recompute_granularity";
    }
  } else if (key.starts_with("no_") && !is_own_no(key)) {
    key = key.substr(3);
    setting.value = opposite(setting.value);
  }
  for (const auto& [today, other] : kOtherNames)
    if (key == other) key = today;
  return setting;
}

// ---- the model

// Width of a gated feed-forward part where --ffn-hidden-size is absent: two thirds of four times
// the width, down to a multiple of 64 (megatron/training/arguments.py).
std::int64_t gated_width(std::int64_t hidden) { return (4 * hidden * 2 / 3) / 64 * 64; }

// --moe-layer-freq: "1", "([0]*3+[1]*58)". Returns the number of dense blocks at the start, or -1
// if experts and dense blocks alternate.
int dense_blocks(const std::string& text, std::int64_t layers) {
  if (text.empty() || text == "1") return 0;
  std::string plain;
  for (const char c : text)
    if (c != '(' && c != ')' && c != ' ' && c != '\'' && c != '"') plain += c;
  std::vector<int> pattern;
  std::istringstream terms(plain);
  for (std::string term; std::getline(terms, term, '+');) {
    const std::size_t close = term.find(']');
    if (term.empty() || term[0] != '[' || close == std::string::npos) {
      // 0, 1 in a row, as a printed list has them
      if (term == "0" || term == "1") {
        pattern.push_back(term == "1");
        continue;
      }
      return -1;
    }
    int times = 1;
    if (close + 1 < term.size()) {
      if (term[close + 1] != '*') return -1;
      times = std::atoi(term.c_str() + close + 2);
    }
    std::vector<int> once;
    for (const char c : term.substr(1, close - 1))
      if (c == '0' || c == '1') once.push_back(c == '1');
    for (int i = 0; i < times && pattern.size() <= 4096; ++i)
      pattern.insert(pattern.end(), once.begin(), once.end());
  }
  const auto first = std::find(pattern.begin(), pattern.end(), 1);
  if (std::find(first, pattern.end(), 0) != pattern.end()) return -1;
  if (static_cast<std::int64_t>(pattern.size()) != layers) return -1;
  return static_cast<int>(first - pattern.begin());
}

void put(OrderedJson& module, const char* key, const std::optional<std::int64_t>& value) {
  if (value) module[key] = *value;
}

void read_experts(SettingReader& s, OrderedJson& module, std::int64_t layers) {
  const std::optional<std::int64_t> experts = s.integer("num_experts", "language.experts");
  if (!experts || *experts == 0) return;
  module["experts"] = *experts;
  module["experts_per_token"] =
      s.count("moe_router_topk", "language.experts_per_token").value_or(2);
  const std::int64_t ffn = module.value("ffn", std::int64_t{0});
  module["expert_ffn"] = s.count("moe_ffn_hidden_size", "language.expert_ffn").value_or(ffn);
  put(module, "shared_ffn",
      s.integer("moe_shared_expert_intermediate_size", "language.shared_ffn"));
  if (s.flag("moe_shared_expert_gate", false, "language.shared_gate")) module["shared_gate"] = true;
  const std::string every = s.text("moe_layer_freq", "language.dense_blocks");
  const int dense = dense_blocks(every, layers);
  if (dense < 0)
    s.not_modeled("moe_layer_freq",
                  "dense blocks between blocks with experts: all have experts here");
  if (dense > 0)
    module["dense_blocks"] = dense;
  else
    module.erase("ffn");
  if (s.text("moe_router_score_function", "language.router_scores") == "sigmoid")
    module["router_scores"] = "sigmoid";
  if (const auto scale = s.number("moe_router_topk_scaling_factor", "language.routed_scale"))
    module["routed_scale"] = *scale;
  const auto groups = s.integer("moe_router_num_groups", "language.expert_groups");
  const auto chosen = s.integer("moe_router_group_topk", "language.groups_per_token");
  if (groups && chosen && *groups > 1) {
    module["expert_groups"] = *groups;
    module["groups_per_token"] = *chosen;
  }
  if (s.flag("moe_router_enable_expert_bias", false, "language.choice_bias"))
    module["choice_bias"] = true;
  if (const auto weight = s.number("moe_aux_loss_coeff", "language.balance_weight");
      weight && *weight > 0)
    module["balance_weight"] = *weight;
  const std::string dispatcher =
      s.text("moe_token_dispatcher_type", "dispatch of tokens to experts");
  const std::string backend =
      s.text("moe_flex_dispatcher_backend", "dispatch of tokens to experts");
  if (dispatcher == "flex" || s.flag("moe_enable_deepep", false, "dispatch"))
    s.approximated("moe_token_dispatcher_type",
                   "a token is sent once a rank (stack megatron-bridge); " +
                       (backend.empty() ? std::string("DeepEP") : backend) +
                       "'s own speed is not known");
  if (dispatcher == "allgather")
    s.approximated("moe_token_dispatcher_type", "tokens are exchanged, not gathered");
}

void read_latent_attention(SettingReader& s, OrderedJson& module) {
  if (!s.flag("multi_latent_attention", false, "latent attention")) {
    for (const char* key :
         {"kv_lora_rank", "q_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"})
      s.ignored_all(key, "without --multi-latent-attention it means nothing");
    return;
  }
  put(module, "key_value_rank", s.count("kv_lora_rank", "language.key_value_rank"));
  put(module, "query_rank", s.integer("q_lora_rank", "language.query_rank"));
  put(module, "rotary_dim", s.integer("qk_pos_emb_head_dim", "language.rotary_dim"));
  put(module, "value_dim", s.count("v_head_dim", "language.value_dim"));
  // Megatron-LM's defaults: transformer_config.py, MLATransformerConfig.
  if (!module.contains("key_value_rank")) module["key_value_rank"] = 512;
  if (!module.contains("rotary_dim")) module["rotary_dim"] = 64;
  if (!module.contains("value_dim")) module["value_dim"] = 128;
  module["head_dim"] = s.count("qk_head_dim", "language.head_dim").value_or(128);
  module.erase("kv_heads");
  module.erase("qk_norm");
  s.ignored("kv_channels", "latent attention has widths of its own");
  s.ignored("qk_layernorm", "latent attention normalizes its compressed rows");
  s.ignored("group_query_attention", "latent attention has no key/value heads");
  s.ignored("num_query_groups", "latent attention has no key/value heads");
}

void read_vocabulary(SettingReader& s, OrderedJson& module, int tp) {
  if (const auto padded = s.count("padded_vocab_size", "language.vocab")) {
    module["vocab"] = *padded;
    return;
  }
  auto words = s.count("vocab_size", "language.vocab");
  if (!words) {  // tokenizers whose vocabulary is known (megatron/training/arguments.py)
    const std::string tokenizer = s.text("tokenizer_type", "language.vocab");
    const std::int64_t known = tokenizer == "Llama2Tokenizer"    ? 32000
                               : tokenizer == "GPT2BPETokenizer" ? 50257
                                                                 : 0;
    if (known == 0) return;
    words = known;
  }
  const std::int64_t unit =
      s.count("make_vocab_size_divisible_by", "language.vocab").value_or(128) * std::max(1, tp);
  if (unit <= 0) s.refuse("make_vocab_size_divisible_by", "must be at least 1", "correct the file");
  module["vocab"] = (*words + unit - 1) / unit * unit;
}

std::optional<OrderedJson> read_language(SettingReader& s, int tp) {
  const auto layers = s.count("num_layers", "language.layers");
  const auto hidden = s.count("hidden_size", "language.hidden");
  const auto heads = s.count("num_attention_heads", "language.heads");
  if (!layers || !hidden || !heads) {
    for (const char* key :
         {"num_query_groups", "group_query_attention", "kv_channels", "swiglu", "ffn_hidden_size",
          "add_bias_linear", "add_qkv_bias", "qk_layernorm", "normalization",
          "untie_embeddings_and_output_weights", "multi_latent_attention", "hybrid_layer_pattern"})
      s.ignored(key,
                "one of the model's dimensions, not all of which are stated: --model states them");
    for (const char* key : {"num_experts", "moe_router_*", "moe_ffn_hidden_size",
                            "moe_shared_expert_*", "moe_layer_freq", "moe_aux_loss_coeff"})
      s.ignored_all(
          key, "one of the model's dimensions, not all of which are stated: --model states them");
    return std::nullopt;
  }
  for (const auto& [key, value] :
       {std::pair{"num_layers", layers}, {"hidden_size", hidden}, {"num_attention_heads", heads}})
    if (*value < 1 || *value > 1000000) s.refuse(key, "must be at least 1", "correct the file");
  OrderedJson module{{"layers", *layers}, {"hidden", *hidden}, {"heads", *heads}};
  const auto groups = s.count("num_query_groups", "language.kv_heads");
  const bool grouped = s.flag("group_query_attention", groups.has_value(), "language.kv_heads");
  module["kv_heads"] = grouped ? groups.value_or(1) : *heads;
  put(module, "head_dim", s.count("kv_channels", "language.head_dim"));
  const bool gated = s.flag("swiglu", false, "language.gated");
  module["gated"] = gated;
  module["ffn"] = s.count("ffn_hidden_size", "language.ffn")
                      .value_or(gated ? gated_width(*hidden) : 4 * *hidden);
  const bool biases = s.flag("add_bias_linear", true, "biases");
  module["attention_bias"] = biases;
  module["mlp_bias"] = biases;
  if (s.flag("add_qkv_bias", false, "language.qkv_bias") && !biases) module["qkv_bias"] = true;
  if (s.flag("qk_layernorm", false, "language.qk_norm")) module["qk_norm"] = true;
  const std::string norm = s.text("normalization", "language.norm");
  module["norm"] = norm == "RMSNorm" ? "rms" : "layer";
  if (const auto epsilon = s.number("norm_epsilon", "language.norm_epsilon"))
    module["norm_epsilon"] = *epsilon;
  module["tied"] = !s.flag("untie_embeddings_and_output_weights", false, "language.tied");
  if (const auto base = s.number("rotary_base", "language.rope_theta"))
    module["rope_theta"] = *base;
  read_vocabulary(s, module, tp);
  read_latent_attention(s, module);
  read_experts(s, module, *layers);
  if (const Setting* window = s.find("window_size"); window && !is_off(window->value))
    s.not_modeled("window_size", "attention in windows (\"mixers\" and \"sliding_window\" say it)");
  if (s.has("hybrid_layer_pattern") || s.has("hybrid_override_pattern"))
    s.refuse(s.has("hybrid_layer_pattern") ? "hybrid_layer_pattern" : "hybrid_override_pattern",
             "hybrid models (Mamba) are not modeled", "nothing can be imported from this run");
  return module;
}

// ---- the layout

int degree(SettingReader& s, const char* key, const char* what) {
  const auto value = s.integer(key, what);
  if (value && (*value < 1 || *value > 1000000))
    s.refuse(key, "must be at least 1", "correct the file");
  return static_cast<int>(value.value_or(1));
}

std::vector<int> uneven_blocks(SettingReader& s, const ModuleLayout& grid, std::int64_t layers) {
  const auto first = s.integer("decoder_first_pipeline_num_layers", "blocks");
  const auto last = s.integer("decoder_last_pipeline_num_layers", "blocks");
  const bool embedding = s.flag("account_for_embedding_in_pipeline_split", false, "blocks");
  const bool loss = s.flag("account_for_loss_in_pipeline_split", false, "blocks");
  const int pp = grid.pp, stages = grid.pp * grid.vpp;
  if (pp == 1 || (!first && !last && !embedding && !loss)) return {};
  std::vector<int> blocks(static_cast<std::size_t>(stages));
  const char* key = first       ? "decoder_first_pipeline_num_layers"
                    : last      ? "decoder_last_pipeline_num_layers"
                    : embedding ? "account_for_embedding_in_pipeline_split"
                                : "account_for_loss_in_pipeline_split";
  const auto divides = [&](std::int64_t all, std::int64_t parts) {
    if (parts < 1 || all < 0 || all % parts != 0)
      s.refuse(key, count_text(all) + " blocks cannot be divided evenly by " + count_text(parts),
               "Megatron-LM refuses this, too");
    return static_cast<int>(all / parts);
  };
  if (embedding || loss) {
    if (first || last)
      s.contradiction(key,
                      "the number of blocks of a stage is stated, too: Megatron-LM refuses both");
    const int each = divides(layers + (embedding ? 1 : 0) + (loss ? 1 : 0), stages);
    std::fill(blocks.begin(), blocks.end(), each);
    if (embedding) --blocks.front();
    if (loss) --blocks.back();
    return blocks;
  }
  const int others = pp - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t rest = layers - first.value_or(0) - last.value_or(0);
  if (others == 0 && rest != 0)
    s.refuse(key,
             "the first and the last stage have " + count_text(layers - rest) + " of " +
                 count_text(layers) + " blocks",
             "Megatron-LM refuses this, too");
  const int each = others > 0 ? divides(rest, others) : 0;
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = stage % pp;
    const std::int64_t own = rank == 0 && first ? *first : rank == pp - 1 && last ? *last : each;
    blocks[static_cast<std::size_t>(stage)] = divides(own, grid.vpp);
  }
  return blocks;
}

void read_pipeline(SettingReader& s, RunSettings& run, std::int64_t layers) {
  ModuleLayout& grid = run.grid;
  grid.pp = degree(s, "pipeline_model_parallel_size", "pp");
  const Setting* layout = s.find("pipeline_model_parallel_layout");
  const auto per_virtual = s.count("num_layers_per_virtual_pipeline_stage", "vpp");
  const auto per_rank = s.count("num_virtual_stages_per_pipeline_rank", "vpp");
  const auto stated = s.count("virtual_pipeline_model_parallel_size", "vpp");
  const int ways =
      (layout && !is_off(layout->value)) + per_virtual.has_value() + per_rank.has_value();
  if (ways > 1)
    s.contradiction(per_virtual ? "num_layers_per_virtual_pipeline_stage"
                                : "num_virtual_stages_per_pipeline_rank",
                    "virtual stages are stated in two ways: Megatron-LM refuses both");
  if (layout && !is_off(layout->value)) {
    std::string text = layout->value;
    if (text.find("decoder") != std::string::npos || text.find("embedding") != std::string::npos) {
      // Lists of words, as Megatron-Bridge takes them: embedding,decoder|decoder|loss
      for (const auto& [word, letter] :
           {std::pair{"embedding", "E"}, {"decoder", "t"}, {"mtp", "m"}, {"loss", "L"}})
        for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at))
          text.replace(at, std::string(word).size(), letter);
    }
    const std::vector<PipelineStage> stages = parse_pipeline_layout(text, layout->place);
    if (grid.pp < 1 || stages.size() % static_cast<std::size_t>(grid.pp) != 0)
      s.refuse("pipeline_model_parallel_layout",
               "has " + counted(static_cast<std::int64_t>(stages.size()), "stage", "stages") +
                   ", which " + std::to_string(grid.pp) + " pipeline ranks do not divide",
               "Megatron-LM refuses this, too");
    grid.vpp = static_cast<int>(stages.size()) / grid.pp;
    int predictions = 0, empty = 0;
    for (const PipelineStage& stage : stages) {
      run.blocks.push_back(stage.blocks);
      predictions += stage.predictions;
      const bool end = &stage == &stages.front() || &stage == &stages.back();
      empty += stage.blocks == 0 && !end;
    }
    if (empty > 0) {
      run.blocks.clear();
      run.even = false;
      s.approximated(
          "pipeline_model_parallel_layout",
          counted(empty, "stage has", "stages have") +
              " no block, which no layout here can say: blocks are split by their times");
    } else if (predictions > 0) {
      s.approximated("pipeline_model_parallel_layout",
                     "blocks by stage; without its blocks of multi-token prediction");
    } else {
      s.used("pipeline_model_parallel_layout", "blocks of each stage");
    }
    return;
  }
  if (per_virtual && *per_virtual > 0 && layers > 0) {
    const std::int64_t each = layers / grid.pp;
    if (each % *per_virtual != 0)
      s.refuse("num_layers_per_virtual_pipeline_stage",
               "must divide the " + count_text(each) + " blocks of a pipeline rank",
               "Megatron-LM refuses this, too");
    grid.vpp = static_cast<int>(each / *per_virtual);
  }
  if (per_rank) grid.vpp = static_cast<int>(std::clamp<std::int64_t>(*per_rank, 1, 100000));
  if (stated) grid.vpp = static_cast<int>(std::clamp<std::int64_t>(*stated, 1, 100000));
  if (layers > 0) run.blocks = uneven_blocks(s, grid, layers);
}

void read_recomputation(SettingReader& s, RunSettings& run, Framework framework) {
  std::string granularity = s.text("recompute_granularity", "recompute");
  if (granularity.empty() && framework == Framework::ms_swift &&
      !s.is_none("recompute_granularity")) {
    granularity = "selective";
    s.assumed(
        "recomputation of attention: ms-swift's recompute_granularity is selective unless stated");
  }
  const Setting* modules = s.find("recompute_modules");
  if (granularity == "full") s.ignored_all("recompute_modules", "whole blocks are recomputed");
  if (granularity == "selective") {
    const std::string list = modules ? modules->value : "core_attn";
    if (list.find("core_attn") != std::string::npos) run.grid.recompute = Recompute::selective;
    if (list == "core_attn")
      s.used("recompute_modules", "recompute selective");
    else if (modules)
      s.approximated("recompute_modules",
                     run.grid.recompute == Recompute::selective
                         ? "of these, attention alone is recomputed here: memory is overestimated"
                         : "nothing is recomputed here: memory is overestimated");
    return;
  }
  if (granularity != "full") {
    for (const char* key : {"recompute_modules", "recompute_method", "recompute_num_layers"})
      s.ignored_all(key, "nothing is recomputed");
    return;
  }
  run.grid.recompute = Recompute::full;
  const std::string method = s.text("recompute_method", "recompute full");
  const auto layers = s.integer("recompute_num_layers", "recompute full");
  if (method == "block" && layers) {
    run.recomputed_per_stage = static_cast<int>(std::clamp<std::int64_t>(*layers, 0, 100000));
    if (run.recomputed_per_stage == 0) run.grid.recompute = Recompute::none;
  } else if (layers && *layers > 1) {
    s.approximated("recompute_num_layers", "the input of each block is kept, not that of each " +
                                               count_text(*layers) + ": memory is overestimated");
  }
}

void read_sharding(SettingReader& s, RunSettings& run, Framework framework) {
  ModuleLayout& grid = run.grid;
  bool distributed =
      s.flag("use_distributed_optimizer",
             framework == Framework::ms_swift || framework == Framework::megatron_bridge ||
                 framework == Framework::verl || framework == Framework::nemo_rl,
             "shard optimizer");
  if (!s.has("use_distributed_optimizer") && distributed)
    s.assumed(std::string("a distributed optimizer: ") + name(framework) + "'s default");
  const std::string strategy = s.text("data_parallel_sharding_strategy", "shard");
  const bool fsdp =
      s.flag("use_megatron_fsdp", false, "shard") || s.flag("use_custom_fsdp", false, "shard");
  if (s.flag("use_torch_fsdp2", false, "shard")) {
    grid.shard = s.flag("torch_fsdp2_reshard_after_forward", true, "shard full") ? Shard::full
                                                                                 : Shard::gradients;
    run.stack = "fsdp2";
  } else if (fsdp) {
    grid.shard = strategy == "no_shard"      ? Shard::none
                 : strategy == "optim"       ? Shard::optimizer
                 : strategy == "optim_grads" ? Shard::gradients
                                             : Shard::full;
  } else {
    grid.shard = distributed ? Shard::optimizer : Shard::none;
    if (!strategy.empty() && strategy != "no_shard" && !s.has("use_megatron_fsdp"))
      s.ignored("data_parallel_sharding_strategy", "counts with Megatron-FSDP only, which is off");
  }
}

void read_context_parallelism(SettingReader& s, RunSettings& run) {
  ModuleLayout& grid = run.grid;
  grid.cp = degree(s, "context_parallel_size", "cp");
  std::string way = s.text("cp_comm_type", "cp_attention");
  if (const std::size_t blank = way.find(' '); blank != std::string::npos) {
    s.approximated("cp_comm_type", "the first block's way for all blocks");
    way = way.substr(0, blank);
  }
  if (way == "a2a+p2p") s.approximated("cp_comm_type", "a ring over all ranks");
  grid.cp_attention = way == "all_gather" || way == "allgather" ? ContextAttention::all_gather
                      : way == "a2a"                            ? ContextAttention::ulysses
                                                                : ContextAttention::ring;
  s.used("hierarchical_context_parallel_sizes", "cp");
  if (grid.cp > 1) grid.tokens = TokenAssignment::zigzag;
  if (s.text("cp_partition_mode", "tokens") == "contiguous")
    grid.tokens = TokenAssignment::contiguous;
  if (grid.cp == 1) grid.cp_attention = ContextAttention::all_gather;
}

// ---- batch, precision, training

void read_batch(SettingReader& s, RunSettings& run, Framework framework) {
  run.microbatch = s.count("micro_batch_size", "samples of a microbatch");
  run.global_batch = s.count("global_batch_size", "data.global_batch");
  if (framework == Framework::ms_swift) {
    if (!run.microbatch) run.microbatch = 1;
    if (!run.global_batch) {
      run.global_batch = 16;
      s.assumed("a global batch of 16 samples: ms-swift's default");
    }
  }
  run.sequence = s.count("seq_length", "data.sequence");
  if (const auto decoder = s.count("decoder_seq_length", "data.sequence")) run.sequence = decoder;
}

void read_precision(SettingReader& s, RunSettings& run, Framework framework) {
  std::string mixed = s.text("mixed_precision", "training.precision");
  run.precision = "fp32";
  if (s.flag("fp16", false, "training.precision")) {
    run.precision = "bf16";
    s.approximated("fp16", "bf16, whose kernels are as fast; without a scale of the loss");
  }
  if (s.flag("bf16", false, "training.precision") || mixed.find("bf16") != std::string::npos)
    run.precision = "bf16";
  if (s.text("torch_dtype", "training.precision") == "bfloat16") run.precision = "bf16";
  const bool stated = !mixed.empty() || s.has("bf16") || s.has("fp16") || s.has("torch_dtype");
  if (!stated && framework != Framework::megatron_lm) {
    run.precision = "bf16";
    s.assumed(std::string("bf16: ") + name(framework) +
              (framework == Framework::megatron_bridge ? "'s recipes are bf16_mixed"
               : framework == Framework::ms_swift      ? " takes the model's format"
                                                       : "'s default"));
  }
  std::string fp8 = s.text("fp8", "training.fp8");
  if (mixed.find("fp8") != std::string::npos) fp8 = mixed;
  if (is_off(fp8)) return;
  const std::string recipe = s.text("fp8_recipe", "training.fp8") + mixed;
  const bool blocks = recipe.find("block") != std::string::npos ||
                      recipe.find("mxfp8") != std::string::npos ||
                      recipe.find("subchannel") != std::string::npos;
  run.precision = "bf16";
  run.fp8 = blocks ? "rowwise" : "tensorwise";
  if (blocks)
    s.approximated(s.has("fp8_recipe") ? "fp8_recipe" : "mixed_precision",
                   "one scale a row, not one a block");
}

void read_trained(SettingReader& s, RunSettings& run, Framework framework, int known_layers) {
  const bool kept = framework == Framework::ms_swift || framework == Framework::llama_factory;
  for (const auto& [key, module, frozen] : {std::tuple{"freeze_vision_model", "vision", kept},
                                            {"freeze_vision_projection", "projector", kept},
                                            {"freeze_language_model", "language", false}})
    if (s.flag(key, frozen, std::string(module) + ".train frozen"))
      run.train.emplace_back(module, "frozen");
  std::string tuner = s.text("tuner_type", "language.train");
  if (tuner.empty()) tuner = s.text("train_type", "language.train");
  if (tuner == "lora") train_by_lora(s.integer("lora_rank", "language.lora_rank"), run);
  run.model_name = s.text("model", "the model");
  if (run.model_name.empty()) run.model_name = s.text("hf_model_id", "the model");
  if (run.model_name.empty() && !s.has("num_layers"))
    run.model_name = s.text("tokenizer_model", "the model");
  // Megatron-LM's examples/multimodal/model.py and config.py.
  if (const std::string vision = s.text("vision_model_type", "vision"); !vision.empty()) {
    run.encoder = vision == "clip"                    ? "clip-vit-l-14-336"
                  : vision == "siglip"                ? "siglip-so400m-14"
                  : vision.find("internvit300M") == 0 ? "internvit-300m"
                  : vision.find("internvit") == 0     ? "internvit-6b"
                                                      : "";
    if (run.encoder.empty())
      s.refuse("vision_model_type", "is an encoder that is not known",
               "clip, siglip, internvit, or give the model by --model");
  }
  s.ignored("language_model_type", "--num-layers and the other dimensions state it");
  run.tokenizer = s.text("tokenizer_model", "language.vocab");
  if (s.text("_target_", "the model").find("VL") != std::string::npos && run.language &&
      run.encoder.empty() && known_layers == 0)
    s.approximated("_target_",
                   "the encoder's dimensions are not read: without --model CONFIG, the language "
                   "model alone is predicted");
  run.copied_images = !s.flag("vision_dp_when_cp", false, "images are divided over cp ranks");
}

}  // namespace

std::vector<Setting> megatron_names(const FrameworkSettings& read) {
  static const std::set<std::string> kSections{"model",     "train",           "ddp",
                                               "optimizer", "mixed_precision", "scheduler"};
  std::vector<Setting> settings;
  for (Setting setting : read.settings) {
    if (read.framework == Framework::megatron_bridge) {
      const std::size_t dot = setting.key.find('.');
      if (dot != std::string::npos && kSections.contains(setting.key.substr(0, dot)))
        setting.key = setting.key.substr(dot + 1);
      if (setting.key == "dataset.seq_length" || setting.key == "dataset.sequence_length")
        setting.key = "seq_length";
    }
    settings.push_back(canonical(std::move(setting)));
  }
  return settings;
}

void read_optimization(SettingReader& s, RunSettings& run) {
  OrderedJson& training = run.training;
  read_training_number(s, "lr", "learning_rate", run);
  read_training_number(s, "weight_decay", "weight_decay", run);
  read_training_number(s, "adam_beta1", "beta1", run);
  read_training_number(s, "adam_beta2", "beta2", run);
  read_training_number(s, "adam_eps", "epsilon", run);
  read_training_number(s, "clip_grad", "clip_norm", run);
  const std::string decay = s.text("lr_decay_style", "training.decay");
  if (decay == "cosine" || decay == "linear" || decay == "constant") training["decay"] = decay;
  if (decay == "WSD") training["decay"] = "wsd";
  if (const auto least = s.number("min_lr", "training.min_learning_rate");
      least && *least >= 0 && training.contains("decay") && training["decay"] != "constant")
    training["min_learning_rate"] = *least;
  read_training_steps(s, "lr_warmup_iters", "warmup_steps", run);
  if (const auto steps = s.integer("lr_wsd_decay_iters", "training.wsd_decay_steps");
      steps && *steps > 0 && decay == "WSD")
    training["wsd_decay_steps"] = *steps;
  read_training_steps(s, "train_iters", "steps", run);
  if (const auto seed = s.integer("seed", "training.seed"); seed && *seed >= 0)
    training["seed"] = *seed;
}

RunSettings read_megatron(SettingReader& s, Framework framework, int known_layers) {
  RunSettings run;
  const std::string transformer = s.text("transformer_impl", "stack");
  run.stack = framework == Framework::megatron_bridge ? "megatron-bridge"
              : transformer == "local"                ? "megatron-2022"
                                                      : "megatron-core";
  ModuleLayout& grid = run.grid;
  grid.tp = degree(s, "tensor_model_parallel_size", "tp");
  run.language = read_language(s, grid.tp);
  const std::int64_t layers = known_layers > 0 || !run.language
                                  ? known_layers
                                  : run.language->value("layers", std::int64_t{0});
  read_pipeline(s, run, layers);
  read_context_parallelism(s, run);
  grid.ep = degree(s, "expert_model_parallel_size", "ep");
  grid.sp = s.flag("sequence_parallel", framework == Framework::verl, "sp");
  if (grid.tp == 1 && grid.sp) {
    grid.sp = false;
    s.ignored("sequence_parallel",
              "needs more than one tensor-parallel rank; Megatron-LM switches it off");
  }
  if (const auto expert_tp = s.integer("expert_tensor_parallel_size", "expert_tp"))
    grid.expert_tp = static_cast<int>(std::clamp<std::int64_t>(*expert_tp, 1, 100000));
  else if (framework == Framework::ms_swift || framework == Framework::llama_factory)
    grid.expert_tp = 1;
  if (grid.expert_tp == grid.tp) grid.expert_tp = 0;
  const bool experts = run.language && run.language->contains("experts");
  if (run.language && !experts) {
    grid.expert_tp = 0;
    s.ignored_all("moe_*", "the model has no experts");
  }
  read_sharding(s, run, framework);
  const auto instances = s.integer("num_distributed_optimizer_instances", "shard_ranks");
  read_recomputation(s, run, framework);
  if (grid.vpp > 1) run.schedule = ScheduleKind::interleaved;
  read_batch(s, run, framework);
  read_precision(s, run, framework);
  read_optimization(s, run);
  read_trained(s, run, framework, known_layers);
  if (const auto world = s.count("world_size", "ranks")) run.ranks = static_cast<int>(*world);
  if (instances && *instances > 1)
    run.shard_groups = static_cast<int>(std::min<std::int64_t>(*instances, 100000));
  if (s.text("moe_token_dispatcher_type", "dispatch of tokens to experts") == "flex" &&
      run.stack == "megatron-core")
    run.stack = "megatron-bridge";
  s.used("moe_flex_dispatcher_backend", "dispatch of tokens to experts");
  if (const Setting* optimizer = s.find("optimizer");
      optimizer && (optimizer->value == "adam" || optimizer->value == "adamw"))
    s.used("optimizer", "AdamW");
  if (const auto group = s.integer("microbatch_group_size_per_vp_stage",
                                   "microbatches that a virtual stage takes in a row");
      group && *group != grid.pp && grid.vpp > 1)
    s.not_modeled(
        "microbatch_group_size_per_vp_stage",
        "microbatches that a virtual stage takes in a row; here as many as pipeline ranks");
  if (framework == Framework::megatron_lm && !s.has("hidden_dropout") &&
      !s.has("attention_dropout"))
    s.assumed("no dropout, though 0.1 is Megatron-LM's default where none is stated");
  s.used("transformer_pipeline_model_parallel_size", "pp");
  s.used("data_parallel_size", "follows from ranks, tp, pp and cp");
  return run;
}

}  // namespace polyphony::sim
