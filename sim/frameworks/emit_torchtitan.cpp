// torchtitan: a Python file with a function that returns the configuration (before 0.3.0: TOML),
// and a CSV of actions.
#include <algorithm>

#include "shared/schedule/action_text.h"
#include "shared/text/figure_text.h"
#include "sim/frameworks/emit.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The registered configuration of torchtitan with a model of these dimensions.
struct KnownModel {
  const char* module;    // package in torchtitan.models; before 0.3.0 the name of the model
  const char* function;  // that returns its configuration
  const char* flavor;    // before 0.3.0
  int layers, hidden, vocab, experts;
};
// torchtitan 0.3.0, models/*/config_registry.py; 0.2.2, models/*/__init__.py.
constexpr KnownModel kModels[] = {
    {"llama3", "llama3_8b", "8B", 32, 4096, 128256, 0},
    {"llama3", "llama3_70b", "70B", 80, 8192, 128256, 0},
    {"llama3", "llama3_405b", "405B", 126, 16384, 128256, 0},
    {"qwen3", "qwen3_0_6b", "0.6B", 28, 1024, 151936, 0},
    {"qwen3", "qwen3_14b", "14B", 40, 5120, 151936, 0},
    {"qwen3", "qwen3_32b", "32B", 64, 5120, 151936, 0},
    {"qwen3", "qwen3_30b_a3b", "30B-A3B", 48, 2048, 151936, 128},
    {"deepseek_v3", "deepseek_v3_671b", "671B", 61, 7168, 129280, 256}};

const KnownModel* known_model(const Module& module) {
  for (const KnownModel& known : kModels)
    if (known.layers == module.layers && known.hidden == module.hidden &&
        known.vocab == module.vocab && known.experts == module.experts)
      return &known;
  return nullptr;
}

std::string python(const OrderedJson& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_array()) {
    std::string text = "[";
    for (const OrderedJson& inner : value) text += (text.size() > 1 ? ", " : "") + python(inner);
    return text + "]";
  }
  return value.dump();
}

const char* schedule_of(ScheduleKind kind, int virtual_stages) {
  switch (kind) {
    case ScheduleKind::gpipe:
      return virtual_stages > 1 ? "LoopedBFS" : "GPipe";
    case ScheduleKind::one_f_one_b:
      return "1F1B";
    case ScheduleKind::interleaved:
      return "Interleaved1F1B";
    case ScheduleKind::zero_bubble_v:
      return "ZBVZeroBubble";
    case ScheduleKind::dualpipe_v:
      return "DualPipeV";
    case ScheduleKind::interleaved_zero_bubble:
      return "InterleavedZeroBubble";
    case ScheduleKind::zero_bubble:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::eager_one_f_one_b:
    case ScheduleKind::v_half:
    case ScheduleKind::v_min:
      return nullptr;
  }
  return nullptr;
}

// The modules of each stage, by their names in a decoder of torchtitan.
OrderedJson stage_modules(const std::vector<int>& blocks, const char* head) {
  OrderedJson stages = OrderedJson::array();
  int next = 0;
  for (std::size_t s = 0; s < blocks.size(); ++s) {
    OrderedJson names = OrderedJson::array();
    if (s == 0) names.push_back("tok_embeddings");
    for (int i = 0; i < blocks[s]; ++i) names.push_back("layers." + std::to_string(next++));
    if (s + 1 == blocks.size()) {
      names.push_back("norm");
      names.push_back(head);
    }
    stages.push_back(names);
  }
  return stages;
}

// The same settings as sections, as versions before 0.3.0 have them: for these, for `polyphony
// import`, and for people who diff two runs.
OrderedJson nested(const OrderedJson& settings) {
  OrderedJson root = OrderedJson::object();
  for (const auto& [key, value] : settings.items()) {
    if (key == "activation_checkpoint") {
      root[key]["mode"] = value.is_null() ? "none" : value == "FullAC" ? "full" : "selective";
      if (value == "SelectiveAC") root[key]["selective_ac_option"] = "op";
      continue;
    }
    const std::size_t dot = key.find('.');
    root[key.substr(0, dot)][key.substr(dot + 1)] = value;
  }
  return root;
}

// A value as TOML writes it: as JSON does, since there is no null and no control character.
std::string toml(const KnownModel& model, const OrderedJson& settings) {
  OrderedJson sections{{"model", {{"name", model.module}, {"flavor", model.flavor}}}};
  sections.update(nested(settings));
  std::string text;
  for (const auto& [section, fields] : sections.items()) {
    text += "\n[" + section + "]\n";
    for (const auto& [key, value] : fields.items()) text += key + " = " + value.dump() + "\n";
  }
  return text;
}

// Versions before 0.3.0 are configured by TOML.
void write_toml(const EmitInput& in, const KnownModel& model, Emitted& out) {
  const std::string version = version_text(*out.target.version);
  out.files.push_back({"polyphony.toml", "# A layout for torchtitan " + version +
                                             ": --job.config_file polyphony.toml\n" +
                                             toml(model, out.arguments)});
  const bool actions = !in.layout.actions.empty();
  if (actions) out.files.push_back({"schedule.csv", csv_text(in.layout.actions)});
  const std::string script =
      torchrun_script(in, "Starts the layout in torchtitan " + version + ".",
                      "HERE=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\n",
                      std::string("-m torchtitan.train --job.config_file "
                                  "\"$HERE/polyphony.toml\" ") +
                          (actions ? "--parallelism.pipeline_parallel_schedule_csv "
                                     "\"$HERE/schedule.csv\" "
                                   : "") +
                          "\"$@\"");
  out.files.push_back({"run.sh", script});
}

}  // namespace

void emit_torchtitan(const EmitInput& in, Emitted& out) {
  const ModuleLayout& g = in.grid;
  const auto refuse = [&](const std::string& what) { out.cannot.push_back(what); };
  if (in.scenario.model.modules.size() > 1)
    refuse("encoders: torchtitan's models of text alone are emitted");
  if (in.module.trainable != Trainable::full) refuse("a module that is frozen or trained by LoRA");
  const KnownModel* model = known_model(in.module);
  if (!model)
    refuse(
        "a model that torchtitan 0.3.0 has no configuration of (it has Llama 3.1 8B, 70B, 405B, "
        "Qwen3 0.6B, "
        "14B, 32B, 30B-A3B, DeepSeek-V3)");
  OrderedJson& set = out.arguments;
  const auto degree = [&](const char* key, int value) {
    set["parallelism." + std::string(key)] = value;
  };
  const bool old = out.target.before({0, 3, 0});
  const bool hybrid = g.shard == Shard::full && in.shards_in_part();
  if (g.shard == Shard::optimizer)
    refuse("ZeRO-1 (shard optimizer): torchtitan shards parameters, or nothing");
  if (g.shard == Shard::full && g.pp > 1) set["parallelism.fsdp_reshard_after_forward"] = "always";
  if (g.shard == Shard::gradients) {
    set["parallelism.fsdp_reshard_after_forward"] = "never";
    out.notes.push_back(
        "ZeRO-2 here keeps whole parameters; there they are gathered in the forward pass and stay "
        "until the backward");
    if (in.shards_in_part()) refuse("gradients sharded over some data-parallel ranks");
  }
  if (g.shard == Shard::none && g.cp > 1)
    refuse("context parallelism without sharding: its ranks shard the parameters");
  if (hybrid && g.cp > 1 && g.shard_ranks % g.cp != 0)
    refuse("shards over a part of the context-parallel ranks");
  const int shards = g.shard == Shard::none ? 1
                     : hybrid               ? std::max(1, g.shard_ranks / g.cp)
                                            : g.dp();
  degree("data_parallel_replicate_degree", g.dp() / shards);
  degree("data_parallel_shard_degree", shards);
  degree("tensor_parallel_degree", g.tp);
  degree("pipeline_parallel_degree", g.pp);
  degree("context_parallel_degree", g.cp);
  if (in.module.experts > 0) {
    degree("expert_parallel_degree", g.ep);
    if (g.tp > 1 && g.experts_tp() != 1) refuse("experts cut over tensor-parallel ranks");
    if (old && g.tp > 1 && g.ep == 1)
      refuse(
          "experts that are whole under tensor parallelism, without expert parallelism: from "
          "0.3.0 on");
  }
  if (g.tp > 1) set["parallelism.enable_sequence_parallel"] = g.sp;
  if (g.pp > 1 && in.module.tied) refuse("tied embeddings in a pipeline");
  if (g.tp > 1 && in.module.kv_heads % g.tp != 0)
    refuse("tensor parallelism that does not divide the key/value heads");
  if (g.cp > 1) {
    if (g.cp_attention != ContextAttention::all_gather)
      refuse(std::string("context parallelism by ") + name(g.cp_attention));
    if (g.tokens == TokenAssignment::balanced) refuse("tokens assigned \"balanced\"");
    set["parallelism.context_parallel_load_balancer"] =
        g.tokens == TokenAssignment::zigzag ? OrderedJson("headtail") : OrderedJson();
  }
  if (g.pp > 1) {
    const char* schedule = schedule_of(in.layout.schedule, g.vpp);
    if (in.layout.actions.empty()) {
      if (!schedule)
        refuse(std::string("schedule ") + schedule_name(in.layout) +
               " (with its actions in the layout it could be loaded)");
      else
        set["parallelism.pipeline_parallel_schedule"] = schedule;
      if (in.layout.schedule == ScheduleKind::interleaved && g.vpp == 1)
        refuse("interleaved without virtual stages");
      if (in.layout.schedule == ScheduleKind::gpipe && g.vpp > 1)
        out.notes.push_back(
            "LoopedBFS runs the backward passes from the last microbatch to the first; the "
            "prediction runs them from the first to the last");
    } else {
      // PyTorch reads no recipes ("F0.1:full"): its pattern ends before them.
      if (csv_text(in.layout.actions).find(':') != std::string::npos)
        refuse("actions with a recomputation of their own");
      set["parallelism.pipeline_parallel_schedule"] = "PipelineScheduleMulti";
      set["parallelism.pipeline_parallel_schedule_csv"] = "schedule.csv";
    }
    set["parallelism.module_fqns_per_model_part"] =
        stage_modules(in.blocks, old ? "output" : "lm_head");
    set["parallelism.pipeline_parallel_microbatch_size"] = in.microbatch;
  }
  // CUDA graphs take neither pipelines nor the dispatch of tokens by all-to-all.
  if (g.pp > 1 || in.module.experts > 0) set["training.disable_cuda_graphs"] = true;
  set["training.seq_len"] = in.sequence;
  set["training.local_batch_size"] =
      g.pp > 1 ? in.microbatch * in.layout.microbatches : in.microbatch;
  set["training.global_batch_size"] = in.scenario.data.global_batch;
  if (in.recomputes_in_part()) refuse("recomputation of some blocks alone");
  const std::string recompute = g.recompute == Recompute::full        ? "FullAC"
                                : g.recompute == Recompute::selective ? "SelectiveAC"
                                                                      : "";
  if (old) {
    set["activation_checkpoint.mode"] = recompute.empty()       ? "none"
                                        : recompute == "FullAC" ? "full"
                                                                : "selective";
    if (recompute == "SelectiveAC")
      set["activation_checkpoint.selective_ac_option"] = "op";  // as in 0.3.0
  } else {
    set["activation_checkpoint"] = recompute.empty() ? OrderedJson() : OrderedJson(recompute);
  }
  if (g.recompute == Recompute::selective)
    out.notes.push_back(
        "torchtitan's selective recomputation keeps every second GEMM; here attention is "
        "recomputed");
  if (in.scenario.training.precision != NumberFormat::bf16) refuse("another precision than bf16");
  if (in.scenario.training.fp8 != Fp8Scaling::off)
    refuse("FP8: add torchtitan's converter by hand");
  set["training.steps"] = in.scenario.training.steps;
  check_version(out);
  if (!out.cannot.empty()) return;
  if (in.many_nodes()) out.files.push_back({"run.sbatch", sbatch_script(in, "run.sh")});
  out.start = in.many_nodes() ? "sbatch run.sbatch" : "bash run.sh";
  if (old) return write_toml(in, *model, out);
  std::string text =
      "# A layout for torchtitan 0.3.0: --module polyphony_config --config polyphony, with this "
      "file's folder on PYTHONPATH.\n"
      "from torchtitan.models." +
      std::string(model->module) + ".config_registry import " + model->function + "\n" +
      (recompute.empty()
           ? ""
           : "from torchtitan.distributed.activation_checkpoint import " + recompute + "\n") +
      "\n\n"
      "def polyphony():\n    config = " +
      model->function + "()\n";
  for (const auto& [key, value] : set.items()) {
    if (key == "activation_checkpoint") continue;
    if (key == "parallelism.pipeline_parallel_schedule_csv") {
      text += "    config." + key + " = __file__.rpartition(\"/\")[0] + \"/schedule.csv\"\n";
      continue;
    }
    text += "    config." + key + " = " + python(value) + "\n";
  }
  text += "    config.activation_checkpoint = " +
          (recompute.empty() ? "None" : recompute + ".Config()") + "\n    return config\n";
  out.files.push_back({"polyphony_config.py", text});
  out.files.push_back({"polyphony_config.json", nested(set).dump(2) + "\n"});
  if (!in.layout.actions.empty())
    out.files.push_back({"schedule.csv", csv_text(in.layout.actions)});
  const std::string script = torchrun_script(
      in, "Starts the layout in torchtitan 0.3.0.",
      "export PYTHONPATH=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd):${PYTHONPATH:-}\"\n",
      "-m torchtitan.train --module polyphony_config --config polyphony \"$@\"");
  out.files.push_back({"run.sh", script});
}

}  // namespace polyphony::sim
