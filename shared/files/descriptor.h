// One open file, closed when it goes; writing all of something; how system errors are told.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace polyphony {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }
  int close();  // as ::close; once

 private:
  int number_;
};

// The open file that /dev/stdout, /dev/fd/3 or /proc/self/fd/3 stands for, at its place in it; -1:
// the path is none of these.
int own_descriptor(const std::string& path);

// The system's error, or 0.
int write_all(int file, const void* data, std::size_t size);

// What a symbolic link names, as seen from where the link is. Of another path: the error is set.
std::filesystem::path link_target(const std::filesystem::path& link, std::error_code& failed);

// InputError when another name would help, std::runtime_error when the disk or device failed.
[[noreturn]] void fail_to_write(const std::string& path, int error);

}  // namespace polyphony
