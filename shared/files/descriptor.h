// An open file that is closed by its destructor; writing a whole buffer; reporting of system
// errors.
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
  int close();  // as ::close; may be called once

 private:
  int number_;
};

// Returns this process's descriptor if the path is /dev/stdout, /dev/fd/3, /proc/self/fd/3 or the
// like; -1 otherwise. Writing to the descriptor continues at its current position.
int own_descriptor(const std::string& path);

// Writes all `size` bytes. Returns the system's error number, or 0.
int write_all(int file, const void* data, std::size_t size);

// Returns the target of a symbolic link, relative to the link's folder. Sets `failed` if the path
// is not a link.
std::filesystem::path link_target(const std::filesystem::path& link, std::error_code& failed);

// Throws InputError if another file name would help, std::runtime_error if the disk or device
// failed.
[[noreturn]] void fail_to_write(const std::string& path, int error);

}  // namespace polyphony
