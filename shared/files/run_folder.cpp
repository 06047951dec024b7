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
// Processes of a killed run hold the lock until the system has ended them.
constexpr std::chrono::milliseconds kDying{2000}, kPoll{50};

[[noreturn]] void cannot_remove(const std::string& path, const std::error_code& why) {
  throw InputError(path, "", "cannot be removed: " + why.message(), "choose another folder");
}

void remove_file(const std::string& path) {
  std::error_code failed;
  fs::remove(path, failed);
  if (failed) cannot_remove(path, failed);
}

std::string line_of(const std::string& path, int line) {
  std::string text(1024, '\0');
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ::ssize_t size = file < 0 ? 0 : ::pread(file, text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (; line > 0; --line) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return "";
    ++begin;
  }
  return text.substr(begin, text.find('\n', begin) - begin);
}

bool is_marked(const RunPaths& run) { return line_of(run.lock(), 0) == kMark; }

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

EarlierRun earlier_run(bool resume, bool fresh) {
  if (resume && fresh)
    throw InputError(Argument{"fresh"}, "", "removes the run that would be resumed",
                     "give only one of the two");
  return resume ? EarlierRun::resume : fresh ? EarlierRun::remove : EarlierRun::refuse;
}

RunFolder::RunFolder(const std::string& path, EarlierRun earlier, const std::string& owner,
                     int inherited)
    : paths_{path}, earlier_(earlier) {
  if (inherited >= 0 && same_file(inherited, paths_.lock())) return;
  std::error_code failed;
  made_folder_ = fs::create_directories(paths_.folder, failed);
  if (failed)
    throw InputError(paths_.folder, "", "cannot be created: " + failed.message(),
                     "choose another folder");
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
  const bool begun =
      !refused && (!checkpoint_folders(paths_.checkpoints()).empty() || !paths_.present().empty());
  if (made_lock_ && !begun) {
    fs::remove(paths_.lock(), ignored);
    if (made_folder_) fs::remove(paths_.folder, ignored);  // fails if the folder is not empty
  }
  ::close(lock_);
  lock_ = -1;
}

void RunFolder::take(const std::string& owner) {
  const std::string file = paths_.lock();
  const auto give_up = std::chrono::steady_clock::now() + kDying;
  for (;; std::this_thread::sleep_for(kPoll)) {
    made_lock_ = made_lock_ || !fs::exists(file);
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0)
      throw InputError(file, "", std::string("cannot be opened: ") + std::strerror(errno),
                       "choose a folder that you may write to");
    const int error = ::flock(lock_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    // If the last owner has removed the file meanwhile, try again.
    if (error == 0 && same_file(lock_, file)) break;
    if (error != 0 && error != EWOULDBLOCK && error != EINTR) {
      note_ = paths_.folder + ": its file system has no locks (" + std::strerror(error) +
              "), so a second run in this folder would not be noticed";
      break;
    }
    if (std::chrono::steady_clock::now() > give_up) {
      made_lock_ = false;  // another process owns it
      const std::string holder = line_of(file, 1);
      throw InputError(
          paths_.folder, "",
          "another run is using this folder: " + (holder.empty() ? "it has just started" : holder),
          "wait for it, stop it, or choose another folder");
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
  const std::vector<std::string> steps = checkpoint_folders(paths_.checkpoints()),
                                 files = paths_.present();
  if (steps.empty() && files.empty()) {
    if (earlier_ != EarlierRun::resume || is_marked(paths_)) return;
    throw InputError(paths_.folder, "", "holds no run to continue",
                     "start a new run, or give the right folder");
  }
  const std::string& one = steps.empty() ? files.front() : steps.front();
  // Run folders written before run.lock existed have at least one checkpoint, if they can be
  // continued.
  if (!is_marked(paths_) && (earlier_ != EarlierRun::resume || steps.empty()))
    throw InputError(one, "", "exists, but no run has marked the folder as its own",
                     "choose another folder, or move the file away");
  if (earlier_ == EarlierRun::refuse)
    throw InputError(
        one, "", "belongs to an earlier run",
        "`polyphony run --resume` continues it, --fresh removes it; or choose another --out "
        "folder");
}

void RunFolder::begin() {
  remove_file(given_scenario());
  if (earlier_ != EarlierRun::remove) return;
  for (const std::string& step : checkpoint_folders(paths_.checkpoints()))
    if (const std::error_code failed = remove_checkpoint(step)) cannot_remove(step, failed);
  for (const std::string& file : paths_.present()) remove_file(file);
  std::error_code ignored;  // folders that hold other files stay
  fs::remove(paths_.traces(), ignored);
  fs::remove(paths_.kineto(), ignored);
  fs::remove(paths_.checkpoints(), ignored);
}

}  // namespace polyphony
