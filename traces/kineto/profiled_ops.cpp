#include "traces/kineto/profiled_ops.h"

#include "shared/error.h"
#include "traces/kineto/profile_event.h"

namespace polyphony::traces {
namespace {

constexpr const char* kRecordAgain = "record the step again: polyphony run --kineto";

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file)
      : file_(file), json_(unpacked(bytes_of(bytes), file), file, [this] { return where_; }) {}

  ProfiledOps read(bool heads) {
    json_.begin_object();
    std::string_view key;
    while (json_.next_key(key)) {
      where_ = "/" + std::string(key);
      if (key == "polyphony" && json_.peek() == '{') {
        read_own();
      } else if (key == "distributedInfo" && json_.peek() == '{') {
        read_rank();
      } else if (key == "baseTimeNanoseconds") {
        base_ = read_integer(json_);
        constexpr std::int64_t k2100 = 4'102'444'800'000'000'000;  // as in kineto.cpp
        if (base_ < 0 || base_ >= k2100) json_.fail("it must be a time of this century");
      } else if (key == "traceEvents") {
        check();
        if (heads) return std::move(result_);
        read_events();
      } else {
        json_.skip();
      }
    }
    where_.clear();
    json_.end();
    check();
    for (ProfiledOp& op : result_.ops) {
      op.start += Nanoseconds(base_);
      op.end += Nanoseconds(base_);
    }
    return std::move(result_);
  }

 private:
  void check() const {
    if (!ours_)
      throw InputError(file_, "/polyphony", "is no profile of `polyphony run --kineto`",
                       "`polyphony trace` reads profiles of other programs");
    if (result_.step < 0 || result_.count < 0 || result_.rank < 0 || result_.ranks <= result_.rank)
      throw InputError(file_, "", "does not state its step, its rank and the number of its ops",
                       kRecordAgain);
  }

  void read_own() {
    json_.begin_object();
    std::string_view key;
    while (json_.next_key(key)) {
      if (key == "kind" && json_.peek() == '"') {
        ours_ = json_.string() == "profiled";
      } else if (key == "format") {
        if (read_integer(json_) != 1) json_.fail("this version reads format 1");
      } else if (key == "step") {
        result_.step = read_integer(json_);
      } else if (key == "ops") {
        result_.count = read_integer(json_);
      } else if (key == "on_device") {
        result_.on_device = json_.raw() == "true";
      } else if (key == "late_plan") {
        result_.late_plan = json_.raw() == "true";
      } else if (key == "clock" && json_.peek() == '{') {
        const ProfileClock clock = read_profile_clock(json_);
        result_.offset = clock.offset;
        result_.error = clock.error;
      } else {
        json_.skip();
      }
    }
  }

  void read_rank() {
    json_.begin_object();
    std::string_view key;
    while (json_.next_key(key)) {
      if (key == "rank")
        result_.rank = read_integer(json_);
      else if (key == "world_size")
        result_.ranks = read_integer(json_);
      else
        json_.skip();
    }
  }

  void read_events() {
    json_.begin_array();
    for (std::size_t i = 0; json_.next_element(); ++i) {
      where_ = "/traceEvents/" + std::to_string(i);
      read_event(json_, event_);
      if (event_.ph != "X" || event_.cat != "user_annotation" || event_.op == kAbsent) continue;
      if (!event_.has_ts || !event_.has_dur || event_.dur < 0)
        json_.fail("ts or dur is missing in the event, or dur is negative");
      result_.ops.push_back(
          {event_.op, event_.name, Nanoseconds(event_.ts), Nanoseconds(event_.ts + event_.dur)});
    }
  }

  std::string file_, where_;
  JsonPull json_;
  ProfileEvent event_;
  bool ours_ = false;
  std::int64_t base_ = 0;
  ProfiledOps result_;
};

}  // namespace

bool is_profile(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return true;
  return bytes.substr(0, bytes.find("\"traceEvents\"")).find("\"profiled\"") != bytes.npos;
}

ProfiledOps read_profiled_ops(std::string_view bytes, const std::string& file, bool heads) {
  return Reader(bytes, file).read(heads);
}

}  // namespace polyphony::traces
