// Reads the bytes of a file piece by piece, because traces can be larger than memory should hold.
// This library opens no files: the caller passes a source of bytes. Gzip data (also with several
// members) is recognized by its first two bytes.
//
// Throws InputError if packed data is damaged or truncated.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace polyphony::traces {

// Reads at most `most` bytes into `into`. Returns their number; 0 at the end.
using ByteSource = std::function<std::size_t(char* into, std::size_t most)>;

ByteSource bytes_of(std::string_view text);  // `text` must outlive the source
// Returns a source of the unpacked bytes. Bytes that are not packed are passed through.
ByteSource unpacked(ByteSource bytes, const std::string& file);
// Returns the text packed by gzip.
std::string packed(std::string_view text);

}  // namespace polyphony::traces
