#include "shared/tokenizer/read_steps_json.h"

namespace polyphony::tokenizing {
namespace {

Behavior behavior_of(const JsonNode& node) {
  const std::string& name = node.text();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  node.place().refuse(
      "must be a behavior (got \"" + name + "\")",
      suggest(name, {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}));
}

// Source: Radford et al. (GPT-2), encoder.py.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// \w as Rust's library `regex` has it, in \w+|[^\w\s]+.
constexpr const char* kWords = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+)"
                               R"(|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\s]+)";

Metaspace metaspace_of(const JsonNode& node) {
  node.only({"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
  const std::string scheme = node.text("prepend_scheme", "always");
  if (scheme != "first" && scheme != "never" && scheme != "always")
    node.place()
        .at("prepend_scheme")
        .refuse("must be a scheme (got \"" + scheme + "\")", "one of: first, never, always");
  using Scheme = Metaspace::Scheme;
  Metaspace made{character_of(node.at("replacement")),
                 scheme == "first"   ? Scheme::first
                 : scheme == "never" ? Scheme::never
                                     : Scheme::always,
                 node.boolean("split", true)};
  if (!node.boolean("add_prefix_space", true)) {
    if (made.scheme != Scheme::never && node.has("prepend_scheme"))
      node.place()
          .at("add_prefix_space")
          .refuse("must fit \"prepend_scheme\" (got false)", "write \"prepend_scheme\": \"never\"");
    made.scheme = Scheme::never;
  }
  return made;
}

}  // namespace

void read_pre_tokenizer(const JsonNode& node, std::vector<PreTokenizerStep>& steps, int depth) {
  const std::string& type = type_of(node, depth);
  if (type == "Sequence") {
    const JsonNode list = node.only({"type", "pretokenizers"}).at("pretokenizers").list();
    for (std::size_t i = 0; i < list.size(); ++i) read_pre_tokenizer(list.at(i), steps, depth + 1);
  } else if (type == "ByteLevel") {
    node.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    ByteLevel step{node.at("add_prefix_space").boolean(), {}};
    if (node.boolean("use_regex", true)) step.pattern = Pattern::regex(kGpt2, node.place());
    steps.push_back(std::move(step));
  } else if (type == "Split") {
    node.only({"type", "pattern", "behavior", "invert"});
    steps.push_back(
        Split{pattern_of(node), behavior_of(node.at("behavior")), node.at("invert").boolean()});
  } else if (type == "Digits") {
    const bool each = node.only({"type", "individual_digits"}).at("individual_digits").boolean();
    steps.push_back(SplitByClass{is_numeric, each ? Behavior::isolated : Behavior::contiguous});
  } else if (type == "Punctuation") {
    node.only({"type", "behavior"});
    steps.push_back(SplitByClass{is_punctuation, node.has("behavior")
                                                     ? behavior_of(node.at("behavior"))
                                                     : Behavior::isolated});
  } else if (type == "Whitespace") {
    node.only({"type"});
    steps.push_back(Split{Pattern::regex(kWords, node.place()), Behavior::removed, true});
  } else if (type == "WhitespaceSplit") {
    node.only({"type"});
    steps.push_back(SplitByClass{is_white_space, Behavior::removed});
  } else if (type == "BertPreTokenizer") {
    node.only({"type"});
    steps.push_back(SplitByClass{is_white_space, Behavior::removed});
    steps.push_back(SplitByClass{is_punctuation, Behavior::isolated});
  } else if (type == "Metaspace") {
    steps.push_back(metaspace_of(node));
  } else {
    refuse_type(node, "the pre-tokenizer",
                {"ByteLevel", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit",
                 "BertPreTokenizer", "Metaspace", "Sequence"});
  }
}

void read_decoder(const JsonNode& node, std::vector<DecoderStep>& steps, int depth) {
  const std::string& type = type_of(node, depth);
  const auto limit = [](const JsonNode& number) {
    return static_cast<std::size_t>(number.integer(0, 1 << 20));
  };
  if (type == "Sequence") {
    const JsonNode list = node.only({"type", "decoders"}).at("decoders").list();
    for (std::size_t i = 0; i < list.size(); ++i) read_decoder(list.at(i), steps, depth + 1);
  } else if (type == "ByteLevel") {
    node.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    steps.push_back(DecodeLetters{});
  } else if (type == "Metaspace") {
    const Metaspace step = metaspace_of(node);
    steps.push_back(DecodeMetaspace{step.replacement, step.scheme != Metaspace::Scheme::never});
  } else if (type == "ByteFallback") {
    node.only({"type"});
    steps.push_back(DecodeByteFallback{});
  } else if (type == "Fuse") {
    node.only({"type"});
    steps.push_back(DecodeFuse{});
  } else if (type == "Replace") {
    node.only({"type", "pattern", "content"});
    steps.push_back(DecodeReplace{{pattern_of(node), node.at("content").text()}});
  } else if (type == "Strip") {
    node.only({"type", "content", "start", "stop"});
    const std::string content = character_of(node.at("content"));
    std::size_t at = 0;
    steps.push_back(
        DecodeStrip{next_code_point(content, at), limit(node.at("start")), limit(node.at("stop"))});
  } else if (type == "WordPiece") {
    node.only({"type", "prefix", "cleanup"});
    steps.push_back(DecodeWordPiece{node.at("prefix").text(), node.at("cleanup").boolean()});
  } else if (type == "BPEDecoder") {
    steps.push_back(DecodeSuffix{node.only({"type", "suffix"}).at("suffix").text()});
  } else {
    refuse_type(node, "the decoder",
                {"ByteLevel", "Metaspace", "ByteFallback", "Fuse", "Replace", "Strip", "WordPiece",
                 "BPEDecoder", "Sequence"});
  }
}

}  // namespace polyphony::tokenizing
