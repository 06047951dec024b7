// The double of NCCL finds mistakes: each case makes one, and is told what it did.
#include <doctest/doctest.h>

#include <c10/cuda/CUDAGuard.h>
#include <nccl.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/exec/device_double/queued_device.h"
#include "tests/exec/nccl/nccl_world.h"
#include "tests/exec/nccl_double/cuda.h"
#include "tests/exec/nccl_double/nccl_double.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

ncclUniqueId unique_id() {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  return id;
}

ncclConfig_t config_of(int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  return config;
}

// Each member on a thread and a device of its own, with a blocking communicator that is aborted at
// the end unless the body has ended it and set it to null.
using MemberBody = std::function<void(ncclComm_t& on, int rank, torch::Device device)>;
void members(int size, const MemberBody& body) {
  const ncclUniqueId id = unique_id();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      const torch::Device device = queued_device(rank);
      const c10::cuda::CUDAGuard on(device);
      ncclComm_t made = nullptr;
      ncclConfig_t config = config_of(1);
      REQUIRE(ncclCommInitRankConfig(&made, size, id, rank, &config) == ncclSuccess);
      body(made, rank, device);
      wait_idle(device);
      if (made != nullptr) ncclCommAbort(made);
    });
}

// This thread's end alone, of a communicator that does not block and whose other rank never comes.
ncclComm_t lonely() {
  ncclComm_t made = nullptr;
  ncclConfig_t config = config_of(0);
  REQUIRE(ncclCommInitRankConfig(&made, 2, unique_id(), 0, &config) == ncclInProgress);
  return made;
}

Tensor ones(std::int64_t count, torch::Device device) {
  return torch::ones({count}, torch::dtype(torch::kFloat32).device(device));
}

ncclResult_t sum(const Tensor& x, ncclComm_t on, cudaStream_t stream = nullptr) {
  return ncclAllReduce(x.const_data_ptr(), x.data_ptr(), static_cast<std::size_t>(x.numel()),
                       ncclFloat32, ncclSum, on, stream);
}

// Exactly these many mistakes were recorded, and each contains the text.
void told(std::size_t count, const std::string& text) {
  const std::vector<std::string> mistakes = nccl::take_mistakes();
  CHECK(mistakes.size() == count);
  for (const std::string& mistake : mistakes)
    CHECK_MESSAGE(mistake.find(text) != std::string::npos, mistake);
}
// Outside of members().
void check_mistakes(std::size_t count, const std::string& text) {
  told(count, text);
  CHECK(nccl::take_left().empty());
}

// Until the end of the scope.
struct Patience {
  explicit Patience(double seconds) { nccl::be_patient(Seconds(seconds)); }
  ~Patience() { nccl::be_patient(Seconds(20)); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
};

}  // namespace

TEST_SUITE("nccl double") {
  TEST_CASE("calls that keep the rules are no mistakes") {
    members(3, [](ncclComm_t& on, int rank, torch::Device device) {
      const Tensor x = ones(4, device);
      CHECK(sum(x, on) == ncclSuccess);
      CHECK(x.sum().item<float>() == 12);
      ncclComm_t part = nullptr;
      CHECK(ncclCommSplit(on, rank < 2 ? 0 : NCCL_SPLIT_NOCOLOR, -rank, &part, nullptr) ==
            ncclSuccess);
      CHECK((part != nullptr) == (rank < 2));
      if (part != nullptr) {
        // By the keys, rank 1 is the first. It sends to the other, and both to themselves.
        const Tensor out = torch::full({2}, static_cast<float>(rank + 1), device),
                     in = torch::zeros({2}, device), own = torch::zeros({2}, device);
        const int me = 1 - rank;
        CHECK(ncclGroupStart() == ncclSuccess);
        CHECK(ncclSend(out.const_data_ptr(), 2, ncclFloat32, me, part, nullptr) == ncclSuccess);
        CHECK(ncclRecv(own.data_ptr(), 2, ncclFloat32, me, part, nullptr) == ncclSuccess);
        if (me == 0) ncclSend(out.const_data_ptr(), 2, ncclFloat32, 1, part, nullptr);
        if (me == 1) ncclRecv(in.data_ptr(), 2, ncclFloat32, 0, part, nullptr);
        CHECK(ncclGroupEnd() == ncclSuccess);
        CHECK(own.sum().item<float>() == static_cast<float>(2 * (rank + 1)));
        CHECK(in.sum().item<float>() == (me == 1 ? 4 : 0));
        CHECK(ncclCommDestroy(part) == ncclSuccess);
      }
      const Tensor y = torch::full({2}, static_cast<float>(rank + 1), device);
      CHECK(ncclBroadcast(y.const_data_ptr(), y.data_ptr(), 2, ncclFloat32, 2, on, nullptr) ==
            ncclSuccess);
      CHECK(y.sum().item<float>() == 6);
      CHECK(ncclCommFinalize(on) == ncclSuccess);
      CHECK(ncclCommDestroy(on) == ncclSuccess);
      on = nullptr;
    });
    check_mistakes(0, "");
  }

  TEST_CASE("a communicator that is not ready may only be asked and aborted") {
    ncclComm_t made = lonely();
    ncclResult_t state = ncclSuccess;
    CHECK(ncclCommGetAsyncError(made, &state) == ncclSuccess);
    CHECK(state == ncclInProgress);
    ncclComm_t part = nullptr;
    const Tensor x = ones(1, queued_device(0));
    CHECK(sum(x, made) == ncclInvalidArgument);
    CHECK(ncclCommSplit(made, 0, 0, &part, nullptr) == ncclInvalidArgument);
    CHECK(ncclCommFinalize(made) == ncclInvalidArgument);
    CHECK(ncclCommDestroy(made) == ncclInvalidArgument);
    CHECK(std::string(ncclGetLastError(nullptr)).find("ncclCommDestroy on communicator") == 0);
    CHECK(ncclCommAbort(made) == ncclSuccess);
    check_mistakes(4, ", rank 0: the operation before has not returned ncclSuccess yet");
  }

  TEST_CASE("an ended communicator may not be used") {
    members(1, [](ncclComm_t& on, int, torch::Device device) {
      ncclComm_t const ended = std::exchange(on, nullptr);
      CHECK(ncclCommDestroy(ended) == ncclSuccess);
      ncclResult_t state = ncclSuccess;
      CHECK(sum(ones(1, device), ended) == ncclInvalidArgument);
      CHECK(ncclCommGetAsyncError(ended, &state) == ncclInvalidArgument);
      CHECK(ncclCommDestroy(ended) == ncclInvalidArgument);
      CHECK(ncclCommAbort(ended) == ncclInvalidArgument);
    });
    check_mistakes(4, "rank 0: it was ended before, by ncclCommDestroy");
    members(1, [](ncclComm_t& on, int, torch::Device device) {
      CHECK(ncclCommFinalize(on) == ncclSuccess);
      CHECK(ncclCommFinalize(on) == ncclInvalidUsage);
      CHECK(sum(ones(1, device), on) == ncclInvalidUsage);
    });
    check_mistakes(2, "it was finalized before");
    CHECK(sum(ones(1, queued_device(0)), nullptr) == ncclInvalidArgument);
    check_mistakes(1, "no communicator");
  }

  TEST_CASE("communicators that are never ended are listed") {
    members(2, [](ncclComm_t& on, int rank, torch::Device) {
      if (rank == 1) on = nullptr;
    });
    const std::vector<std::string> left = nccl::take_left();
    REQUIRE(left.size() == 1);
    CHECK(left[0].find(", rank 1") != std::string::npos);
    check_mistakes(0, "");
  }

  TEST_CASE("configurations, unique ids, ranks and devices of new communicators are checked") {
    const auto refused = [](ncclConfig_t config, int size, int rank, const std::string& text) {
      ncclComm_t made = nullptr;
      CHECK(ncclCommInitRankConfig(&made, size, unique_id(), rank, &config) == ncclInvalidArgument);
      CHECK(made == nullptr);
      check_mistakes(1, text);
    };
    ncclConfig_t config{};
    refused(config, 1, 0, "NCCL_CONFIG_INITIALIZER");
    config = config_of(2);
    refused(config, 1, 0, "blocking");
    config = config_of(1);
    config.minCTAs = 4;
    config.maxCTAs = 2;
    refused(config, 1, 0, "minCTAs");
    config = config_of(1);
    config.minCTAs = 4;  // more than no maximum is as NCCL has it: an error
    refused(config, 1, 0, "minCTAs");
    config = config_of(1);
    config.cgaClusterSize = 9;
    refused(config, 1, 0, "cgaClusterSize");
    config = config_of(1);
    config.splitShare = 2;
    refused(config, 1, 0, "splitShare");
    refused(config_of(1), 2, 2, "rank 2 of 2");

    ncclComm_t made = nullptr, other = nullptr;
    ncclUniqueId none{}, used = unique_id();
    config = config_of(1);
    CHECK(ncclCommInitRankConfig(&made, 1, none, 0, &config) == ncclInvalidArgument);
    check_mistakes(1, "not a unique id");
    CHECK(ncclCommInitRankConfig(&made, 1, used, 0, &config) == ncclSuccess);
    CHECK(ncclCommInitRankConfig(&other, 1, used, 0, &config) == ncclInvalidUsage);
    ncclCommAbort(made);
    check_mistakes(1, "same device 0");
    ncclUniqueId several[]{unique_id(), used};
    CHECK(ncclCommInitRankScalable(&made, 2, 0, 2, several, &config) == ncclInvalidUsage);
    check_mistakes(1, "its unique id was used before, by communicator");

    ncclConfig_t later = config_of(0);
    used = unique_id();
    CHECK(ncclCommInitRankConfig(&made, 2, used, 0, &later) == ncclInProgress);
    CHECK(ncclCommInitRankConfig(&other, 2, used, 1, &later) == ncclInvalidUsage);
    CHECK(ncclCommInitRankConfig(&other, 3, used, 1, &later) == ncclInvalidUsage);
    ncclCommAbort(made);
    const auto mistakes = nccl::take_mistakes();
    REQUIRE(mistakes.size() == 2);
    CHECK(mistakes[0].find("of rank 1: rank 0 is on the same device 0") != std::string::npos);
    CHECK(mistakes[1].find("of rank 1: 3 ranks, where another gives 2") != std::string::npos);
    nccl::take_left();
  }

  TEST_CASE("a split is collective, and writes its result after the parent's state") {
    const Patience short_wait(0.3);
    members(2, [](ncclComm_t& on, int rank, torch::Device) {
      ncclComm_t part = nullptr;
      CHECK(ncclCommSplit(on, -2, 0, &part, nullptr) == ncclInvalidArgument);
      ncclConfig_t config{};
      CHECK(ncclCommSplit(on, 0, 0, &part, &config) == ncclInvalidArgument);
      if (rank == 0) CHECK(ncclCommSplit(on, 0, 0, &part, nullptr) == ncclSystemError);
    });
    const auto mistakes = nccl::take_mistakes();
    CHECK(mistakes.size() == 5);
    CHECK(mistakes.back().find("rank 0: without ranks 1") != std::string::npos);
    check_mistakes(0, "");

    const ncclUniqueId id = unique_id();
    ncclComm_t parents[2] = {}, parts[2] = {};
    for (int rank = 0; rank < 2; ++rank) {
      const c10::cuda::CUDAGuard on(queued_device(rank));
      ncclConfig_t config = config_of(0);
      CHECK(ncclCommInitRankConfig(&parents[rank], 2, id, rank, &config) == ncclInProgress);
    }
    const auto state_of = [](ncclComm_t on) {
      ncclResult_t state = ncclSuccess;
      CHECK(ncclCommGetAsyncError(on, &state) == ncclSuccess);
      return state;
    };
    CHECK(state_of(parents[0]) == ncclSuccess);
    CHECK(state_of(parents[1]) == ncclSuccess);
    ncclConfig_t config = config_of(1);
    CHECK(ncclCommSplit(parents[0], 0, 0, &parts[0], &config) == ncclInProgress);
    CHECK(state_of(parents[0]) == ncclInProgress);
    CHECK(ncclCommSplit(parents[1], 1, 0, &parts[1], &config) == ncclInProgress);
    CHECK(state_of(parents[0]) == ncclSuccess);
    CHECK(parts[0] == nullptr);
    CHECK(state_of(parents[0]) == ncclSuccess);
    CHECK(parts[0] != nullptr);
    CHECK(sum(ones(1, queued_device(0)), parts[0]) == ncclSuccess);
    wait_idle(queued_device(0));
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(sum(ones(1, queued_device(0)), parents[0]) == ncclSuccess);
    CHECK(sum(ones(1, queued_device(0)), parts[0]) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
    state_of(parents[1]);
    state_of(parents[1]);
    for (ncclComm_t one : {parents[0], parents[1], parts[0], parts[1]}) ncclCommAbort(one);
    check_mistakes(1, "rank 0: blocking and non-blocking communicators in one group");
  }

  TEST_CASE("a parent with operations on its device may not be split") {
    members(2, [](ncclComm_t& on, int rank, torch::Device device) {
      const Tensor x = ones(1, device);
      CHECK(sum(x, on) == ncclSuccess);
      wait_idle(device);
      if (rank == 0) {
        queue_on_current(device,
                         [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
        CHECK(sum(x, on) == ncclSuccess);
        ncclComm_t part = nullptr;
        CHECK(ncclCommSplit(on, 0, 0, &part, nullptr) == ncclInvalidArgument);
      } else {
        CHECK(sum(x, on) == ncclSuccess);
      }
    });
    check_mistakes(1, "rank 0: the parent has operations on its device");
  }

  TEST_CASE("groups must begin, and messages to oneself have both ends in one") {
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    check_mistakes(1, "ncclGroupEnd: not in a group");
    members(1, [](ncclComm_t& on, int, torch::Device device) {
      const Tensor x = ones(4, device);
      CHECK(ncclSend(x.const_data_ptr(), 1, ncclFloat32, 0, on, nullptr) == ncclInvalidUsage);
      told(1, "ncclSend on ");
      ncclGroupStart();
      CHECK(ncclSend(x.const_data_ptr(), 2, ncclFloat32, 0, on, nullptr) == ncclSuccess);
      auto* const second = x.data_ptr<float>() + 1;
      CHECK(ncclRecv(second, 2, ncclFloat32, 0, on, nullptr) == ncclSuccess);
      CHECK(ncclGroupEnd() == ncclInvalidUsage);
      told(1, "it writes where another call of the group does, or reads");
      ncclComm_t other = nullptr;
      ncclConfig_t config = config_of(1);
      ncclGroupStart();
      CHECK(ncclCommInitRankConfig(&other, 1, unique_id(), 0, &config) == ncclInvalidUsage);
      CHECK(ncclGroupEnd() == ncclSuccess);
      told(1, "in a group");
    });
    check_mistakes(0, "");
  }

  TEST_CASE("arguments are checked: peers, types, reductions, buffers, streams") {
    members(1, [](ncclComm_t& on, int, torch::Device device) {
      const Tensor x = ones(8, device), there = ones(8, queued_device(1)),
                   host = torch::ones({8}, torch::kFloat32);
      auto* const data = x.data_ptr<float>();
      const auto refused = [&](ncclResult_t result, const std::string& text) {
        CHECK(result == ncclInvalidArgument);
        const auto mistakes = nccl::take_mistakes();
        REQUIRE(mistakes.size() == 1);
        CHECK_MESSAGE(mistakes[0].find(", rank 0: " + text) != std::string::npos, mistakes[0]);
      };
      refused(ncclSend(data, 1, ncclFloat32, 1, on, nullptr), "rank 1 of 1");
      refused(ncclRecv(data, 1, ncclFloat32, -1, on, nullptr), "rank -1 of 1");
      refused(ncclReduce(data, data, 1, ncclFloat32, ncclSum, 1, on, nullptr), "rank 1 of 1");
      refused(ncclAllReduce(data, data, 1, ncclFloat16, ncclSum, on, nullptr), "type 6");
      refused(ncclAllReduce(data, data, 1, ncclFloat32, ncclProd, on, nullptr), "reduction 1");
      refused(ncclAllReduce(data, data, 1000, ncclFloat32, ncclSum, on, nullptr), "no tensor of");
      refused(ncclAllReduce(nullptr, data, 1, ncclFloat32, ncclSum, on, nullptr), "no tensor of");
      refused(sum(there, on), "no tensor of device 0 holds the 32 bytes that are read");
      refused(sum(host, on), "no tensor of device 0");
      refused(ncclAllReduce(data, data + 1, 4, ncclFloat32, ncclSum, on, nullptr),
              "its buffers overlap");
      refused(ncclAllGather(data + 1, data, 4, ncclFloat32, on, nullptr), "its buffers overlap");
      CUstream_st fake{0, 5};
      refused(sum(x, on, &fake), "not a stream");
      const c10::Stream other(c10::Stream::UNSAFE, queued_device(1), 3);
      refused(sum(x, on, nccl::handle_of(other)), "a stream of device 1 on device 0");
    });
    check_mistakes(0, "");
  }

  TEST_CASE("memory must be held by tensors from the call to the kernel's end") {
    members(1, [](ncclComm_t& on, int, torch::Device device) {
      ncclGroupStart();
      {
        const Tensor x = ones(4, device);
        CHECK(sum(x, on) == ncclSuccess);
      }
      CHECK(ncclGroupEnd() == ncclInvalidUsage);
      told(1, "was released before the call was launched");
      const c10::Stream other = c10::impl::VirtualGuardImpl(device.type()).getNewStream(device);
      for (const bool recorded : {true, false}) {
        Tensor x = ones(4, device);
        wait_idle(device);
        {
          const c10::StreamGuard there(other);
          queue_on_current(device,
                           [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
        }
        CHECK(sum(x, on, nccl::handle_of(other)) == ncclSuccess);
        if (recorded) x.record_stream(other);
        x.reset();
        wait_idle(device);
        if (recorded) told(0, "");
      }
    });
    check_mistakes(1, "was released before the kernel's end");
  }

  TEST_CASE("members whose collectives differ are told, all of them") {
    const auto differ = [](const std::function<void(ncclComm_t, int, const Tensor&)>& call,
                           const std::string& text) {
      members(2, [&](ncclComm_t& on, int rank, torch::Device device) {
        const Tensor x = torch::zeros({4}, torch::dtype(torch::kFloat64).device(device));
        call(on, rank, x);
        CHECK_THROWS_WITH(drain(device), doctest::Contains(text.c_str()));
      });
      check_mistakes(2, text);
    };
    differ(
        [](ncclComm_t on, int rank, const Tensor& x) {
          ncclAllReduce(x.const_data_ptr(), x.data_ptr(), rank == 0 ? 4 : 2, ncclFloat64, ncclSum,
                        on, nullptr);
        },
        "calls ncclAllReduce of");
    differ(
        [](ncclComm_t on, int rank, const Tensor& x) {
          ncclAllReduce(x.const_data_ptr(), x.data_ptr(), 4, ncclFloat64,
                        rank == 0 ? ncclSum : ncclMax, on, nullptr);
        },
        "calls ncclAllReduce of 4 fp64, ");
    differ(
        [](ncclComm_t on, int rank, const Tensor& x) {
          ncclAllReduce(x.const_data_ptr(), x.data_ptr(), 4, rank == 0 ? ncclInt64 : ncclFloat64,
                        ncclSum, on, nullptr);
        },
        "calls ncclAllReduce of 4 ");
    differ(
        [](ncclComm_t on, int rank, const Tensor& x) {
          ncclReduce(x.const_data_ptr(), x.data_ptr(), 4, ncclFloat64, ncclSum, rank, on, nullptr);
        },
        "calls ncclReduce of 4 fp64, sum, root ");
    // Two collectives in another order, whose connections exist.
    differ(
        [](ncclComm_t on, int rank, const Tensor& x) {
          const auto all_reduce = [&] {
            ncclAllReduce(x.const_data_ptr(), x.data_ptr(), 4, ncclFloat64, ncclSum, on, nullptr);
          };
          const auto broadcast = [&] {
            ncclBroadcast(x.const_data_ptr(), x.data_ptr(), 4, ncclFloat64, 0, on, nullptr);
          };
          all_reduce();
          broadcast();
          rank == 0 ? all_reduce() : broadcast();
        },
        "(collective 2), where communicator");
  }

  TEST_CASE("messages whose ends differ are errors") {
    members(2, [](ncclComm_t& on, int rank, torch::Device device) {
      const Tensor x = ones(4, device);
      if (rank == 0)
        ncclSend(x.const_data_ptr(), 4, ncclFloat32, 1, on, nullptr);
      else
        ncclRecv(x.data_ptr(), 2, ncclFloat32, 0, on, nullptr);
      CHECK_THROWS_WITH(drain(device),
                        doctest::Contains("message 0 from 0 to 1 is ncclSend of 4 fp32 and "
                                          "ncclRecv of 2 fp32"));
    });
    check_mistakes(2, "message 0 from 0 to 1");
  }

  TEST_CASE("members that do not come are named, where the host waits and where kernels do") {
    const Patience short_wait(0.3);
    members(3, [](ncclComm_t& on, int rank, torch::Device device) {
      if (rank == 1) CHECK(sum(ones(1, device), on) == ncclSystemError);
      if (rank == 2) {
        const Tensor x = ones(1, device);
        CHECK(ncclSend(x.const_data_ptr(), 1, ncclFloat32, 0, on, nullptr) == ncclSystemError);
      }
    });
    auto mistakes = nccl::take_mistakes();
    std::sort(mistakes.begin(), mistakes.end());
    REQUIRE(mistakes.size() == 2);
    CHECK(mistakes[0].find("rank 1: the first ncclAllReduce is without ranks 0 2") !=
          std::string::npos);
    CHECK(mistakes[1].find("rank 2: the first message from 2 to 0 has one end") !=
          std::string::npos);
    members(3, [](ncclComm_t& on, int rank, torch::Device device) {
      const Tensor x = ones(1, device);
      CHECK(sum(x, on) == ncclSuccess);  // connects
      if (rank == 1) CHECK(sum(x, on) == ncclSuccess);
      if (rank == 1) CHECK_THROWS(drain(device));
    });
    check_mistakes(1,
                   "rank 1: ranks 0 2 did not come to ncclAllReduce of 1 fp32, sum (collective 1)");
    // Each sends before it receives.
    members(2, [](ncclComm_t& on, int rank, torch::Device device) {
      const Tensor x = ones(1, device), y = ones(1, device);
      const auto send = [&] {
        ncclSend(x.const_data_ptr(), 1, ncclFloat32, 1 - rank, on, nullptr);
      };
      const auto receive = [&] { ncclRecv(y.data_ptr(), 1, ncclFloat32, 1 - rank, on, nullptr); };
      ncclGroupStart();
      send();
      receive();
      ncclGroupEnd();
      send();
      receive();
      CHECK_THROWS(drain(device));
    });
    check_mistakes(2, "did not come to message 1 from");
  }

  TEST_CASE("one thread at a time may call, and another may abort, which ends the call") {
    std::atomic<ncclComm_t> first{nullptr};
    members(2, [&](ncclComm_t& on, int rank, torch::Device device) {
      if (rank == 1) {
        while (first.load() == nullptr) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        const c10::cuda::CUDAGuard there(queued_device(0));
        CHECK(sum(ones(1, queued_device(0)), first) == ncclInvalidUsage);
        CHECK(ncclCommDestroy(first) == ncclInvalidUsage);
        CHECK(ncclCommAbort(first) == ncclSuccess);
        return;
      }
      const Tensor x = ones(1, device);
      first = on;
      CHECK(sum(x, on) == ncclInternalError);  // waits for the other
      on = nullptr;
    });
    check_mistakes(2, "rank 0: another thread is in a call on it");
  }

  TEST_CASE("an abort ends the kernels of its rank alone") {
    const Patience short_wait(0.5);
    members(2, [](ncclComm_t& on, int rank, torch::Device device) {
      const Tensor x = ones(1, device);
      CHECK(sum(x, on) == ncclSuccess);
      wait_idle(device);
      if (rank == 1) return;
      CHECK(sum(x, on) == ncclSuccess);
      ncclCommAbort(std::exchange(on, nullptr));
      drain(device);  // ends at once, without an error
    });
    check_mistakes(0, "");
  }
}

}  // namespace polyphony::exec::testing
