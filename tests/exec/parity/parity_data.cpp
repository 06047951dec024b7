// The model and data of the parity cases: a small model and sixteen samples of every awkward shape.
#include <array>

#include "exec/data/synthetic_dataset.h"
#include "shared/random.h"
#include "tests/exec/parity/parity.h"
#include "tests/exec/support/tiny_diffusion.h"
#include "tests/exec/support/variants.h"

namespace polyphony::exec::testing {
namespace {

// Fixed samples: every awkward shape at least once. "I" an image of 16 patches (in a case with
// oblong images: of 2 × 4 or 4 × 2), "i" one of 4; "A" a clip of 12 tokens, "a" one of 4; a text
// item is its tokens and labels.
using Text = std::array<std::int32_t, 2>;
struct Shape {
  std::vector<std::variant<char, Text>> items;
};
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> table = {
      {{'I', Text{5, 2}}},
      {{Text{3, 3}, 'a'}},
      {{'i', 'A', 'I', 'I', Text{12, 1}}},
      {{Text{2, 0}, 'I', Text{7, 0}}},  // no label at all
      {{Text{9, 4}, 'i', Text{3, 1}}},  // labels before and after an image
      {{'I', 'I', 'a', 'a', Text{4, 1}}},
      {{Text{1, 1}}},  // one token
      {{'i', Text{6, 6}}},
      {{Text{4, 0}, 'i', 'A', Text{2, 0}, 'i', Text{5, 2}}},
      {{'A', Text{17, 3}}},
      {{'I', Text{2, 0}}},
      {{'I', 'i', 'I', Text{8, 5}}},
      {{Text{6, 1}, 'A'}},
      {{'i', Text{1, 1}}},
      {{Text{5, 0}}},
      {{Text{2, 1}, 'I'}},  // ends in an image
  };
  return table;
}

class ShapesDataset : public Dataset {
 public:
  ShapesDataset(const Scenario& scenario, const Case& c)
      : content_(scenario),
        oblong_(c.oblong),
        text_only_(c.text_only),
        diffusion_(c.diffusion),
        audio_(c.audio),
        drawn_(c.drawn) {}

  // A rotation of the table, so that microbatches differ from step to step, or a random draw from
  // it. Latents end most samples; in every fourth one follows each text, too.
  Batch batch(std::uint64_t step) const override {
    Batch batch;
    for (std::size_t i = 0; i < shapes().size(); ++i) {
      Sample sample;
      sample.id = static_cast<std::uint32_t>(1000 * step + i);
      const std::size_t turned = i + 3 * step,
                        shape = drawn_ > 0 ? random_bits(drawn_, 100 * step + i) : turned;
      for (const auto& item : shapes()[shape % shapes().size()].items) {
        if (const Text* words = std::get_if<Text>(&item)) {
          sample.items.push_back({Modality::text, (*words)[0], (*words)[1]});
          if (diffusion_ && i % 4 == 0) sample.items.push_back({Modality::latent, 9, 0});
        } else if (!text_only_) {
          add(std::get<char>(item), sample);
        }
      }
      const bool ends = sample.items.empty() || sample.items.back().modality == Modality::latent;
      if (diffusion_ && !ends && i % 3 != 1)
        sample.items.push_back({Modality::latent, i % 2 ? 16 : 4, 0});
      batch.samples.push_back(std::move(sample));
    }
    return batch;
  }
  std::vector<Sample> held_out() const override { return {}; }
  SampleContent content(const Sample& sample, ContentParts parts) const override {
    return content_(sample, parts);
  }

 private:
  void add(char item, Sample& sample) const {
    if (oblong_ && item == 'I')
      sample.items.push_back(
          image_item((sample.id + sample.items.size()) % 2 ? PatchGrid{2, 4} : PatchGrid{4, 2}));
    else if (item == 'I' || item == 'i')
      sample.items.push_back({Modality::image, item == 'I' ? 16 : 4, 0});
    else if (audio_)
      sample.items.push_back({Modality::audio, item == 'A' ? 12 : 4, 0});
  }

  SyntheticContent content_;
  bool oblong_, text_only_, diffusion_, audio_;
  std::uint64_t drawn_;
};

}  // namespace

Scenario make_scenario(const Case& c) {
  Scenario scenario;
  scenario.file = "parity";
  scenario.planner_costs = c.planner_costs;
  Module vision = tiny_vision(), language = tiny_language();
  vision.layers = 3;
  language.layers = 4;
  scenario.model.modules = {vision, tiny_projector()};
  scenario.model.edges = {{ModuleId(0), ModuleId(1), 0, -1}};
  if (c.deep) {
    scenario.model.modules.push_back(tiny_projector());
    scenario.model.modules.back().name = "deep_projector";
    scenario.model.edges.push_back({ModuleId(0), ModuleId(2), 0, 1});
  }
  if (c.audio) {
    const ModuleId audio(scenario.model.modules.size());
    scenario.model.modules.push_back(tiny_audio());
    scenario.model.modules.push_back(audio_projector());
    scenario.model.edges.push_back({audio, ModuleId(audio.value + 1), 0, -1});
  }
  const ModuleId text(scenario.model.modules.size());
  scenario.model.modules.push_back(language);
  scenario.model.edges.push_back({ModuleId(1), text, 0, -1});
  if (c.deep) scenario.model.edges.push_back({ModuleId(2), text, 2, -1});
  if (c.audio) scenario.model.edges.push_back({ModuleId(text.value - 1), text, 0, -1});
  if (c.diffusion) {
    scenario.model.modules.push_back(tiny_diffusion(language.hidden));
    scenario.model.edges.push_back({text, ModuleId(text.value + 1), 0, -1});
  }
  if (c.language_only) scenario.model = {{language}, {}};
  for (Module& module : scenario.model.modules)
    for (const ModuleKind kind : c.frozen)
      if (module.kind == kind) module.trainable = Trainable::frozen;
  for (Module& module : scenario.model.modules)
    for (const ModuleKind kind : c.lora)
      if (module.kind == kind) {
        module.trainable = Trainable::lora;
        module.lora_rank = 2;
        module.lora_alpha = 4;
      }
  if (c.experts > 0) {
    Module& sparse = scenario.model.modules[text.value];
    sparse.ffn = 0;
    sparse.experts = c.experts;
    sparse.experts_per_token = 2;
    sparse.expert_ffn = 8;
    sparse.shared_ffn = 4;
    sparse.balance_weight = 0.1;
  }
  if (c.variant) c.variant(scenario.model);
  scenario.cluster.ranks_per_node = 8;
  scenario.cluster.host_link.rate = BytesPerSecond(1e9);  // any rate: activations may be offloaded
  // Used only by planning, to balance stages; batches come from make_dataset().
  const auto constant = [](double value) {
    return Distribution{Distribution::Kind::constant, value, 0};
  };
  SyntheticData typical{constant(c.language_only ? 0 : 1), constant(6), constant(2)};
  if (c.audio) typical.clips = constant(1), typical.clip_tokens = 12;
  scenario.data.source = typical;
  scenario.data.global_batch = static_cast<int>(shapes().size());
  scenario.training.precision = c.precision;
  scenario.training.fp8 = c.fp8;
  scenario.training.learning_rate = 1e-2;
  for (std::size_t m = 0; m < scenario.model.modules.size(); ++m)
    scenario.training.rate_factors.push_back(1 / (1 + 0.25 * static_cast<double>(m)));
  scenario.training.weight_decay = 0.1;
  scenario.training.clip_norm = c.clip_norm;
  scenario.training.seed = 7;
  return scenario;
}

std::unique_ptr<Dataset> make_dataset(const Case& c, const Scenario& scenario) {
  return std::make_unique<ShapesDataset>(scenario, c);
}

}  // namespace polyphony::exec::testing
