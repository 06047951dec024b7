// Samples of conversations as bytes, one record after another, so that they can lie in a file that
// the processes of a machine share (sample_index.h).
//   A record begins at a multiple of 8 bytes and has, in this machine's order of bytes:
//     the numbers of its items, ids, labels, images and clips, and a zero (uint32 each)
//     MediaPlace of each image, then of each clip
//     ItemNumbers of each item
//     ids, labels (int32 each); zeros up to a multiple of 8 bytes
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/data/samples.h"
#include "shared/files/file_part.h"

namespace polyphony {

// Records, and the parts of a file of records, begin at multiples of so many bytes.
inline constexpr std::size_t kRecordAlignment = 8;
constexpr std::size_t aligned(std::size_t size) {
  return (size + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

// Where an image or a clip is: a FilePart whose path is a number.
struct MediaPlace {
  std::int64_t offset = 0, bytes = -1;
  std::uint32_t path = 0, zero = 0;
};
struct ItemNumbers {
  std::int32_t modality = 0, tokens = 0, loss_tokens = 0, columns = 0;
};

// What a record has. Refers to the record's bytes.
struct SampleRecord {
  std::span<const ItemNumbers> items;
  std::span<const std::int32_t> ids, labels;
  std::span<const MediaPlace> images, clips;
  std::size_t end = 0;  // where the next record begins
};
std::vector<Item> items_of(const SampleRecord& record);

// Appends the record to `bytes`, whose size must be a multiple of 8.
void append_record(const SampleRecord& record, std::string& bytes);

// Returns the record that begins at `at`, a multiple of 8. Returns nothing if there is no whole
// one, or if its numbers contradict each other: ids and labels must be as many as text items say,
// images and clips as many as their items, rows of patches whole, and a path one of the first
// `paths`.
std::optional<SampleRecord> record_at(std::string_view bytes, std::size_t at, std::size_t paths);

}  // namespace polyphony
