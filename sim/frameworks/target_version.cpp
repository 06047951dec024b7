#include "sim/frameworks/target_version.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "shared/error.h"
#include "shared/text/json_form.h"

namespace polyphony::sim {
namespace {

using enum Target;
using enum WithoutSetting;

// Read from the released packages (PyPI) and, for Megatron-LM, from its tags core_v0.11.0 to
// core_v0.19.0.
constexpr SettingSince kSettings[] = {
    {megatron_lm,
     {0, 12, 0},
     "recompute_modules",
     nullptr,
     omitted,
     "recomputation by module",
     "training/arguments.py; 0.11: selective recomputation is that of core attention"},
    {megatron_lm,
     {0, 12, 0},
     "fp8_recipe",
     "\"tensorwise\"",
     refused,
     "FP8 with current scaling",
     "training/arguments.py --fp8-recipe; 0.11: delayed scaling alone"},
    {megatron_lm,
     {0, 13, 0},
     "fp8_recipe",
     "\"blockwise\"",
     refused,
     "FP8 with a scale for each block",
     "core/transformer/transformer_config.py fp8_recipe"},
    {megatron_lm,
     {0, 13, 0},
     "pipeline_model_parallel_layout",
     nullptr,
     rewritten,
     "blocks of each stage, by a layout",
     "training/arguments.py; 0.12: --decoder-first-pipeline-num-layers, "
     "--decoder-last-pipeline-num-layers, no other stage of its own size"},
    {megatron_lm,
     {0, 14, 0},
     "use_megatron_fsdp",
     nullptr,
     refused,
     "sharded gradients or parameters (Megatron-FSDP)",
     "training/arguments.py; 0.12, 0.13: its forerunner --use-custom-fsdp"},
    {megatron_lm,
     {0, 16, 0},
     "outer_dp_sharding_strategy",
     nullptr,
     refused,
     "Megatron-FSDP over some of the data-parallel ranks",
     "training/arguments.py --outer-dp-sharding-strategy"},
    {megatron_lm,
     {0, 16, 0},
     "moe_shared_expert_gate",
     nullptr,
     refused,
     "a gate of the shared expert",
     "core/transformer/transformer_config.py"},
    {megatron_bridge,
     {0, 5, 0},
     "module_parallelisms",
     nullptr,
     refused,
     "encoders with ranks of their own (MIMO)",
     "megatron/bridge/models/megatron_mimo; 0.4: without training"},
    {torchtitan,
     {0, 3, 0},
     "parallelism.context_parallel_load_balancer",
     "null",
     refused,
     "contiguous tokens of context-parallel ranks",
     "config/job_config.py: TOML has no null"},
    {torchtitan,
     {0, 2, 2},
     "parallelism.context_parallel_load_balancer",
     nullptr,
     omitted,
     "the balancer of context-parallel ranks",
     "config/job_config.py; 0.2.1: PyTorch's head-tail order always"},
    {torchtitan,
     {0, 3, 0},
     "parallelism.enable_sequence_parallel",
     "false",
     refused,
     "tensor parallelism without sequence parallelism",
     "config/configs.py; 0.2: tensor parallelism includes it (models/*/infra/parallelize.py)"},
    {torchtitan,
     {0, 3, 0},
     "parallelism.enable_sequence_parallel",
     nullptr,
     omitted,
     "sequence parallelism as a choice",
     "config/configs.py; 0.2: always with tensor parallelism"},
    {torchtitan,
     {0, 3, 0},
     "training.disable_cuda_graphs",
     nullptr,
     omitted,
     "CUDA graphs",
     "config/configs.py; 0.2: none"},
    {ms_swift,
     {4, 5, 0},
     "cp_comm_type",
     "[\"p2p\"]",
     omitted,
     "ring attention as a choice",
     "megatron/arguments/megatron_args.py; 4.4: always"},
    {ms_swift,
     {4, 5, 0},
     "cp_comm_type",
     nullptr,
     refused,
     "context parallelism by all-to-all or all-gather",
     "megatron/arguments/megatron_args.py"},
    {ms_swift,
     {4, 5, 0},
     "cp_partition_mode",
     nullptr,
     refused,
     "contiguous tokens of context-parallel ranks",
     "megatron/arguments/megatron_args.py"},
};

// Returns the numbers of "0.13", "v0.13.1", "core_r0.13.0"; none for other words.
std::optional<FrameworkVersion> read_version(std::string_view text) {
  if (text.starts_with("core_")) text.remove_prefix(5);
  if (text.starts_with("v") || text.starts_with("r")) text.remove_prefix(1);
  FrameworkVersion version;
  int* const parts[] = {&version.major, &version.minor, &version.patch};
  std::size_t read = 0;
  const char *at = text.data(), *const end = at + text.size();
  for (;;) {
    const auto [after, error] = std::from_chars(at, end, *parts[read]);
    if (error != std::errc{} || *parts[read] < 0) return std::nullopt;
    ++read;
    if (after == end) break;
    if (read == std::size(parts) || *after != '.') return std::nullopt;
    at = after + 1;
  }
  if (read < 2) return std::nullopt;
  return version;
}

}  // namespace

std::span<const SettingSince> settings_since() { return kSettings; }

KnownVersions known_versions(Target target) {
  switch (target) {
    case megatron_lm:
      return {{0, 11, 0}, {0, 19, 0}};
    case megatron_bridge:
      return {{0, 3, 0}, {0, 6, 2}};
    case torchtitan:
      return {{0, 2, 0}, {0, 3, 0}};
    case ms_swift:
      return {{4, 0, 0}, {4, 6, 0}};
  }
  return {};
}

std::string version_text(FrameworkVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

std::string remark_on_version(const TargetVersion& target) {
  const FrameworkVersion newest = known_versions(target.target).newest;
  if (!target.version || *target.version <= newest) return "";
  return std::string(name(target.target)) + " " + version_text(*target.version) +
         " is newer than " + version_text(newest) + ", of which the settings are known";
}

std::string target_text(const TargetVersion& target) {
  return std::string(name(target.target)) +
         (target.version ? "@" + version_text(*target.version) : "");
}

TargetVersion parse_target(const std::string& word, const std::string& option) {
  const std::vector<std::string> known = enum_names<Target>();
  std::string lower;
  for (const char c : word) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::size_t at = lower.find('@');
  std::string framework = lower.substr(0, at);
  std::replace(framework.begin(), framework.end(), '_', '-');
  if (std::find(known.begin(), known.end(), framework) == known.end())
    throw InputError(option, "", "there is no framework \"" + word + "\" to write for",
                     suggest(framework, known));
  const Target target = enum_named<Target>(framework);
  if (at == std::string::npos) return target;
  const KnownVersions versions = known_versions(target);
  const std::string examples = framework + "@" + version_text(versions.oldest) + " to " +
                               framework + "@" + version_text(versions.newest);
  const std::optional<FrameworkVersion> version = read_version(lower.substr(at + 1));
  if (!version)
    throw InputError(option, "", "\"" + word + "\" has no version behind its @", examples);
  if (*version < versions.oldest)
    throw InputError(option, "",
                     "there is nothing to write for " + framework + " " + version_text(*version) +
                         ": it is older than " + version_text(versions.oldest),
                     examples);
  return {target, version};
}

}  // namespace polyphony::sim
