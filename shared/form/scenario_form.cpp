#include "shared/form/scenario_form.h"

#include <algorithm>

#include "shared/form/search_fields.h"
#include "shared/goal/goal_json.h"
#include "shared/hardware/cluster.h"
#include "shared/hardware/software.h"
#include "shared/model/layout.h"

namespace polyphony {
namespace {

constexpr std::int64_t kMostSeed = std::numeric_limits<std::int64_t>::max();

Form distribution_form() {
  return any_form({integer_form(0, kMostTokens), text_form("lognormal(5, 1, 1, 4096)")});
}

const ObjectForm& source_form() {
  static const ObjectForm form{
      "data_source",
      "Data in files",
      {{"recorded", text_form("mix.jsonl"),
        "JSON lines, one sample each: {\"items\": [[\"image\", 64], [\"text\", 9, 1]]}; "
        "[\"latent\", 256] is generated from them"},
       {"easy-vqa", text_form("data/easy-vqa-1.0"), "folder of the unpacked package"}},
      {}};
  return form;
}

const ObjectForm& images_form() {
  static const ObjectForm form{
      "images",
      "Images of synthetic samples",
      {{"per_sample", distribution_form(),
        "how many: a number, \"uniform(0,3)\", \"lognormal(mu,sigma)\"", true},
       {"side", distribution_form(),
        "pixels of each, square: likewise; the model's image_size when absent"}},
      {}};
  return form;
}

const ObjectForm& audio_form() {
  static const ObjectForm form{
      "audio",
      "Clips of full length of synthetic samples",
      {{"per_sample", distribution_form(), "how many: a number, \"uniform(0,3)\"", true}},
      {}};
  return form;
}

const ObjectForm& latents_form() {
  static const ObjectForm form{
      "latents",
      "Latents that a diffusion module learns to generate",
      {{"per_sample", distribution_form(), "how many: 0, 1, or \"uniform(0,1)\"", true}},
      {}};
  return form;
}

const ObjectForm& text_data_form() {
  static const ObjectForm form{
      "text",
      "Text of synthetic samples",
      {{"tokens", distribution_form(), "tokens per sample, images not counted", true},
       {"loss_tokens", distribution_form(), "how many of them carry a label; \"all\" when absent"}},
      {}};
  return form;
}

const ObjectForm& data_form() {
  static const ObjectForm form{
      "data",
      "What a step trains on",
      {{"source", any_form({choice_form({"synthetic", "easy-vqa"}), object_form(source_form())}),
        "drawn from distributions, or read from files; synthetic when absent"},
       {"images", object_form(images_form()),
        "synthetic: images per sample; one when absent and the model sees images"},
       {"audio", object_form(audio_form()),
        "synthetic: audio clips per sample; one when absent and the model has an audio module"},
       {"text", object_form(text_data_form()), "synthetic: text per sample"},
       {"latents", object_form(latents_form()),
        "synthetic: latents per sample; one when absent and the model generates them"},
       {"sequence", integer_form(1, kMostTokens),
        "longest language sequence accepted, tokens; no limit when absent"},
       {"global_batch", integer_form(1, kMostSamples), "samples per step", true},
       {"seed", integer_form(0, kMostSeed), "of the draws and the shuffling"},
       {"shuffle", boolean_form(), "false: samples of a data set in its own order"}},
      {}};
  return form;
}

const ObjectForm& span_form() {
  static const ObjectForm form{"ranks",
                               "Consecutive ranks",
                               {{"first", integer_form(0, kMostRanks), "the first of them", true},
                                {"count", integer_form(1, kMostRanks), "how many", true}},
                               {}};
  return form;
}

const ObjectForm& stage_costs_form() {
  const Form stages = list_form(list_form(number_form(0, 1e15), 18, 24), 1, kMostLayers);
  static const ObjectForm form{
      "stage_costs",
      "What a work costs each stage: of its forward, backward of the input, backward of the "
      "weights, "
      "message to the next stage (seconds), of what it keeps, and between the parts of a backward "
      "(bytes), and, 0 when absent, of what goes to the host (bytes) and of its copy (seconds): "
      "the "
      "parts per pair that attends, per token, and per work",
      {{"layout", stages, "as `recompute` and `recompute_blocks` say"},
       {"none", stages, "without recomputation"},
       {"selective", stages, "attention computed again"},
       {"full", stages, "all computed again"},
       {"offload", stages, "nothing computed again, what is kept moved to the host and back"},
       {"room", list_form(number_form(0, 1e15), 1, kMostRanks),
        "bytes for what is kept, by rank along the pipeline"}},
      {}};
  return form;
}

const ObjectForm& grid_form() {
  const Form degree = integer_form(1, kMostRanks);
  static const ObjectForm form{
      "grid",
      "How a module is cut over its ranks; dp follows from the rank count",
      {{"ranks", any_form({degree, object_form(span_form())}),
        "how many ranks it owns, or from which on"},
       {"tp", degree, "tensor parallel ranks"},
       {"cp", degree, "context parallel ranks"},
       {"pp", degree, "pipeline stages"},
       {"vpp", degree, "chunks per pipeline stage"},
       {"ep", degree, "expert parallel ranks"},
       {"sp", boolean_form(), "sequence parallelism over the tp ranks"},
       {"tp_pieces", integer_form(1, kMostRanks),
        "pieces of a tensor-parallel product's rows, the collective of one beside the product of "
        "the next"},
       {"shard", choice_form(enum_names<Shard>()), "what is sharded over the data-parallel ranks"},
       {"shard_ranks", integer_form(0, kMostRanks),
        "ranks a shard group spans; 0: all data-parallel ranks"},
       {"recompute", choice_form(enum_names<Recompute>()),
        "activations computed again in the backward pass"},
       {"recompute_blocks", list_form(integer_form(0, kMostLayers), 2, 2),
        "first and last + 1 of the blocks it holds for; all when absent"},
       {"offload_activations", boolean_form(),
        "what a forward keeps goes to the host's memory and comes back one action before its "
        "backward, where at least two actions lie between"},
       {"expert_tp", integer_form(0, kMostRanks), "ranks that cut one expert: tp, or 1; 0: tp"},
       {"tokens", choice_form(enum_names<TokenAssignment>()), "how cp ranks divide a sequence"},
       {"cp_attention", choice_form(enum_names<ContextAttention>()),
        "how cp ranks attend: keys gathered, heads exchanged, or keys passed round"},
       {"cp_heads", integer_form(0, kMostRanks),
        "language, all-gather: key/value heads of a rank that cp ranks gather at a time, the next "
        "beside the attention of those before; 0: all"},
       {"row_split", integer_form(0, std::int64_t{1} << 30),
        "language: keys of a row that attention takes in one piece; 0: all"},
       {"spread", choice_form(enum_names<Spread>()),
        "what an encoder's ranks divide: samples, or single images"},
       {"blocks", list_form(integer_form(0, kMostLayers), 1, kMostLayers),
        "transformer blocks per stage; balanced when absent"},
       {"ahead", integer_form(0, kMostSamples),
        "an encoder with ranks of its own: forwards more than its schedule's warm-up"},
       {"item_cost", list_form(number_form(0, 1e9), 3, 3),
        "what a planner weighs by: seconds per squared token, token and work; fitted when absent"},
       {"sub_microbatch", integer_form(1, kMostSamples),
        "planner dip: items that an encoder's sub-microbatch has, where there are so many"},
       {"stage_costs", object_form(stage_costs_form()),
        "what planner dip orders actions by; fitted when absent"}},
      {}};
  return form;
}

const ObjectForm& layout_form() {
  static const ObjectForm form{
      "layout",
      "Which ranks hold which part of which module; other keys are module names, or \"all\"",
      {{"placement", choice_form(enum_names<Placement>()), "how the modules share the ranks", true},
       {"schedule", choice_form(enum_names(kLastSchedule)), "order of the pipeline's work"},
       {"actions", list_form(text_form("F0.0 F0.1 B0.0 B0.1"), 1, kMostRanks),
        "the order of actions of each rank of the language module's pipeline, in place of the "
        "schedule's"},
       {"turns", list_form(text_form("F0.0 F0.1 B0.0 B0.1"), 1, kMostRanks),
        "former name of actions"},
       {"microbatches", integer_form(1, kMostSamples),
        "per data-parallel lane of the language module and step"},
       {"encoder_microbatches", integer_form(0, kMostSamples),
        "encoder work items per step; 0: chosen; with planner dip several of a microbatch"},
       {"encoder_order", choice_form(enum_names<EncoderOrder>()),
        "when encoders on the language module's ranks run: in turn with it, all forwards before it "
        "and backwards after it, or interleaved"},
       {"bridge", choice_form(enum_names<Bridge>()),
        "how rows go between grids; leader: by way of each one's first tensor-parallel rank"},
       {"balance", choice_form(enum_names<Balance>()),
        "what splits stages that blocks do not: times forward and backward, messages and memory; "
        "or, unaware of what is frozen, forward times alone"},
       {"planner", choice_form(enum_names<Planning>()),
        "who plans every step anew: entrain deals samples to microbatches, so that encoders and "
        "language module each are even; dip cuts encoders' microbatches into sub-microbatches and "
        "searches the order of all actions; none: in the order of the batch"},
       {"placements", integer_form(0, kMostSamples),
        "planner dip: how many orders of a step its search tries; 0: none, encoders fill the "
        "bubbles of the language module's own order"}},
      {object_form(grid_form())}};
  return form;
}

// A pinned value, a list of choices, or "auto".
Form choices_of(const Form& value) {
  if (value.kind == Form::Kind::choice) {
    std::vector<std::string> with_auto = value.choices;
    with_auto.emplace_back("auto");
    return any_form({choice_form(std::move(with_auto)), list_form(value, 1, 64)});
  }
  return any_form({value, list_form(value, 1, 64), choice_form({"auto"})});
}

// A key's choices by the type of its list.
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
    ObjectForm made{"module_search", "Choices for one module", {}, {}};
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
    ObjectForm made{
        "search",
        "What a sweep combines: a value is pinned, a list gives choices, \"auto\" or nothing means "
        "all; other keys are module names",
        {},
        {object_form(module_search_form())}};
    const Search all;
    visit_choices(all, [&](const char* key, const auto& choices, const char* about) {
      made.fields.push_back({key, form_of(key, choices), about});
    });
    made.fields.push_back(
        {"memory_margin", number_form(0, 0.9),
         "share of a device's memory that the best layout leaves free; default "
         "0.05, an assumption: fragmentation of the allocator, NCCL's buffers and "
         "workspaces of libraries are not modeled. A layout that takes more is "
         "shown only where nothing else fits"});
    return made;
  }();
  return form;
}

const ObjectForm& training_form() {
  static const ObjectForm form{
      "training",
      "AdamW and its numbers",
      {{"precision", choice_form(enum_names<NumberFormat>()),
        "of the computation; when absent bf16 on accelerators that ship with the program, fp32 on "
        "others and on CPUs"},
       {"learning_rate", number_form(0, 1e3), "after the warm-up"},
       {"weight_decay", number_form(0, 1e3), "decoupled"},
       {"beta1", number_form(0, 1), "of the first moment"},
       {"beta2", number_form(0, 1), "of the second moment"},
       {"epsilon", number_form(0, 1), "added to the root of the second moment"},
       {"clip_norm", number_form(0, 1e9), "global norm of the gradient; 0: no clipping"},
       {"warmup_steps", integer_form(0), "steps of linear warm-up"},
       {"software", text_form("megatron-core"),
        "the stack it will run on: predictions take a shipped one of this name in place of the "
        "profile's, and warn about any other that the profile does not name"},
       {"steps", integer_form(1), "steps to train"},
       {"seed", integer_form(0, kMostSeed), "of the initial weights"}},
      {}};
  return form;
}

const ObjectForm& published_form() {
  static const ObjectForm form{
      "published",
      "A value that somebody measured of this layout, for polyphony validate",
      {{"what", choice_form({"step_time", "peak_memory"}), "what is measured", true},
       {"value", text_form("2.73s"), "with its unit: a time, or bytes", true},
       {"source", text_form("arXiv 2605.27678, table 1"), "where it stands", true},
       {"stack", choice_form(stack_names()), "the software that it was measured with"},
       {"assumed", list_form(text_form("recompute"), 0, 32), "what the source does not state"}},
      {}};
  return form;
}

}  // namespace

const ObjectForm& scenario_form() {
  static const ObjectForm form{
      "scenario",
      "A training run to plan, simulate, rehearse or start",
      {{"polyphony", integer_form(1, 1), "version of this form", true},
       {"about", text_form("12B vision + 70B language on 64 nodes: 8.4M tokens a step …"),
        "what this is, its arithmetic (tokens, FLOPs, bytes, expected step time), its source"},
       {"notes", list_form(text_form("the class token is left out"), 0, 1000),
        "in what the modules differ from the published models they stand for"},
       {"extends", text_form("base.json"),
        "a scenario that this one changes: keys here replace keys there, null removes"},
       {"model", object_form(model_form()), "what is trained", true},
       {"cluster", object_form(cluster_form()), "where it runs", true},
       {"data", object_form(data_form()), "what a step trains on", true},
       {"layout", object_form(layout_form()), "one layout, to plan, simulate or run"},
       {"search", object_form(search_form()), "layouts to compare"},
       {"goal", object_form(goal_form()),
        "what the best layout is best at; the step time when absent"},
       {"training", object_form(training_form()), "optimizer and length of the run"},
       {"published", list_form(object_form(published_form()), 1, 64),
        "what was measured of the layout elsewhere"}},
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
