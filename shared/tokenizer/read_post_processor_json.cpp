#include "shared/tokenizer/read_steps_json.h"

namespace polyphony::tokenizing {
namespace {

Id id_of(const JsonNode& node) { return static_cast<Id>(node.integer(0, kLargestId)); }

// ["[SEP]", 102]
Id pair_of(const JsonNode& node) {
  if (node.list().size() != 2)
    node.place().refuse("must be a token and its id", "write [\"[SEP]\", 102]");
  node.at(0).text();
  return id_of(node.at(1));
}

// [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, …]
void read_template(const JsonNode& node, Frame& frame) {
  node.only({"type", "single", "pair", "special_tokens"});
  const JsonNode single = node.at("single").list(), tokens = node.at("special_tokens");
  bool text = false;
  for (std::size_t i = 0; i < single.size(); ++i) {
    const JsonNode piece = single.at(i).only({"Sequence", "SpecialToken"});
    if (piece.has("Sequence")) {
      const std::string& which = piece.at("Sequence").only({"id", "type_id"}).at("id").text();
      if (which != "A" || text)
        piece.place().refuse("\"A\" must be the only sequence (got \"" + which + "\")",
                             "remove this one; pairs of texts are not supported");
      text = true;
      continue;
    }
    const std::string& name = piece.at("SpecialToken").only({"id", "type_id"}).at("id").text();
    const JsonNode ids = tokens.at(name).only({"id", "ids", "tokens"}).at("ids").list();
    for (std::size_t k = 0; k < ids.size(); ++k)
      (text ? frame.after : frame.before).push_back(id_of(ids.at(k)));
  }
  if (!text)
    single.place().refuse("must contain the sequence \"A\"",
                          "add {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}");
}

}  // namespace

void read_post_processor(const JsonNode& node, Frame& frame, int depth) {
  const std::string& type = type_of(node, depth);
  if (type == "Sequence") {
    const JsonNode list = node.only({"type", "processors"}).at("processors").list();
    for (std::size_t i = 0; i < list.size(); ++i) read_post_processor(list.at(i), frame, depth + 1);
    return;
  }
  if (type == "ByteLevel") {  // about positions in the text only
    node.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return;
  }
  if (!frame.before.empty() || !frame.after.empty())
    node.place().refuse("only one part may add special tokens", "remove the others");
  if (type == "TemplateProcessing") {
    read_template(node, frame);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    node.only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    frame.before = {pair_of(node.at("cls"))};
    frame.after = {pair_of(node.at("sep"))};
  } else {
    refuse_type(
        node, "the post-processor",
        {"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", "Sequence"});
  }
}

}  // namespace polyphony::tokenizing
