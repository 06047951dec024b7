#include "shared/files/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "shared/error.h"
#include "shared/files/descriptor.h"

namespace polyphony {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "The folder of a polyphony run.";
// Processes of a killed run still hold the lock until the system has ended them.
constexpr std::chrono::milliseconds kDying{2000}, kPoll{50};

std::string lock_file(const std::string& folder) { return folder + "/run.lock"; }

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Cuts `head` off the front, or answers no.
bool cut_front(std::string_view& text, std::string_view head) {
  if (text.substr(0, head.size()) != head) return false;
  text.remove_prefix(head.size());
  return true;
}
bool cut_back(std::string_view& text, std::string_view tail) {
  if (text.size() < tail.size() || text.substr(text.size() - tail.size()) != tail) return false;
  text.remove_suffix(tail.size());
  return true;
}

bool is_step_folder(std::string_view name) {
  return cut_front(name, "step-") && (cut_back(name, ".partial"), is_number(name));
}
bool is_rank_file(std::string_view name) {
  return name == "manifest.json" ||
         (cut_front(name, "rank-") && cut_back(name, ".safetensors") && is_number(name));
}
bool is_trace_file(std::string_view name) {
  if (name == "batches.jsonl") return true;
  if (!cut_front(name, "step-") || !cut_back(name, ".json")) return false;
  const std::size_t dot = name.find(".rank-");
  return dot != std::string_view::npos && is_number(name.substr(0, dot)) &&
         is_number(name.substr(dot + 6));
}

using IsOurs = bool (*)(std::string_view);
std::vector<std::string> ours_in(const std::string& folder, IsOurs is_ours) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    if (is_ours(entry.path().filename().string())) paths.push_back(entry.path().string());
  return paths;
}

std::vector<std::string> checkpoints(const std::string& folder) {
  return ours_in(folder + "/checkpoints", is_step_folder);
}

// Everything of an earlier run but its checkpoints and its lock.
std::vector<std::string> plain_files(const std::string& folder) {
  std::vector<std::string> paths = ours_in(folder + "/trace", is_trace_file);
  for (const char* name : {"scenario.json", "metrics.jsonl", "pace.json", "pace-profile.json"})
    if (fs::exists(fs::symlink_status(fs::path(folder) / name)))
      paths.push_back(folder + "/" + name);
  return paths;
}

void remove_file(const std::string& path) {
  std::error_code failed;
  fs::remove(path, failed);
  if (failed)
    throw InputError(path, "", "cannot be removed: " + failed.message(),
                     "choose another --out folder");
}

// Renamed first: cut short, nothing is left that looks like a checkpoint.
void remove_checkpoint(std::string path) {
  std::error_code failed;
  if (path.find(".partial") == std::string::npos) {
    fs::rename(path, path + ".partial", failed);
    if (!failed) path += ".partial";
  }
  for (const std::string& file : ours_in(path, is_rank_file)) remove_file(file);
  fs::remove(path, failed);  // somebody's own file in it keeps the folder
}

std::string line_of(const std::string& path, int line) {
  std::string text(1024, '\0');
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ::ssize_t size = file < 0 ? 0 : ::pread(file, text.data(), text.size(), 0);
  if (file >= 0) ::close(file);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (; line > 0; --line) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  return text.substr(begin, text.find('\n', begin) - begin);
}

bool is_marked(const std::string& folder) { return line_of(lock_file(folder), 0) == kMark; }

std::string who_and_where(const std::string& owner) {
  char host[256] = "", since[32] = "";
  ::gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", ::gmtime_r(&now, &parts));
  return owner + ", process " + std::to_string(::getpid()) + " on " + host + ", since " + since;
}

bool same_file(int descriptor, const std::string& path) {
  struct stat open_one{}, there{};
  return ::fstat(descriptor, &open_one) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open_one.st_dev == there.st_dev && open_one.st_ino == there.st_ino;
}

}  // namespace

RunFolder::RunFolder(std::string path, EarlierRun earlier, const std::string& owner, int inherited)
    : path_(std::move(path)), earlier_(earlier) {
  if (inherited >= 0 && same_file(inherited, lock_file(path_))) return;
  std::error_code failed;
  made_folder_ = fs::create_directories(path_, failed);
  if (failed)
    throw InputError(path_, "", "cannot be made: " + failed.message(),
                     "choose another --out folder");
  try {
    take(owner);
  } catch (...) {
    release(true);
    throw;
  }
}

RunFolder::~RunFolder() { release(false); }

void RunFolder::release(bool refused) {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (!refused) fs::remove(given_scenario(), ignored);
  const bool begun = !refused && (!checkpoints(path_).empty() || !plain_files(path_).empty());
  if (made_lock_ && !begun) {
    fs::remove(lock_file(path_), ignored);
    if (made_folder_) fs::remove(path_, ignored);  // unless something is in it
  }
  ::close(lock_);
  lock_ = -1;
}

void RunFolder::take(const std::string& owner) {
  const std::string file = lock_file(path_);
  const auto give_up = std::chrono::steady_clock::now() + kDying;
  for (;; std::this_thread::sleep_for(kPoll)) {
    made_lock_ = made_lock_ || !fs::exists(file);
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0)
      throw InputError(file, "", std::string("cannot be opened: ") + std::strerror(errno),
                       "choose an --out folder that you may write to");
    const int error = ::flock(lock_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error == 0 && same_file(lock_, file)) break;  // else its last owner has removed it
    if (error != 0 && error != EWOULDBLOCK && error != EINTR) {
      note_ = path_ + ": its file system has no locks (" + std::strerror(error) +
              "): nothing keeps a second run out";
      break;
    }
    if (std::chrono::steady_clock::now() > give_up) {
      made_lock_ = false;  // it is somebody's
      const std::string who = line_of(file, 1);
      throw InputError(path_, "", "a run is at work here: " + (who.empty() ? "it just began" : who),
                       "wait for it, stop it, or choose another --out folder");
    }
    ::close(lock_);
  }
  check();
  const std::string text = std::string(kMark) + "\n" + who_and_where(owner) + "\n";
  if (::ftruncate(lock_, 0) != 0 ||
      ::pwrite(lock_, text.data(), text.size(), 0) != static_cast<::ssize_t>(text.size()))
    fail_to_write(file, errno);
}

void RunFolder::check() const {
  const std::vector<std::string> steps = checkpoints(path_), files = plain_files(path_);
  if (steps.empty() && files.empty()) {
    if (earlier_ != EarlierRun::resume || is_marked(path_)) return;
    throw InputError(path_, "", "holds no run to continue",
                     "start without --resume, or name the right --out");
  }
  const std::string& one = steps.empty() ? files.front() : steps.front();
  // Folders of runs before there were marks have a checkpoint at least, if they can be continued.
  if (!is_marked(path_) && (earlier_ != EarlierRun::resume || steps.empty()))
    throw InputError(one, "", "is there, and no run has marked the folder as its own",
                     "choose another --out folder, or move it away");
  if (earlier_ == EarlierRun::refuse)
    throw InputError(
        one, "", "is of an earlier run",
        "`polyphony run --resume` continues it, --fresh removes it; or choose another --out "
        "folder");
}

void RunFolder::begin() {
  remove_file(given_scenario());
  if (earlier_ != EarlierRun::remove) return;
  for (const std::string& step : checkpoints(path_)) remove_checkpoint(step);
  for (const std::string& file : plain_files(path_)) remove_file(file);
  std::error_code ignored;  // what else is in them stays, and they with it
  fs::remove(path_ + "/trace", ignored);
  fs::remove(path_ + "/checkpoints", ignored);
}

}  // namespace polyphony
