// Describes the model that is trained: a DAG of modules, each a stack of typed layers with their
// dimensions.
//   Symbols: T tokens of a packed microbatch, H hidden width, A attention heads of width D, K
//   key/value heads, F feed-forward width, V vocabulary size.
//
// Layer stacks (index 0 first), as layers() returns them:
//   vision     patch_embedding, encoder_block × layers, encoder_norm (without a norm if the module
//              has none: final_norm)
//   audio      audio_embedding (two convolutions over frames), encoder_block × layers, encoder_norm
//   projector  projector_mlp or projector_linear: merges m × m neighboring patches, or m frames,
//              into one row, then applies two matrices with GELU between them, or a single matrix
//   language   token_embedding, decoder_block × layers, language_head (final RMSNorm, output
//              matrix, cross-entropy)
//   diffusion  latent_embedding, diffusion_block × layers, diffusion_head (flow-matching loss)
//   abstract   abstract_input, abstract_block × layers, abstract_output: a vision, audio or
//              language module described only by its measured times (AbstractModule)
//
// Combinations that the runners do not support are rejected by name (shared/check/check.cpp).
// Parameter counts: shared/chunk/parameters.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/ids.h"

namespace polyphony {

enum class ModuleKind : std::uint8_t { vision, audio, language, diffusion, projector };
constexpr auto names(ModuleKind) {
  return names_of<ModuleKind>("vision", "audio", "language", "diffusion", "projector");
}
enum class Trainable : std::uint8_t { full, frozen, lora };
constexpr auto names(Trainable) { return names_of<Trainable>("full", "frozen", "lora"); }

// The epsilon of PyTorch's LayerNorm and of Llama 2. Diffusion modules always use it.
inline constexpr double kNormEpsilon = 1e-5;

// LayerNorm has a bias, RMSNorm has none.
enum class Norm : std::uint8_t { rms, layer };
constexpr auto names(Norm) { return names_of<Norm>("rms", "layer"); }

// How a block mixes the rows of a sequence:
//   full         causal or masked attention: a row attends to itself and all rows before it
//   window       a row attends to itself and the rows just before it (Module::sliding_window)
//   linear       a running state that each row reads and corrects (gated delta rule, arXiv
//                2412.06464)
//   convolution  a short convolution over a few rows, between two gates (LFM2, arXiv 2511.23404)
enum class Mixer : std::uint8_t { full, window, linear, convolution };
constexpr auto names(Mixer) { return names_of<Mixer>("full", "window", "linear", "convolution"); }

// Which rows of a sample a row of the language module attends to, in blocks with attention. All
// masks are further limited to the sample and to sliding windows. shared/program/sample_mask.h
// evaluates them row by row.
//   causal     a row attends to itself and all rows before it
//   isolated   text: causal; an image or clip attends only to itself, in both directions
//   modality   text: causal; images attend to all images of the sample in both directions, clips to
//              all clips
//   embedded   causal, and in addition an image or clip attends to all of itself (Gemma 3, arXiv
//              2503.19786)
//   prefix     causal, and in addition rows before the first labeled row attend to each other
//              (PaliGemma, arXiv 2407.07726)
//   documents  causal within each document; a text item ends a document
enum class Mask : std::uint8_t { causal, isolated, modality, embedded, prefix, documents };
constexpr auto names(Mask) {
  return names_of<Mask>("causal", "isolated", "modality", "embedded", "prefix", "documents");
}

// Activation of a gated feed-forward part with gate g and up projection u:
//   silu     u·silu(g)
//   gelu     u·gelu(g), with the tanh approximation as in Gemma
//   clamped  (u + 1)·g·σ(1.702 g), with g at most 7 and u in [−7, 7], as in GPT-OSS
enum class Activation : std::uint8_t { silu, gelu, clamped };
constexpr auto names(Activation) { return names_of<Activation>("silu", "gelu", "clamped"); }

// GELU of a feed-forward part without a gate (Hendrycks and Gimpel, arXiv 1606.08415, §2): x·Φ(x)
// by erf, its approximation by tanh (SigLIP), or x·σ(1.702 x) (CLIP).
enum class Gelu : std::uint8_t { erf, tanh, quick };
constexpr auto names(Gelu) { return names_of<Gelu>("erf", "tanh", "quick"); }

// How rotary frequencies change in a model whose context was extended:
//   linear  all divided by rope_factor (Chen et al., arXiv 2306.15595)
//   llama3  those that turn less than rope_low_factor times in rope_context rows are divided by
//           rope_factor, those that turn more than rope_high_factor times stay, between these the
//           two are mixed (Llama 3.1, huggingface/transformers modeling_rope_utils.py)
//   yarn    as llama3, but mixed linearly in the index of the frequency, from that which turns
//           rope_high_factor times to that which turns rope_low_factor times; and rotated queries
//           and keys are multiplied by rope_attention (Peng et al., arXiv 2309.00071)
enum class RopeScaling : std::uint8_t { none, linear, llama3, yarn };
constexpr auto names(RopeScaling) {
  return names_of<RopeScaling>("none", "linear", "llama3", "yarn");
}

// How router logits become a token's expert weights: softmax over the chosen experts; or the
// sigmoids of their logits, divided by the sum of these (DeepSeek-V3, arXiv 2412.19437, §2.1.2).
enum class RouterScores : std::uint8_t { softmax, sigmoid };
constexpr auto names(RouterScores) { return names_of<RouterScores>("softmax", "sigmoid"); }

enum class LayerKind : std::uint8_t {
  patch_embedding,
  audio_embedding,
  encoder_block,  // vision and audio
  encoder_norm,
  projector_mlp,
  projector_linear,
  token_embedding,
  decoder_block,
  language_head,
  latent_embedding,
  diffusion_block,
  diffusion_head,
  abstract_input,
  abstract_block,
  abstract_output,
};
constexpr LayerKind last_of(LayerKind) { return LayerKind::abstract_output; }
inline constexpr std::size_t kLayerKinds = static_cast<std::size_t>(last_of(LayerKind{})) + 1;

// Half-open interval of layers in a module's layer stack.
struct LayerRange {
  std::uint16_t begin = 0;
  std::uint16_t end = 0;
  constexpr int size() const { return end - begin; }
  auto operator<=>(const LayerRange&) const = default;
};

// Parallel grid that layers were measured on; 0 means any size.
struct MeasuredGrid {
  int tp = 0, cp = 0;
  bool operator==(const MeasuredGrid&) const = default;
};
// Describes a module that is known only by measured layer times (the times are in the hardware
// profile). For simulation only.
//   All blocks have the same size. The layers before and after the blocks hold no memory and no
//   trainable parameters, and take no time unless they were measured. Rows between layers, and rows
//   passed on to other modules, have the module's width.
struct AbstractModule {
  bool is = false;                       // true if the module is abstract
  std::int64_t parameters = 0;           // per block, summed over all tensor-parallel ranks
  std::int64_t kept = 0;                 // saved activations, bytes per token on one rank
  int tokens = 0;                        // vision: tokens per image
  std::vector<MeasuredGrid> grids = {};  // grids that all blocks were measured on; empty: any
  bool operator==(const AbstractModule&) const = default;
};

struct Module {
  std::string name;
  ModuleKind kind = ModuleKind::language;
  Trainable trainable = Trainable::full;

  // Transformer stacks (vision, audio, language). kv_heads == heads in encoders.
  int layers = 0;                            // blocks
  int hidden = 0;                            // H
  int heads = 0;                             // A
  int kv_heads = 0;                          // K
  int head_dim = 0;                          // D; A·D may differ from H
  int ffn = 0;                               // F
  bool gated = false;                        // three matrices (SwiGLU) instead of two (GELU)
  Activation activation = Activation::silu;  // if gated
  Gelu gelu = Gelu::erf;                     // in encoders, if not gated
  bool attention_bias = false;               // biases of q, k, v and of the attention output
  bool qkv_bias = false;                     // biases of q, k and v, in addition to attention_bias
  bool mlp_bias = false;                     // biases of the feed-forward matrices
  bool qk_norm = false;  // RMSNorm of every query and key head before rotation; one weight [D] each
  Norm norm = Norm::rms;
  double norm_epsilon = kNormEpsilon;  // added to the variance or mean square in every norm
  bool post_norms = false;  // attention and feed-forward outputs are normalized before being added
  // Encoders: attention and feed-forward outputs are multiplied by a learned vector [H] before
  // being added; its initial value (InternViT; Touvron et al., arXiv 2103.17239, §2). 0: none.
  double layer_scale = 0.0;
  // Vision input.
  int image_size = 0;  // pixels, square
  int patch = 0;       // pixels
  int channels = 3;
  bool patch_bias = true;    // the patch embedding has a bias
  bool class_token = false;  // a learned row before each image's patches, dropped by the last norm
  bool rotary = false;       // q and k are rotated by patch row and column; no position table
  // Rotary: rows have the even ones of the D/2 frequencies and columns the odd ones (Pixtral);
  // otherwise both have the same D/4.
  bool alternating_axes = false;
  bool input_norm = false;  // a norm between the embedded patches and the first block (CLIP)
  bool final_norm = true;   // a norm after the last block; LLaVA reads CLIP's blocks without it
  int window = 0;  // blocks attend within squares of window × window patches; 0: in whole images
  std::vector<int> full_attention_blocks = {};  // blocks that attend within whole images anyway
  // Audio input: each token covers 2 frames of mel_bins features.
  int mel_bins = 0;
  int audio_tokens = 0;  // tokens of a clip of full length
  // Language.
  int vocab = 0;                  // V
  bool tied = false;              // the output matrix is the embedding matrix
  bool scaled_embedding = false;  // rows of the embedding are multiplied by √H, as in Gemma
  double rope_theta = 10000.0;
  RopeScaling rope_scaling = RopeScaling::none;  // not of local_rope_theta
  double rope_factor = 0;                        // linear, llama3, yarn
  double rope_low_factor = 0;                    // llama3, yarn: turns in rope_context rows
  double rope_high_factor = 0;
  int rope_context = 0;
  double rope_attention = 1.0;  // yarn: factor of rotated queries and keys
  bool rope_whole = true;       // yarn: the two indices are rounded, away from each other
  double score_factor = 1.0;    // latent attention: factor of scores (DeepSeek-V3 with YaRN)
  // How many of the D/2 rotary frequencies rotate by a token's time, row and column; empty: all
  // rotate by its position in the sample.
  std::vector<int> rope_sections = {};
  // Projector: input features = merge² · H of its source (merge · H for an audio source); output
  // features = H of its consumer. projector_hidden 0 selects projector_linear.
  ModuleKind source = ModuleKind::vision;
  int merge = 1;
  int projector_in = 0;
  int projector_hidden = 0;
  int projector_out = 0;
  // Diffusion: latents are cut into patches of patch × patch positions, one token each.
  int latent_channels = 0;
  int latent_tokens = 0;     // tokens of a latent of full size
  int modulation = 0;        // R, width between the time features and a layer's modulation
  int condition = 0;         // width of the rows that its blocks cross-attend to; 0: no such rows
  double loss_weight = 1.0;  // weight of its mean squared error, added to the mean cross-entropy
  // Mixture of experts: replaces the feed-forward part of every decoder block (F is then 0). A
  // token is routed to the experts with the largest router logits, weighted by router_scores. 0
  // experts: dense.
  int experts = 0;
  int experts_per_token = 0;
  int expert_ffn = 0;  // width of one expert
  int shared_ffn = 0;  // width of the expert that processes every token; 0: none
  // The shared expert's output is multiplied by the sigmoid of one number, a projection of its
  // input (Qwen3-Next).
  bool shared_gate = false;
  double balance_weight = 0.0;  // weight of the load-balancing loss (exec/experts/balance.h)
  int dense_blocks = 0;  // number of leading blocks with a dense feed-forward of width F instead
  RouterScores router_scores = RouterScores::softmax;
  double routed_scale = 1.0;  // factor on the summed output of the routed experts
  // A token chooses among the experts of groups_per_token out of expert_groups groups: those groups
  // whose two largest scores have the largest sum. 0: among all experts.
  int expert_groups = 0;
  int groups_per_token = 0;
  // A constant is added to every expert's score when experts are chosen, but not to its weight
  // (DeepSeek-V3). Training does not change it: the rule by which published models adjusted it, by
  // the loads of the whole batch, is not modeled.
  bool choice_bias = false;
  bool expert_bias = false;  // biases of the router and of the experts' matrices
  // Latent attention (DeepSeek-V2, arXiv 2405.04434, §2.1), if key_value_rank is not 0. Keys and
  // values are computed from a latent row of width key_value_rank; every head's key also ends in
  // the same rotary_dim rotated numbers. Queries are computed from a latent row of width query_rank
  // (0: from the input itself). Query and key heads have width head_dim + rotary_dim, value heads
  // value_dim (0: head_dim).
  int key_value_rank = 0;
  int query_rank = 0;
  int value_dim = 0;
  // How many numbers of a query or key head are rotated. With latent attention: those after the
  // first head_dim. Otherwise: the first rotary_dim of head_dim, 0 meaning all.
  int rotary_dim = 0;
  // Language module whose blocks differ (block_at()): the mixer of each block, repeated over the
  // stack; empty: all full.
  std::vector<Mixer> mixers = {};
  Mask mask = Mask::causal;
  int sliding_window = 0;        // Mixer::window: rows that a row attends to, itself included
  double local_rope_theta = 0;   // Mixer::window: rope_theta of these blocks; 0: rope_theta
  bool attention_sinks = false;  // a learned logit per head joins its softmax, without a value row
  bool attention_gate = false;   // attention output times the sigmoid of a projection of the input
  // Mixer::linear: linear_key_heads key heads, each shared by linear_value_heads / linear_key_heads
  // value heads, all of width linear_head_dim. A per-channel convolution over linear_conv rows
  // comes first.
  int linear_key_heads = 0;
  int linear_value_heads = 0;
  int linear_head_dim = 0;
  int linear_conv = 0;
  int short_conv = 0;  // Mixer::convolution: rows that its convolution spans
  // Trainable::lora: y += (alpha / rank) B A x on every linear layer of the blocks.
  int lora_rank = 0;
  double lora_alpha = 0.0;
  AbstractModule abstract = {};

  bool operator==(const Module&) const = default;
};

// The output of layer `from_layer` of `from` (-1: its last layer) feeds layer `to_layer` of `to`
// (0: the module's own input).
//   An edge into an inner layer of a language module adds its rows to the hidden states, at the
//   positions of its items in the sequence (DeepStack, arXiv 2406.04334).
//   An edge into a diffusion module carries its conditioning, which every block reads. If the edge
//   comes from a language module, it starts at the last block, because the head outputs no rows.
struct Edge {
  ModuleId from;
  ModuleId to;
  int to_layer = 0;
  int from_layer = -1;
  bool operator==(const Edge&) const = default;
};

struct Model {
  std::vector<Module> modules;  // in topological order
  std::vector<Edge> edges;
  bool operator==(const Model&) const = default;
};

// Returns the layer stack of a module, as listed at the top of this file.
std::vector<LayerKind> layers(const Module& module);

// A block has two parts: one that mixes rows (attention), and one that works on each row alone.
enum class AttentionKind : std::uint8_t { full, window, latent, linear, convolution };
constexpr auto names(AttentionKind) {
  return names_of<AttentionKind>("full", "window", "latent", "linear", "convolution");
}
enum class FeedForwardKind : std::uint8_t { dense, experts };
struct BlockKind {
  AttentionKind attention = AttentionKind::full;
  FeedForwardKind feed_forward = FeedForwardKind::dense;
  auto operator<=>(const BlockKind&) const = default;
};
// Returns the kind of block 0, 1, … of a stack. Blocks of the same kind are identical in shape.
BlockKind block_at(const Module& module, int block);
// Returns the width of a head's values.
int value_width(const Module& module);
// Returns the width of the rows that the module outputs.
int output_width(const Module& module);
// Returns the language module (a valid model has exactly one).
ModuleId language_module(const Model& model);
// Returns the number of features of one latent patch: latent_channels · patch².
int latent_width(const Module& module);
// Returns true if something strictly upstream of `module` is trainable, so that its backward must
// produce an input gradient.
bool needs_input_grad(const Model& model, ModuleId module);
// Returns true if the module needs a backward at all: the module, or something upstream of it, is
// trainable.
bool needs_backward(const Model& model, ModuleId module);
// Returns the module whose grid and items a projector shares; for any other module, the module
// itself.
ModuleId grid_owner(const Model& model, ModuleId module);
// Returns how many output rows of its source a projector merges into one: merge², or merge for
// audio.
int merged_rows(const Module& projector);
const char* name(LayerKind kind);  // shared/layers/layer_table.h

}  // namespace polyphony
