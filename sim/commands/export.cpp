// polyphony export: the weights that a run trained, in Hugging Face layout.
#include "shared/export/export_run.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "shared/files/run_paths.h"
#include "shared/text/figure_text.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/launching/phase_folders.h"
#include "sim/load/load.h"

namespace polyphony::sim {
namespace {

// Returns the name in safetensors files of a --dtype.
std::string format_named(const std::string& text) {
  const std::vector<std::pair<std::string, std::string>> known{
      {"fp32", "F32"}, {"bf16", "BF16"}, {"fp16", "F16"}, {"fp64", "F64"}};
  std::vector<std::string> names;
  for (const auto& [name, format] : known) {
    if (text == name) return format;
    names.push_back(name);
  }
  throw InputError("--dtype", "", "\"" + text + "\" is not a number format", suggest(text, names));
}

// Returns the names of the phases whose runs are in a folder, sorted.
std::vector<std::string> phases_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (std::filesystem::exists(RunPaths{entry.path().string()}.scenario()))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

nlohmann::ordered_json answer_json(const Exported& made) {
  nlohmann::ordered_json json = {{"step", made.step}, {"format", made.format}};
  for (const ExportedModel& model : made.models)
    json["models"].push_back({{"folder", model.folder},
                              {"modules", model.modules},
                              {"kind", model.adapter ? "adapter" : "model"},
                              {"tensors", model.tensors},
                              {"parameters", model.parameters},
                              {"copied", model.copied}});
  json["left_out"] = made.left_out;
  return json;
}

void print_exported(const Exported& made) {
  std::cout << "Step " << made.step << ", " << made.format << ":\n";
  for (const ExportedModel& model : made.models) {
    std::cout << "  " << model.folder << "  " << (model.adapter ? "LoRA adapter of " : "")
              << joined(model.modules) << ": " << counted(model.tensors, "tensor", "tensors")
              << ", " << count_text(model.parameters) << " parameters";
    if (!model.copied.empty()) std::cout << "; with " << joined(model.copied);
    std::cout << "\n";
  }
  for (const std::string& text : made.left_out) std::cout << "  left out: " << text << "\n";
}

}  // namespace

int export_command(int argc, char** argv) {
  Arguments args(
      "export",
      "Writes the weights of a run's checkpoint as published models: safetensors under "
      "the names that transformers has, config.json, and the tokenizer's files. A module "
      "trained by LoRA becomes an adapter that PEFT loads.",
      "RUN",
      "  polyphony export runs/vlm --hf exported/vlm\n"
      "  polyphony export runs/vlm --hf exported/vlm --dtype bf16 --merge\n"
      "  polyphony export runs/vlm --hf exported/llava --merge --llava --image-token "
      "'<filename>'");
  args.add()("run", "folder of a run (polyphony run --out)", cxxopts::value<std::string>())(
      "hf", "folder to write; must not exist, or be empty", cxxopts::value<std::string>())(
      "step", "step of the checkpoint; the newest when absent", cxxopts::value<int>())(
      "dtype", "fp32, bf16, fp16 or fp64; that of training when absent",
      cxxopts::value<std::string>())(
      "merge", "add the low-rank pairs of LoRA to the weights, and write whole weights")(
      "llava",
      "write a vision, a projector and a language module as one LLaVA "
      "(LlavaForConditionalGeneration)")("image-token",
                                         "--llava: token of the tokenizer that stands for images",
                                         cxxopts::value<std::string>()->default_value("<image>"));
  args.positional({"run"});
  if (args.parse(argc, argv)) return 0;
  ExportOptions options;
  options.run = args.require("run");
  options.out = args.require("hf");
  if (args.has("step")) options.step = args.integer("step");
  if (args.has("dtype")) options.format = format_named(args.text("dtype"));
  options.merge = args.has("merge");
  options.llava = args.has("llava");
  options.image_token = args.text("image-token");
  const std::string file = RunPaths{options.run}.scenario();
  if (!std::filesystem::exists(file)) {
    const std::vector<std::string> phases = phases_in(options.run);
    if (phases.empty())
      throw InputError(options.run, "", "is not the folder of a run: it has no scenario.json",
                       "name the folder that `polyphony run --out` wrote");
    throw InputError(options.run, "", "holds the phases " + joined(phases),
                     "name the folder of one: " + phase_folder(options.run, phases.back()));
  }
  Progress progress("exporting");
  options.progress = [&](double share) { progress.show(share); };
  const Exported made = export_run(read_scenario_file(file), options);
  progress.show(1);
  if (args.json())
    std::cout << answer_json(made).dump(2) << "\n";
  else
    print_exported(made);
  return 0;
}

}  // namespace polyphony::sim
