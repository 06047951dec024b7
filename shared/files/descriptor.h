// One open file, closed when it goes; how system errors are told.
#pragma once

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

// InputError when another name would help, std::runtime_error when the disk or device failed.
[[noreturn]] void fail_to_write(const std::string& path, int error);

}  // namespace polyphony
