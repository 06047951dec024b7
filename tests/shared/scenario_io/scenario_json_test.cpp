#include "shared/scenario_io/scenario_json.h"

#include <doctest/doctest.h>

#include <algorithm>

#include <map>

#include "shared/check/check.h"
#include "shared/data/distribution_text.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;
using test::refusal;
using test::scenario_at;

namespace {

// A valid scenario with `from` replaced by `to` once.
std::string with(const std::string& from, const std::string& to) {
  std::string text = test::file_text("scenarios/tiny.json");
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

LoadText files(std::map<std::string, std::string> texts) {
  return [texts = std::move(texts)](const std::string& path) {
    const auto found = texts.find(path);
    if (found == texts.end()) throw InputError(path, "", "no such file", "check the path");
    return found->second;
  };
}

}  // namespace

TEST_CASE("every shipped scenario is read, and its layout is legal") {
  const std::vector<std::string> paths = test::scenario_paths();
  CHECK(paths.size() >= 10);
  for (const std::string& path : paths) {
    CAPTURE(path);
    const Scenario scenario = scenario_at(path);
    CHECK(scenario.about.size() > 200);  // its arithmetic and its source
    CHECK((scenario.layout || scenario.search));
    if (!scenario.layout) continue;
    const std::optional<Infeasible> refused = check_layout(scenario, *scenario.layout);
    CHECK_MESSAGE(!refused, (refused ? refused->reason : ""));
  }
}

TEST_CASE("without training.precision GPUs compute in bf16, CPUs and unknown devices in fp32") {
  const auto of = [](const std::string& cluster, const std::string& training) {
    return read_scenario(
        R"({"polyphony": 1, "model": {"language": {"preset": "llama-3.1-8b"}}, "cluster": {)" +
            cluster +
            R"(}, "data": {"source": "synthetic", "text": {"tokens": 64}, "global_batch": 8})" +
            training + "}",
        "s.json", test::file_text);
  };
  const std::string h100 = R"("node": "hgx-h100")";
  const Scenario assumed = of(h100, "");
  CHECK(assumed.training.precision == NumberFormat::bf16);
  const auto noted = [](const Scenario& scenario) {
    return std::count(scenario.notes.begin(), scenario.notes.end(),
                      "training.precision is not given: bf16 is assumed for H100");
  };
  CHECK(noted(assumed) == 1);
  CHECK(of(h100, R"(, "training": {"steps": 3})").training.precision == NumberFormat::bf16);
  const Scenario given = of(h100, R"(, "training": {"precision": "fp32"})");
  CHECK(given.training.precision == NumberFormat::fp32);
  CHECK(noted(given) == 0);
  CHECK(of(R"("node": "this-machine", "ranks": 2)", "").training.precision == NumberFormat::fp32);
  const std::string own =
      R"("node": {"device": {"name": "X1", "fp32": "60TFLOPS", "bf16": "600TFLOPS", "memory_rate": "3TBps",
         "memory": "64GiB"}, "ranks": 8, "link": "300GBps"}, "profile": "h100-roofline")";
  CHECK(of(own, "").training.precision == NumberFormat::fp32);
}

TEST_CASE("a search leaves 5 % of a device's memory free unless it says otherwise") {
  const auto of = [](const std::string& search) {
    return read_scenario(with(R"("layout")", R"("search": {)" + search + R"(}, "layout")"),
                         "s.json", test::file_text);
  };
  const double memory =
      static_cast<double>(scenario_at("scenarios/tiny.json").cluster.device.memory.value);
  CHECK(scenario_at("scenarios/tiny.json").memory_limit() ==
        Bytes(static_cast<std::int64_t>(0.95 * memory)));
  CHECK(of("").memory_margin() == 0.05);
  const Scenario tenth = of(R"("memory_margin": 0.1)");
  CHECK(tenth.memory_limit() == Bytes(static_cast<std::int64_t>(0.9 * memory)));
  CHECK(resolved_text(tenth).find("\"memory_margin\": 0.1") != std::string::npos);
  CHECK(resolved_text(of("")).find("memory_margin") == std::string::npos);
  CHECK(refusal(with(R"("layout")", R"("search": {"memory_margin": 1}, "layout")"))
            .find("/search/memory_margin") != std::string::npos);
}

TEST_CASE("the resolved scenario reads back to the same values") {
  for (const std::string& path : test::scenario_paths()) {
    CAPTURE(path);
    const Scenario scenario = scenario_at(path);
    const std::string text = resolved_text(scenario);
    const Scenario again = read_scenario(text, path, test::file_text);
    CHECK(resolved_text(again) == text);
    CHECK(again.about == scenario.about);
    CHECK(again.notes == scenario.notes);
    CHECK(again.model == scenario.model);
    CHECK(again.cluster == scenario.cluster);
    CHECK(again.data == scenario.data);
    CHECK(again.training == scenario.training);
    CHECK(again.layout == scenario.layout);
    CHECK(again.search == scenario.search);
  }
}

TEST_CASE("a homogeneous layout: recomputation and sharding may differ by module") {
  const std::string text =
      with(R"("all": {"pp": 2})",
           R"("all": {"pp": 2, "shard": "optimizer"}, "vision": {"recompute": "full"})");
  const Scenario scenario = read_scenario(text, "s.json", test::file_text);
  const std::vector<ModuleLayout>& modules = scenario.layout->modules;
  CHECK(modules[0].recompute == Recompute::full);
  CHECK(modules[0].shard == Shard::optimizer);
  CHECK(modules[1] == modules[0]);  // the projector goes with its encoder
  CHECK(modules[2].recompute == Recompute::none);
  const Scenario again = read_scenario(resolved_text(scenario), "s.json", test::file_text);
  CHECK(again.layout == scenario.layout);
  CHECK(refusal(with(R"("all": {"pp": 2})", R"("all": {"pp": 2}, "vision": {"tp": 2})")) ==
        "s.json: /layout/vision: a homogeneous layout has one grid for all modules (write it once, "
        "under \"all\"; only recompute, recompute_blocks, offload_activations and shard may "
        "differ)");
}

TEST_CASE("what is derived: order, projector widths, head width, ranks") {
  const Scenario scenario = scenario_at("scenarios/vlm_12b_70b_h100.json");
  REQUIRE(scenario.model.modules.size() == 3);
  const Module& vision = scenario.model.modules[0];
  const Module& projector = scenario.model.modules[1];
  CHECK(vision.name == "vision");
  CHECK(vision.head_dim == 128);
  CHECK(vision.kv_heads == 40);
  CHECK(projector.projector_in == 4 * 5120);
  CHECK(projector.projector_hidden == 8192);
  CHECK(projector.projector_out == 8192);
  CHECK(scenario.model.edges ==
        std::vector<Edge>{{ModuleId(0), ModuleId(1), 0}, {ModuleId(1), ModuleId(2), 0}});
  CHECK(scenario.cluster.ranks() == 512);
  CHECK(scenario.cluster.fabric_link.rate == BytesPerSecond(50e9));
  CHECK(scenario.cluster.profile == "h100-roofline");
  CHECK(scenario.notes.empty());
  CHECK(scenario.search->modules[0].ranks == std::vector<int>{64, 128});
  CHECK(scenario.search->modules[2].tp.empty());
  CHECK(scenario.search->modules[2].cp == std::vector<int>{1, 2});
  CHECK(scenario.search->modules[2].dp.empty());
  CHECK(scenario.search->modules[2].shard.empty());
  CHECK(scenario.search->schedule ==
        std::vector<ScheduleKind>{ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
}

TEST_CASE("ranks: the silent module gets what is left, the next follows the one before") {
  const Layout layout = *scenario_at("scenarios/tiny_non_colocated.json").layout;
  CHECK(layout.modules[0].first_rank == 0);
  CHECK(layout.modules[0].ranks == 1);
  CHECK(layout.modules[1] == layout.modules[0]);  // the projector shares the encoder's grid
  CHECK(layout.modules[2].first_rank == 1);
  CHECK(layout.modules[2].ranks == 2);
  CHECK(layout.modules[2].blocks == std::vector<int>{3, 1});
}

TEST_CASE("neither layout nor search: everything may be searched") {
  const std::string text = with(R"(,
  "layout": {"placement": "homogeneous", "schedule": "1f1b", "microbatches": 4, "all": {"pp": 2}})",
                                "");
  const Scenario scenario = read_scenario(text, "s.json", test::file_text);
  REQUIRE(scenario.search.has_value());
  CHECK(scenario.search->modules.size() == 3);
  CHECK(scenario.search->placement.empty());
}

TEST_CASE("the description of a scenario is optional") {
  std::string text = test::file_text("scenarios/tiny.json");
  const auto begin = text.find("\"about\""), end = text.find("\"model\"");
  REQUIRE(begin < end);
  text.erase(begin, end - begin);
  const Scenario scenario = read_scenario(text, "s.json", test::file_text);
  CHECK(scenario.about.empty());
  CHECK(resolved_text(scenario).find("about") == std::string::npos);
}

TEST_CASE("the balance of a layout is read and resolved") {
  const std::string file = "scenarios/tiny.json";
  std::string text = test::file_text(file);
  CHECK(read_scenario(text, file, test::file_text).layout->balance == Balance::aware);
  const std::string placement = "\"placement\": \"homogeneous\"";
  REQUIRE(text.find(placement) != std::string::npos);
  text.replace(text.find(placement), placement.size(), placement + ", \"balance\": \"unaware\"");
  const Scenario scenario = read_scenario(text, file, test::file_text);
  CHECK(scenario.layout->balance == Balance::unaware);
  CHECK(read_scenario(resolved_text(scenario), file, test::file_text).layout == scenario.layout);
}

TEST_CASE("the planner of a layout and its costs are read and resolved") {
  const std::string file = "scenarios/tiny_non_colocated.json";
  std::string text = test::file_text(file);
  CHECK(read_scenario(text, file, test::file_text).layout->planner == Planning::none);
  const std::string placement = "\"placement\": \"non-colocated\"";
  REQUIRE(text.find(placement) != std::string::npos);
  text.replace(text.find(placement), placement.size(), placement + ", \"planner\": \"entrain\"");
  Scenario scenario = read_scenario(text, file, test::file_text);
  CHECK(scenario.layout->planner == Planning::entrain);
  CHECK(scenario.planner_costs.empty());
  scenario.planner_costs[ModuleId(0)].item = ItemCost{1.25e-13, 1.0 / 3e6, 2e-5};
  scenario.layout->planner = Planning::dip;
  scenario.layout->placements = 7;
  scenario.layout->modules.front().sub_microbatch = 3;
  const WorkCurve curve{1.0 / 7e9, 1.0 / 3e6, 2e-5};
  scenario.planner_costs[ModuleId(0)].stages =
      StageCosts{{{Recipe::none, {{curve, {}, curve, {}, {0, 2048, 0}, {0, 64, 1}}}},
                  {Recipe::full, {{curve, curve, curve, curve, {0, 64, 0}, {0, 64, 0}}}}},
                 {1e9}};
  const Scenario again = read_scenario(resolved_text(scenario), file, test::file_text);
  CHECK(again.layout->planner == Planning::dip);
  CHECK(again.layout->placements == 7);
  CHECK(again.layout->modules.front() == scenario.layout->modules.front());
  CHECK(again.planner_costs == scenario.planner_costs);
  const std::string grid = "\"vision\": {\"ranks\": 1";
  REQUIRE(text.find(grid) != std::string::npos);
  std::string none = text;
  none.replace(none.find(grid), grid.size(), grid + ", \"stage_costs\": {\"room\": [1]}");
  CHECK_THROWS_WITH_AS(read_scenario(none, file, test::file_text),
                       doctest::Contains("stage_costs must have at least one of"), InputError);
}

TEST_CASE("the bridge of a layout is read, resolved and lowered") {
  std::string text = test::file_text("scenarios/tiny_non_colocated.json");
  const std::string placement = "\"placement\": \"non-colocated\"";
  REQUIRE(text.find(placement) != std::string::npos);
  text.replace(text.find(placement), placement.size(), placement + ", \"bridge\": \"leader\"");
  const std::string file = "scenarios/tiny_non_colocated.json";
  Scenario scenario = read_scenario(text, file, test::file_text);
  CHECK(scenario.layout->bridge == Bridge::leader);
  CHECK_FALSE(check_layout(scenario, *scenario.layout).has_value());
  CHECK(read_scenario(resolved_text(scenario), file, test::file_text).layout == scenario.layout);
  ModuleLayout& language = scenario.layout->modules.back();
  language.tp = language.ranks;
  language.pp = 1;
  language.blocks.clear();
  language.sp = true;
  REQUIRE_FALSE(check_layout(scenario, *scenario.layout).has_value());
  const Program program = lower(scenario, *scenario.layout, make_plan(scenario, *scenario.layout),
                                typical_batch(scenario));
  CHECK(verify(program).empty());
  // All rows of the encoder go to the first rank, which distributes them to the others.
  for (const Message& message : program.messages)
    if (message.source == Rank(0)) CHECK(message.destination == Rank(1));
}

TEST_CASE("extends: an error names the file that contains the value") {
  const std::string base = test::file_text("scenarios/tiny.json");
  const std::string change =
      R"({"polyphony": 1, "extends": "base/tiny.json", "about": "a change of the tiny one",
                                "data": {"global_batch": -1}})";
  CHECK(refusal(change, files({{"base/tiny.json", base}})) ==
        "s.json: /data/global_batch: -1 is out of range (write a whole number from 1 to 1048576)");
  std::string broken = base;
  broken.replace(broken.find("\"heads\": 4"), 10, "\"heads\": 5");
  CHECK(
      refusal(
          R"({"polyphony": 1, "extends": "base/tiny.json", "about": "a change of the tiny one"})",
          files({{"base/tiny.json", broken}})) ==
      "base/tiny.json: /model/vision: hidden must be a multiple of heads, 5, got 32 (change one of "
      "them, or write \"head_dim\")");
  CHECK(refusal(change, files({})) ==
        "s.json: /extends: base/tiny.json: no such file (check the path)");
  CHECK(refusal(R"({"extends": "s.json"})", files({{"s.json", R"({"extends": "s.json"})"}})) ==
        "s.json: /extends: the chain of \"extends\" must have at most 8 files (check that no file "
        "extends itself through others)");
}

TEST_CASE("paths are relative to the file that names them") {
  CHECK(beside("scenarios/a.json", "b.json") == "scenarios/b.json");
  CHECK(beside("a.json", "b.json") == "b.json");
  CHECK(beside("scenarios/a.json", "/b.json") == "/b.json");
}

TEST_CASE("hf: an error in a config.json names that file") {
  const std::string text =
      with(R"("layers": 4, "hidden": 32, "heads": 4, "kv_heads": 2, "ffn": 64, "vocab": 64)",
           R"("hf": "llama/config.json")");
  const std::string config =
      R"({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
                                 "intermediate_size": 96, "vocab_size": 64})";
  const Scenario scenario =
      read_scenario(text, "s/s.json", files({{"s/llama/config.json", config}}));
  CHECK(scenario.model.modules[2].hidden == 64);
  CHECK(scenario.model.modules[2].kv_heads == 4);
  CHECK(scenario.model.modules[1].projector_out == 64);
  CHECK(refusal(text, files({{"llama/config.json", R"({"model_type": "llama"})"}})) ==
        "llama/config.json: key \"num_hidden_layers\" is missing (check that this is the "
        "config.json of a "
        "supported model)");
  CHECK(refusal(text, files({})) ==
        "s.json: /model/language/hf: llama/config.json: no such file (check the path)");
}

TEST_CASE("hf: a value that the config.json lacks is noted, unless the scenario has it") {
  const std::string config =
      R"({"model_type": "qwen2_vl", "hidden_size": 64, "vision_config": {"depth": 2, "embed_dim": 32,
          "hidden_size": 64, "mlp_ratio": 4, "num_heads": 4, "patch_size": 14}})";
  const auto notes = [&](const std::string& more) {
    std::string text =
        with(R"("layers": 2, "hidden": 32, "heads": 4, "ffn": 64, "patch": 4, "image_size": 16)",
             R"("hf": "config.json")" + more);
    text.replace(text.find(R"("sequence": 16)"), 14, R"("sequence": 512)");
    std::string all;
    for (const std::string& note :
         read_scenario(text, "s.json", files({{"config.json", config}})).notes)
      all += note + "\n";
    return all;
  };
  CHECK(notes("").find("has no image size: 448 pixels") != std::string::npos);
  CHECK(notes(R"(, "image_size": 224)").find("image size") == std::string::npos);
  CHECK(notes(R"(, "image_size": 224)").find("temporal patches") != std::string::npos);
}

TEST_CASE("errors have file, pointer, what is wrong, and a hint") {
  struct Case {
    const char* from;
    const char* to;
    const char* line;
  };
  const std::vector<Case> cases = {
      {"\"polyphony\": 1", "\"polyphony\": 2",
       "s.json: /polyphony: 2 is out of range (write a whole number from 1 to 1)"},
      {"\"microbatches\": 4", "\"microbatchs\": 4",
       "s.json: /layout/microbatchs: an object { … } is meant here"},
      {"\"ranks\": 2", "\"ranks\": 2, \"nic\": 400",
       "s.json: /cluster/nic: 400 has no unit (write a data rate with its unit, such as "
       "\"400Gbps\")"},
      {"\"ranks\": 2", "\"ranks\": 2, \"nic_latency\": \"1e300ns\"",
       "s.json: /cluster/nic_latency: \"1e300ns\" is out of range (at most 1s)"},
      {"\"ranks\": 2", "\"ranks\": 2, \"nic\": \"0Gbps\"",
       "s.json: /cluster/nic: \"0Gbps\" is out of range (at least 1kBps)"},
      {"\"ranks\": 2", "\"ranks\": 2, \"busy_power\": \"2MW\"",
       "s.json: /cluster/busy_power: \"2MW\" is out of range (at most 1MW)"},
      {"\"ranks\": 2", "\"nodes\": 2",
       "s.json: /cluster/nodes: nodes must not be given: this machine is one node (write "
       "\"ranks\", the number of processes)"},
      {"this-machine", "hgx-h10",
       "s.json: /cluster/node: no node \"hgx-h10\" ships with the program (did you mean "
       "\"hgx-h100\"?, "
       "or give its figures: {\"device\": \"H100\", \"ranks\": 4})"},
      {"\"ranks\": 2", "\"ranks\": 2, \"profile\": \"h100-rooflin\"",
       "s.json: /cluster/profile: no profile \"h100-rooflin\" ships with the program (did you mean "
       "\"h100-roofline\"?, or a path "
       "that ends in .json)"},
      {"\"from\": \"projector\"", "\"from\": \"projektor\"",
       "s.json: /model/language/from: there is no module \"projektor\" (did you mean "
       "\"projector\"?)"},
      {"\"from\": \"vision\"", "\"from\": \"language\"",
       "s.json: /model: the modules form a cycle: language, projector (change a \"from\" of one of "
       "them)"},
      {"\"merge\"", "\"heads\"",
       "s.json: /model/projector/heads: a text is not allowed here (write a whole number from 1 to "
       "1048576)"},
      {"\"merge\": \"2x2\"", "\"heads\": 2",
       "s.json: /model/projector/heads: a projector module has no \"heads\" (it can have: kind, "
       "from, weights, train, merge, hidden, layer_times)"},
      {"\"layers\": 4, ", "",
       "s.json: /model/language: key \"layers\" is missing (write its value, or a \"preset\" such "
       "as "
       "llama-3.2-1b)"},
      {"\"layers\": 4, ", "\"preset\": \"clip-vit-l-14\", ",
       "s.json: /model/language/preset: preset must be a language model, got clip-vit-l-14, a "
       "vision model (use one of: llama-3.2-1b, llama-3.2-3b, llama-3-8b, llama-3.1-8b, "
       "llama-3-70b, llama-3.1-70b, "
       "mistral-7b, "
       "qwen2.5-7b, qwen2.5-32b, qwen2-72b, qwen2.5-72b, qwen2-vl-7b, qwen2-vl-72b, qwen3-0.6b, "
       "qwen3-4b, qwen3-8b, qwen3-14b, qwen3-32b, mixtral-8x7b, qwen3-30b-a3b, gpt-22b, gpt-175b, "
       "gpt-530b, gpt-1t, deepseek-v3, deepseek-v2-lite, moonlight-16b-a3b, kimi-k2, gpt-oss-20b, "
       "gpt-oss-120b, gemma-3-1b, gemma-3-4b, gemma-3-12b, gemma-3-27b, qwen3-next-80b-a3b, "
       "qwen3.5-27b, "
       "qwen3.5-35b-a3b, qwen3.5-397b-a17b, lfm2-350m, lfm2-700m, lfm2-1.2b, lfm2-2.6b)"},
      {"\"vision\": {", "\"all\": {",
       "s.json: /model/all: no module may have the name \"all\" (it is a key of layouts or "
       "searches; "
       "use another name)"},
      {"\"vision\": {", "\"eyes\": {",
       "s.json: /model/projector/from: there is no module \"vision\" (one of: eyes, language, "
       "projector)"},
      {"\"tokens\": 8", "\"tokens\": \"lognormal(30,1)\"",
       "s.json: /data/text/tokens: \"lognormal(30,1)\": mu is a natural logarithm and must be from "
       "-20 to 20 "
       "(the median is exp(mu): ln 400 = 6)"},
      {"\"tokens\": 8", "\"tokens\": \"normal(3,1)\"",
       "s.json: /data/text/tokens: \"normal(3,1)\" is not a distribution (write a number, "
       "\"uniform(0,3)\", \"lognormal(5,1)\" or "
       "\"lognormal(5,1,16,4096)\")"},
      {"\"source\": \"synthetic\"", "\"source\": {\"recorded\": \"mix.jsonl\"}",
       "s.json: /data/images: images must not be given with data from files (remove the key, or "
       "write \"source\": \"synthetic\")"},
      {"\"all\": {", "\"vision\": {",
       "s.json: /layout/vision: a homogeneous layout has one grid for all modules (write it once, "
       "under \"all\"; only recompute, recompute_blocks, offload_activations and shard may "
       "differ)"},
      {"\"placement\": \"homogeneous\"", "\"placement\": \"colocated\"",
       "s.json: /layout/all: \"all\" must not be given in this placement: each module has its own "
       "grid (write one grid per module, or \"placement\": \"homogeneous\")"},
      {"\"microbatches\": 4", "\"microbatchs\": 4",
       "s.json: /layout/microbatchs: unknown key \"microbatchs\" (did you mean \"microbatches\"?)"},
      {"homogeneous\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"all\"",
       "colocated\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"visoin\"",
       "s.json: /layout/visoin: unknown key \"visoin\", and no module has this name (did you mean "
       "\"vision\"?)"},
      {"homogeneous\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"all\"",
       "colocated\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"projector\"",
       "s.json: /layout/projector: a projector has no grid of its own (remove the key; it shares "
       "the "
       "grid of the module that it reads from)"},
      {"homogeneous\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"all\"",
       "non-colocated\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"language\"",
       "s.json: /layout: key \"ranks\" is missing in both vision and language (write it in one of "
       "them)"},
      {"homogeneous\", \"schedule\": \"1f1b\", \"microbatches\": 4, \"all\": {\"pp\": 2}",
       "non-colocated\", \"vision\": {\"ranks\": 2}",
       "s.json: /layout: no ranks are left for language: the other modules have 2, the cluster has "
       "2 "
       "(give the other modules fewer ranks, or use a larger cluster)"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.to);
    // Two of the lines are checked by their beginning only: the form behind them is long.
    const std::string line = refusal(with(one.from, one.to));
    if (std::string(one.line).find("is meant here") != std::string::npos) {
      CHECK(line.starts_with("s.json: /layout/microbatchs: "));
    } else {
      CHECK(line == one.line);
    }
  }
}

TEST_CASE("every size of a model is required") {
  const std::string text = test::file_text("scenarios/tiny.json");
  // The last occurrence of the key: in the language module, if that has one.
  for (const std::string size :
       {", \"layers\": 4", ", \"hidden\": 32", ", \"heads\": 4", ", \"ffn\": 64", ", \"vocab\": 64",
        ", \"image_size\": 16", ", \"patch\": 4"}) {
    CAPTURE(size);
    std::string without = text;
    const auto at = without.rfind(size);
    REQUIRE(at != std::string::npos);
    without.erase(at, size.size());
    const std::string key = size.substr(2, size.find(':') - 2), line = refusal(without);
    CAPTURE(line);
    CHECK(line.starts_with("s.json: /model/"));
    CHECK(line.find("key " + key + " is missing (write its value, or a \"preset\"") !=
          std::string::npos);
  }
}

TEST_CASE("a lognormal distribution without limits is limited by the sequence") {
  const Scenario scenario = read_scenario(with("\"tokens\": 8", "\"tokens\": \"lognormal(2,1)\""),
                                          "s.json", test::file_text);
  // A sequence of 16 less one image of 4 tokens.
  CHECK(to_text(std::get<SyntheticData>(scenario.data.source).text_tokens) ==
        "lognormal(2,1,1,12)");
}

TEST_CASE("distributions are printed as they are written in a scenario") {
  for (const char* text : {"7", "uniform(0,3)", "lognormal(5.25,0.5)", "lognormal(-1,0,2,4096)"})
    CHECK(to_text(parse_distribution(text)) == text);
  CHECK(largest(parse_distribution("uniform(0,3)")) == 3);
  for (const char* text :
       {"", "uniform(3,0)", "uniform(1)", "uniform(0.5,2)", "lognormal(1,2,3)", "lognormal(nan,1)",
        "uniform(-1,2)", "uniform(1,2", "lognormal(1,9)", "-3", "2.5", "uniform(1,2,3,4,5,6)"})
    CHECK_THROWS_AS(parse_distribution(text), InputError);
}
