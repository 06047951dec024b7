#include "shared/datasets/sample_records.h"

#include <algorithm>
#include <array>
#include <utility>

namespace polyphony {
namespace {

// The numbers in front of a record.
enum Count : std::size_t { kItems, kIds, kLabels, kImages, kClips, kZero, kCounts };
using Counts = std::array<std::uint32_t, kCounts>;
static_assert(sizeof(Counts) % kRecordAlignment == 0 && sizeof(MediaPlace) % kRecordAlignment == 0);

template <class T>
void append(std::span<const T> values, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Takes arrays from the front of a record's bytes; `whole` becomes false where they end too early.
struct Taker {
  std::string_view bytes;
  std::size_t at;
  bool whole = true;

  template <class T>
  std::span<const T> take(std::size_t count) {
    whole = whole && at <= bytes.size() && count <= (bytes.size() - at) / sizeof(T);
    if (!whole) return {};
    const auto* begin = reinterpret_cast<const T*>(bytes.data() + at);
    at += count * sizeof(T);
    return {begin, count};
  }
};

bool is_consistent(const SampleRecord& record, std::size_t paths) {
  std::int64_t ids = 0, labels = 0, images = 0, clips = 0;
  for (const ItemNumbers& item : record.items) {
    if (item.tokens < 0 || item.loss_tokens < 0 || item.loss_tokens > item.tokens) return false;
    const bool text = item.modality == static_cast<int>(Modality::text);
    const bool image = item.modality == static_cast<int>(Modality::image);
    if (!text && !image && item.modality != static_cast<int>(Modality::audio)) return false;
    if (item.columns < 0 || (item.columns > 0 && (!image || item.tokens % item.columns != 0)))
      return false;
    ids += text ? item.tokens : 0;
    labels += item.loss_tokens;
    if (!text) ++(image ? images : clips);
  }
  const auto known = [&](const MediaPlace& place) { return place.path < paths; };
  return std::cmp_equal(ids, record.ids.size()) && std::cmp_equal(labels, record.labels.size()) &&
         std::cmp_equal(images, record.images.size()) &&
         std::cmp_equal(clips, record.clips.size()) &&
         std::all_of(record.images.begin(), record.images.end(), known) &&
         std::all_of(record.clips.begin(), record.clips.end(), known);
}

}  // namespace

std::vector<Item> items_of(const SampleRecord& record) {
  std::vector<Item> items;
  items.reserve(record.items.size());
  for (const ItemNumbers& item : record.items)
    items.push_back(
        {static_cast<Modality>(item.modality), item.tokens, item.loss_tokens, item.columns});
  return items;
}

void append_record(const SampleRecord& record, std::string& bytes) {
  Counts counts{};
  counts[kItems] = static_cast<std::uint32_t>(record.items.size());
  counts[kIds] = static_cast<std::uint32_t>(record.ids.size());
  counts[kLabels] = static_cast<std::uint32_t>(record.labels.size());
  counts[kImages] = static_cast<std::uint32_t>(record.images.size());
  counts[kClips] = static_cast<std::uint32_t>(record.clips.size());
  append(std::span<const std::uint32_t>(counts), bytes);
  append(record.images, bytes);
  append(record.clips, bytes);
  append(record.items, bytes);
  append(record.ids, bytes);
  append(record.labels, bytes);
  bytes.resize(aligned(bytes.size()));
}

std::optional<SampleRecord> record_at(std::string_view bytes, std::size_t at, std::size_t paths) {
  Taker taker{bytes, at};
  const std::span<const std::uint32_t> counts = taker.take<std::uint32_t>(kCounts);
  if (!taker.whole || counts[kZero] != 0) return {};
  SampleRecord record;
  record.images = taker.take<MediaPlace>(counts[kImages]);
  record.clips = taker.take<MediaPlace>(counts[kClips]);
  record.items = taker.take<ItemNumbers>(counts[kItems]);
  record.ids = taker.take<std::int32_t>(counts[kIds]);
  record.labels = taker.take<std::int32_t>(counts[kLabels]);
  record.end = aligned(taker.at);
  if (!taker.whole || record.end > bytes.size() || !is_consistent(record, paths)) return {};
  return record;
}

}  // namespace polyphony
