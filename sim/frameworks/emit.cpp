#include "sim/frameworks/emit.h"

#include <algorithm>

#include "shared/split/encoder_stage.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

// What no framework's settings can say, whichever it is.
void check_common(const Scenario& scenario, const Layout& layout, Emitted& emitted) {
  std::vector<std::string>& cannot = emitted.cannot;
  if (scenario.data.sequence == 0)
    cannot.push_back("the scenario's data state no \"sequence\", which every framework needs");
  if (layout.planner != Planning::none)
    cannot.push_back(std::string("planner ") + name(layout.planner) + ": no framework has it");
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const ModuleLayout& grid = layout.modules[m];
    const std::string& module = scenario.model.modules[m].name;
    const auto refuse = [&](const std::string& what) { cannot.push_back(module + ": " + what); };
    if (scenario.model.modules[m].kind == ModuleKind::diffusion)
      refuse("a diffusion model behind the language model");
    if (grid.offload_activations) refuse("activations that wait on the host (offload_activations)");
    if (grid.tp_pieces > 1)
      emitted.notes.push_back(module + ": GEMMs in " + std::to_string(grid.tp_pieces) +
                              " pieces (tp_pieces); the framework's own overlap is nearest");
    if (grid.cp_heads > 0) refuse("key/value heads gathered a few at a time (cp_heads)");
    if (grid.row_split > 0) refuse("attention rows in pieces (row_split)");
    if (grid.ahead > 0) refuse("forward passes ahead of the schedule (ahead)");
    if (grid.cp > 1 && grid.tokens == TokenAssignment::random) refuse("tokens assigned at random");
  }
}

}  // namespace

Emitted emit(const Scenario& scenario, const Layout& layout, const TargetVersion& target) {
  Emitted emitted;
  emitted.target = target;
  check_common(scenario, layout, emitted);
  const ModuleId language = language_module(scenario.model);
  const Module& module = scenario.model.modules[language.value];
  const ModuleLayout& grid = layout.modules[language.value];
  EmitInput input{scenario, layout, language, module, grid};
  input.dp = grid.dp();
  input.world = world_size(layout);
  input.per_node = std::min(scenario.cluster.ranks_per_node, input.world);
  input.sequence = scenario.data.sequence;
  input.microbatch = scenario.data.global_batch / (std::int64_t{layout.microbatches} * input.dp);
  // Blocks of the language module alone: a chain's stages begin with its encoders' blocks.
  input.blocks = grid.blocks;
  if (layout.placement == Placement::homogeneous && !input.blocks.empty()) {
    const int encoders = blocks_of_encoders(scenario.model);
    if (encoders > input.blocks.front())
      emitted.cannot.push_back(
          "the encoder's blocks on several pipeline stages: frameworks keep it in the first");
    else
      input.blocks.front() -= encoders;
  }
  if (grid.pp * grid.vpp == 1) input.blocks.clear();
  if (const std::string remark = remark_on_version(target); !remark.empty())
    emitted.notes.push_back(remark);
  if (target == Target::torchtitan)
    emit_torchtitan(input, emitted);
  else
    emit_megatron(input, emitted);
  if (!emitted.cannot.empty()) emitted.files.clear();
  return emitted;
}

void check_version(Emitted& emitted) {
  for (const SettingSince& of : settings_since()) {
    if (of.target != emitted.target.target || !emitted.target.before(of.since)) continue;
    const auto found = emitted.arguments.find(of.setting);
    if (found == emitted.arguments.end() || (of.value && found->dump() != of.value)) continue;
    if (of.without == WithoutSetting::omitted)
      emitted.arguments.erase(found);
    else if (of.without == WithoutSetting::refused)
      emitted.cannot.push_back(std::string(of.what) + ": from " + version_text(of.since) + " on (" +
                               of.setting + ")");
  }
}

std::string torchrun_script(const EmitInput& input, const std::string& about,
                            const std::string& exports, const std::string& program) {
  std::string text = "#!/usr/bin/env bash\n";
  for (std::size_t begin = 0; begin < about.size();) {
    const std::size_t end = std::min(about.find('\n', begin), about.size());
    text += "# " + about.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  text += "set -euo pipefail\n" + exports;
  text += "torchrun --nnodes " + std::to_string(input.nodes()) + " --nproc_per_node " +
          std::to_string(input.per_node);
  if (input.many_nodes())
    text +=
        " \\\n  --node_rank \"${NODE_RANK:-${SLURM_NODEID:-0}}\" --master_addr "
        "\"${MASTER_ADDR:?host of node 0}\""
        " --master_port \"${MASTER_PORT:-29500}\"";
  return text + " \\\n  " + program + "\n";
}

std::string sbatch_script(const EmitInput& input, const std::string& script) {
  return "#!/usr/bin/env bash\n"
         "#SBATCH --job-name=polyphony\n#SBATCH --nodes=" +
         std::to_string(input.nodes()) + "\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=" +
         std::to_string(input.per_node) +
         "\n#SBATCH --exclusive\n"
         "# Add your site's partition, account, time and container.\n"
         "set -euo pipefail\n"
         "export MASTER_ADDR=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\"\n"
         "srun --label bash \"$SLURM_SUBMIT_DIR/" +
         script + "\" \"$@\"\n";
}

}  // namespace polyphony::sim
