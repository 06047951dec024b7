// Megatron-LM, Megatron-Bridge and ms-swift: the names of megatron/training/arguments.py.
#include <algorithm>
#include <sstream>

#include "shared/text/figure_text.h"
#include "sim/frameworks/emit.h"
#include "sim/frameworks/pipeline_layout.h"
#include "sim/text/shell_text.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Writer {
 public:
  Writer(const EmitInput& input, Emitted& emitted) : in_(input), out_(emitted) {}

  void refuse(const std::string& what) { out_.cannot.push_back(what); }
  void note(const std::string& what) { out_.notes.push_back(what); }
  void set(const char* key, OrderedJson value) { out_.arguments[key] = std::move(value); }

  // ---- the model

  void check_module() {
    const Module& m = in_.module;
    const auto lacks = [&](bool has, const char* what) {
      if (has) refuse(std::string("the language model's ") + what);
    };
    lacks(!m.mixers.empty(), "blocks of several kinds (mixers)");
    lacks(m.post_norms, "norms behind attention and feed-forward (post_norms)");
    lacks(m.scaled_embedding, "scaled embedding");
    lacks(m.attention_sinks, "attention sinks");
    lacks(m.attention_gate, "attention gate");
    lacks(m.expert_bias, "biases of experts");
    lacks(m.abstract.is, "dimensions: it is described by its times alone");
    lacks(m.gated && m.activation != Activation::silu, "activation function other than SwiGLU's");
    lacks(m.attention_bias != m.mlp_bias, "biases in attention or feed-forward alone");
    lacks(m.mask != Mask::causal, "mask");
  }

  void write_model() {
    const Module& m = in_.module;
    set("num_layers", m.layers);
    set("hidden_size", m.hidden);
    set("num_attention_heads", m.heads);
    const bool latent = m.key_value_rank > 0;
    if (!latent && m.kv_heads != m.heads) {
      set("group_query_attention", true);
      set("num_query_groups", m.kv_heads);
    }
    if (!latent) set("kv_channels", m.head_dim);
    const int ffn = m.experts > 0 && m.ffn == 0 ? m.expert_ffn : m.ffn;
    set("ffn_hidden_size", ffn);
    if (m.gated) set("swiglu", true);
    set("normalization", m.norm == Norm::rms ? "RMSNorm" : "LayerNorm");
    set("layernorm_epsilon", m.norm_epsilon);
    set("position_embedding_type", "rope");
    set("rotary_base", static_cast<std::int64_t>(m.rope_theta));
    if (m.rope_scaling == RopeScaling::llama3) {
      set("use_rope_scaling", true);
      set("rope_scaling_factor", m.rope_factor);
    }
    if (!m.attention_bias && !m.mlp_bias) set("add_bias_linear", false);
    if (m.qkv_bias) set("add_qkv_bias", true);
    if (m.qk_norm) set("qk_layernorm", true);
    if (!m.tied) set("untie_embeddings_and_output_weights", true);
    if (latent) {
      set("multi_latent_attention", true);
      if (m.query_rank > 0) set("q_lora_rank", m.query_rank);
      set("kv_lora_rank", m.key_value_rank);
      set("qk_head_dim", m.head_dim);
      set("qk_pos_emb_head_dim", m.rotary_dim);
      set("v_head_dim", value_width(m));
      set("qk_layernorm", true);
    }
    if (m.experts > 0) {
      set("num_experts", m.experts);
      set("moe_router_topk", m.experts_per_token);
      set("moe_ffn_hidden_size", m.expert_ffn);
      if (m.shared_ffn > 0) set("moe_shared_expert_intermediate_size", m.shared_ffn);
      if (m.shared_gate) set("moe_shared_expert_gate", true);
      if (m.dense_blocks > 0)
        set("moe_layer_freq", "([0]*" + std::to_string(m.dense_blocks) + "+[1]*" +
                                  std::to_string(m.layers - m.dense_blocks) + ")");
      if (m.router_scores == RouterScores::sigmoid) set("moe_router_score_function", "sigmoid");
      if (m.routed_scale != 1) set("moe_router_topk_scaling_factor", m.routed_scale);
      if (m.expert_groups > 1) {
        set("moe_router_num_groups", m.expert_groups);
        set("moe_router_group_topk", m.groups_per_token);
      }
      if (m.choice_bias) set("moe_router_enable_expert_bias", true);
      set("moe_router_load_balancing_type", m.balance_weight > 0 ? "aux_loss" : "none");
      if (m.balance_weight > 0) set("moe_aux_loss_coeff", m.balance_weight);
      set("moe_grouped_gemm", true);
    }
    set("max_position_embeddings", in_.sequence);
    set("attention_dropout", 0.0);
    set("hidden_dropout", 0.0);
    int unit = 128;
    while (unit > 1 && m.vocab % (unit * in_.grid.tp) != 0) unit /= 2;
    if (m.vocab % (unit * in_.grid.tp) != 0)
      note("Megatron pads the vocabulary of " + count_text(m.vocab) +
           " to a multiple of the tensor-parallel ranks");
    set("vocab_size", m.vocab);
    set("make_vocab_size_divisible_by", unit);
  }

  // ---- the layout

  // `overrides`: a recipe, or the framework's own defaults, stand where nothing is stated.
  void write_layout(bool swift, bool overrides) {
    const ModuleLayout& g = in_.grid;
    set("tensor_model_parallel_size", g.tp);
    set("pipeline_model_parallel_size", g.pp);
    set("context_parallel_size", g.cp);
    if (g.tp > 1 || overrides) set("sequence_parallel", g.sp);
    if (in_.module.experts > 0) {
      set("expert_model_parallel_size", g.ep);
      set("expert_tensor_parallel_size", g.experts_tp());
      set("moe_token_dispatcher_type", "alltoall");
      if (g.tp > 1 && !g.sp)
        refuse("experts under tensor parallelism without sequence parallelism");
    }
    if (in_.layout.schedule != ScheduleKind::one_f_one_b &&
        in_.layout.schedule != ScheduleKind::interleaved && g.pp > 1)
      refuse(std::string("schedule ") + schedule_name(in_.layout) +
             ": only 1F1B and interleaved 1F1B");
    if (!in_.layout.actions.empty()) refuse("actions of your own");
    write_stages(swift);
    if (g.cp > 1) {
      if (g.tokens != TokenAssignment::zigzag &&
          !(swift && g.tokens == TokenAssignment::contiguous))
        refuse(std::string("tokens assigned \"") + name(g.tokens) +
               "\" to context-parallel ranks: only zigzag");
      set("cp_comm_type",
          OrderedJson::array({g.cp_attention == ContextAttention::ring      ? "p2p"
                              : g.cp_attention == ContextAttention::ulysses ? "a2a"
                                                                            : "all_gather"}));
      if (swift && g.tokens == TokenAssignment::contiguous) set("cp_partition_mode", "contiguous");
    }
    write_sharding(swift, overrides);
    write_recomputation();
  }

  void write_stages(bool swift) {
    const ModuleLayout& g = in_.grid;
    const int stages = g.pp * g.vpp;
    if (stages == 1) return;
    const std::vector<int>& blocks = in_.blocks;
    const bool even = blocks.empty() || (std::all_of(blocks.begin(), blocks.end(),
                                                     [&](int b) { return b == blocks[0]; }));
    if (even && in_.module.layers % stages == 0) {
      if (g.vpp > 1) {
        if (swift)
          set("virtual_pipeline_model_parallel_size", g.vpp);
        else
          set("num_virtual_stages_per_pipeline_rank", g.vpp);
      }
      return;
    }
    if (out_.target.target == Target::megatron_lm && out_.target.before({0, 13, 0}))
      return write_first_and_last(blocks);
    set("pipeline_model_parallel_layout", pipeline_layout_text(blocks));
  }

  // Before layouts, only the first and the last stage could have a number of their own.
  void write_first_and_last(const std::vector<int>& blocks) {
    if (blocks.empty()) return refuse("stages whose blocks are not known");
    const bool others_even =
        blocks.size() < 3 ||
        std::all_of(blocks.begin() + 1, blocks.end() - 1, [&](int b) { return b == blocks[1]; });
    if (in_.grid.vpp > 1 || !others_even || blocks.front() == 0 || blocks.back() == 0)
      return refuse(
          "blocks of each stage: before 0.13.0 only the first and the last stage of a pipeline "
          "have a size of their own, which is not zero, and here none of several virtual stages");
    const int others = blocks.size() > 2 ? blocks[1] : blocks.back();
    if (blocks.front() != others) set("decoder_first_pipeline_num_layers", blocks.front());
    if (blocks.back() != others) set("decoder_last_pipeline_num_layers", blocks.back());
  }

  void write_sharding(bool swift, bool overrides) {
    const ModuleLayout& g = in_.grid;
    const bool fsdp = g.shard == Shard::full || g.shard == Shard::gradients;
    if (g.shard == Shard::optimizer || fsdp) {
      set("use_distributed_optimizer", true);
      set("overlap_grad_reduce", true);
      set("overlap_param_gather", true);
    } else if (overrides) {
      set("use_distributed_optimizer", false);
    }
    if (fsdp) {
      if (swift) return refuse("sharded gradients or parameters (ZeRO-2, ZeRO-3)");
      if (g.pp > 1) refuse("sharded gradients or parameters in a pipeline (Megatron-FSDP)");
      set("use_megatron_fsdp", true);
      // Without them every GPU first builds the whole model, and gradients are summed in kernels
      // that know no shards (Megatron-FSDP's guide).
      if (g.shard == Shard::full) set("init_model_with_meta_device", true);
      set("gradient_accumulation_fusion", false);
      set("ckpt_format", "fsdp_dtensor");  // the one that Megatron-FSDP writes
      set("data_parallel_sharding_strategy",
          g.shard == Shard::full ? "optim_grads_params" : "optim_grads");
      note("predicted is plain FSDP; Megatron-FSDP has buffers of its own");
    }
    if (in_.shards_in_part()) {
      if (fsdp) set("outer_dp_sharding_strategy", "no_shard");
      if (swift)
        refuse("a distributed optimizer over some of the data-parallel ranks");
      else
        set("num_distributed_optimizer_instances", g.dp() * g.cp / g.shard_ranks);
    }
  }

  void write_recomputation() {
    const ModuleLayout& g = in_.grid;
    if (g.recompute == Recompute::none) return;
    const bool part = in_.recomputes_in_part();
    if (part && (g.recompute == Recompute::selective || g.pp > 1 || g.recompute_blocks[0] > 0)) {
      refuse("recomputation of blocks " + std::to_string(g.recompute_blocks[0]) + " to " +
             std::to_string(g.recompute_blocks[1] - 1) +
             ": only all blocks, or the first ones of every pipeline stage");
      return;
    }
    if (g.recompute == Recompute::selective) {
      set("recompute_granularity", "selective");
      set("recompute_modules", OrderedJson::array({"core_attn"}));
      return;
    }
    set("recompute_granularity", "full");
    set("recompute_method", part ? "block" : "uniform");
    set("recompute_num_layers", part ? g.recompute_blocks[1] : 1);
  }

  void write_batch() {
    set("seq_length", in_.sequence);
    set("micro_batch_size", in_.microbatch);
    set("global_batch_size", in_.scenario.data.global_batch);
  }

  void write_training(bool swift) {
    const Training& t = in_.scenario.training;
    if (t.precision == NumberFormat::bf16)
      set("bf16", true);
    else if (t.precision != NumberFormat::fp32)
      refuse(std::string("precision ") + name(t.precision));
    if (t.fp8 != Fp8Scaling::off) {
      set(swift ? "fp8_format" : "fp8", "hybrid");
      set("fp8_recipe", t.fp8 == Fp8Scaling::tensorwise ? "tensorwise" : "blockwise");
      if (t.fp8 == Fp8Scaling::rowwise) note("FP8 with a scale for each block, not for each row");
    }
    if (t.learning_rate == Training{}.learning_rate && t.steps == Training{}.steps)
      note(
          "learning rate, weight decay and number of steps are defaults of the scenario: state "
          "yours");
    set("lr", t.learning_rate);
    set("weight_decay", t.weight_decay);
    set("adam_beta1", t.beta1);
    set("adam_beta2", t.beta2);
    set("adam_eps", t.epsilon);
    set("clip_grad", t.clip_norm);
    set("lr_decay_style", t.decay == RateDecay::wsd ? "WSD" : name(t.decay));
    if (t.decay != RateDecay::constant) set("min_lr", t.min_learning_rate);
    if (t.warmup_steps > 0) set("lr_warmup_iters", t.warmup_steps);
    set("train_iters", t.steps);
    if (t.decay == RateDecay::wsd)
      set("lr_wsd_decay_iters",
          t.wsd_decay_steps > 0 ? t.wsd_decay_steps : std::max(1, t.steps / 10));
    set("seed", t.seed);
  }

 private:
  const EmitInput& in_;
  Emitted& out_;
};

// ---- files

std::string plain(const OrderedJson& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string words;
    for (const OrderedJson& inner : value) words += (words.empty() ? "" : " ") + plain(inner);
    return words;
  }
  return value.dump();
}

// The option of a destination, with its value; empty: the default says it.
std::string option_of(const std::string& key, const OrderedJson& value) {
  std::string option = key;
  if (key == "fp8") option = "fp8_format";
  if (key == "layernorm_epsilon") option = "norm_epsilon";
  if (key == "add_bias_linear") return value.get<bool>() ? "" : "--disable-bias-linear";
  if (key == "gradient_accumulation_fusion")
    return value.get<bool>() ? "" : "--no-gradient-accumulation-fusion";
  std::replace(option.begin(), option.end(), '_', '-');
  if (value.is_boolean()) return value.get<bool>() ? "--" + option : "";
  return "--" + option + " " + (value.is_array() ? plain(value) : shell_quoted(plain(value)));
}

constexpr const char* kMockData =
    "--mock-data\n--tokenizer-type "
    "NullTokenizer\n--no-create-attention-mask-in-dataloader\n--log-interval 1\n"
    "--log-throughput\n--eval-iters 0\n--eval-interval "
    "1000000\n--use-mcore-models\n--transformer-impl transformer_engine\n";

std::string command_of(const EmitInput& in) {
  return in.many_nodes() ? "sbatch run.sbatch" : "bash run.sh";
}

void write_megatron_lm(const EmitInput& in, Emitted& out) {
  std::string lines;
  for (const auto& [key, value] : out.arguments.items())
    if (const std::string option = option_of(key, value); !option.empty()) lines += option + "\n";
  lines += kMockData;
  std::string words;
  std::istringstream each(lines);
  for (std::string line; std::getline(each, line);) words += "  " + line + "\n";
  const bool fsdp = out.arguments.contains("use_megatron_fsdp");
  const std::string exports =
      fsdp ? "export CUDA_DEVICE_MAX_CONNECTIONS=8\n" : "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  const std::string script = torchrun_script(
      in,
      "Starts the layout in Megatron-LM, on data that it makes up: replace --mock-data and the\n"
      "tokenizer by yours. Options behind this script's name are added.",
      exports + "ARGUMENTS=(\n" + words + ")\n",
      "\"${MEGATRON_PATH:-.}/pretrain_gpt.py\" \"${ARGUMENTS[@]}\" \"$@\"");
  out.files.push_back({"arguments.txt", lines});
  out.files.push_back({"run.sh", script});
  out.start = "MEGATRON_PATH=/path/to/Megatron-LM " + command_of(in);
}

// Section of Megatron-Bridge's configuration that has a field.
const char* section_of(const std::string& key) {
  static const std::vector<std::pair<const char*, const char*>> kSections{
      {"ckpt_format", "checkpoint"},
      {"outer_dp_sharding_strategy", "ddp"},
      {"micro_batch_size", "train"},
      {"global_batch_size", "train"},
      {"train_iters", "train"},
      {"seq_length", "dataset"},
      {"use_distributed_optimizer", "ddp"},
      {"overlap_grad_reduce", "ddp"},
      {"overlap_param_gather", "ddp"},
      {"use_megatron_fsdp", "ddp"},
      {"data_parallel_sharding_strategy", "ddp"},
      {"num_distributed_optimizer_instances", "ddp"}};
  for (const auto& [field, section] : kSections)
    if (key == field) return section;
  return "model";
}

// Dimensions and numbers of the optimization come from the recipe.
bool of_layout(const std::string& key) {
  static const char* const kKeys[] = {"tensor_model_parallel_size",
                                      "pipeline_model_parallel_size",
                                      "context_parallel_size",
                                      "sequence_parallel",
                                      "expert_model_parallel_size",
                                      "expert_tensor_parallel_size",
                                      "moe_token_dispatcher_type",
                                      "num_virtual_stages_per_pipeline_rank",
                                      "pipeline_model_parallel_layout",
                                      "cp_comm_type",
                                      "use_distributed_optimizer",
                                      "ckpt_format",
                                      "outer_dp_sharding_strategy",
                                      "init_model_with_meta_device",
                                      "gradient_accumulation_fusion",
                                      "overlap_grad_reduce",
                                      "overlap_param_gather",
                                      "use_megatron_fsdp",
                                      "data_parallel_sharding_strategy",
                                      "num_distributed_optimizer_instances",
                                      "recompute_granularity",
                                      "recompute_modules",
                                      "recompute_method",
                                      "recompute_num_layers",
                                      "seq_length",
                                      "micro_batch_size",
                                      "global_batch_size",
                                      "cp_partition_mode",
                                      "virtual_pipeline_model_parallel_size"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

std::string hydra(const OrderedJson& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const bool safe = text.find_first_not_of(
                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
                      std::string::npos;
    return safe ? text : "'" + text + "'";
  }
  if (value.is_array()) {
    std::string words;
    for (const OrderedJson& inner : value) words += (words.empty() ? "" : ",") + hydra(inner);
    return "[" + words + "]";
  }
  return value.dump();
}

void check_mimo(const EmitInput& in, Writer& writer) {
  const auto power = [](int value) { return (value & (value - 1)) == 0; };
  for (std::size_t m = 0; m < in.layout.modules.size(); ++m) {
    const Module& module = in.scenario.model.modules[m];
    const ModuleLayout& grid = in.layout.modules[m];
    if (module.kind == ModuleKind::projector) continue;
    if (!power(grid.tp))
      writer.refuse(module.name + ": tensor parallelism " + std::to_string(grid.tp) +
                    ": MIMO takes powers of two");
    if (grid.cp > 1) writer.refuse(module.name + ": context parallelism in MIMO");
    if (module.kind != ModuleKind::language && grid.pp > 1)
      writer.refuse(module.name + ": a pipeline of an encoder in MIMO");
    if (grid.vpp > 1) writer.refuse(module.name + ": virtual pipeline stages in MIMO");
    if (grid.shard == Shard::full || grid.shard == Shard::gradients)
      writer.refuse(module.name + ": sharded gradients or parameters in MIMO");
    const int other = in.dp, own = grid.dp();
    if (in.microbatch * other % own != 0)
      writer.refuse(module.name + ": data parallelism " + std::to_string(own) +
                    " does not divide the " + count_text(in.microbatch * other) +
                    " samples of a microbatch of all ranks");
    if (other % own != 0 && own % other != 0)
      writer.refuse(module.name + ": data parallelism " + std::to_string(own) + " and " +
                    std::to_string(other) +
                    " of the language module: one must divide the other in MIMO");
  }
}

void write_mimo(const EmitInput& in, Emitted& out) {
  std::string python =
      "# Grids of the modules for Megatron-Bridge's MIMO training: pass them to "
      "MegatronMIMOParallelismConfig.\n"
      "from megatron.bridge.models.megatron_mimo.megatron_mimo_config import "
      "ModuleParallelismConfig\n\n"
      "module_parallelisms = {\n";
  for (std::size_t m = 0; m < in.layout.modules.size(); ++m) {
    const Module& module = in.scenario.model.modules[m];
    const ModuleLayout& g = in.layout.modules[m];
    if (module.kind == ModuleKind::projector) continue;
    const std::string key = module.kind == ModuleKind::language ? "language"
                            : module.kind == ModuleKind::vision ? "images"
                                                                : "audio";
    OrderedJson fields{{"tensor_model_parallel_size", g.tp},
                       {"pipeline_model_parallel_size", g.pp},
                       {"context_parallel_size", g.cp},
                       {"data_parallel_size", g.dp()},
                       {"rank_offset", g.first_rank}};
    if (module.experts > 0) {
      fields["expert_model_parallel_size"] = g.ep;
      fields["expert_tensor_parallel_size"] = g.experts_tp();
    }
    python += "    \"" + key + "\": ModuleParallelismConfig(\n";
    for (const auto& [field, value] : fields.items()) {
      python += "        " + field + "=" + value.dump() + ",\n";
      out.arguments["module_parallelisms." + key + "." + field] = value;
    }
    python += "    ),\n";
  }
  out.files.push_back({"mimo.py", python + "}\n"});
}

void write_bridge(const EmitInput& in, Emitted& out, bool mimo) {
  const OrderedJson all = out.arguments;
  out.arguments = OrderedJson::object();
  std::string lines = "# Overrides of a recipe of Megatron-Bridge, one a line.\n";
  const auto add = [&](const std::string& key, const OrderedJson& value) {
    out.arguments[key] = value;
    lines += key + "=" + hydra(value) + "\n";
  };
  for (const auto& [key, value] : all.items()) {
    if (!of_layout(key)) continue;
    if (mimo && std::string(section_of(key)) == "model" &&
        key.find("recompute") == std::string::npos)
      continue;
    std::string field = key;
    OrderedJson set = value;
    if (key == "num_virtual_stages_per_pipeline_rank")
      field = "virtual_pipeline_model_parallel_size";
    if (key == "micro_batch_size" && mimo) set = in.microbatch * in.dp;  // of all lanes
    if (key == "cp_comm_type") set = value[0];
    add(std::string(section_of(key)) + "." + field, set);
    if (key == "seq_length" && !mimo) add("model.seq_length", set);
  }
  if (!mimo) {
    const Training& t = in.scenario.training;
    lines += std::string("mixed_precision=") +
             (t.fp8 == Fp8Scaling::tensorwise ? "bf16_with_fp8_current_scaling_mixed"
              : t.fp8 == Fp8Scaling::rowwise  ? "bf16_with_fp8_subchannel_scaling_mixed"
                                              : "bf16_mixed") +
             "\n";
  }
  // A recipe may state them. Virtual stages of a layout in text are not worked out by themselves.
  if (!mimo && in.grid.vpp > 1 &&
      !out.arguments.contains("model.virtual_pipeline_model_parallel_size"))
    add("model.virtual_pipeline_model_parallel_size", in.grid.vpp);
  if (!mimo)
    for (const char* key : {"recompute_granularity", "virtual_pipeline_model_parallel_size",
                            "pipeline_model_parallel_layout"})
      if (const std::string field = std::string("model.") + key; !out.arguments.contains(field))
        add(field, nullptr);
  for (const Module& module : in.scenario.model.modules)
    if (module.trainable == Trainable::frozen && in.scenario.model.modules.size() > 1 && !mimo)
      add(std::string("model.freeze_") + (module.kind == ModuleKind::language ? "language_model"
                                          : module.kind == ModuleKind::vision
                                              ? "vision_model"
                                              : "vision_projection"),
          true);
  out.files.push_back({"overrides.txt", lines});
  if (mimo) write_mimo(in, out);
  std::string words;
  std::istringstream each(lines);
  for (std::string line; std::getline(each, line);)
    if (!line.starts_with("#")) words += "  \"" + line + "\"\n";
  const std::string script = torchrun_script(
      in,
      "Starts the layout in Megatron-Bridge: the recipe has the model, the overrides the layout.",
      "OVERRIDES=(\n" + words + ")\n",
      "\"${BRIDGE_PATH:-.}/scripts/training/run_recipe.py\" --recipe \"${RECIPE:?a recipe of "
      "Megatron-Bridge}\" \\\n"
      "  \"${OVERRIDES[@]}\" \"$@\"");
  out.files.push_back({"run.sh", script});
  const bool alone = in.scenario.model.modules.size() == 1;
  out.start =
      "RECIPE='<the recipe of your model>' BRIDGE_PATH=/path/to/Megatron-Bridge " + command_of(in);
  if (!alone)
    out.notes.push_back(
        "the recipe must be of the whole model, encoder and projector included: the overrides have "
        "the layout alone");
  if (!mimo) return;
  out.start.clear();
  out.notes.push_back(
      "mimo.py has the grids; Megatron-Bridge has no command that takes them: build its MIMO model "
      "with them");
}

void write_swift(const EmitInput& in, Emitted& out) {
  const OrderedJson all = out.arguments;
  out.arguments = OrderedJson::object();
  std::string lines =
      "# Arguments of ms-swift's `megatron sft`. The model is read from its folder.\n";
  const auto add = [&](const std::string& key, const OrderedJson& value) {
    out.arguments[key] = value;
    if (value.is_array()) {
      lines += key + ":\n";
      for (const OrderedJson& inner : value) lines += "  - " + plain(inner) + "\n";
    } else {
      std::string text = plain(value);
      if (value.is_string() && text.find_first_of("|*:#'\"(") != std::string::npos)
        text = "\"" + text + "\"";
      lines += key + ": " + text + "\n";
    }
  };
  static const char* const kTraining[] = {"lr",
                                          "min_lr",
                                          "weight_decay",
                                          "adam_beta1",
                                          "adam_beta2",
                                          "adam_eps",
                                          "clip_grad",
                                          "lr_decay_style",
                                          "lr_warmup_iters",
                                          "train_iters",
                                          "lr_wsd_decay_iters",
                                          "seed",
                                          "bf16",
                                          "fp8_format",
                                          "fp8_recipe",
                                          "attention_dropout",
                                          "hidden_dropout"};
  for (const auto& [key, value] : all.items()) {
    const bool training =
        std::find(std::begin(kTraining), std::end(kTraining), key) != std::end(kTraining);
    if (!of_layout(key) && !training) continue;
    if (key == "recompute_modules" && all.value("recompute_granularity", "") != "selective")
      continue;
    add(key == "seq_length" ? "max_length" : key, key == "cp_comm_type" ? value[0] : value);
  }
  if (!all.contains("recompute_granularity")) {
    out.arguments["recompute_granularity"] = nullptr;
    lines += "recompute_granularity: none\n";
  }
  for (const Module& module : in.scenario.model.modules) {
    if (module.kind == ModuleKind::language && module.trainable == Trainable::lora) {
      add("tuner_type", "lora");
      add("lora_rank", module.lora_rank);
    }
    const char* key = module.kind == ModuleKind::language    ? "freeze_llm"
                      : module.kind == ModuleKind::vision    ? "freeze_vit"
                      : module.kind == ModuleKind::projector ? "freeze_aligner"
                                                             : nullptr;
    if (key && in.scenario.model.modules.size() > 1)
      add(key, module.trainable == Trainable::frozen);
  }
  if (!out.arguments.contains("tuner_type")) add("tuner_type", "full");
  out.files.push_back({"args.yaml", lines});
  out.files.push_back(
      {"run.sh",
       "#!/usr/bin/env bash\n# Starts the layout in ms-swift. MODEL: folder or "
       "name of the model; DATASET: your data.\n"
       "set -euo pipefail\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n"
       "export NNODES=" +
           std::to_string(in.nodes()) + " NPROC_PER_NODE=" + std::to_string(in.per_node) + "\n" +
           (in.many_nodes() ? "export NODE_RANK=\"${NODE_RANK:-${SLURM_NODEID:-0}}\" "
                              "MASTER_ADDR=\"${MASTER_ADDR:?host of node 0}\" "
                              "MASTER_PORT=\"${MASTER_PORT:-29500}\"\n"
                            : "") +
           "megatron sft \"$(dirname \"${BASH_SOURCE[0]}\")/args.yaml\" \\\n"
           "  --model \"${MODEL:?folder or name of the model}\" --dataset "
           "\"${DATASET:?your data}\" \"$@\"\n"});
  out.start = "MODEL=/path/to/model DATASET=data.jsonl " + command_of(in);
}

}  // namespace

void emit_megatron(const EmitInput& in, Emitted& out) {
  Writer writer(in, out);
  const Target target = out.target.target;
  const bool swift = target == Target::ms_swift, alone = in.scenario.model.modules.size() == 1;
  const bool mimo = in.layout.placement == Placement::non_colocated;
  if (target == Target::megatron_lm) {
    writer.check_module();
    if (!alone)
      writer.refuse(
          "encoders: pretrain_gpt.py trains a language model alone (--for megatron-bridge has "
          "them)");
    for (const Module& module : in.scenario.model.modules)
      if (module.trainable != Trainable::full)
        writer.refuse(module.name + ": frozen, or trained by LoRA");
  }
  if (in.layout.placement == Placement::colocated || in.layout.placement == Placement::mixed)
    writer.refuse(std::string("placement ") + name(in.layout.placement) +
                  ": the modules share one grid, or have ranks of their own");
  if (mimo && target != Target::megatron_bridge)
    writer.refuse("encoders with ranks of their own (--for megatron-bridge has them)");
  if (target == Target::megatron_bridge)
    for (const Module& module : in.scenario.model.modules)
      if (module.trainable == Trainable::lora)
        writer.note(module.name + ": choose a LoRA recipe of rank " +
                    std::to_string(module.lora_rank));
  if (mimo && target == Target::megatron_bridge) {
    check_mimo(in, writer);
    writer.set("module_parallelisms", true);  // for check_version alone
  }
  for (std::size_t m = 0; m < in.layout.modules.size(); ++m) {
    const Module& module = in.scenario.model.modules[m];
    const ModuleLayout& grid = in.layout.modules[m];
    if (module.kind != ModuleKind::vision && module.kind != ModuleKind::audio) continue;
    if (grid.recompute != Recompute::none && !mimo)
      writer.note(module.name + ": its recomputation has no setting; the model decides it");
    if (!mimo && grid.cp > 1 && grid.spread != Spread::copied)
      writer.note(module.name +
                  ": images are divided over context-parallel ranks here; there every rank encodes "
                  "all, unless vision_dp_when_cp");
  }
  if (target == Target::megatron_lm) writer.write_model();
  writer.write_layout(swift, target != Target::megatron_lm);
  writer.write_batch();
  writer.write_training(swift);
  check_version(out);
  out.arguments.erase("module_parallelisms");
  if (!out.cannot.empty()) return;
  if (target == Target::megatron_lm) write_megatron_lm(in, out);
  if (target == Target::megatron_bridge) write_bridge(in, out, mimo);
  if (swift) write_swift(in, out);
  if (in.many_nodes()) out.files.push_back({"run.sbatch", sbatch_script(in, "run.sh")});
}

}  // namespace polyphony::sim
