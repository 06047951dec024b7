// Writes files of token ids as Megatron-LM does (shared/datasets/token_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/shared/support/temp_folder.h"

namespace polyphony::test {

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// The parts of an index; each may be damaged before it is written.
struct TokenIndex {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> begins, boundaries;

  std::string bytes() const {
    std::string text = magic;
    put(text, version);
    put(text, type);
    put(text, std::uint64_t{lengths.size()});
    put(text, std::uint64_t{boundaries.size()});
    for (const std::int32_t length : lengths) put(text, length);
    for (const std::int64_t begin : begins) put(text, begin);
    for (const std::int64_t boundary : boundaries) put(text, boundary);
    return text;
  }
};

using Documents = std::vector<std::vector<std::int64_t>>;

// Returns the index of documents of one sequence each, with ids of `width` bytes.
inline TokenIndex index_of(const Documents& documents, std::uint8_t type, std::int64_t width) {
  TokenIndex index;
  index.type = type;
  index.boundaries.push_back(0);
  std::int64_t end = 0;
  for (const auto& document : documents) {
    index.lengths.push_back(static_cast<std::int32_t>(document.size()));
    index.begins.push_back(end);
    index.boundaries.push_back(index.boundaries.back() + 1);
    end += static_cast<std::int64_t>(document.size()) * width;
  }
  return index;
}

template <class Number>
std::string ids_of(const Documents& documents) {
  std::string bytes;
  for (const auto& document : documents)
    for (const std::int64_t id : document) put(bytes, static_cast<Number>(id));
  return bytes;
}

// Writes NAME.bin and NAME.idx with ids of type Number, whose code is `type`.
template <class Number = std::uint16_t>
void write_tokens(const std::string& name, const Documents& documents, std::uint8_t type = 8) {
  spill(name + ".bin", ids_of<Number>(documents));
  spill(name + ".idx", index_of(documents, type, sizeof(Number)).bytes());
}

}  // namespace polyphony::test
