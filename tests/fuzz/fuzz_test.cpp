// Runs every reader of files on mutations of valid files: a few hundred in CI, 10,000 each under
// AddressSanitizer and UBSan by scripts/fuzz.
#include "tests/fuzz/fuzz.h"

#include <cstring>
#include <sstream>

#include "shared/check/check.h"
#include "shared/checkpoint/checkpoint_manifest_json.h"
#include "shared/checkpoint/safetensors_header.h"
#include "shared/data/batch_json.h"
#include "shared/export/tensor_files_json.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/model/hf_config.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/run_record_json.h"
#include "shared/weights/tensor_folder.h"
#include "sim/text/csv.h"
#include "tests/shared/support/hand_made.h"
#include "tests/shared/support/manifests.h"
#include "tests/shared/support/temp_folder.h"
#include "traces/evidence/steady_steps.h"
#include "traces/format/chrome_json.h"
#include "traces/format/metrics.h"
#include "traces/import/framework_log.h"
#include "traces/import/nccl_tests.h"

namespace polyphony {
namespace {

using fuzz::check_reader;
using test::mutated_json;
using test::mutated_lines;

// Several originals; the seed selects one.
template <class Mutate>
auto any_of(std::vector<std::string> originals, const Mutate& mutate) {
  return [originals = std::move(originals), mutate](std::uint64_t seed) {
    return mutate(seed, originals[seed % originals.size()]);
  };
}

const std::vector<std::string> kConfigs = {
    R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rope_theta": 500000.0, "vocab_size": 128256, "rms_norm_eps": 1e-5,
  "hidden_act": "silu", "tie_word_embeddings": false, "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}})",
    R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 32, "head_dim": 128,
  "num_hidden_layers": 48, "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
  "moe_intermediate_size": 768, "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": []})",
    R"({"model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text", "hidden_size": 3584,
  "intermediate_size": 18944, "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064},
  "vision_config": {"model_type": "qwen2_5_vl", "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
  "in_chans": 3, "patch_size": 14, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31], "hidden_act": "silu"}})",
    R"({"model_type": "whisper", "d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20,
  "encoder_ffn_dim": 5120, "num_mel_bins": 128, "max_source_positions": 1500, "vocab_size": 51866})"};

std::string good_manifest() {
  Manifest manifest;
  manifest.step = 40;
  manifest.optimizer_steps = 39;
  manifest.world_size = 2;
  manifest.format = "F32";
  manifest.blocks = {{}, {3, 5}};
  manifest.run = run_record(test::scenario_at("scenarios/tiny.json"));
  manifest.parameters = {{"language.head.output.weight", {64, 32}, true}, {"v.bias", {8}, false}};
  for (const char* name : {"rank-0.safetensors", "rank-1.safetensors"})
    manifest.files.push_back(
        {name, {Bytes(5120), 17}, {{"language.head.output.weight", "rows 1/2"}}});
  return to_json(manifest);
}

std::string with_length(const std::string& header, std::uint64_t length, std::size_t data) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data, '\1');
}

}  // namespace

TEST_CASE("fuzz: scenarios") {
  std::string path;
  check_reader([&](std::uint64_t seed) { return test::mutated_scenario(seed, path); },
               [&](const std::string& text) {
                 const Scenario scenario = read_scenario(text, path, test::file_text);
                 const std::string resolved = resolved_text(scenario);
                 CHECK(resolved_text(read_scenario(resolved, path, test::file_text)) == resolved);
                 if (scenario.layout) check_layout(scenario, *scenario.layout);
               });
}

TEST_CASE("fuzz: config.json") {
  const ModuleKind kinds[] = {ModuleKind::language, ModuleKind::language, ModuleKind::vision,
                              ModuleKind::audio};
  std::uint64_t seed = 0;
  check_reader(
      [&](std::uint64_t s) {
        seed = s;
        return mutated_json(s, kConfigs[s % kConfigs.size()]);
      },
      [&](const std::string& text) {
        read_hf_config(text, "config.json", kinds[seed % kConfigs.size()]);
      });
}

TEST_CASE("fuzz: hardware profiles") {
  std::vector<std::string> originals;
  for (const char* name : {"h100-roofline", "a100-roofline", "this-machine"})
    if (const HardwareProfile* profile = find_profile(name)) originals.push_back(to_json(*profile));
  REQUIRE(!originals.empty());
  check_reader(any_of(originals, mutated_json), [](const std::string& text) {
    const HardwareProfile profile = parse_profile(text, "profile.json");
    CHECK(to_json(parse_profile(to_json(profile), "profile.json")) == to_json(profile));
  });
}

TEST_CASE("fuzz: traces") {
  const Program program = hand_made::pipeline({.stages = 2, .microbatches = 2, .lanes = 2});
  const Compiled compiled = hand_made::compile_sound(program);
  const auto costs = hand_made::fixed_costs(program, compiled,
                                            {Seconds(1), Seconds(2), Seconds(0.25), Seconds(0.5)});
  const std::string original = traces::write_trace(
      program, estimate(program, compiled, costs).timeline, traces::TraceKind::measured, 7);
  check_reader(any_of({original}, mutated_json), [&](const std::string& text) {
    traces::read_trace_info(text, "t.json");
    traces::read_trace(text, "t.json", program);
  });
}

TEST_CASE("fuzz: checkpoint manifests") {
  const auto read = [](const std::string& text) {
    const Manifest manifest = parse_manifest(text, "manifest.json");
    CHECK(to_json(parse_manifest(to_json(manifest), "manifest.json")) == to_json(manifest));
  };
  // Damaged, with a checksum of the damaged text.
  const std::string original = good_manifest();
  std::uint64_t believed = 0;
  check_reader(
      [&](std::uint64_t seed) {
        const std::string text = mutated_json(seed, original);
        return seed % 4 == 0 ? text : test::resealed_manifest(text);
      },
      [&](const std::string& text) {
        read(text);
        believed += text == original ? 0 : 1;
      });
  CHECK(believed > 0);
}

TEST_CASE("a flipped bit in a checkpoint's manifest never changes what is loaded") {
  const std::string good = good_manifest();
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    std::string again = good;  // a flipped bit of white space may have no effect
    try {
      again = to_json(parse_manifest(damaged, "manifest.json"));
    } catch (const InputError&) {
      ++refused;
    }
    CHECK(again == good);
  }
  CHECK(refused > 7 * good.size());
}

// An index either contradicts its files, and is refused, or leads to the tensors that they hold.
TEST_CASE("fuzz: indexes of folders of weights") {
  const test::TempFolder folder;
  const std::vector<TensorToWrite> tensors = {
      {"model.a.weight", "F32", {2, 3}}, {"model.b.weight", "BF16", {4}}, {"c", "F16", {5, 2}}};
  write_tensor_files(
      folder.path(), "model", tensors,
      [&](std::size_t i) { return std::string(static_cast<std::size_t>(tensors[i].bytes()), 'x'); },
      Bytes(25));
  const std::string index = folder / "model.safetensors.index.json";
  const std::string good = test::slurp(index);
  check_reader([&](std::uint64_t seed) { return seed % 8 == 0 ? good : mutated_json(seed, good); },
               [&](const std::string& text) {
                 test::spill(index, text);
                 const TensorFolder opened(folder.path());
                 for (const auto& [name, tensor] : opened.tensors())
                   CHECK(*opened.data(tensor) == std::byte{'x'});
               });
}

TEST_CASE("fuzz: safetensors headers") {
  const test::TempFolder folder;
  const std::string path = folder / "x.safetensors";
  const std::string header =
      R"({"__metadata__": {"a": "rows 1/2"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},)"
      R"( "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]}, "c": {"dtype": "I64", "shape": [0], "data_offsets": [32, 32]}})";
  check_reader(
      [&](std::uint64_t seed) {
        const std::string text = seed % 8 == 0 ? header : mutated_json(seed, header);
        const std::uint64_t lengths[] = {text.size(), text.size(), text.size() + 1,
                                         0,           8,           ~std::uint64_t{0}};
        return with_length(text, seed % 5 == 1 ? lengths[seed % 6] : text.size(),
                           seed % 7 == 1 ? 31 : 32);
      },
      [&](const std::string& bytes) {
        test::spill(path, bytes);
        const SafetensorsHeader read = read_safetensors_header(path);
        for (const auto& [name, entry] : read.entries)
          CHECK(static_cast<std::size_t>(read.data_begin + entry.end) <= bytes.size());
      });
}

TEST_CASE("fuzz: recorded data") {
  const std::string lines =
      "{\"id\": 17, \"items\": [[\"image\", 64], [\"text\", 9, 1]]}\n"
      "{\"items\": [[\"text\", 12, 4], [\"image\", 16], [\"text\", 3, 3]]}\n"
      "{\"items\": [[\"audio\", 1500], [\"text\", 12, 4]]}\n";
  check_reader(any_of({lines},
                      [](std::uint64_t seed, const std::string& text) {
                        return mutated_lines(seed, text, " ,[]{}:\"");
                      }),
               [](const std::string& text) { parse_samples(text, "mix.jsonl"); });
  const std::string batches =
      "{\"step\": 4, \"samples\": [{\"id\": 17, \"items\": [[\"image\", 64], [\"text\", 9, 1]]}]}\n"
      "{\"step\": 5, \"samples\": [{\"id\": 18, \"items\": [[\"text\", 9, 1]]}]}\n";
  check_reader(any_of({batches},
                      [](std::uint64_t seed, const std::string& text) {
                        return mutated_lines(seed, text, " ,[]{}:\"");
                      }),
               [](const std::string& text) { parse_batches(text, "batches.jsonl"); });
}

TEST_CASE("fuzz: comma-separated tables") {
  const std::string table =
      "name,seq,step_s,source\n"
      "a,4096,1.25,\"a paper, table 2\"\n"
      "b,8192,,\"he said \"\"two\"\"\"\n"
      "c,2048,0.75,\"two\nlines\"\n";
  check_reader(
      any_of({table}, [](std::uint64_t seed,
                         const std::string& text) { return mutated_lines(seed, text, ","); }),
      [](const std::string& text) {
        const sim::CsvTable read = sim::read_csv(text, "rows.csv");
        for (const sim::CsvTable::Line& line : read.lines) {
          const sim::CsvRow row(read, line);
          row.integer("seq");
          row.number("step_s");
          row.text("source");
        }
      });
}

TEST_CASE("fuzz: metrics and nccl-tests, truncated anywhere") {
  std::string metrics;
  for (int step = 0; step < 5; ++step)
    metrics +=
        traces::to_line(traces::StepMetrics{step, 2.5, 1, false, 1e-3, Seconds(0.1), 80}) + "\n";
  for (std::uint64_t seed = 0; seed < fuzz::rounds(); ++seed) {
    const std::string text = mutated_lines(seed, metrics, ",:\"{}");
    const traces::Metrics read = traces::metrics_until(text, 5);
    // Every line that is kept is unchanged; every line that is dropped is reported.
    std::istringstream kept(read.text);
    for (std::string line; std::getline(kept, line);)
      CHECK(metrics.find(line + "\n") != std::string::npos);
    CHECK((read.text == metrics || !read.damage.empty()));
  }
  const std::string nccl =
      "# Collective test starting: all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid 1 on node-a device  0 [0000:1b:00] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid 1 on node-a device  1 [0000:2b:00] NVIDIA H100\n"
      "        1024           256     float     sum      -1    10.11    0.10    0.10      0    "
      "10.01    0.10    0.10      0\n"
      "     1048576        262144     float     sum      -1    30.11   34.82   34.82      0    "
      "30.01   34.94   34.94      0\n";
  check_reader(
      any_of({nccl}, [](std::uint64_t seed,
                        const std::string& text) { return mutated_lines(seed, text, " "); }),
      [](const std::string& text) { traces::read_nccl_tests(text, "table.txt"); });
}

TEST_CASE("fuzz: logs of frameworks") {
  std::vector<std::string> logs(3);
  for (int i = 1; i <= 6; ++i) {
    const std::string n = std::to_string(i);
    logs[0] +=
        "[Rank 0] (after " + n +
        " iterations) memory (MB) | allocated: 1.5 | max allocated: 2.5 "
        "| reserved: 3 | max reserved: 4\n iteration " +
        n +
        "/ 50 | consumed samples: 8 | "
        "elapsed time per iteration (ms): 1147.6 | global batch size: 16 | lm loss: 1.0E+01 |\n";
    logs[1] += "[rank0]:[titan] step: " + n +
               "  loss: 8.1  memory: 47.93GiB(50.47%)  tps: 5,762  "
               "tflops: 295.44  mfu: 29.87%\n";
    logs[2] +=
        "epoch=0/micro_step=4/global_step=" + n +
        ", RunningAvgSamplesPerSec=25.0, "
        "CurrSamplesPerSec=25.7, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n[Rank 0] time "
        "(ms) | fwd: 5.5 | bwd: 6.5 | bwd_inner: 5.0 | bwd_allreduce: 1.5 | step: 2.5\n";
  }
  check_reader(
      any_of(logs, [](std::uint64_t seed,
                      const std::string& text) { return mutated_lines(seed, text, " :|=/"); }),
      [](const std::string& text) {
        const traces::FrameworkLog log = traces::read_framework_log(text, "run.log");
        traces::steady_steps(log.attempts, {.tokens = 4096, .samples = 8, .ranks = 2});
      });
}

}  // namespace polyphony
