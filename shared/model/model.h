// What is trained: a DAG of modules, each a stack of typed layers with dimensions.
//   T tokens of a packed work item, H hidden width, A attention heads of width D, K key/value
//   heads, F feed-forward width, V vocabulary.
// Layer stacks (index 0 first), see layers():
//   vision     patch_embedding, encoder_block × layers, encoder_norm
//   audio      audio_embedding (two convolutions over frames), encoder_block × layers, encoder_norm
//   projector  projector_mlp or projector_linear  (merges m×m neighbouring patches, or m frames,
//              then two matrices with GELU between, or one)
//   language   token_embedding, decoder_block × layers, language_head (final RMSNorm, output
//              matrix, cross-entropy)
//   abstract   abstract_input, abstract_block × layers, abstract_output: a vision, audio or language
//              module that is known by its measured times alone (AbstractModule)
//   diffusion  latent_embedding, diffusion_block × layers, diffusion_head (flow-matching loss)
// What no runner of this version plays is refused by name (shared/check/check.cpp). Parameter
// counts: shared/chunk/parameters.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/ids.h"

namespace polyphony {

enum class ModuleKind : std::uint8_t { vision, audio, language, diffusion, projector };
constexpr ModuleKind last_of(ModuleKind) { return ModuleKind::projector; }
enum class Trainable : std::uint8_t { full, frozen, lora };
constexpr Trainable last_of(Trainable) { return Trainable::lora; }

// Of PyTorch's LayerNorm and of Llama 2; diffusion modules have no other.
inline constexpr double kNormEpsilon = 1e-5;

// LayerNorm has a bias, RMSNorm none.
enum class Norm : std::uint8_t { rms, layer };
constexpr Norm last_of(Norm) { return Norm::layer; }

// How the rows of a sequence meet in a block: every row sees itself and all before it; itself and
// those just before it (Module::sliding_window); a running state that each row reads and corrects
// (the gated delta rule, arXiv 2412.06464); a convolution over a few rows between two gates (LFM2,
// arXiv 2511.23404).
enum class Mixer : std::uint8_t { full, window, linear, convolution };
constexpr Mixer last_of(Mixer) { return Mixer::convolution; }

// Which rows of a sample a row of the language module sees in blocks that attend
// (shared/program/sample_mask.h says it row by row; samples and windows bound them all):
//   causal     itself and all before it
//   isolated   text likewise; an image or clip sees itself alone, both ways
//   modality   text likewise; images see all images of the sample both ways, clips all clips
//   embedded   as causal, and an image or clip sees all of itself (Gemma 3, arXiv 2503.19786)
//   prefix     as causal, and rows before the first labelled one see each other (PaliGemma, arXiv
//              2407.07726)
//   documents  as causal inside documents: a text item ends one
enum class Mask : std::uint8_t { causal, isolated, modality, embedded, prefix, documents };
constexpr Mask last_of(Mask) { return Mask::documents; }

// Of a gated feed-forward part, gate g and up u: u·silu(g); u·gelu(g), in Gemma's form by tanh; GPT-OSS'
// (u + 1)·g·σ(1.702 g) with g at most 7 and u in [−7, 7]. Without a gate it is GELU by erf.
enum class Activation : std::uint8_t { silu, gelu, clamped };
constexpr Activation last_of(Activation) { return Activation::clamped; }

// What makes a token's weights of the experts out of router logits: softmax over those chosen; or
// their sigmoids, divided by their sum (DeepSeek-V3, arXiv 2412.19437, §2.1.2, without its biases of the choice).
enum class RouterScores : std::uint8_t { softmax, sigmoid };
constexpr RouterScores last_of(RouterScores) { return RouterScores::sigmoid; }

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

// Half-open interval of a module's layer stack.
struct LayerRange {
  std::uint16_t begin = 0;
  std::uint16_t end = 0;
  constexpr int size() const { return end - begin; }
  auto operator<=>(const LayerRange&) const = default;
};

// A grid that layers were measured on; 0: any.
struct MeasuredGrid {
  int tp = 0, cp = 0;
  bool operator==(const MeasuredGrid&) const = default;
};
// What stands in a plan of a module whose layers are known by measured times alone (its times are the
// profile's). All blocks hold as much; what is before and after them holds nothing, takes no time
// unless it was measured, and trains nothing. Rows between its layers, and those that it hands on,
// have the module's width. For simulation only.
struct AbstractModule {
  bool is = false;
  std::int64_t parameters = 0;           // of a block, on all tensor-parallel ranks together
  std::int64_t kept = 0;                 // bytes a token that its forward keeps, on one rank
  int tokens = 0;                        // vision: of an image
  std::vector<MeasuredGrid> grids = {};  // that all its blocks were measured on; empty: any
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
  Activation activation = Activation::silu;  // where gated
  bool attention_bias = false;               // bias on q, k, v and out
  bool qkv_bias = false;                     // bias on q, k and v, whatever attention_bias says
  bool mlp_bias = false;                     // biases of the feed-forward matrices
  bool qk_norm = false;  // RMSNorm of every query and key head before rotation; one weight [D] each
  Norm norm = Norm::rms;
  double norm_epsilon = kNormEpsilon;  // of all its norms, added to the variance or mean square
  bool post_norms = false;  // norms of what attention and feed-forward part add to the rows
  // Vision input.
  int image_size = 0;  // pixels, square
  int patch = 0;       // pixels
  int channels = 3;
  bool class_token = false;  // a learned row before each image's patches, gone after the last norm
  bool rotary = false;       // rows and columns action q and k; no table of positions
  int window = 0;            // blocks attend inside squares of window × window patches; 0: images
  std::vector<int> full_attention_blocks = {};  // but these attend over whole images
  // Audio input: 2 frames of mel_bins features a token.
  int mel_bins = 0;
  int audio_tokens = 0;  // of a clip of full length
  // Language.
  int vocab = 0;      // V
  bool tied = false;  // output matrix is the embedding
  double rope_theta = 10000.0;
  // Of the D/2 rotary frequencies, how many turn with time, row and column; empty: all with the
  // position in the sample.
  std::vector<int> rope_sections = {};
  // Projector: in features = merge² · H of its source, merge · H of an audio source; out = H of its
  // consumer. hidden 0: projector_linear.
  ModuleKind source = ModuleKind::vision;
  int merge = 1;
  int projector_in = 0;
  int projector_hidden = 0;
  int projector_out = 0;
  // Diffusion: latents are cut into patches of patch × patch positions, one token each.
  int latent_channels = 0;
  int latent_tokens = 0;     // of a latent of full size
  int modulation = 0;        // R, width between the features of time and a layer's modulation
  int condition = 0;         // width of the rows that its blocks read across; 0: none are read
  double loss_weight = 1.0;  // of its mean squared error beside the mean cross-entropy
  // Mixture of experts: every decoder block's feed-forward part, in place of F (then 0). A token
  // visits the experts of its largest router logits, weighted by their softmax. 0 experts: dense.
  int experts = 0;
  int experts_per_token = 0;
  int expert_ffn = 0;           // width of one expert
  int shared_ffn = 0;           // width of the expert that every token visits; 0: none
  double balance_weight = 0.0;  // of the load-balance term (exec/layers/balance.h)
  int dense_blocks = 0;  // the first so many have a dense feed-forward part of width F all the same
  RouterScores router_scores = RouterScores::softmax;
  double routed_scale = 1.0;  // of what the chosen experts say together, the shared one beside
  // A token chooses among the experts of groups_per_token of expert_groups groups, those whose two
  // largest scores have the largest sum; 0: among all.
  int expert_groups = 0;
  int groups_per_token = 0;
  bool expert_bias = false;  // of the router and of the experts' matrices
  // Latent attention (DeepSeek-V2, arXiv 2405.04434, §2.1), where key_value_rank is not 0: keys and
  // values are made of a row of key_value_rank, and of rotary_dim numbers that every head's key ends
  // in; queries of rows of query_rank (0: of the input), heads of head_dim + rotary_dim. Values have
  // value_dim (0: head_dim).
  int key_value_rank = 0;
  int query_rank = 0;
  int value_dim = 0;
  // Numbers of a query and key that are rotated: with latent attention those beyond head_dim, else
  // the first ones of head_dim; 0: all of these.
  int rotary_dim = 0;
  // Unlike blocks of a language module (block_at()): mixers by block, repeated over the stack;
  // empty: all full.
  std::vector<Mixer> mixers = {};
  Mask mask = Mask::causal;
  int sliding_window = 0;        // Mixer::window: rows that a row sees, itself included
  double local_rope_theta = 0;   // of these blocks; 0: rope_theta
  bool attention_sinks = false;  // a learned logit of every head beside its scores, of no value
  bool attention_gate = false;   // attention's output times the sigmoid of a product of the input
  // Mixer::linear: key heads, each with linear_value_heads / linear_key_heads value heads, all of
  // width linear_head_dim; before, a convolution by channel over linear_conv rows.
  int linear_key_heads = 0;
  int linear_value_heads = 0;
  int linear_head_dim = 0;
  int linear_conv = 0;
  int short_conv = 0;  // Mixer::convolution: rows that its convolution joins
  // Trainable::lora: y += (alpha / rank) B A x on every linear layer of the blocks.
  int lora_rank = 0;
  double lora_alpha = 0.0;
  AbstractModule abstract = {};

  bool operator==(const Module&) const = default;
};

// Output of layer `from_layer` of `from` (-1: of its last) feeds layer `to_layer` of `to` (0: the
// module's own input). An edge into an inner layer of a language module adds its rows to the hidden
// states, at the places that its items have in the sequence (DeepStack, arXiv 2406.04334). An edge
// into a diffusion module is its conditioning: every block reads it; out of a language module it
// starts at the last block, the head makes no rows.
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

// The layer stack of a module, as above.
std::vector<LayerKind> layers(const Module& module);

// What a block is made of: a part where rows meet, and a part where they do not.
enum class AttentionKind : std::uint8_t { full, window, latent, linear, convolution };
enum class FeedForwardKind : std::uint8_t { dense, experts };
struct BlockKind {
  AttentionKind attention = AttentionKind::full;
  FeedForwardKind feed_forward = FeedForwardKind::dense;
  auto operator<=>(const BlockKind&) const = default;
};
// Of block 0, 1, … of a stack; everything in which blocks differ follows from it.
BlockKind block_at(const Module& module, int block);
// Width of a head's values.
int value_width(const Module& module);
// Rows of width `output_width` that leave the module for one image of `patches` patches or `tokens`
// tokens.
int output_width(const Module& module);
// The language module (exactly one exists in a valid model).
ModuleId language_module(const Model& model);
// Features of one latent patch: latent_channels · patch².
int latent_width(const Module& module);
// True when something strictly upstream of `module` is trainable, so that its backward must produce
// an input gradient.
bool needs_input_grad(const Model& model, ModuleId module);
// True when a backward op must visit `module` at all: it, or something upstream of it, is
// trainable.
bool needs_backward(const Model& model, ModuleId module);
// The module whose grid a projector shares, and whose items it works on; any other module itself.
ModuleId grid_owner(const Model& model, ModuleId module);
// Rows of the output of a projector's source that it joins into one: merge², or merge for audio.
int merged_rows(const Module& projector);
const char* name(ModuleKind kind);
const char* name(LayerKind kind);  // shared/layers/layer_table.h
const char* name(Trainable trainable);
const char* name(Norm norm);
const char* name(Mixer mixer);
const char* name(Mask mask);
const char* name(Activation activation);
const char* name(RouterScores scores);
const char* name(AttentionKind kind);

}  // namespace polyphony
