#include "traces/kineto/bytes.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "shared/error.h"

namespace polyphony::traces {
namespace {

constexpr std::size_t kReadBlock = std::size_t{1} << 16;
constexpr const char* kHint = "copy or record the file again; gzip -t checks it";

class Unpacker {
 public:
  Unpacker(ByteSource packed, std::string file) : packed_(std::move(packed)), file_(file) {}
  ~Unpacker() {
    if (state_ == State::packed) ::inflateEnd(&stream_);
  }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::size_t read(char* into, std::size_t most) {
    if (state_ == State::unknown) begin();
    if (state_ == State::plain) return plain(into, most);
    return unpack(into, most);
  }

 private:
  enum class State { unknown, plain, packed };

  // Read until two bytes are available, or the end.
  void begin() {
    while (left_ < 2) {
      const std::size_t count = packed_(block_ + left_, kReadBlock - left_);
      if (count == 0) break;
      left_ += count;
    }
    const bool packed = left_ >= 2 && block_[0] == '\x1f' && block_[1] == '\x8b';
    state_ = packed ? State::packed : State::plain;
    // 16: a gzip header is required.
    if (packed) POLYPHONY_CHECK(::inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib");
  }

  std::size_t plain(char* into, std::size_t most) {
    if (left_ == 0) return packed_(into, most);
    const std::size_t count = std::min(most, left_);
    std::memcpy(into, block_ + at_, count);
    at_ += count;
    left_ -= count;
    return count;
  }

  bool more() {
    if (left_ > 0) return true;
    at_ = 0;
    left_ = packed_(block_, kReadBlock);
    return left_ > 0;
  }

  [[noreturn]] void fail(const char* what) const { throw InputError(file_, "", what, kHint); }

  std::size_t unpack(char* into, std::size_t most) {
    const std::size_t wanted = std::min<std::size_t>(most, 1U << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(wanted);
    while (stream_.avail_out == wanted) {
      if (!more()) {
        if (!ended_) fail("the packed file ends in the middle");
        return 0;
      }
      if (ended_) {  // the next member: gzip files may be concatenated
        if (::inflateReset(&stream_) != Z_OK) fail("the packed file is damaged");
        ended_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(block_ + at_);
      stream_.avail_in = static_cast<uInt>(left_);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      at_ += left_ - stream_.avail_in;
      left_ = stream_.avail_in;
      if (status == Z_STREAM_END)
        ended_ = true;
      else if (status != Z_OK && status != Z_BUF_ERROR)
        fail("the packed file is damaged");
    }
    return wanted - stream_.avail_out;
  }

  ByteSource packed_;
  std::string file_;
  State state_ = State::unknown;
  z_stream stream_{};
  bool ended_ = false;
  std::size_t at_ = 0, left_ = 0;  // in the current block
  char block_[kReadBlock];
};

}  // namespace

ByteSource bytes_of(std::string_view text) {
  return [text, at = std::size_t{0}](char* into, std::size_t most) mutable {
    const std::size_t count = std::min(most, text.size() - at);
    std::memcpy(into, text.data() + at, count);
    at += count;
    return count;
  };
}

ByteSource unpacked(ByteSource bytes, const std::string& file) {
  const auto unpacker = std::make_shared<Unpacker>(std::move(bytes), file);
  return [unpacker](char* into, std::size_t most) { return unpacker->read(into, most); };
}

std::string packed(std::string_view text) {
  z_stream stream{};
  // Level 1: a trace shrinks to an eighth at any level, and the rank waits. 16: a gzip header.
  POLYPHONY_CHECK(::deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
                  "zlib");
  std::string result, block(kReadBlock, '\0');
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t count = std::min(kReadBlock, text.size() - at);
    const bool last = at + count == text.size();
    // zlib reads, and does not write, what next_in points to.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + at));
    stream.avail_in = static_cast<uInt>(count);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(block.data());
      stream.avail_out = static_cast<uInt>(block.size());
      ::deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      result.append(block, 0, block.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    if (last) break;
    at += count;
  }
  ::deflateEnd(&stream);
  return result;
}

}  // namespace polyphony::traces
