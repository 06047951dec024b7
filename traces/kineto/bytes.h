// A file's bytes, piece by piece: traces are larger than memory is worth. This library opens no file; who
// does gives a source. Packed bytes (gzip, several members included) are told by their first two.
// Errors: InputError where packed bytes are damaged or end too early.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace polyphony::traces {

// Fills `into` with at most `most` bytes and says how many; 0: the end.
using ByteSource = std::function<std::size_t(char* into, std::size_t most)>;

ByteSource bytes_of(std::string_view text);  // of a text that lives as long
// As they are, or unpacked.
ByteSource unpacked(ByteSource bytes, const std::string& file);

}  // namespace polyphony::traces
