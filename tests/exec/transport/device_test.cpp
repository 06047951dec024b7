#include "exec/network/device.h"

#include <torch/cuda.h>

#include <doctest/doctest.h>

#include "shared/error.h"
#include "tests/exec/transport/rank_processes.h"
#include "tests/exec/transport/transport_behaviour.h"

namespace polyphony::exec {

namespace {

// A transport whose users have CPU tensors and whose transport has them on the device: what holds
// on the CPU must hold there, with the same bits.
class OnDevice : public Communicator {
 public:
  OnDevice(std::unique_ptr<Communicator> inner, torch::Device device)
      : inner_(std::move(inner)), device_(device) {}
  int index() const override { return inner_->index(); }
  int size() const override { return inner_->size(); }
  void all_reduce(torch::Tensor& tensor, Reduction reduction) override {
    torch::Tensor there = tensor.to(device_, false, true);
    inner_->all_reduce(there, reduction);
    tensor.copy_(there);
  }
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override {
    torch::Tensor there = all.to(device_, false, true);
    inner_->all_gather(mine.to(device_, false, true), there, counts);
    all.copy_(there);
  }
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override {
    torch::Tensor there = mine.to(device_, false, true);
    inner_->reduce_scatter(all.to(device_, false, true), there, counts);
    mine.copy_(there);
  }
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override {
    torch::Tensor there = receive.to(device_, false, true);
    inner_->all_to_all(send.to(device_, false, true), there, send_counts, receive_counts);
    receive.copy_(there);
  }

 private:
  std::unique_ptr<Communicator> inner_;
  torch::Device device_;
};

class DeviceTransport : public Transport {
 public:
  DeviceTransport(Transport& inner, torch::Device device) : inner_(inner), device_(device) {}
  Rank rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return std::make_unique<OnDevice>(inner_.make_group(name, members), device_);
  }
  void exchange(const std::vector<Transfer>& transfers) override {
    std::vector<Transfer> there = transfers;
    for (Transfer& transfer : there) transfer.tensor = transfer.tensor.to(device_, false, true);
    inner_.exchange(there);
    for (std::size_t i = 0; i < there.size(); ++i)
      if (!transfers[i].sends) transfers[i].tensor.copy_(there[i].tensor);
  }
  void barrier() override { inner_.barrier(); }
  void post(const std::string& key, const std::string& bytes) override { inner_.post(key, bytes); }
  std::string fetch(const std::string& key) override { return inner_.fetch(key); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 private:
  Transport& inner_;
  torch::Device device_;
};

const bool kRole =
    add_device_role("all behaviours on the device", [](Transport& transport, torch::Device device) {
      DeviceTransport on_device(transport, device);
      all_behaviours(on_device);
    });

}  // namespace

TEST_SUITE("transport") {
  // Over NCCL on a machine with two GPUs, through host memory with one; without, as any CPU rank.
  TEST_CASE("collectives and messages of tensors on the machine's device") {
    REQUIRE(kRole);
    for (const RankResult& result :
         run_rank_processes("all behaviours on the device", 2, Seconds(90))) {
      CAPTURE(result.output);
      CHECK(result.exit_status == 0);
    }
  }

  TEST_CASE("a wish for a device is met or refused by name") {
    LaunchEnv launch;
    launch.local_rank = 1;
    launch.local_world_size = 2;
    CHECK(choose_device("cpu", launch) == torch::Device(torch::kCPU));
    CHECK_THROWS_WITH_AS(choose_device("tpu", launch),
                         "--device: \"tpu\" is neither cuda nor cpu (leave it out: a GPU is used "
                         "when there is one)",
                         InputError);
    const torch::Device chosen = choose_device("", launch);
    if (chosen.is_cuda()) {
      CHECK(choose_device("cuda", launch) == chosen);
      CHECK(chosen.index() == 1 % torch::cuda::device_count());
    } else {
      CHECK_THROWS_AS(choose_device("cuda", launch), InputError);
    }
    const Bytes all = memory_per_rank(torch::kCPU, LaunchEnv{});
    CHECK(memory_per_rank(torch::kCPU, launch) == Bytes(all.value / 2));
  }
}

}  // namespace polyphony::exec
