// A thread that runs one job after another. Each communication stream of a rank has one, which is
// kept over all steps. Debuggers and profilers show it by the name of the stream.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace polyphony::exec {

class StreamThread {
 public:
  explicit StreamThread(const std::string& stream) : thread_([this] { loop(); }) {
    // Linux shows 15 bytes. The end of a stream's name has the direction of its messages.
    const std::size_t most = 15;
    pthread_setname_np(thread_.native_handle(),
                       stream.substr(stream.size() - std::min(stream.size(), most)).c_str());
  }
  ~StreamThread() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  StreamThread(const StreamThread&) = delete;
  StreamThread& operator=(const StreamThread&) = delete;

  // The job must not throw. One at a time: call wait() before the next start().
  void start(std::function<void()> job) {
    {
      std::lock_guard lock(mutex_);
      job_ = std::move(job);
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || job_; });
      if (!job_) return;
      lock.unlock();
      job_();
      lock.lock();
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()>
      job_;  // protected by mutex_ while set from outside; read by the thread alone while it runs
  bool stop_ = false;   // protected by mutex_
  std::thread thread_;  // last member: starts when all others are constructed
};

}  // namespace polyphony::exec
