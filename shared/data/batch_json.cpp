#include "shared/data/batch_json.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "shared/error.h"

namespace polyphony {
namespace {

using nlohmann::json;

// A line of a file, for error messages.
struct Line {
  const std::string& file;
  std::size_t number;

  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(file + " line " + std::to_string(number), pointer, what,
                     "a sample is {\"items\": [[\"image\", 64], [\"text\", 9, 1]]}");
  }
};

// Limits a count of tokens, and of the patches along a side of an image.
constexpr std::int64_t kMostCount = 1 << 30;

std::int32_t count_at(const json& item, std::size_t index, const Line& line,
                      const std::string& pointer) {
  if (index >= item.size()) return 0;
  if (!item[index].is_number_integer())
    line.fail(pointer + "/" + std::to_string(index), "must be an integer");
  const auto value = item[index].get<std::int64_t>();
  if (value < 0 || value > kMostCount)
    line.fail(pointer + "/" + std::to_string(index), "must be between 0 and 2^30");
  return static_cast<std::int32_t>(value);
}

// Reads the rows and columns of an image.
PatchGrid grid_at(const json& sides, const Line& line, const std::string& pointer) {
  if (sides.size() != 2) line.fail(pointer, "must be a number of patches, or [rows, columns]");
  const PatchGrid grid{count_at(sides, 0, line, pointer), count_at(sides, 1, line, pointer)};
  if (grid.rows == 0 || grid.columns == 0 || grid.patches() > kMostCount)
    line.fail(pointer, "must be rows and columns of 1 to 2^30 patches");
  return grid;
}

Sample parse_sample(const json& value, std::uint32_t default_id, const Line& line,
                    const std::string& pointer) {
  if (!value.is_object() || !value.contains("items") || !value["items"].is_array())
    line.fail(pointer, "must be an object with a list \"items\"");
  Sample sample;
  sample.id = default_id;
  if (value.contains("id")) {
    if (!value["id"].is_number_unsigned())
      line.fail(pointer + "/id", "must be an integer, 0 or more");
    sample.id = value["id"].get<std::uint32_t>();
  }
  for (std::size_t i = 0; i < value["items"].size(); ++i) {
    const json& entry = value["items"][i];
    const std::string where = pointer + "/items/" + std::to_string(i);
    if (!entry.is_array() || entry.size() < 2 || entry.size() > 3 || !entry[0].is_string())
      line.fail(where, "must be [modality, tokens] or [modality, tokens, labels]");
    Item item;
    const std::string modality = entry[0].get<std::string>();
    if (modality == "image")
      item.modality = Modality::image;
    else if (modality == "latent")
      item.modality = Modality::latent;
    else if (modality == "audio")
      item.modality = Modality::audio;
    else if (modality != "text")
      line.fail(where + "/0",
                "modality must be text, image, audio or latent (got \"" + modality + "\")");
    if (item.modality == Modality::image && entry[1].is_array())
      item = image_item(grid_at(entry[1], line, where + "/1"));
    else
      item.tokens = count_at(entry, 1, line, where);
    item.loss_tokens = count_at(entry, 2, line, where);
    if (item.loss_tokens > item.tokens)
      line.fail(where + "/2", "must not be more than the tokens of the item");
    if (item.modality != Modality::text && item.loss_tokens > 0)
      line.fail(where + "/2", "only text items can have labels");
    if (item.modality == Modality::latent && item.tokens == 0)
      line.fail(where + "/1", "a latent must have at least one patch");
    sample.items.push_back(item);
  }
  return sample;
}

template <class Use>
void each_line(const std::string& text, const std::string& file, Use use) {
  std::istringstream stream(text);
  std::string content;
  for (std::size_t number = 1; std::getline(stream, content); ++number) {
    if (content.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Line line{file, number};
    const json value = json::parse(content, nullptr, false);
    if (value.is_discarded()) line.fail("", "not JSON (the line may be truncated)");
    use(value, line);
  }
}

json sample_json(const Sample& sample) {
  json items = json::array();
  for (const Item& item : sample.items) {
    json entry = {name(item.modality), item.tokens};
    if (item.columns > 0) entry[1] = {grid_of(item).rows, item.columns};
    if (item.loss_tokens > 0) entry.push_back(item.loss_tokens);
    items.push_back(std::move(entry));
  }
  return {{"id", sample.id}, {"items", std::move(items)}};
}

}  // namespace

std::vector<Sample> parse_samples(const std::string& text, const std::string& file) {
  std::vector<Sample> samples;
  each_line(text, file, [&](const json& value, const Line& line) {
    samples.push_back(parse_sample(value, static_cast<std::uint32_t>(samples.size()), line, ""));
  });
  if (samples.empty())
    throw InputError(file, "", "the file has no samples", "write one JSON object per line");
  return samples;
}

std::string to_json_line(const Sample& sample) { return sample_json(sample).dump(); }

std::string to_json_line(std::uint64_t step, const Batch& batch) {
  json samples = json::array();
  for (const Sample& sample : batch.samples) samples.push_back(sample_json(sample));
  return json{{"step", step}, {"samples", std::move(samples)}}.dump();
}

std::vector<StepBatch> parse_batches(const std::string& text, const std::string& file) {
  std::vector<StepBatch> batches;
  each_line(text, file, [&](const json& value, const Line& line) {
    if (!value.is_object() || !value.contains("step") || !value["step"].is_number_unsigned() ||
        !value.contains("samples") || !value["samples"].is_array())
      line.fail("", "must be {\"step\": n, \"samples\": […]}");
    StepBatch entry{value["step"].get<std::uint64_t>(), {}};
    for (std::size_t i = 0; i < value["samples"].size(); ++i)
      entry.batch.samples.push_back(parse_sample(value["samples"][i], static_cast<std::uint32_t>(i),
                                                 line, "/samples/" + std::to_string(i)));
    batches.push_back(std::move(entry));
  });
  return batches;
}

}  // namespace polyphony
