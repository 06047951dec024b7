#include "sim/frameworks/policy_settings.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace polyphony::sim {
namespace {

constexpr std::size_t kLongestValue = 4096;

// A prefix of a key, and what stands in its place.
using Prefixes = std::vector<std::pair<std::string, std::string>>;
const std::string kActor = "actor_rollout_ref.actor.";

class Policy {
 public:
  explicit Policy(FrameworkSettings& read) : read_(read) {}

  void run() {
    resolve();
    const bool verl = read_.framework == Framework::verl;
    const bool megatron = verl ? verl_uses_megatron() : is_on("policy.megatron_cfg.enabled");
    // Fine-tuning with an engine packs samples unless told otherwise; the older trainer does not.
    const Setting* packed = find("data.use_dynamic_bsz");
    const bool packs = packed ? packed->value == "true" : any_with("engine");
    rename(verl ? verl_prefixes(megatron) : nemo_prefixes(megatron));
    if (verl)
      read_verl(megatron, packs);
    else
      read_nemo(megatron);
    optimizer();
    read_.settings.push_back({"policy_engine", megatron ? "megatron" : "fsdp", "", ""});
  }

 private:
  // ---- looking up

  const Setting* find(const std::string& key) const {
    const Setting* found = nullptr;
    for (const Setting& setting : read_.settings)
      if (setting.key == key && setting.value != "none") found = &setting;
    return found;
  }
  bool is_on(const std::string& key) const {
    const Setting* setting = find(key);
    return setting && setting->value == "true";
  }
  bool any_with(const std::string& prefix) const {
    return std::any_of(read_.settings.begin(), read_.settings.end(),
                       [&](const Setting& s) { return s.key.starts_with(prefix); });
  }
  std::optional<std::int64_t> whole(const std::string& key) const {
    const Setting* setting = find(key);
    if (!setting || setting->value.empty() || setting->value.size() > 12 ||
        setting->value.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    return std::atoll(setting->value.c_str());
  }

  // ---- changing

  void drop(const std::string& key) {
    std::erase_if(read_.settings, [&](const Setting& setting) { return setting.key == key; });
  }
  void move(const std::string& from, const std::string& to) {
    for (Setting& setting : read_.settings)
      if (setting.key == from) setting.key = to;
  }
  // Adds a setting that follows from others, which it replaces.
  void derive(const std::string& key, const std::string& value,
              const std::vector<std::string>& from) {
    Setting derived{key, value, "", ""};
    for (const std::string& name : from)
      if (const Setting* setting = find(name)) {
        derived.written += (derived.written.empty() ? "" : ", ") + setting->written;
        derived.place = setting->place;
      }
    if (derived.written.empty())  // all are defaults
      read_.notes.push_back(key + " = " + value + ": " + name(read_.framework) + "'s default");
    for (const std::string& name : from)
      if (name != key) drop(name);
    read_.settings.push_back(std::move(derived));
  }
  void rename(const Prefixes& prefixes) {
    for (Setting& setting : read_.settings)
      for (const auto& [from, to] : prefixes)
        if (setting.key.starts_with(from)) {
          setting.key = to + setting.key.substr(from.size());
          break;
        }
  }

  // ---- references: ${a.b}, ${mul:${a.b}, 2}, ${oc.select:a.b,2}

  std::string referred(const std::string& words) const {
    const std::size_t colon = words.find(':');
    if (colon == std::string::npos) {
      const Setting* setting = find(words);
      return setting ? setting->value : "${" + words + "}";
    }
    const std::string function = words.substr(0, colon);
    std::vector<std::string> arguments;
    std::istringstream list(words.substr(colon + 1));
    for (std::string part; std::getline(list, part, ',');) {
      const std::size_t begin = part.find_first_not_of(' ');
      arguments.push_back(begin == std::string::npos ? "" : part.substr(begin));
    }
    if (function == "mul") {
      double product = 1;
      for (const std::string& argument : arguments) {
        char* end = nullptr;
        product *= std::strtod(argument.c_str(), &end);
        if (end == argument.c_str() || *end != '\0') return "${" + words + "}";
      }
      return product >= 0 && product < 1e15 ? std::to_string(static_cast<std::int64_t>(product))
                                            : "none";
    }
    if ((function == "oc.select" || function == "oc.env") && !arguments.empty()) {
      const Setting* setting = function == "oc.select" ? find(arguments.front()) : nullptr;
      if (setting) return setting->value;
      return arguments.size() > 1 ? arguments.back() : "none";
    }
    return "${" + words + "}";
  }
  void resolve() {
    for (int round = 0; round < 8; ++round) {
      bool changed = false;
      for (Setting& setting : read_.settings) {
        // The innermost reference first.
        const std::size_t begin = setting.value.rfind("${");
        if (begin == std::string::npos) continue;
        const std::size_t end = setting.value.find('}', begin);
        if (end == std::string::npos) continue;
        const std::string words = setting.value.substr(begin + 2, end - begin - 2);
        const std::string value = referred(words);
        if (value.find("${" + words + "}") != std::string::npos ||
            value.size() + setting.value.size() > kLongestValue)
          continue;
        setting.value.replace(begin, end + 1 - begin, value);
        changed = true;
      }
      if (!changed) return;
    }
  }

  // ---- verl

  bool verl_uses_megatron() const {
    for (const char* key : {"actor_rollout_ref.actor.strategy", "engine", "model_engine"})
      if (const Setting* setting = find(key)) return setting->value.starts_with("megatron");
    if (any_with(kActor + "megatron.")) return true;
    for (const Setting& setting : read_.settings)  // --config-name, actor@…=megatron_actor
      if ((setting.key == "config_name" || setting.key.find('@') != std::string::npos) &&
          (setting.value + setting.key).find("megatron") != std::string::npos)
        return true;
    return find("engine.tensor_model_parallel_size") || find("engine.use_mbridge");
  }
  static Prefixes verl_prefixes(bool megatron) {
    return {{kActor + "megatron.override_transformer_config.", ""},
            {kActor + "megatron.override_ddp_config.", ""},
            {kActor + "megatron.override_mcore_model_config.", ""},
            {kActor + "megatron.", ""},
            {kActor + "optim.override_optimizer_config.", ""},
            {kActor + "optim.", "optim."},
            {kActor + "fsdp_config.", "fsdp."},
            {kActor, "actor."},
            {"actor_rollout_ref.model.", "model."},
            {"engine.override_transformer_config.", ""},
            {"engine.override_ddp_config.", ""},
            {"engine.", megatron ? "" : "fsdp."},
            {"optim.override_optimizer_config.", ""},
            {"model.fsdp_config.", "fsdp."}};
  }
  void read_verl(bool megatron, bool packs) {
    const bool tuning = !any_with("actor_rollout_ref.") && !any_with("actor.");
    move("actor.ulysses_sequence_parallel_size", "fsdp.ulysses_sequence_parallel_size");
    move("ulysses_sequence_parallel_size", "fsdp.ulysses_sequence_parallel_size");
    move("actor.freeze_vision_tower", "freeze_vision_model");
    move("actor.grad_clip", "clip_grad");
    for (const char* key : {"model.path", "model.partial_pretrain"}) move(key, "model");
    for (const char* key : {"model.lora_rank", "model.lora.rank"}) move(key, "lora_rank");
    if (whole("lora_rank").value_or(0) > 0)
      read_.settings.push_back({"tuner_type", "lora", find("lora_rank")->written, ""});
    else
      drop("lora_rank");
    const char* const ranks =
        megatron ? "context_parallel_size" : "fsdp.ulysses_sequence_parallel_size";
    const std::int64_t together = std::max<std::int64_t>(1, whole(ranks).value_or(1));
    const auto tokens = [&](const char* key, std::int64_t otherwise) {
      const std::int64_t most = whole(key).value_or(otherwise);
      derive("microbatch_tokens", std::to_string(most * together), {key});
    };
    if (tuning) {
      derive("seq_length", std::to_string(whole("data.max_length").value_or(1024)),
             {"data.max_length"});
      derive("global_batch_size", std::to_string(whole("data.train_batch_size").value_or(256)),
             {"data.train_batch_size"});
      if (packs)
        tokens("data.max_token_len_per_gpu", 8192);
      else
        derive("micro_batch_size",
               std::to_string(whole("data.micro_batch_size_per_gpu").value_or(4)),
               {"data.micro_batch_size_per_gpu"});
    } else {
      const std::int64_t prompt = whole("data.max_prompt_length").value_or(512),
                         response = whole("data.max_response_length").value_or(512);
      derive("seq_length", std::to_string(prompt + response),
             {"data.max_prompt_length", "data.max_response_length"});
      const std::int64_t prompts = whole("actor.ppo_mini_batch_size").value_or(256),
                         responses = whole("actor_rollout_ref.rollout.n").value_or(1);
      const std::int64_t samples = prompts * std::min<std::int64_t>(responses, 1'000'000);
      derive("global_batch_size", std::to_string(samples),
             {"actor.ppo_mini_batch_size", "actor_rollout_ref.rollout.n"});
      if (is_on("actor.use_dynamic_bsz"))
        tokens("actor.ppo_max_token_len_per_gpu", 16384);
      else if (find("actor.ppo_micro_batch_size_per_gpu"))
        move("actor.ppo_micro_batch_size_per_gpu", "micro_batch_size");
      else if (const auto all = whole("actor.ppo_micro_batch_size"); all && *all > 0)
        derive("microbatches", std::to_string(std::max<std::int64_t>(1, samples / *all)),
               {"actor.ppo_micro_batch_size"});
    }
    launch("trainer.nnodes", "nodes");
    launch("trainer.n_gpus_per_node", "per_node");
  }
  void launch(const char* key, const char* as) {
    if (const auto number = whole(key)) {
      read_.launch[as] = std::to_string(*number);
      drop(key);
    }
  }

  // ---- NeMo-RL

  static Prefixes nemo_prefixes(bool megatron) {
    Prefixes prefixes{{"policy.precision", "torch_dtype"},
                      {"policy.model_name", "model"},
                      {"policy.train_global_batch_size", "global_batch_size"},
                      {"policy.train_micro_batch_size", "micro_batch_size"},
                      {"policy.max_total_sequence_length", "seq_length"}};
    if (megatron)
      prefixes.insert(prefixes.end(),
                      {{"policy.megatron_cfg.optimizer.", ""},
                       {"policy.megatron_cfg.scheduler.", ""},
                       {"policy.megatron_cfg.distributed_data_parallel_config.", ""},
                       {"policy.megatron_cfg.peft.", "peft."},
                       {"policy.megatron_cfg.freeze_config.", ""},
                       {"policy.megatron_cfg.fp8_cfg.", "fp8_cfg."},
                       {"policy.megatron_cfg.", ""}});
    else
      prefixes.insert(prefixes.end(), {{"policy.max_grad_norm", "clip_grad"},
                                       {"policy.dtensor_cfg.lora_cfg.", "peft."},
                                       {"policy.dtensor_cfg.", "fsdp."},
                                       {"policy.optimizer.kwargs.", "optim."}});
    return prefixes;
  }
  void read_nemo(bool megatron) {
    if (is_on("peft.enabled")) {
      move("peft.dim", "lora_rank");
      move("peft.enabled", "tuner_type");
      for (Setting& setting : read_.settings)
        if (setting.key == "tuner_type") setting.value = "lora";
    }
    if (megatron) {
      const bool recompute = is_on("activation_checkpointing");
      if (recompute && !find("recompute_granularity"))
        derive("recompute_granularity", "full", {"activation_checkpointing"});
      if (!recompute)
        for (Setting& setting : read_.settings)
          if (setting.key == "recompute_granularity") setting.value = "none";
      if (is_on("fp8_cfg.enabled")) {
        move("fp8_cfg.fp8", "fp8");
        move("fp8_cfg.fp8_recipe", "fp8_recipe");
        move("fp8_cfg.fp8_param", "fp8_param");
      }
    }
    // Samples are packed into microbatches of so many tokens.
    for (const std::string section : {"policy.sequence_packing", "policy.dynamic_batching"})
      if (is_on(section + ".enabled") && whole(section + ".train_mb_tokens")) {
        derive("microbatch_tokens", std::to_string(*whole(section + ".train_mb_tokens")),
               {section + ".train_mb_tokens"});
        move("micro_batch_size", section + ".train_micro_batch_size");
        break;
      }
    // Machines that only generate do not train.
    const std::string apart = "policy.generation.colocated.";
    const Setting* together = find(apart + "enabled");
    if (together && together->value == "false") {
      const std::int64_t nodes = whole("cluster.num_nodes").value_or(1),
                         per_node = whole("cluster.gpus_per_node").value_or(0),
                         others = whole(apart + "resources.num_nodes").value_or(0),
                         gpus = whole(apart + "resources.gpus_per_node").value_or(0);
      if (others > 0 && others < nodes)
        derive("cluster.num_nodes", std::to_string(nodes - others),
               {"cluster.num_nodes", apart + "resources.num_nodes"});
      else if (others == 0 && nodes == 1 && gpus > 0 && gpus < per_node)
        derive("cluster.gpus_per_node", std::to_string(per_node - gpus),
               {"cluster.gpus_per_node", apart + "resources.gpus_per_node"});
    }
    launch("cluster.num_nodes", "nodes");
    launch("cluster.gpus_per_node", "per_node");
  }

  // ---- both

  void optimizer() {
    for (const auto& [from, to] : {std::pair{"optim.lr_warmup_steps", "lr_warmup_iters"},
                                   {"optim.total_training_steps", "train_iters"},
                                   {"optim.lr_scheduler_type", "lr_decay_style"},
                                   {"optim.warmup_style", "lr_decay_style"},
                                   {"optim.lr_wsd_decay_steps", "lr_wsd_decay_iters"},
                                   {"optim.eps", "adam_eps"}})
      move(from, to);
    if (const Setting* betas = find("optim.betas")) {
      std::istringstream list(betas->value);
      const std::string written = betas->written, place = betas->place;
      std::string first, second;
      if (list >> first >> second) {
        drop("optim.betas");
        read_.settings.push_back({"adam_beta1", first, written, place});
        read_.settings.push_back({"adam_beta2", second, written, place});
      }
    }
    rename({{"optim.", ""}});
  }

  FrameworkSettings& read_;
};

}  // namespace

void name_policy_settings(FrameworkSettings& read) { Policy(read).run(); }

namespace {

std::vector<std::string> defaults_of(const nlohmann::ordered_json& root) {
  std::vector<std::string> files;
  const auto found = root.find("defaults");
  if (found == root.end()) return files;
  const auto add = [&](const nlohmann::ordered_json& file) {
    if (file.is_string() && file.get<std::string>() != "_self_")
      files.push_back(file.get<std::string>());
  };
  add(*found);
  if (found->is_array()) std::for_each(found->begin(), found->end(), add);
  return files;
}

}  // namespace

bool inherits_files(const nlohmann::ordered_json& root) {
  const std::vector<std::string> files = defaults_of(root);
  return !files.empty() && std::all_of(files.begin(), files.end(), [](const std::string& file) {
    return file.ends_with(".yaml") || file.ends_with(".yml");
  });
}

std::vector<std::string> take_defaults(nlohmann::ordered_json& root) {
  std::vector<std::string> files = defaults_of(root);
  root.erase("defaults");
  return files;
}

}  // namespace polyphony::sim
