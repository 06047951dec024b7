#include "tests/sim/runner/bench_scenario.h"

#include <nlohmann/json.hpp>

#include "shared/scenario_io/scenario_json.h"

namespace polyphony::tests {
namespace {

using nlohmann::json;

// Widths of ViT-L/14 (arXiv 2010.11929), Whisper's small encoder (arXiv 2212.04356), DiT-XL/2 (arXiv
// 2212.09748); few tokens, so that the decoder stays the most of it.
json model_of(const BenchShape& shape) {
  json model = {{"language",
                 {{"layers", shape.blocks * shape.stages},
                  {"hidden", 8192},
                  {"heads", 64},
                  {"kv_heads", 8},
                  {"ffn", 28672},
                  {"vocab", 128256}}}};
  json sources = json::array();
  if (shape.modules >= 2) {
    model["vision"] = {{"layers", 24}, {"hidden", 1024}, {"heads", 16},
                       {"ffn", 4096},  {"patch", 14},    {"image_size", 224}};
    model["projector"] = {{"from", "vision"}, {"merge", "2x2"}};
    sources.push_back("projector");
  }
  if (shape.modules >= 3) {
    model["audio"] = {{"layers", 12}, {"hidden", 768},  {"heads", 12},
                      {"ffn", 3072},  {"mel_bins", 80}, {"audio_tokens", 64}};
    model["audio_projector"] = {
        {"kind", "projector"}, {"from", "audio"}, {"merge", 2}, {"hidden", 0}};
    sources.push_back("audio_projector");
  }
  if (!sources.empty()) model["language"]["from"] = sources;
  if (shape.modules >= 4)
    model["diffusion"] = {{"from", "language"},   {"layers", 28},       {"hidden", 1152},
                          {"heads", 16},          {"ffn", 4608},        {"patch", 2},
                          {"latent_channels", 4}, {"latent_tokens", 64}};
  return model;
}

json data_of(const BenchShape& shape) {
  constexpr int kSequence = 8192, kOfImage = 64, kOfClip = 32;
  json data = {{"source", "synthetic"},
               {"sequence", kSequence},
               {"global_batch", shape.microbatches * shape.replicas * shape.samples}};
  int text = kSequence;
  if (shape.modules >= 2) {
    data["images"] = {{"per_sample", 1}};
    text -= kOfImage;
  }
  if (shape.modules >= 3) {
    data["audio"] = {{"per_sample", 1}};
    text -= kOfClip;
  }
  if (shape.modules >= 4) data["latents"] = {{"per_sample", 1}};
  data["text"] = {{"tokens", shape.varied ? json("uniform(1024,8192)") : json(text)}};
  return data;
}

json layout_of(const BenchShape& shape) {
  json grid = {{"pp", shape.stages}, {"tp", shape.tensor}, {"shard", shape.shard}};
  json layout = {{"schedule", "1f1b"}, {"microbatches", shape.microbatches}};
  if (!shape.own) {
    layout["placement"] = "homogeneous";
    layout["all"] = grid;
    return layout;
  }
  const int decoder = shape.stages * shape.replicas * shape.tensor;
  grid["ranks"] = {{"first", shape.replicas}, {"count", decoder}};
  layout["placement"] = "non-colocated";
  layout["vision"] = {{"ranks", {{"first", 0}, {"count", shape.replicas}}}};
  layout["language"] = grid;
  return layout;
}

}  // namespace

std::string bench_text(const BenchShape& shape) {
  constexpr int kRanksPerNode = 8;
  return json{
      {"polyphony", 1},
      {"about",
       "A step for measuring the simulator's speed, not the model's: blocks as wide as "
       "those of Llama-3.1-70B, 6 * 0.86e9 FLOPs a token and block. Source: its "
       "config.json."},
      {"model", model_of(shape)},
      {"cluster",
       {{"node", "hgx-h100"}, {"nodes", shape.ranks() / kRanksPerNode}, {"nic", "400Gbps"}}},
      {"data", data_of(shape)},
      {"layout", layout_of(shape)},
      {"training", {{"precision", "bf16"}}}}
      .dump();
}

Scenario read_bench(const std::string& text) {
  return read_scenario(text, "bench_scenario", [](const std::string&) {
    return std::string();  // it names no other file
  });
}

}  // namespace polyphony::tests
