#include "shared/datasets/token_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>

#include "shared/error.h"

namespace polyphony {
namespace {

static_assert(std::endian::native == std::endian::little, "the files' numbers are little-endian");

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::int64_t kHeader = 9 + 8 + 1 + 8 + 8;  // magic, version, type, two numbers
constexpr const char* kAgain = "copy both files again, or write them again";

struct IdType {
  std::uint8_t code;
  std::int64_t bytes;
};
constexpr IdType kIdTypes[] = {{1, 1}, {2, 1}, {3, 2}, {4, 4}, {5, 8}, {8, 2}};

template <class Number>
Number number_at(std::string_view bytes, std::int64_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

template <class Number>
void copy_ids(std::string_view bytes, std::int64_t first, std::vector<std::int64_t>& ids) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(Number));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = number_at<Number>(bytes, (first + static_cast<std::int64_t>(i)) * kWidth);
}

// Returns NAME of NAME.bin and NAME.idx.
std::string stem_of(const std::string& name) {
  return name.ends_with(".bin") || name.ends_with(".idx") ? name.substr(0, name.size() - 4) : name;
}

std::string file_name(const MappedFile& file) {
  return std::filesystem::path(file.path()).filename().string();
}

std::int64_t size_of(const MappedFile& file) {
  return static_cast<std::int64_t>(file.bytes().size());
}

std::string text(std::int64_t number) { return std::to_string(number); }

}  // namespace

TokenFile::TokenFile(const std::string& name, const std::string& named_by)
    : index_(stem_of(name) + ".idx", "check " + named_by + ": NAME of NAME.bin and NAME.idx"),
      ids_(stem_of(name) + ".bin", "check " + named_by + ": NAME of NAME.bin and NAME.idx") {
  read_header();
  const std::int64_t size = size_of(ids_), last = sequences_ - 1;
  if (begin(last) < 0 || begin(last) > size)
    refuse_index("sequence " + text(last) + " (counted from 0) begins at byte " +
                 text(begin(last)) + " of " + file_name(ids_) + ", which has " + text(size) +
                 " bytes");
  if (const std::int64_t end = begin(last) + length(last) * id_bytes_; end != size)
    throw InputError(ids_.path(), "",
                     "has " + text(size) + " bytes, but the sequences of " + file_name(index_) +
                         " end at byte " + text(end),
                     kAgain);
  if (size % id_bytes_ != 0)
    throw InputError(ids_.path(), "",
                     "has " + text(size) + " bytes, which is no multiple of the " +
                         text(id_bytes_) + " bytes that an id takes by " + file_name(index_),
                     kAgain);
  tokens_ = size / id_bytes_;
}

void TokenFile::read_header() {
  const std::string_view bytes = index_.bytes();
  const std::int64_t size = size_of(index_);
  if (!bytes.starts_with(kMagic))
    refuse_index(
        "is no index of a Megatron data set: it must begin with \"MMIDIDX\" and two zero bytes");
  if (size < kHeader) refuse_index("is truncated: it has " + text(size) + " bytes");
  if (const auto version = number_at<std::uint64_t>(bytes, 9); version != 1)
    refuse_index("must have version 1 (got " + std::to_string(version) + ")");
  type_ = number_at<std::uint8_t>(bytes, 17);
  const auto* const type = std::find_if(std::begin(kIdTypes), std::end(kIdTypes),
                                        [&](const IdType& known) { return known.code == type_; });
  if (type == std::end(kIdTypes))
    refuse_index("has ids of type " + std::to_string(type_) +
                 ", but it must be 1 to 5 (uint8, int8, int16, int32, int64) or 8 (uint16)");
  id_bytes_ = type->bytes;
  const auto sequences = number_at<std::uint64_t>(bytes, 18);
  const auto boundaries = number_at<std::uint64_t>(bytes, 26);
  const std::string stated = std::to_string(sequences) + " sequences and " +
                             std::to_string(boundaries) + " document boundaries";
  const auto most = static_cast<std::uint64_t>(size);  // keeps the sum below free of overflow
  const bool too_many = sequences > most / 12 || boundaries > most / 8;
  if (!too_many) {
    sequences_ = static_cast<std::int64_t>(sequences);
    boundaries_ = static_cast<std::int64_t>(boundaries);
  }
  const std::int64_t needed = kHeader + 12 * sequences_ + 8 * boundaries_;
  if (too_many || size < needed)
    refuse_index("is truncated: it has " + text(size) + " bytes, too few for the " + stated +
                 " that its header states");
  if (sequences_ > 0 && size == needed + sequences_)
    throw InputError(index_.path(), "",
                     "has a mode for each sequence, as data sets of texts and images have",
                     "name a data set of texts alone");
  if (size > needed)
    refuse_index("has " + text(size) + " bytes, but the " + stated +
                 " that its header states take " + text(needed));
  if (sequences_ == 0) refuse_index("has no sequences");
}

void TokenFile::refuse_index(const std::string& what) const {
  throw InputError(index_.path(), "", what, kAgain);
}

std::int64_t TokenFile::length(std::int64_t sequence) const {
  return number_at<std::int32_t>(index_.bytes(), kHeader + 4 * sequence);
}
std::int64_t TokenFile::begin(std::int64_t sequence) const {
  return number_at<std::int64_t>(index_.bytes(), kHeader + 4 * sequences_ + 8 * sequence);
}
std::int64_t TokenFile::boundary(std::int64_t position) const {
  return number_at<std::int64_t>(index_.bytes(), kHeader + 12 * sequences_ + 8 * position);
}

void TokenFile::check_sequences() const {
  const std::int64_t size = size_of(ids_);
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < sequences_; ++i) {
    const auto sequence = [&] { return "sequence " + text(i) + " (counted from 0) "; };
    if (begin(i) != end)
      refuse_index(sequence() + "begins at byte " + text(begin(i)) + " of " + file_name(ids_) +
                   ", but those before it end at byte " + text(end));
    if (length(i) < 0) refuse_index(sequence() + "has a length of " + text(length(i)));
    end += length(i) * id_bytes_;
    if (end > size)
      refuse_index(sequence() + "ends at byte " + text(end) + " of " + file_name(ids_) +
                   ", which has " + text(size) + " bytes");
  }
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < boundaries_; ++i) {
    if (boundary(i) < before || boundary(i) > sequences_)
      refuse_index("document boundary " + text(i) + " (counted from 0) is sequence " +
                   text(boundary(i)) + ", but must be from " + text(before) + " to " +
                   text(sequences_));
    before = boundary(i);
  }
}

SampleList TokenFile::samples(std::int64_t sequence) const {
  const std::int64_t predicted = tokens_ - 1;
  if (predicted < 1)
    throw InputError(ids_.path(), "", "must have at least two tokens", "use a longer text");
  const std::int64_t whole = predicted / sequence, rest = predicted % sequence;
  if (static_cast<std::uint64_t>(whole) >= kMostListed)
    throw InputError(ids_.path(), "",
                     "has " + text(whole) + " samples of " + text(sequence) +
                         " tokens, but a data set may have " + std::to_string(kMostListed),
                     "increase /data/sequence, or split the file");
  SampleList samples;
  const auto append = [&](std::int64_t tokens, std::int64_t count) {
    const auto length = static_cast<std::int32_t>(tokens);
    samples.append({{Modality::text, length, length}}, static_cast<std::uint64_t>(count));
  };
  append(sequence, whole);
  if (rest > 0) append(rest, 1);
  return samples;
}

// Returns the sequence that a byte of NAME.bin belongs to.
std::int64_t TokenFile::sequence_at(std::int64_t byte) const {
  std::int64_t at = 0, after = sequences_;
  while (after - at > 1) {
    const std::int64_t middle = at + (after - at) / 2;
    (begin(middle) <= byte ? at : after) = middle;
  }
  return at;
}

std::vector<std::int64_t> TokenFile::read(std::int64_t first, std::int64_t count,
                                          std::int64_t vocabulary) const {
  POLYPHONY_CHECK(first >= 0 && count >= 0 && count <= tokens_ - first,
                  count << " tokens from " << first << " of " << tokens_);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  const std::string_view bytes = ids_.bytes();
  switch (type_) {
    case 1:
      copy_ids<std::uint8_t>(bytes, first, ids);
      break;
    case 2:
      copy_ids<std::int8_t>(bytes, first, ids);
      break;
    case 3:
      copy_ids<std::int16_t>(bytes, first, ids);
      break;
    case 4:
      copy_ids<std::int32_t>(bytes, first, ids);
      break;
    case 5:
      copy_ids<std::int64_t>(bytes, first, ids);
      break;
    default:
      copy_ids<std::uint16_t>(bytes, first, ids);
  }
  const auto bad = std::find_if(ids.begin(), ids.end(),
                                [&](std::int64_t id) { return id < 0 || id >= vocabulary; });
  if (bad == ids.end()) return ids;
  const std::int64_t token = first + (bad - ids.begin()), byte = token * id_bytes_;
  throw InputError(ids_.path(), "",
                   "token " + text(token) + " (sequence " + text(sequence_at(byte)) + ", byte " +
                       text(byte) + ", counted from 0) has the id " + text(*bad) +
                       ", but ids must be from 0 to " + text(vocabulary - 1) +
                       ", the language module's vocabulary",
                   "encode the texts with the model's tokenizer");
}

}  // namespace polyphony
