// The header of a safetensors file. Does not need LibTorch: number formats have the names of the
// file format. Also used by the fuzzers. exec/checkpoint/safetensors.h describes the format and
// reads the data.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace polyphony {

// The number formats that can be read and written, with the bytes per element.
struct SafetensorsFormat {
  const char* name;
  std::int64_t bytes;
};
inline constexpr std::array<SafetensorsFormat, 9> kSafetensorsFormats{{{"F32", 4},
                                                                       {"F64", 8},
                                                                       {"BF16", 2},
                                                                       {"F16", 2},
                                                                       {"I64", 8},
                                                                       {"I32", 4},
                                                                       {"U8", 1},
                                                                       {"F8_E4M3", 1},
                                                                       {"F8_E5M2", 1}}};

inline constexpr const char* kSafetensorsMetadata = "__metadata__";
inline constexpr const char* kSafetensorsDamaged =
    "the file is damaged or truncated: restore it, or use another checkpoint";

struct SafetensorsHeader {
  struct Entry {
    std::string format;  // a name of kSafetensorsFormats
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0, end = 0;  // bytes, from the start of the data
  };
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;
  std::int64_t data_begin = 0;  // offset in the file, in bytes
};
// Reads the header and checks it against the file's size: the tensors must cover the data without
// gaps. Throws InputError.
SafetensorsHeader read_safetensors_header(const std::string& path);

}  // namespace polyphony
