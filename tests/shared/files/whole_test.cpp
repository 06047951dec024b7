#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "tests/exec/support/temp_folder.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;
using exec::testing::TempFolder;
using namespace literals;

template <class Error = InputError, class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no refusal";
}

// Limits the size of files that this process writes; a longer write fails (EFBIG), like a full
// disk.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

std::size_t entries(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE(
    "Reading stops at a size limit, whatever size the file reports, and when no data arrives") {
  const TempFolder folder;
  const ReadLimits limits{4_KiB, Seconds(0.05)};
  const std::string file = folder / "f";
  write_file(file, std::string(4096, 'x'));
  CHECK(read_whole(file, limits).size() == 4096);
  write_file(file, std::string(4097, 'x'));
  const std::string larger =
      " is larger than 4.0 KiB, the limit for such a file (check that it is the right file, or "
      "shorten it)";
  CHECK(refusal([&] { read_whole(file, limits); }) == file + ":" + larger);
  CHECK(refusal([&] { read_whole("/dev/zero", limits); }) == "/dev/zero:" + larger);
  fs::resize_file(file, std::uintmax_t{10} << 30);  // sparse: ten gigabytes without disk space
  CHECK(refusal([&] { read_records(file); }).find(" is larger than 1.0 GiB") != std::string::npos);
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal([&] { read_whole(pipe, limits); }) ==
        pipe +
            ": delivered no data for 50.00 ms (check that the program that writes to it is "
            "running, or name a file)");
  CHECK(refusal([&] { read_file(folder / "missing"); }) ==
        folder / "missing" + ": cannot be read (check the path)");
  CHECK(refusal([&] { read_file(folder / ""); }) ==
        folder / "" + ": is a folder, not a file (check the path)");
}

TEST_CASE("A pipe is read to its end") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "text", 4) == 4);
  ::close(ends[1]);
  CHECK(read_file("/dev/fd/" + std::to_string(ends[0])) == "text");
  ::close(ends[0]);
}

TEST_CASE("A failed write keeps the old file, leaves no other file, and is not an InputError") {
  const TempFolder folder;
  const std::string file = folder / "f";
  write_file(file, "old");
  {
    const SizeLimit full(1000);
    CHECK(refusal<std::runtime_error>([&] { write_file(file, std::string(5000, 'x')); }) ==
          file + ": cannot be written: File too large (free some disk space, or write elsewhere)");
    CHECK_NOTHROW(write_file(folder / "small", "fits"));
  }
  CHECK(read_file(file) == "old");
  CHECK(entries(folder.path()) == 2);
  CHECK(refusal([&] { write_file(folder / "none/f", "x"); }) ==
        folder / "none/f" +
            ": cannot be written: No such file or directory (name a file in a folder that you may "
            "write to)");
  CHECK(refusal([&] { write_file(folder.path(), "x"); }) ==
        folder.path() + ": is a folder (name a file)");
}

TEST_CASE("Writing replaces the target of a link, keeps its mode, and changes no other file") {
  const TempFolder folder;
  const std::string file = folder / "f", link = folder / "link", mine = folder / "f.partial";
  write_file(file, "old");
  write_file(mine, "another file");
  ::chmod(file.c_str(), 0640);
  fs::create_symlink("f", link);
  write_file(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(read_file(file) == "new");
  CHECK(read_file(mine) == "another file");
  struct stat about{};
  ::stat(file.c_str(), &about);
  CHECK((about.st_mode & 0777) == 0640);
  CHECK(entries(folder.path()) == 3);
  fs::create_symlink("later", folder / "dangling");
  write_file(folder / "dangling", "there");
  CHECK(read_file(folder / "later") == "there");
}

TEST_CASE("Devices, pipes and open files are written directly") {
  const TempFolder folder;
  write_file("/dev/null", "x");
  CHECK(fs::is_character_file("/dev/null"));
  // Through another node of the same device, so that a bug does not replace the system's own.
  const std::string full = folder / "full";
  fs::create_symlink("/dev/full", full);
  CHECK(refusal<std::runtime_error>([&] { write_file(full, "x"); }) ==
        full +
            ": cannot be written: No space left on device (free some disk space, or write "
            "elsewhere)");
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(entries(folder.path()) == 1);
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal([&] { write_file(pipe, "x"); }) ==
        pipe + ": cannot be written: no process reads from this pipe (start the reader first)");
  // An open file, as after `> f`: written at its position, after earlier output.
  const std::string file = folder / "f";
  const int open = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(open >= 0);
  REQUIRE(::write(open, "table\n", 6) == 6);
  write_file("/dev/fd/" + std::to_string(open), "picture\n");
  REQUIRE(::write(open, "more\n", 5) == 5);
  ::close(open);
  CHECK(read_file(file) == "table\npicture\nmore\n");
}

}  // namespace
}  // namespace polyphony
