// Parameters taken over from another run: under other layouts, and between number formats.
#include <doctest/doctest.h>

#include "tests/exec/checkpoint/checkpoint_run.h"

namespace polyphony::exec {
namespace {

using namespace testing;

Scenario in_format(NumberFormat format) {
  Scenario scenario = tiny();
  scenario.training.precision = format;
  return scenario;
}
Layout sharded(Shard shard) {
  Layout layout = homogeneous(1, 1, 2);
  for (ModuleLayout& grid : layout.modules) grid.shard = shard;
  return layout;
}

using Tensors = std::map<std::string, torch::Tensor>;

// The state of a run of two steps, whose checkpoint is in `folder`.
Tensors earlier_run(const TempFolder& folder, const Scenario& scenario) {
  Gathered saved;
  on_ranks(homogeneous(2, 1, 1), scenario, [&](Run& run) {
    run.train(0);
    run.train(1);
    run.save(folder / "checkpoints", 2);
    saved.add(run);
  });
  return saved.whole;
}
// The state of a run at its beginning; with the parameters of the run in `folder` unless empty.
Tensors begun(const std::string& folder, const Layout& layout, const Scenario& scenario) {
  Gathered state;
  on_ranks(layout, scenario, [&](Run& run) {
    if (!folder.empty()) {
      const Loaded loaded =
          load_weights(folder, run.transport, run.runner, run.structure, run_record(run.scenario));
      CHECK(loaded.step == 2);
    }
    state.add(run);
  });
  CHECK(state.steps == 0);
  return state.whole;
}
bool is_state(const std::string& name) { return name.ends_with(".m") || name.ends_with(".v"); }
bool is_master(const std::string& name) { return name.ends_with(".master"); }

std::string refusal_of(const std::string& folder, const Scenario& scenario) {
  return refusal([&] { begun(folder, homogeneous(1, 1, 1), scenario); });
}

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE("a run begins with another run's parameters, whatever both layouts") {
    const TempFolder folder;
    const Tensors saved = earlier_run(folder, tiny());
    ModuleLayout vision, language;
    vision.tp = vision.ranks = 2;
    language.pp = language.ranks = 2;
    for (const Layout& layout :
         {homogeneous(1, 1, 1), homogeneous(2, 2, 1), sharded(Shard::optimizer),
          sharded(Shard::gradients), sharded(Shard::full), non_colocated(vision, language)}) {
      CAPTURE(world_size(layout));
      const Tensors state = begun(folder.path(), layout, tiny());
      REQUIRE(state.size() == saved.size());
      for (const auto& [name, tensor] : state) {
        CAPTURE(name);
        if (is_state(name))
          CHECK(tensor.abs().sum().item<double>() == 0);
        else
          CHECK(tensor.equal(saved.at(name)));
      }
    }
  }

  TEST_CASE("low-rank pairs that the earlier run does not have begin as in any run") {
    const TempFolder folder;
    const Tensors saved = earlier_run(folder, tiny());
    Scenario low_rank = tiny();
    low_rank.model.modules.back().trainable = Trainable::lora;
    low_rank.model.modules.back().lora_rank = 4;
    const Tensors fresh = begun("", homogeneous(1, 1, 1), low_rank);
    const Tensors state = begun(folder.path(), homogeneous(2, 2, 1), low_rank);
    REQUIRE(state.size() == fresh.size());
    int pairs = 0;
    for (const auto& [name, tensor] : state) {
      CAPTURE(name);
      const auto known = saved.find(name);
      if (is_state(name)) continue;
      CHECK(tensor.equal(known == saved.end() ? fresh.at(name) : known->second));
      pairs += known == saved.end() ? 1 : 0;
    }
    CHECK(pairs == 2 * 4 * 4);  // of qkv, output, up (with gate) and down of four blocks
    // The reverse is refused, because the pairs would be lost.
    const TempFolder other;
    earlier_run(other, low_rank);
    CHECK(refusal_of(other.path(), tiny()) ==
          other.path() +
              ": this run cannot begin with its parameters: the low-rank pairs of language have no "
              "place in it (keep \"train\": \"lora\" for language, or write merged weights with "
              "`polyphony export RUN --hf FOLDER --merge` and begin another scenario with them)");
  }

  TEST_CASE("bf16: values and master weights are taken over bit for bit") {
    const TempFolder folder;
    Scenario frozen = in_format(NumberFormat::bf16);
    frozen.model.modules.back().trainable = Trainable::frozen;
    const Tensors saved = earlier_run(folder, frozen);
    CHECK(saved.contains("vision.norm.weight.master"));
    CHECK_FALSE(saved.contains("language.norm.weight.master"));
    for (const Shard shard : {Shard::none, Shard::full}) {
      // The language module trains now: its master weights are its bf16 values.
      const Tensors state = begun(folder.path(), sharded(shard), in_format(NumberFormat::bf16));
      for (const auto& [name, tensor] : state) {
        CAPTURE(name);
        if (is_state(name)) continue;
        const auto same = saved.find(name);
        if (same != saved.end()) {
          CHECK(tensor.equal(same->second));
        } else {
          REQUIRE(is_master(name));
          const std::string value = name.substr(0, name.size() - 7);
          CHECK(tensor.equal(saved.at(value).to(torch::kFloat32)));
        }
      }
    }
  }

  TEST_CASE("between number formats the most precise values are taken over") {
    const TempFolder low, high;
    const Tensors bf16 = earlier_run(low, in_format(NumberFormat::bf16)),
                  fp32 = earlier_run(high, tiny());
    const Tensors up = begun(low.path(), homogeneous(1, 2, 1), tiny());
    for (const auto& [name, tensor] : up)
      if (!is_state(name)) {
        CAPTURE(name);
        CHECK(tensor.equal(bf16.at(name + ".master")));
      }
    const Tensors down = begun(high.path(), homogeneous(1, 2, 1), in_format(NumberFormat::bf16));
    for (const auto& [name, tensor] : down) {
      CAPTURE(name);
      if (is_state(name)) continue;
      if (is_master(name))
        CHECK(tensor.equal(fp32.at(name.substr(0, name.size() - 7))));
      else
        CHECK(tensor.equal(fp32.at(name).to(torch::kBFloat16)));
    }
  }

  TEST_CASE("differences of the models are named, and other models refused") {
    const TempFolder folder;
    earlier_run(folder, tiny());
    Scenario longer = tiny();
    longer.model.modules.back().rope_theta = 500000;
    longer.model.modules.back().trainable = Trainable::lora;  // adds pairs: no difference
    longer.model.modules.back().lora_rank = 4;
    on_ranks(homogeneous(1, 1, 1), longer, [&](Run& run) {
      const Loaded loaded = load_weights(folder.path(), run.transport, run.runner, run.structure,
                                         run_record(run.scenario));
      REQUIRE(loaded.changed.size() == 1);
      CHECK(loaded.changed.front().starts_with("model.language.rope_theta was "));
    });
    Scenario wider = tiny();
    wider.model.modules.back().ffn = 128;
    CHECK(refusal_of(folder.path(), wider).find(" before, 256 × 32 after") != std::string::npos);
    CHECK(refusal_of(folder / "none", tiny()).find("has no checkpoint of a run") !=
          std::string::npos);
  }
}

}  // namespace polyphony::exec
