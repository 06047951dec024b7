#include "shared/form/scenario_form.h"

#include <algorithm>
#include <string_view>

#include "shared/form/search_fields.h"
#include "shared/goal/goal_json.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/software.h"
#include "shared/model/layout_fields.h"

namespace polyphony {
namespace {

constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostPhases = 64;
constexpr std::int64_t kMostParts = 1024;  // of a mixture

Form distribution_form() {
  return any_form({integer_form(0, kMostTokens), text_form("lognormal(5, 1, 1, 4096)")});
}

// The form of data sets that train real content, which may be parts of a mixture.
const ObjectForm& mixture_part_form() {
  static const ObjectForm form{
      "mixture_part",
      "A part of a mixture: exactly one of dataset, text and tokens",
      {{"weight", number_form(1e-6, 1e6),
        "share of the samples that come from this part, relative to the weights of the other "
        "parts, in steps of 0.000001; 1 when absent"},
       {"text", text_form("page.txt"),
        "path of a text file, which is cut into samples of \"sequence\" tokens; every token "
        "predicts the next one"},
       {"tokens", text_form("data/corpus_text_document"),
        "path, without the ending, of a pair of files .bin and .idx of token ids as Megatron-LM's "
        "preprocess_data.py writes them. Its documents are joined and cut into samples of "
        "\"sequence\" tokens; every token predicts the next one"},
       {"dataset", text_form("llava_instruct.json"),
        "path of a data set of conversations about images and audio: JSON lines or one JSON array "
        "as LLaVA has it, WebDataset tar shards (one, or a folder of them), or a folder of images "
        "or audio with captions of the same name; `polyphony scan --help` describes them. What "
        "the assistant says is predicted"},
       {"tokenizer", text_form("models/SmolLM2-135M/tokenizer.json"),
        "text and dataset: path of the tokenizer.json of the language module"},
       {"held_out", text_form("test.json"),
        "text, tokens and dataset: path of a second one, which evaluations read (run "
        "--evaluate-every)"},
       {"template", choice_form(enum_names<ChatTemplate>()),
        "dataset: how a conversation becomes one text. chatml: <|im_start|>user ... (Qwen, "
        "SmolLM2); llama3: <|start_header_id|>user ...; vicuna: USER: ... ASSISTANT: ... "
        "(LLaVA-1.5); plain: the turns one after another (captions). chatml when absent"},
       {"system", text_form("You are a helpful assistant."),
        "dataset: system message of conversations that have none; none when absent"},
       {"images", text_form("coco/train2017"),
        "dataset: folder that paths of images and audio in JSON lines start from; that of the "
        "file when absent"},
       {"too_long", choice_form(enum_names<TooLong>()),
        "dataset: what happens to a sample of more than \"sequence\" tokens; cut when absent"},
       {"most_left_out", number_form(0, 1),
        "dataset: largest share of samples that may be skipped because they are damaged or have no "
        "answer; skipped samples are counted and named. 0.01 when absent"}},
      {}};
  return form;
}

const ObjectForm& source_form() {
  static const ObjectForm form = [] {
    ObjectForm made{
        "data_source",
        "A data set in files: exactly one of dataset, text, tokens, mixture, recorded and easy-vqa",
        {{"recorded", text_form("mix.jsonl"),
          "path of a file of JSON lines, one sample per line: {\"items\": [[\"image\", 64], "
          "[\"text\", 9, 1]]} has an image of 64 patches, then 9 tokens of text of which the last "
          "carries a label; [\"latent\", 256] is a latent of 256 patches that a diffusion module "
          "learns to generate"}},
        {}};
    for (const Field& field : mixture_part_form().fields)
      if (field.key != "weight") made.fields.push_back(field);
    made.fields.push_back(
        {"mixture", list_form(object_form(mixture_part_form()), 1, kMostParts),
         "several data sets, each with a weight: samples are drawn from them in proportion to the "
         "weights, and each goes through its own samples once in an epoch of its own"});
    made.fields.push_back({"easy-vqa", text_form("data/easy-vqa-1.0"),
                           "path of the folder with the unpacked PyPI package easy-vqa"});
    return made;
  }();
  return form;
}

const ObjectForm& images_form() {
  static const ObjectForm form{
      "images",
      "The images of synthetic samples",
      {{"per_sample", distribution_form(),
        "number of images per sample: a number, \"uniform(0,3)\" (both ends included), or "
        "\"lognormal(mu,sigma,low,high)\" with median exp(mu)",
        true},
       {"side", distribution_form(),
        "pixels on each side of an image, as a number or distribution like per_sample; the vision "
        "module's image_size when absent"}},
      {}};
  return form;
}

const ObjectForm& audio_form() {
  static const ObjectForm form{
      "audio",
      "The audio clips of synthetic samples; every clip has full length",
      {{"per_sample", distribution_form(),
        "number of clips per sample: a number or a distribution, such as \"uniform(0,3)\"", true}},
      {}};
  return form;
}

const ObjectForm& latents_form() {
  static const ObjectForm form{"latents",
                               "The latents that a diffusion module learns to generate",
                               {{"per_sample", distribution_form(),
                                 "number of latents per sample: 0, 1, or \"uniform(0,1)\"", true}},
                               {}};
  return form;
}

const ObjectForm& text_data_form() {
  static const ObjectForm form{
      "text",
      "The text of synthetic samples",
      {{"tokens", distribution_form(),
        "number of text tokens per sample, without the tokens of images and audio", true},
       {"loss_tokens", distribution_form(),
        "number of text tokens that carry a label, counted from the end; \"all\" when absent"}},
      {}};
  return form;
}

const ObjectForm& data_form() {
  static const ObjectForm form{
      "data",
      "The data that a step trains on",
      {{"source", any_form({choice_form({"synthetic", "easy-vqa"}), object_form(source_form())}),
        "where samples come from: drawn from distributions (synthetic), or read from files; "
        "synthetic when absent"},
       {"images", object_form(images_form()),
        "synthetic data: the images of a sample; when absent, one if the model has a vision "
        "module"},
       {"audio", object_form(audio_form()),
        "synthetic data: the audio clips of a sample; when absent, one if the model has an audio "
        "module"},
       {"text", object_form(text_data_form()),
        "synthetic data: the text of a sample; required unless the language module is abstract"},
       {"latents", object_form(latents_form()),
        "synthetic data: the latents of a sample; when absent, one if the model has a diffusion "
        "module"},
       {"sequence", integer_form(1, kMostTokens),
        "length in tokens of the longest language sequence accepted; no limit when absent"},
       {"global_batch", integer_form(1, kMostSamples), "number of samples per step, over all ranks",
        true},
       {"seed", integer_form(0, kMostSeed),
        "random seed of synthetic samples and of the shuffling; 1 when absent"},
       {"shuffle", boolean_form(),
        "data sets in files: whether the samples are shuffled in every epoch; true when absent"}},
      {}};
  return form;
}

const ObjectForm& span_form() {
  static const ObjectForm form{
      "ranks",
      "Consecutive ranks",
      {{"first", integer_form(0, kMostRanks), "the first rank, from 0", true},
       {"count", integer_form(1, kMostRanks), "number of ranks", true}},
      {}};
  return form;
}

const ObjectForm& stage_costs_form() {
  const Form stages = list_form(list_form(number_form(0, 1e15), 18, 24), 1, kMostLayers);
  static const ObjectForm form{
      "stage_costs",
      "Cost of one microbatch on each pipeline stage, for planner dip: a list of 18 or 24 numbers "
      "per stage. The numbers are groups of three: the cost per (query, key) pair that attends, "
      "per token, and per microbatch. The groups are the times of the forward pass, the backward "
      "pass of the input, the backward pass of the weights and the message to the next stage "
      "(seconds); the activations saved from forward to backward, and from the first to the second "
      "backward part (bytes); then, 0 when absent, the activations moved to the host (bytes) and "
      "the time of that copy (seconds)",
      {{"layout", stages,
        "costs with the recomputation that \"recompute\" and \"recompute_blocks\" name"},
       {"none", stages, "costs without recomputation"},
       {"selective", stages, "costs with selective recomputation (attention only)"},
       {"full", stages, "costs with full recomputation"},
       {"offload", stages,
        "costs without recomputation, with saved activations moved to the host and back"},
       {"room", list_form(number_form(0, 1e15), 1, kMostRanks),
        "memory for saved activations, in bytes, one entry per rank along the pipeline; no limit "
        "when absent"}},
      {}};
  return form;
}

const ObjectForm& grid_form() {
  static const ObjectForm form = [] {
    const Form degree = integer_form(1, kMostRanks);
    ObjectForm made{
        "grid",
        "How a module is parallelized over its ranks. The number of data-parallel replicas "
        "follows: "
        "ranks / (tp * cp * pp)",
        {{"ranks", any_form({degree, object_form(span_form())}),
          "the ranks that the module owns: how many, or {\"first\": …, \"count\": …}; when absent, "
          "all ranks of the cluster, or, for one module of placement non-colocated, those that the "
          "others leave"}},
        {}};
    for (const GridField& field : grid_fields()) {
      if (!field.about) continue;
      if (field.key == std::string_view("sub_microbatch"))
        made.fields.push_back(
            {"item_cost", list_form(number_form(0, 1e9), 3, 3),
             "cost of one microbatch, for planners: seconds per squared token, per token, and per "
             "microbatch; fitted to the hardware profile when absent"});
      made.fields.push_back({field.key, field.form(), field.about});
    }
    made.fields.push_back(
        {"stage_costs", object_form(stage_costs_form()),
         "planner dip: cost of a microbatch on each stage; fitted to the hardware "
         "profile when absent"});
    return made;
  }();
  return form;
}

const ObjectForm& layout_form() {
  static const ObjectForm form = [] {
    ObjectForm made{
        "layout",
        "One parallel layout. The other keys are module names, each with the module's grid, or "
        "\"all\" in a homogeneous layout",
        {},
        {object_form(grid_form())}};
    for (const LayoutField& field : layout_fields()) {
      made.fields.push_back({field.key, field.form(), field.about, field.required});
      if (field.key != std::string_view("schedule")) continue;
      const Form orders = list_form(text_form("F0.0 F0.1 B0.0 B0.1"), 1, kMostRanks);
      made.fields.push_back({"actions", orders,
                             "the order of actions of each rank of the language module's pipeline, "
                             "one text per rank, "
                             "instead of a schedule's, such as \"F0.0 F0.1 B0.0 B0.1\""});
      made.fields.push_back({"turns", orders, "former name of \"actions\""});
    }
    return made;
  }();
  return form;
}

// The form of a key of a search: a single value, a list of choices, or "auto".
Form choices_of(const Form& value) {
  if (value.kind == Form::Kind::choice) {
    std::vector<std::string> with_auto = value.choices;
    with_auto.emplace_back("auto");
    return any_form({choice_form(std::move(with_auto)), list_form(value, 1, 64)});
  }
  return any_form({value, list_form(value, 1, 64), choice_form({"auto"})});
}

// The form of a key of a search, by the type of its list of choices.
Form form_of(const std::string& key, const std::vector<int>&) {
  const bool zero = key == "expert_tp" || key == "shard_ranks" || key == "encoder_microbatches";
  return choices_of(integer_form(zero ? 0 : 1, std::max<std::int64_t>(kMostRanks, kMostSamples)));
}
Form form_of(const std::string&, const std::vector<bool>&) { return choices_of(boolean_form()); }
Form form_of(const std::string&, const std::vector<ScheduleKind>&) {
  return choices_of(choice_form(enum_names(kLastSchedule)));
}
template <class Enum>
Form form_of(const std::string&, const std::vector<Enum>&) {
  return choices_of(choice_form(enum_names<Enum>()));
}

const ObjectForm& module_search_form() {
  static const ObjectForm form = [] {
    ObjectForm made{"module_search", "The choices of a search for one module", {}, {}};
    const ModuleSearch all;
    visit_module_choices(all, [&](const char* key, const auto& choices, const char* about) {
      made.fields.push_back({key, form_of(key, choices), about});
    });
    return made;
  }();
  return form;
}

const ObjectForm& search_form() {
  static const ObjectForm form = [] {
    ObjectForm made{"search",
                    "The layouts that a sweep combines. A single value is fixed, a list gives the "
                    "choices, \"auto\" or an absent key means all choices that the model and the "
                    "cluster allow. The other keys are module names",
                    {},
                    {object_form(module_search_form())}};
    const Search all;
    visit_choices(all, [&](const char* key, const auto& choices, const char* about) {
      made.fields.push_back({key, form_of(key, choices), about});
    });
    made.fields.push_back(
        {"memory_margin", number_form(0, 0.9),
         "share of a device's memory that the best layout leaves free; default "
         "0.05, an assumption: fragmentation of the allocator is not modeled, nor are, for other "
         "frameworks, NCCL's buffers and workspaces of libraries. A layout that takes more is "
         "shown only where nothing else fits"});
    return made;
  }();
  return form;
}

const ObjectForm& factors_form() {
  static const ObjectForm form{
      "learning_rate_factors", "Factors of the learning rate by module", {}, {number_form(0, 1e3)}};
  return form;
}

const ObjectForm& training_form() {
  static const ObjectForm form{
      "training",
      "Number format, optimizer (AdamW) and length of the training",
      {{"precision", choice_form(enum_names<NumberFormat>()),
        "number format of the computation; bf16 keeps fp32 master weights and gradients. When "
        "absent: bf16 on accelerators that ship with the program, fp32 on others and on CPUs"},
       {"fp8", choice_form(enum_names<Fp8Scaling>()),
        "casts the operands of the blocks' GEMMs with weights to FP8, with precision bf16. "
        "tensorwise: one scale for each operand, gradients in E5M2; rowwise: one scale for each "
        "row, E4M3 throughout. Not for experts, embeddings and the output matrix. off when absent"},
       {"learning_rate", number_form(0, 1e3), "learning rate after the warm-up; 0.001 when absent"},
       {"weight_decay", number_form(0, 1e3), "decoupled weight decay (AdamW); 0 when absent"},
       {"beta1", number_form(0, 1),
        "decay rate of the first moment, at least 0 and below 1; 0.9 when absent"},
       {"beta2", number_form(0, 1),
        "decay rate of the second moment, at least 0 and below 1; 0.95 when absent"},
       {"epsilon", number_form(0, 1),
        "epsilon added to the square root of the second moment; 1e-8 when absent"},
       {"clip_norm", number_form(0, 1e9),
        "global gradient norm above which gradients are scaled down; 0: no clipping; 1 when "
        "absent"},
       {"warmup_steps", integer_form(0),
        "number of steps of linear learning-rate warm-up; 0 when absent"},
       {"decay", choice_form(enum_names<RateDecay>()),
        "how the learning rate decreases after the warm-up. constant: it does not; linear and "
        "cosine: down to min_learning_rate at step decay_steps; wsd (warm-up, stable, decay): "
        "constant, and linear over the last wsd_decay_steps before decay_steps. constant when "
        "absent"},
       {"min_learning_rate", number_form(0, 1e3), "learning rate after the decay; 0 when absent"},
       {"decay_steps", integer_form(1),
        "step at which the decay ends, warm-up included; \"steps\" when absent"},
       {"wsd_decay_steps", integer_form(1),
        "decay wsd: number of its last steps in which the rate decreases; a tenth of decay_steps "
        "when absent"},
       {"learning_rate_factors", object_form(factors_form()),
        "factors of the learning rate by module, such as {\"vision\": 0.1}; 1 where absent"},
       {"software", text_form("megatron-core"),
        "software stack that the training will run on. The shipped stack of this name is used for "
        "predictions instead of the profile's; for any other name that the profile does not have, "
        "predictions warn"},
       {"steps", integer_form(1), "number of training steps; 10 when absent"},
       {"seed", integer_form(0, kMostSeed), "random seed of the initial weights; 1 when absent"}},
      {}};
  return form;
}

const ObjectForm& published_form() {
  static const ObjectForm form{
      "published",
      "A published measurement of this layout, for the command polyphony validate",
      {{"what", choice_form({"step_time", "peak_memory"}), "the measured quantity", true},
       {"value", text_form("2.73s"),
        "the measured value with its unit: a time (step_time) or bytes (peak_memory)", true},
       {"source", text_form("arXiv 2605.27678, table 1"), "the publication, and the place in it",
        true},
       {"stack", choice_form(stack_names()), "the software stack that it was measured with"},
       {"attention", choice_form({"flash", "cudnn"}),
        "the attention kernels that it was measured with: FlashAttention-2 or cuDNN; default: "
        "those "
        "of the device's profile"},
       {"assumed", list_form(text_form("recompute"), 0, 32),
        "settings of the layout that the source does not state and that are assumed here"}},
      {}};
  return form;
}

const ObjectForm& phase_form(const ObjectForm& scenario) {
  static const ObjectForm form{
      "phase",
      "One phase of a training run: the scenario with a change",
      {{"name", text_form("align"),
        "name of the phase and of its folder in that of the run: letters, digits, \"-\", \"_\" and "
        "\".\"",
        true},
       {"change", change_form(scenario),
        "what differs from the scenario without phases: keys here replace the keys there, null "
        "removes a key; nothing when absent"}},
      {}};
  return form;
}

}  // namespace

Form phases_form() { return list_form(object_form(phase_form(scenario_form())), 1, kMostPhases); }

const ObjectForm& scenario_form() {
  static const ObjectForm form{
      "scenario",
      "A training run to plan, simulate, rehearse or start: model, cluster, data, layout or "
      "search, training",
      {{"polyphony", integer_form(1, 1), "version of the file format", true},
       {"about", text_form("12B vision + 70B language on 64 nodes: 8.4M tokens a step …"),
        "free text: what the scenario describes, its arithmetic (tokens, FLOPs, bytes, expected "
        "step time), and its source"},
       {"notes", list_form(text_form("the class token is omitted"), 0, 1000),
        "differences between the modules and the published models that they represent; answers "
        "repeat them"},
       {"extends", text_form("base.json"),
        "path of the scenario that this one changes, relative to this file: keys here replace the "
        "keys there, null removes a key"},
       {"model", object_form(model_form()), "the model to train", true},
       {"cluster", object_form(cluster_form()), "the machine that the training runs on", true},
       {"data", object_form(data_form()), "the data that a step trains on", true},
       {"layout", object_form(layout_form()),
        "one layout, for commands that plan, simulate or run it"},
       {"search", object_form(search_form()),
        "the layouts that a sweep compares; without \"layout\" and \"search\", all that the model "
        "and the cluster allow"},
       {"goal", object_form(goal_form()),
        "the objective by which layouts are ranked; the step time when absent"},
       {"training", object_form(training_form()),
        "number format, optimizer and length of the training"},
       {"phases", list_form(object_form(phase_form(form)), 1, kMostPhases),
        "phases of the training run, one after the other, such as align, joint and long context; "
        "each begins with the parameters that the phase before has trained"},
       {"published", list_form(object_form(published_form()), 1, 64),
        "published measurements of the layout"}},
      {}};
  return form;
}

const std::vector<std::string>& reserved_module_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> keys{"all"};
    for (const ObjectForm* form : {&layout_form(), &search_form()})
      for (const Field& field : form->fields)
        if (std::find(keys.begin(), keys.end(), field.key) == keys.end()) keys.push_back(field.key);
    return keys;
  }();
  return names;
}

}  // namespace polyphony
