// Conversations as token ids, labels and items: templates, images, cuts, and what is left out.
#include "shared/datasets/conversation_samples.h"

#include <doctest/doctest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "shared/datasets/chat_template.h"
#include "shared/error.h"
#include "shared/text/json_form.h"
#include "tests/shared/support/temp_folder.h"

namespace polyphony {
namespace {

using test::spill;
using test::TempFolder;

const char* const kTags[] = {"<|im_start|>", "<|im_end|>", "</s>", "<s>"};

// A tokenizer with an id for each printable ASCII character, one for a line break, and tags.
std::string letters_tokenizer() {
  std::string vocabulary, added;
  int id = 0;
  for (int c = '!'; c <= '~'; ++c) {
    const std::string letter = c == '"' || c == '\\' ? std::string("\\") + static_cast<char>(c)
                                                     : std::string(1, static_cast<char>(c));
    vocabulary += "\"" + letter + "\": " + std::to_string(id++) + ", ";
  }
  vocabulary += "\"Ġ\": " + std::to_string(id++);
  vocabulary += ", \"Ċ\": " + std::to_string(id++);
  for (const char* tag : kTags)
    added += (added.empty() ? "" : ", ") + std::string(R"({"id": )") + std::to_string(id++) +
             R"(, "content": ")" + tag + R"(", "special": true, "normalized": false,
                 "lstrip": false, "rstrip": false, "single_word": false})";
  return R"({"added_tokens": [)" + added +
         R"(], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "merges": [], "vocab": {)" +
         vocabulary + "}}}";
}

const Tokenizer& letters() {
  static const Tokenizer tokenizer = Tokenizer::parse(letters_tokenizer(), "letters.json");
  return tokenizer;
}

const std::vector<Turn> kTurns{{Speaker::system, "be brief"},
                               {Speaker::user, "<image>what?"},
                               {Speaker::assistant, "a cat"},
                               {Speaker::user, "sure?"},
                               {Speaker::assistant, "yes"}};

std::string whole(const std::vector<RenderedPart>& parts, bool only_trained = false) {
  std::string text;
  for (const RenderedPart& part : parts)
    if (part.trained || !only_trained) text += part.text;
  return text;
}

std::string text_of(const std::vector<std::int32_t>& ids) { return letters().decode(ids); }

EncodedConversation encode(const std::vector<Turn>& turns, std::size_t images,
                           ConversationData source = {}, const SampleShape& shape = {true},
                           const std::vector<SampleMedia::Medium>& clips = {},
                           std::int64_t image_rows = 1) {
  const SampleMedia media{{images, {image_item({2, 2}), image_rows}}, clips};
  return encode_conversation({turns}, media, source, letters(), "</s>", {}, shape);
}

Scenario scenario_at(const TempFolder& folder, bool sees = true) {
  Scenario scenario;
  scenario.file = "small.json";
  Module vision{.name = "vision", .kind = ModuleKind::vision};
  vision.image_size = 8;
  vision.patch = 4;
  Module language{.name = "language", .kind = ModuleKind::language};
  language.vocab = 200;
  scenario.model =
      sees ? Model{{vision, language}, {{ModuleId(0), ModuleId(1)}}} : Model{{language}, {}};
  ConversationData source{folder / "a.jsonl", folder / "tokenizer.json"};
  source.chat = ChatTemplate::plain;
  scenario.data.source = source;
  spill(folder / "tokenizer.json", letters_tokenizer());
  spill(folder / "tokenizer_config.json", R"({"eos_token": {"content": "</s>"}})");
  // 8 × 8 pixels: the header is all that is read.
  spill(folder / "p.png",
        std::string("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\x08\0\0\0\x08\x08\x02", 26));
  return scenario;
}

std::string line(const std::string& question, const std::string& answer,
                 const std::string& image = "p.png") {
  return R"({"image": ")" + image + R"(", "conversations": [{"from": "human", "value": ")" +
         question + R"("}, {"from": "gpt", "value": ")" + answer + "\"}]}\n";
}

}  // namespace

TEST_SUITE("conversations") {
  TEST_CASE("templates: the text, and what of it is trained") {
    const auto chatml = render(ChatTemplate::chatml, kTurns, "");
    CHECK(whole(chatml) ==
          "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\n<image>what?<|im_end|>\n"
          "<|im_start|>assistant\na cat<|im_end|>\n<|im_start|>user\nsure?<|im_end|>\n"
          "<|im_start|>assistant\nyes<|im_end|>\n");
    CHECK(whole(chatml, true) == "a cat<|im_end|>yes<|im_end|>");
    CHECK(whole(render(ChatTemplate::llama3,
                       {{Speaker::user, " hi "}, {Speaker::assistant, "ho\n"}}, "")) ==
          "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
          "<|start_header_id|>assistant<|end_header_id|>\n\nho<|eot_id|>");
    CHECK(whole(render(ChatTemplate::vicuna, kTurns, "</s>")) ==
          "be brief USER: <image>what? ASSISTANT: a cat</s>USER: sure? ASSISTANT: yes</s>");
    CHECK(whole(render(ChatTemplate::plain, kTurns, "</s>"), true) == "a cat</s>yes</s>");
  }

  TEST_CASE("labels are the next ids of what the assistant says, and items end with them") {
    const EncodedConversation one = encode(kTurns, 1);
    CHECK(text_of(one.labels) == "a cat<|im_end|>yes<|im_end|>");
    // Everything but the image and what follows the last label.
    CHECK(text_of(one.ids) ==
          "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nwhat?<|im_end|>\n"
          "<|im_start|>assistant\na cat<|im_end|>\n<|im_start|>user\nsure?<|im_end|>\n"
          "<|im_start|>assistant\nyes");
    REQUIRE(one.items.size() == 4);
    CHECK(one.items[0].loss_tokens == 0);
    CHECK(one.items[1] == Item{Modality::image, 4, 0});
    CHECK(one.items[2].loss_tokens == 6);
    CHECK(one.items[3].loss_tokens == 4);
    // Label j of an item is the id after its position tokens − loss_tokens + j.
    std::size_t id = 0, label = 0;
    for (std::size_t i = 0; i < one.items.size(); ++i) {
      const Item& item = one.items[i];
      if (item.modality != Modality::text) continue;
      for (int k = 0; k < item.tokens; ++k, ++id) {
        if (k < item.tokens - item.loss_tokens) continue;
        const bool last = id + 1 == one.ids.size();
        if (!last) CHECK(one.labels[label] == one.ids[id + 1]);
        ++label;
      }
    }
    CHECK(id == one.ids.size());
    CHECK(label == one.labels.size());
  }

  TEST_CASE("images without a mark come first; a token right after an image is not predicted") {
    ConversationData source;
    source.chat = ChatTemplate::plain;
    const EncodedConversation caption = encode({{Speaker::assistant, "cat"}}, 2, source);
    REQUIRE(caption.items.size() == 3);
    CHECK(caption.images == 2);
    CHECK(caption.items[1] == Item{Modality::image, 4, 0});
    CHECK(text_of(caption.labels) == "at</s>");
    // Without a vision module the marks are gone, and nothing is cut at them.
    const EncodedConversation blind =
        encode({{Speaker::user, "a<image>b"}, {Speaker::assistant, "c"}}, 1, source, {});
    REQUIRE(blind.items.size() == 1);
    CHECK(text_of(blind.ids) == "abc");
    CHECK(text_of(blind.labels) == "c</s>");
  }

  TEST_CASE(
      "clips stand at their marks; those without one come after images, before the question") {
    ConversationData source;
    source.chat = ChatTemplate::plain;
    const SampleShape hears{true, true};
    const std::vector<SampleMedia::Medium> clips{{{Modality::audio, 6, 0}, 3},
                                                 {{Modality::audio, 4, 0}, 2}};
    const std::vector<Turn> turns{{Speaker::user, "a<audio>b"}, {Speaker::assistant, "cd"}};
    // A mark for the first clip; the second comes in front, after the image.
    const EncodedConversation one = encode(turns, 1, source, hears, clips);
    CHECK(one.images == 1);
    CHECK(one.clips == 2);
    CHECK(one.items == std::vector<Item>{{Modality::image, 4, 0},
                                         {Modality::audio, 6, 0},
                                         {Modality::text, 1, 0},
                                         {Modality::audio, 4, 0},
                                         {Modality::text, 3, 3}});
    CHECK(text_of(one.ids) == "abcd");
    CHECK(text_of(one.labels) == "cd</s>");
    // A token right after a clip is not predicted.
    const EncodedConversation caption =
        encode({{Speaker::assistant, "cat"}}, 0, source, hears, {{{Modality::audio, 2, 0}, 1}});
    CHECK(caption.items == std::vector<Item>{{Modality::audio, 2, 0}, {Modality::text, 3, 3}});
    CHECK(text_of(caption.labels) == "at</s>");
    // Without an audio module the marks are gone.
    const EncodedConversation deaf = encode(turns, 0, source, {true}, clips);
    CHECK(deaf.items == std::vector<Item>{{Modality::text, 4, 3}});
    // Rows: 3 of the first clip, then "a", 2 of the second, then "b" and "c".
    for (std::int64_t most = 1; most < 10; ++most) {
      const EncodedConversation cut = encode(turns, 0, source, {true, true, most}, clips);
      CHECK(cut.items.empty() == (most < 7));
      CHECK(cut.clips == (most < 7 ? 0U : 2U));
    }
  }

  TEST_CASE("a system message of the scenario is for conversations that have none") {
    ConversationData source;
    source.system = "look";
    CHECK(text_of(encode(kTurns, 1, source).ids).find("look") == std::string::npos);
    CHECK(text_of(encode({kTurns[1], kTurns[2]}, 1, source).ids)
              .starts_with("<|im_start|>system\nlook<|im_end|>\n<|im_start|>user\n"));
  }

  TEST_CASE("a sample is cut after so many rows, and text after its last label goes, too") {
    ConversationData source;
    source.chat = ChatTemplate::plain;
    const std::vector<Turn> turns{{Speaker::user, "<image>abc"},
                                  {Speaker::assistant, "defg"},
                                  {Speaker::user, "hi"},
                                  {Speaker::assistant, "j"}};
    for (std::int64_t most = 1; most < 14; ++most) {
      const EncodedConversation cut = encode(turns, 1, source, {true, false, most}, {}, 2);
      std::int64_t rows = 0, labels = 0;
      for (const Item& item : cut.items) {
        rows += item.modality == Modality::image ? 2 : item.tokens;
        labels += item.loss_tokens;
      }
      CHECK(rows <= most);
      CHECK(labels == static_cast<std::int64_t>(cut.labels.size()));
      CHECK((cut.items.empty() || cut.items.back().loss_tokens > 0));
      // "abc" ends with the first label's position, row 5.
      CHECK(cut.items.empty() == (most < 5));
      CHECK(cut.cut == (most < 13));
    }
    CHECK(text_of(encode(turns, 1, source, {true, false, 7}, {}, 2).labels) == "def");
    CHECK(text_of(encode(turns, 1, source, {true, false, 13}, {}, 2).labels) == "defg</s>j</s>");
  }

  TEST_CASE("a data set: ids of each sample, its images, and what is skipped") {
    const TempFolder folder;
    const Scenario scenario = scenario_at(folder);
    spill(folder / "a.jsonl", line("<image>what?", "cat") + line("which?", "dog"));
    const ConversationSamples all = read_conversations(scenario, folder / "a.jsonl");
    REQUIRE(all.samples().size() == 2);
    CHECK(all.remarks().empty());
    CHECK(all.samples()[1].id == 1);
    CHECK(all.images(1).size() == 1);
    CHECK(all.images(1)[0].path == folder / "p.png");
    CHECK(text_of({all.ids(1).begin(), all.ids(1).end()}) == "which?dog");
    CHECK(text_of({all.labels(1).begin(), all.labels(1).end()}) == "dog</s>");
    CHECK(all.samples()[0].items.front() == Item{Modality::image, 4, 0});

    const TempFolder blind;
    const Scenario text = scenario_at(blind, false);
    spill(blind / "a.jsonl", line("<image>what?", "cat"));
    CHECK(read_conversations(text, blind / "a.jsonl").images(0).empty());
  }

  // 8 × 8 pixels, as p.png, and 8 × 20 (rows × columns): cells of 8 pixels, each of 2 × 2 patches,
  // which make a token. 20 / 8 = 2.5 is rounded to 2.
  TEST_CASE("images that keep their sizes have grids, and tokens, of their own") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    Module projector{.name = "projector", .kind = ModuleKind::projector};
    projector.merge = 2;
    Model& model = scenario.model;
    model.modules[0].rotary = true;
    model = {{model.modules[0], projector, model.modules[1]},
             {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
    std::get<ConversationData>(scenario.data.source).most_left_out = 0.5;
    scenario.weights = {{folder.path(), "", "qwen2_vl"}, {}, {}};
    spill(folder / "preprocessor_config.json",
          R"({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "min_pixels": 1})");
    const auto png = [&](const std::string& name, char width, char height) {
      std::string header("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\x08\0\0\0\x08\x08\x02", 26);
      header[19] = width;
      header[23] = height;
      spill(folder / name, header);
    };
    png("wide.png", 20, 8);
    png("line.png", 1, static_cast<char>(201));
    spill(folder / "a.jsonl",
          line("a", "b") + line("a", "b", "wide.png") + line("a", "b", "line.png"));
    const ConversationSamples all = read_conversations(scenario, folder / "a.jsonl");
    REQUIRE(all.samples().size() == 2);
    CHECK(all.samples()[0].items == std::vector<Item>{image_item({2, 2}), {Modality::text, 2, 2}});
    CHECK(all.samples()[1].items == std::vector<Item>{image_item({2, 4}), {Modality::text, 2, 2}});
    CHECK(all.remarks().find(
              "has an image that is over 200 times as long as wide (first: sample 2)") !=
          std::string::npos);
    // Two tokens of the image and two of text.
    scenario.data.sequence = 3;
    CHECK(read_conversations(scenario, folder / "a.jsonl").samples()[1].items ==
          std::vector<Item>{image_item({2, 4}), {Modality::text, 1, 1}});
  }

  TEST_CASE("a data set with audio: tokens by length, places, cut clips, and marks too many") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder, false);
    Module audio{.name = "audio", .kind = ModuleKind::audio};
    audio.mel_bins = 80;
    audio.audio_tokens = 20;
    Module projector{.name = "projector", .kind = ModuleKind::projector};
    projector.source = ModuleKind::audio;
    projector.merge = 4;
    scenario.model = {{audio, projector, scenario.model.modules[0]},
                      {{ModuleId(0), ModuleId(1)}, {ModuleId(1), ModuleId(2)}}};
    std::get<ConversationData>(scenario.data.source).most_left_out = 0.5;
    // 8 kHz, one byte per sample: 100 ms are 5 tokens, rounded up to 8; 500 ms are cut to 20.
    const auto wav = [](std::size_t size) {
      std::string header = std::string(
          "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1F\0\0\x40\x1F\0\0\1\0\x08\0", 36);
      header += "data";
      header += static_cast<char>(size % 256);
      header += static_cast<char>(size / 256);
      return header + std::string(2 + size, '\0');
    };
    spill(folder / "short.wav", wav(800));
    spill(folder / "long.wav", wav(4000));
    const auto line = [](const std::string& clips, const std::string& question) {
      return R"({"audio": )" + clips + R"(, "conversations": [{"from": "human", "value": ")" +
             question + R"("}, {"from": "gpt", "value": "b"}]})" + "\n";
    };
    spill(folder / "a.jsonl", line(R"("short.wav")", "a") +
                                  line(R"(["long.wav", "short.wav"])", "<audio>a<audio>") +
                                  line(R"("short.wav")", "<audio><audio>"));
    const ConversationSamples all = read_conversations(scenario, folder / "a.jsonl");
    REQUIRE(all.samples().size() == 2);
    CHECK(all.samples()[0].items ==
          std::vector<Item>{{Modality::audio, 8, 0}, {Modality::text, 2, 2}});
    CHECK(all.samples()[1].items == std::vector<Item>{{Modality::audio, 20, 0},
                                                      {Modality::text, 1, 0},
                                                      {Modality::audio, 8, 0},
                                                      {Modality::text, 1, 1}});
    CHECK(all.clips(0).size() == 1);
    REQUIRE(all.clips(1).size() == 2);
    CHECK(all.clips(1)[0] == FilePart{folder / "long.wav"});
    CHECK(all.images(1).empty());
    CHECK(all.remarks() ==
          folder / "a.jsonl" +
              ": 1 of 3 samples are skipped: 1: has more <audio> marks than audio clips (first: "
              "sample 2); audio clips cut at 20 tokens: 1");
    // A model without audio reads the same texts.
    scenario.model = {{scenario.model.modules[2]}, {}};
    CHECK(read_conversations(scenario, folder / "a.jsonl").clips(1).empty());
  }

  TEST_CASE("a template whose marks the tokenizer does not have is refused") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    auto& source = std::get<ConversationData>(scenario.data.source);
    const std::string path = folder / "a.jsonl";
    spill(path, line("a", "b"));
    source.chat = ChatTemplate::llama3;
    CHECK_THROWS_WITH_AS(read_conversations(scenario, path),
                         doctest::Contains("tokenizer.json: has no token \"<|begin_of_text|>\", "
                                           "which the template \"llama3\" writes"),
                         InputError);
  }

  TEST_CASE("a data set without images is told where the model has an encoder of images") {
    const TempFolder folder;
    const Scenario scenario = scenario_at(folder);
    const std::string path = folder / "a.jsonl";
    const std::string text =
        R"({"image_path": "p.png", "conversations": [{"from": "human", "value": "a"}, )"
        R"({"from": "gpt", "value": "b"}]})";
    spill(path, text + "\n");
    CHECK(read_conversations(scenario, path).remarks().find("no sample has an image") !=
          std::string::npos);
  }

  TEST_CASE("weights without an image processor's settings are told") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    const std::string path = folder / "a.jsonl", clip = folder / "clip";
    std::filesystem::create_directories(clip);
    spill(path, line("a", "b"));
    CHECK(read_conversations(scenario, path).remarks().empty());
    scenario.weights.resize(2);
    scenario.weights[0].folder = clip;
    CHECK(read_conversations(scenario, path)
              .remarks()
              .find(clip + " has neither preprocessor_config.json nor") != std::string::npos);
    spill(clip + "/preprocessor_config.json", R"({"image_processor_type": "CLIPImageProcessor"})");
    CHECK(read_conversations(scenario, path).remarks().empty());
  }

  TEST_CASE("too many skipped samples end the run, fewer are named") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    auto& source = std::get<ConversationData>(scenario.data.source);
    const std::string path = folder / "a.jsonl";
    spill(path, line("a", "b") + line("a", "b", "absent.png") + line("<image><image>", "c") +
                    "not JSON\n");
    const auto refused = [&] {
      try {
        read_conversations(scenario, path);
      } catch (const InputError& error) {
        return error.what_is_wrong;
      }
      return std::string();
    };
    const std::string all =
        "3 of 4 samples are skipped: 1: has more <image> marks than images "
        "(first: sample 2); 1: missing image (first: sample 1, " +
        (folder / "absent.png") + "); 1: not a JSON object (first: sample 3)";
    CHECK(refused() == all);
    source.most_left_out = 0.75;
    CHECK(read_conversations(scenario, path).remarks() == path + ": " + all);
    scenario.data.sequence = 1;
    CHECK(refused().find("has no usable sample; 4 of 4") == 0);
    scenario.data.sequence = 0;
    scenario.model.modules[1].vocab = 20;
    CHECK(refused().find("ids, but the language module's vocabulary has 20") != std::string::npos);
    scenario.model.modules[1].vocab = 200;
    source.system = "see <image>";
    spill(path, line("<image>a", "b"));
    CHECK(refused().find("has no usable sample; 1 of 1") == 0);
    source.system.clear();
    std::filesystem::remove(folder / "tokenizer_config.json");
    scenario.model.modules[1].vocab = 200;
    CHECK(refused().find("names the eos_token") != std::string::npos);
  }

  TEST_CASE("a damaged line crashes nothing, wherever it breaks off") {
    const TempFolder folder;
    Scenario scenario = scenario_at(folder);
    std::get<ConversationData>(scenario.data.source).most_left_out = 1;
    const std::string good = line("<image>what?", "cat");
    for (std::size_t end = 0; end + 2 < good.size(); ++end) {
      spill(folder / "a.jsonl", good + good.substr(0, end));
      CHECK(read_conversations(scenario, folder / "a.jsonl").samples().size() == 1);
    }
  }

  // Not a test: scripts/oracle_chat compares the results. Each line of the file that
  // POLYPHONY_CHATS names has a template, the end of text and a conversation. The file
  // POLYPHONY_TEXTS gets the whole text and what of it is trained, with a zero byte after each.
  TEST_CASE("conversations named by scripts/oracle_chat become texts" *
            doctest::skip(std::getenv("POLYPHONY_CHATS") == nullptr)) {
    std::ifstream cases(std::getenv("POLYPHONY_CHATS"));
    std::string chat, eos, conversation, texts;
    while (std::getline(cases, chat, '\t') && std::getline(cases, eos, '\t') &&
           std::getline(cases, conversation)) {
      const auto parts = render(enum_named<ChatTemplate>(chat),
                                read_conversation(conversation).conversation.turns, eos);
      texts += whole(parts) + '\0' + whole(parts, true) + '\0';
    }
    spill(std::getenv("POLYPHONY_TEXTS"), texts);
    std::string templates;
    for (const std::string& known : enum_names<ChatTemplate>())
      for (const std::string& system :
           {std::string(), std::string(std::getenv("POLYPHONY_SYSTEM"))})
        templates += known + (system.empty() ? "" : " with system") + '\0' +
                     jinja_text(enum_named<ChatTemplate>(known), "<image>", system) + '\0';
    spill(std::string(std::getenv("POLYPHONY_TEXTS")) + ".jinja", templates);
  }
}

}  // namespace polyphony
