#include "sim/frameworks/import.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/error.h"

namespace polyphony::sim {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string no_file(const std::string& path) {
  throw InputError(path, "", "cannot be read", "check the path");
}

Imported imported(const std::vector<NamedText>& files, const std::string& gpus,
                  std::vector<std::string> models = {}, std::optional<Framework> from = {}) {
  ImportOptions options;
  options.gpus = parse_gpus(gpus);
  options.models = std::move(models);
  return import_settings(read_settings(files, no_file, from), options, no_file, "");
}
OrderedJson scenario_of(const Imported& imported) { return OrderedJson::parse(imported.text); }

std::string refusal(const std::vector<NamedText>& files, const std::string& gpus,
                    std::vector<std::string> models = {}) {
  try {
    imported(files, gpus, std::move(models));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::vector<ImportReport::Line>& lines, const std::string& setting,
         const std::string& text = "") {
  for (const ImportReport::Line& line : lines)
    if (line.setting.find(setting) != std::string::npos &&
        line.text.find(text) != std::string::npos)
      return true;
  return false;
}

// A language model of 8 blocks, as Megatron-LM's options.
constexpr const char* kSmall =
    "torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 2048 "
    "--micro-batch-size 2 --global-batch-size 64 --bf16 --swiglu --vocab-size 32000 ";

OrderedJson small(const std::string& more, const std::string& gpus) {
  return scenario_of(imported({{"run.sh", kSmall + more}}, gpus));
}

}  // namespace

TEST_CASE("import: dimensions of Megatron-LM, and its defaults") {
  const OrderedJson language =
      small("--num-query-groups 4 --disable-bias-linear --normalization RMSNorm",
            "8xH100")["model"]["language"];
  CHECK(language["layers"] == 8);
  CHECK(language["kv_heads"] == 4);
  CHECK(language["norm"] == "rms");
  CHECK(language["tied"] == true);  // unless untied
  CHECK(language["attention_bias"] == false);
  // Two thirds of four times the width, down to a multiple of 64: 2730.67 -> 2688.
  CHECK(language["ffn"] == 2688);
  // 32,000 is a multiple of 128 · 1 already; with TP4 of 128 · 4 = 512: 32,256.
  CHECK(language["vocab"] == 32000);
  CHECK(small("--tensor-model-parallel-size 4", "8xH100")["model"]["language"]["vocab"] == 32256);
}

TEST_CASE("import: data parallelism and microbatches follow from the accelerators") {
  // 32 GPUs / (TP2 · PP2) = DP8; 64 samples / (2 · 8) = 4 microbatches.
  const OrderedJson layout =
      small("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel",
            "4x8xH100")["layout"];
  CHECK(layout["microbatches"] == 4);
  CHECK(layout["language"]["blocks"] == OrderedJson{4, 4});
  CHECK(layout["language"]["sp"] == true);
  CHECK(refusal({{"run.sh", std::string(kSmall) + "--tensor-model-parallel-size 3"}}, "8xH100")
            .find("cannot be divided") != std::string::npos);
  CHECK(refusal({{"run.sh", std::string(kSmall)}}, "5x8xH100").find("--global-batch") !=
        std::string::npos);
}

TEST_CASE("import: virtual stages in each of Megatron-LM's spellings") {
  // 8 blocks on 2 ranks: 4 each, 2 a virtual stage.
  for (const char* words :
       {"--num-layers-per-virtual-pipeline-stage 2", "--num-virtual-stages-per-pipeline-rank 2",
        "--pipeline-model-parallel-layout 'Ett|tt|tt|ttL'"}) {
    const OrderedJson layout =
        small(std::string("--pipeline-model-parallel-size 2 ") + words, "8xH100")["layout"];
    CHECK(layout["language"]["vpp"] == 2);
    CHECK(layout["language"]["blocks"] == OrderedJson{2, 2, 2, 2});
    CHECK(layout["schedule"] == "interleaved");
  }
}

TEST_CASE("import: uneven stages") {
  const auto blocks = [](const std::string& words) {
    return small("--pipeline-model-parallel-size 4 " + words,
                 "8xH100")["layout"]["language"]["blocks"];
  };
  CHECK(blocks("--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 1") ==
        OrderedJson{1, 3, 3, 1});
  CHECK(blocks("--decoder-first-pipeline-num-layers 2") == OrderedJson{2, 2, 2, 2});
  // (8 + 2) / 5 would be even; (8 + 2) / 4 is not.
  CHECK(refusal({{"run.sh",
                  std::string(kSmall) +
                      "--pipeline-model-parallel-size 4 --account-for-embedding-in-pipeline-split "
                      "--account-for-loss-in-pipeline-split"}},
                "8xH100")
            .find("cannot be divided evenly") != std::string::npos);
  CHECK(blocks("--pipeline-model-parallel-layout 'Et|ttt|ttt|tL'") == OrderedJson{1, 3, 3, 1});
}

TEST_CASE("import: a stage without a block is told, and split otherwise") {
  const Imported with = imported(
      {{"run.sh", std::string(kSmall) + "--pipeline-model-parallel-size 4 "
                                        "--pipeline-model-parallel-layout 'Etttt|tttt|m|L'"}},
      "8xH100");
  CHECK(has(with.report.approximated, "--pipeline-model-parallel-layout", "no block"));
  CHECK_FALSE(scenario_of(with)["layout"]["language"].contains("blocks"));
}

TEST_CASE("import: recomputation") {
  const auto grid = [](const std::string& words) {
    return small(words, "8xH100")["layout"]["language"];
  };
  CHECK(grid("--recompute-activations")["recompute"] == "selective");
  CHECK(grid("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1")
            ["recompute"] == "full");
  const OrderedJson block =
      grid("--recompute-granularity full --recompute-method block --recompute-num-layers 3");
  CHECK(block["recompute_blocks"] == OrderedJson{0, 3});
  const Imported some = imported(
      {{"run.sh", std::string(kSmall) +
                      "--recompute-granularity selective --recompute-modules mlp layernorm"}},
      "8xH100");
  CHECK(has(some.report.approximated, "--recompute-modules mlp layernorm"));
}

TEST_CASE("import: nothing is dropped silently") {
  const Imported with = imported(
      {{"run.sh", std::string(kSmall) + "--tp-comm-overlap --log-interval 5 --no-such-option 7"}},
      "8xH100");
  CHECK(has(with.report.not_modeled, "--tp-comm-overlap"));
  CHECK(has(with.report.ignored, "--log-interval 5", "logging"));
  REQUIRE(with.report.unknown.size() == 1);
  CHECK(with.report.unknown[0].setting == "--no-such-option 7");
  CHECK(with.report.unknown[0].place == "run.sh:1");
  // Predictions repeat what they do not model.
  CHECK(scenario_of(with)["notes"][0].get<std::string>().find("--tp-comm-overlap") == 0);
}

TEST_CASE("import: of a setting that stands twice the last counts, and both are told") {
  const Imported twice =
      imported({{"run.sh", std::string(kSmall) +
                               "--tensor-model-parallel-size 2 --tensor-model-parallel-size 4"}},
               "8xH100");
  CHECK(scenario_of(twice)["layout"]["language"]["tp"] == 4);
  CHECK(has(twice.report.ignored, "--tensor-model-parallel-size 2", "stated again"));
}

TEST_CASE("import: contradictions are told") {
  const Imported with = imported(
      {{"run.sh", std::string(kSmall) +
                      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
                      "--pipeline-model-parallel-layout 'Ett|tt|tt|ttL'"}},
      "8xH100");
  CHECK(has(with.report.contradictions, "virtual", "two ways"));
}

TEST_CASE("import: the arguments that a run printed") {
  std::string log = "------------------------ arguments ------------------------\n";
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"bf16", "True"},
                                                        {"global_batch_size", "64"},
                                                        {"hidden_size", "1024"},
                                                        {"micro_batch_size", "2"},
                                                        {"moe_layer_freq", "1"},
                                                        {"num_attention_heads", "16"},
                                                        {"num_experts", "None"},
                                                        {"num_layers", "8"},
                                                        {"padded_vocab_size", "32256"},
                                                        {"pipeline_model_parallel_size", "2"},
                                                        {"recompute_modules", "['core_attn']"},
                                                        {"seq_length", "2048"},
                                                        {"some_future_argument", "None"},
                                                        {"tp_comm_overlap", "False"},
                                                        {"world_size", "16"},
                                                        {"another_one", "3"}})
    log += "0:   " + name + " " + std::string(48 - name.size(), '.') + " " + value + "\n";
  log += "-------------------- end of arguments ---------------------\n";
  ImportOptions options;
  options.device = "H100";
  const Imported from_log =
      import_settings(read_settings({{"run.log", log}}, no_file), options, no_file, "");
  const OrderedJson scenario = scenario_of(from_log);
  CHECK(scenario["cluster"]["nodes"] == 2);  // 16 ranks on nodes of 8
  CHECK(scenario["model"]["language"]["vocab"] == 32256);
  CHECK(scenario["layout"]["microbatches"] == 4);  // 64 / (2 · 8)
  REQUIRE(from_log.report.unknown.size() == 1);    // what is off is counted alone
  CHECK(from_log.report.unknown[0].setting == "another_one = 3");
  CHECK(from_log.report.off >= 2);
}

TEST_CASE("import: Megatron-Bridge's configuration") {
  const std::string yaml =
      "model:\n  _target_: a.b.Provider\n  num_layers: 8\n  hidden_size: 1024\n  "
      "num_attention_heads: 16\n  vocab_size: 32000\n"
      "  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2\n  sequence_parallel: "
      "true\n  bf16: true\n"
      "  pipeline_model_parallel_layout:\n    - [embedding, decoder, decoder, decoder]\n    - "
      "[decoder, decoder, decoder, decoder, decoder, loss]\n"
      "train:\n  micro_batch_size: 1\n  global_batch_size: 32\nddp:\n  use_distributed_optimizer: "
      "true\n"
      "dataset:\n  seq_length: 4096\ncheckpoint:\n  save: /x\nlogger:\n  log_interval: 1\n";
  const Imported bridge = imported({{"run_config.yaml", yaml}}, "8xH100");
  CHECK(bridge.framework == Framework::megatron_bridge);
  CHECK(bridge.stack == "megatron-bridge");
  const OrderedJson scenario = scenario_of(bridge);
  CHECK(scenario["layout"]["language"]["blocks"] == OrderedJson{3, 5});
  CHECK(scenario["data"]["sequence"] == 4096);
  CHECK(scenario["layout"]["language"]["shard"] == "optimizer");
  CHECK(bridge.report.unknown.empty());
}

TEST_CASE("import: front ends have defaults of their own") {
  const Imported swift = imported(
      {{"args.yaml",
        "tensor_model_parallel_size: 2\nmodel: Qwen/Qwen2.5-7B-Instruct\nmax_length: 4096\n"}},
      "8xH100");
  CHECK(swift.framework == Framework::ms_swift);
  const OrderedJson scenario = scenario_of(swift);
  CHECK(scenario["model"]["language"]["preset"] == "qwen2.5-7b");
  CHECK(scenario["layout"]["language"]["recompute"] == "selective");
  CHECK(scenario["layout"]["language"]["shard"] == "optimizer");
  CHECK(scenario["data"]["global_batch"] == 16);
}

TEST_CASE("import: torchtitan's sections, in TOML and on a command line") {
  const std::string toml =
      "[job]\ndescription = \"x\"\n[model]\nname = \"llama3\"\nflavor = "
      "\"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
      "[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = "
      "2\n[activation_checkpoint]\nmode = \"full\"\n"
      "[compile]\nenable = true\n";
  const Imported titan = imported({{"llama3_8b.toml", toml}}, "2x8xH100");
  const OrderedJson scenario = scenario_of(titan);
  CHECK(titan.stack == "fsdp2-compiled");
  CHECK(scenario["model"]["language"]["preset"] == "llama-3.1-8b");
  CHECK(scenario["layout"]["language"]["shard"] == "full");
  CHECK(scenario["layout"]["language"]["sp"] == true);
  CHECK(scenario["data"]["global_batch"] == 8);  // one sample on each of 16 / 2 ranks
  CHECK(titan.report.unknown.empty());
  const Imported line =
      imported({{"run.sh",
                 "torchrun -m torchtitan.train --module llama3 --config llama3_8b "
                 "--parallelism.tensor_parallel_degree 4 --training.seq_len 4096 "
                 "--training.local_batch_size 2\n"}},
               "8xH100");
  CHECK(scenario_of(line)["layout"]["language"]["tp"] == 4);
}

TEST_CASE("import: DeepSpeed's stage and transformers' batch") {
  const std::string ds =
      R"({"zero_optimization": {"stage": 3, "overlap_comm": true}, "bf16": {"enabled": "auto"},
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})";
  const Imported trainer =
      imported({{"run.sh",
                 "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path "
                 "meta-llama/Llama-3.1-8B "
                 "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True "
                 "--max_seq_length 4096 "
                 "--gradient_checkpointing True\n"},
                {"ds.json", ds}},
               "8xH100");
  CHECK(trainer.framework == Framework::hf_trainer);
  const OrderedJson scenario = scenario_of(trainer);
  CHECK(scenario["layout"]["language"]["shard"] == "full");
  CHECK(scenario["layout"]["language"]["recompute"] == "full");
  CHECK(scenario["data"]["global_batch"] == 64);  // 2 · 4 · 8
  CHECK(trainer.report.unknown.empty());
}

TEST_CASE("import: what is missing or wrong is named with what to do") {
  CHECK(refusal({{"run.sh", "python train.py --per_device_train_batch_size 1 --max_length 128"}},
                "8xH100")
            .find("--model") != std::string::npos);
  CHECK(refusal({{"run.sh", std::string(kSmall) + "--tensor-model-parallel-size $TP"}}, "8xH100")
            .find("--env TP=") != std::string::npos);
  CHECK(refusal({{"config.json", R"({"model_type": "llama", "architectures": []})"}}, "8xH100")
            .find("--model") != std::string::npos);
  CHECK(refusal({{"s.json", R"({"polyphony": 1})"}}, "8xH100").find("scenario already") !=
        std::string::npos);
  CHECK(refusal({{"a.yaml", "a: [1, 2"}}, "8xH100").find("is not YAML") != std::string::npos);
  CHECK(refusal({{"a.toml", "a = "}}, "8xH100").find("a.toml:1") != std::string::npos);
  CHECK(refusal({{"a.sh", "echo hello"}}, "8xH100").find("no training") != std::string::npos);
}

}  // namespace polyphony::sim
