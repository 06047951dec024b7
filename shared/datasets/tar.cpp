#include "shared/datasets/tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "shared/error.h"

namespace polyphony {
namespace {

constexpr std::int64_t kBlock = 512;

std::int64_t round_up(std::int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

std::string text(std::string_view header, std::size_t at, std::size_t most) {
  const std::string_view field = header.substr(at, most);
  return std::string(field.substr(0, field.find('\0')));
}

// Parses octal digits, or the binary large numbers of GNU tar and star, whose first bit is set.
// Returns −1 if the field is neither.
std::int64_t number(std::string_view field) {
  std::int64_t value = 0;
  if (static_cast<unsigned char>(field[0]) & 0x80) {
    for (std::size_t i = field.size() - 7; i < field.size(); ++i)
      value = value << 8 | static_cast<unsigned char>(field[i]);
    return value;
  }
  bool digits = false;
  for (const char c : field) {
    if (c == ' ' && !digits) continue;
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return -1;
    value = value * 8 + (c - '0');
    digits = true;
  }
  return digits ? value : -1;
}

// Returns the sum of the header's bytes, with its checksum field counted as blanks.
std::int64_t checksum(std::string_view header) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

// Returns the value of `key` among "length key=value\n" records; empty if there is none.
std::string pax_value(const std::string& records, const std::string& key) {
  for (std::size_t at = 0; at < records.size();) {
    const std::size_t blank = records.find(' ', at);
    if (blank == std::string::npos) break;
    const std::size_t length = std::strtoul(records.c_str() + at, nullptr, 10);
    if (length == 0 || at + length > records.size()) break;
    const std::string record = records.substr(blank + 1, at + length - blank - 2);
    if (record.starts_with(key + "=")) return record.substr(key.size() + 1);
    at += length;
  }
  return {};
}

}  // namespace

TarReader::TarReader(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat status{};
  if (file_ < 0 || ::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode))
    throw InputError(path, "", "cannot be read", "check the path");
  total_ = status.st_size;
}

void TarReader::refuse(const std::string& what) const {
  throw InputError(path_, "", what + " at byte " + std::to_string(at_),
                   "download or create the archive again");
}

// Linux fetches at most the largest request of the device at each call, often 512 KiB or more.
void TarReader::fetch_ahead() {
  constexpr std::int64_t kPart = 256 << 10, kAhead = 16 * kPart;
  fetched_ = std::max(fetched_, at_);
  for (; fetched_ < std::min(at_ + kAhead, total_); fetched_ += kPart)
    ::posix_fadvise(file_, fetched_, kPart, POSIX_FADV_WILLNEED);
}

std::string TarReader::take(std::size_t count) {
  fetch_ahead();
  std::string bytes(count, '\0');
  for (std::size_t done = 0; done < count;) {
    const ssize_t read =
        ::pread(file_, bytes.data() + done, count - done, at_ + static_cast<std::int64_t>(done));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) refuse("the archive is truncated");
    done += static_cast<std::size_t>(read);
  }
  at_ += static_cast<std::int64_t>(count);
  return bytes;
}

std::optional<TarReader::Member> TarReader::next() {
  constexpr std::int64_t kMostName = 1 << 20;
  std::string long_name;
  std::int64_t long_size = -1;
  for (at_ = round_up(end_); at_ < total_;) {
    const std::string header = take(kBlock);
    if (header.find_first_not_of('\0') == std::string::npos) return {};  // end mark
    if (number(header.substr(148, 8)) != checksum(header))
      refuse("is not a tar archive, or is damaged,");
    std::int64_t size = number(header.substr(124, 12));
    const char type = header[156];
    if (type == 'L' || type == 'x') {
      if (size < 0 || size > kMostName)
        refuse("has a file name of " + std::to_string(size) + " bytes");
      const std::string content = take(static_cast<std::size_t>(size));
      if (type == 'L') long_name = text(content, 0, content.size());
      if (const std::string name = pax_value(content, "path"); type == 'x' && !name.empty())
        long_name = name;
      if (const std::string much = pax_value(content, "size"); type == 'x' && !much.empty())
        long_size = std::atoll(much.c_str());
      at_ = round_up(at_);
      continue;
    }
    if (long_size >= 0) size = long_size;
    if (size < 0 || size > total_ - at_) refuse("the archive is truncated or damaged,");
    begin_ = at_;
    end_ = at_ + size;
    if (type == '0' || type == '\0') {
      const bool ustar = header.substr(257, 5) == "ustar";
      const std::string folder = ustar ? text(header, 345, 155) : "";
      const std::string name = (folder.empty() ? "" : folder + "/") + text(header, 0, 100);
      return Member{long_name.empty() ? name : long_name, begin_, size};
    }
    at_ = round_up(end_);
    long_name.clear();
    long_size = -1;
  }
  return {};
}

std::string TarReader::read(std::size_t most) {
  at_ = begin_;
  return take(static_cast<std::size_t>(
      std::min<std::int64_t>(static_cast<std::int64_t>(most), end_ - begin_)));
}

std::string TarReader::read_end(std::size_t most) {
  at_ = std::max(begin_, end_ - static_cast<std::int64_t>(most));
  return take(static_cast<std::size_t>(end_ - at_));
}

double TarReader::share() const {
  return total_ > 0 ? static_cast<double>(at_) / static_cast<double>(total_) : 1;
}

}  // namespace polyphony
