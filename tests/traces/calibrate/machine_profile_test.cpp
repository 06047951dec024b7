#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <sstream>

#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "traces/calibrate/machine_profile.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

constexpr const char* kHead =
    "{\"record\": \"machine\", \"format\": 1, \"software\": \"torch 9\"}\n";

std::string message_of(const std::string& text) {
  try {
    read_machine_records(text, "m.jsonl");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a rate above the prior's peak becomes the peak") {
  const HardwareProfile prior = *find_profile("cpu-core-roofline");  // 80 GFLOP/s, 8 GB/s
  const Link link{BytesPerSecond(2e9), Seconds(20e-6)};
  std::ostringstream text;
  text.precision(17);
  text << kHead;
  for (double size : {64.0, 256.0, 1024.0}) {
    // 160 GFLOP/s at all sizes, 5 us per call; in bf16 a tenth of it.
    for (const auto& [format, rate] : {std::pair("fp32", 160e9), std::pair("bf16", 16e9)})
      text << "{\"record\": \"gemm\", \"format\": \"" << format << "\", \"m\": " << size
           << ", \"n\": " << size << ", \"k\": " << size
           << ", \"seconds\": " << 2 * std::pow(size, 3) / rate + 5e-6 << "}\n";
  }
  for (double bytes : {1e5, 1e6, 1e7})  // 16 GB/s
    text << "{\"record\": \"memcpy\", \"bytes\": " << bytes << ", \"seconds\": " << 2 * bytes / 16e9
         << "}\n";
  const HardwareProfile fitted =
      fit_machine(prior, link, read_machine_records(text.str(), "m.jsonl"), "fast", "made up");
  CHECK(fitted.gemm_efficiency == 1);
  CHECK(fitted.device.fp32.value == doctest::Approx(160e9).epsilon(1e-4));
  CHECK(fitted.device.bf16.value == doctest::Approx(16e9).epsilon(1e-3));
  CHECK(fitted.memory_efficiency == 1);
  CHECK(fitted.device.memory_rate.value == doctest::Approx(16e9).epsilon(1e-4));
  // Attention was not measured: its seconds are unchanged.
  CHECK(fitted.attention_efficiency * fitted.device.fp32.value ==
        doctest::Approx(prior.attention_efficiency * 80e9));
  CHECK(parse_profile(to_json(fitted), "p.json").gemm_efficiency == 1);  // accepted by the reader
}

TEST_CASE("the fit recovers the machine that made the records") {
  const HardwareProfile prior = *find_profile("cpu-core-roofline");  // 80 GFLOP/s, 8 GB/s
  const Link link{BytesPerSecond(2e9), Seconds(20e-6)};
  std::ostringstream text;
  text.precision(17);
  text << kHead;
  // 40 GFLOP/s for large GEMMs, half of that at s = 32, 7 us per call.
  for (double size : {16.0, 32.0, 64.0, 128.0, 256.0, 512.0}) {
    const double time = 2 * std::pow(size, 3) / 40e9 * (1 + 32 / size) + 7e-6;
    text << "{\"record\": \"gemm\", \"m\": " << size << ", \"n\": " << size << ", \"k\": " << size
         << ", \"seconds\": " << time << "}\n";
  }
  text << "{\"record\": \"attention\", \"flops\": 16e9, \"seconds\": " << 1 + 7e-6
       << "}\n";  // 16 GFLOP/s
  text << "{\"record\": \"attention\", \"backward\": true, \"flops\": 16e9, \"seconds\": "
       << 2 + 7e-6 << "}\n";              // half as fast
  for (double bytes : {1e5, 1e6, 1e7}) {  // 5 GB/s read and written, 1 us a call
    text << "{\"record\": \"pass\", \"bytes\": " << bytes << ", \"seconds\": " << bytes / 2e9 + 3e-6
         << "}\n";  // 2 GB/s, 3 us a call
    text << "{\"record\": \"memcpy\", \"bytes\": " << bytes
         << ", \"seconds\": " << 2 * bytes / 5e9 + 1e-6 << "}\n";
    // 500 us and 1 GB/s
    text << "{\"record\": \"message\", \"bytes\": " << bytes
         << ", \"seconds\": " << bytes / 1e9 + 500e-6 << "}\n";
    for (int ranks : {2, 4}) {  // 220 us a hop, 0.5 GB/s
      text << "{\"record\": \"all_reduce\", \"ranks\": " << ranks << ", \"bytes\": " << bytes
           << ", \"seconds\": " << 2 * (ranks - 1) * (220e-6 + bytes / ranks / 0.5e9)
           << ", \"processor_seconds\": " << bytes / ranks / 0.5e9 << "}\n";
    }
  }
  const HardwareProfile fitted = fit_machine(
      prior, link, read_machine_records(text.str(), "m.jsonl"), "this-machine", "made up");
  CHECK(fitted.gemm_efficiency == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(fitted.gemm_half_size == doctest::Approx(32).epsilon(1e-6));
  CHECK(fitted.dispatch.count() == doctest::Approx(7e-6).epsilon(1e-6));
  CHECK(fitted.attention_efficiency == doctest::Approx(0.2).epsilon(1e-6));
  CHECK(fitted.attention_backward == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(fitted.memory_efficiency == doctest::Approx(2.0 / 8).epsilon(1e-6));
  CHECK(fitted.optimizer_bytes_efficiency == doctest::Approx(5.0 / 8).epsilon(1e-6));
  CHECK(fitted.message_latency.count() ==
        doctest::Approx(480e-6).epsilon(1e-6));  // 20 us are the latency of the link
  CHECK(fitted.message_efficiency == doctest::Approx(0.5).epsilon(1e-6));
  CHECK(fitted.collective_latency.count() == doctest::Approx(200e-6).epsilon(1e-6));
  CHECK(fitted.collective_efficiency == doctest::Approx(0.25).epsilon(1e-6));
  // 10 MB over two ranks: 10 ms of processor time in 20.44 ms.
  CHECK(fitted.stack.taken_inside == doctest::Approx(0.01 / 0.02044).epsilon(1e-6));
  CHECK(fitted.software == "torch 9");
  CHECK(fitted.name == "this-machine");
  CHECK(fitted.op_overhead == prior.op_overhead);
}

TEST_CASE("records of a busy machine make a profile that the reader accepts") {
  const HardwareProfile prior = *find_profile("cpu-core-roofline");
  const Link link{BytesPerSecond(2e9), Seconds(20e-6)};
  std::mt19937_64 random(1);
  // Each time is that of the prior, wrong by up to a factor of 300 either way.
  const auto seconds = [&](double right) {
    return right * std::pow(10, std::uniform_real_distribution<double>(-2.5, 2.5)(random));
  };
  for (int round = 0; round < 300; ++round) {
    std::ostringstream text;
    text.precision(17);
    text << kHead;
    for (double size : {64.0, 256.0, 1024.0}) {
      for (const char* format : {"fp32", "bf16"})
        text << "{\"record\": \"gemm\", \"format\": \"" << format << "\", \"m\": " << size
             << ", \"n\": " << size << ", \"k\": " << size
             << ", \"seconds\": " << seconds(2 * std::pow(size, 3) / 60e9) << "}\n";
    }
    for (const char* backward : {"false", "true"})
      text << "{\"record\": \"attention\", \"backward\": " << backward
           << ", \"flops\": 16e9, \"seconds\": " << seconds(0.5) << "}\n";
    for (double bytes : {1e5, 1e6, 1e7}) {
      for (const char* record : {"pass", "memcpy", "message"})
        text << "{\"record\": \"" << record << "\", \"bytes\": " << bytes
             << ", \"seconds\": " << seconds(bytes / 4e9) << "}\n";
      text << "{\"record\": \"all_reduce\", \"ranks\": 2, \"bytes\": " << bytes
           << ", \"seconds\": " << seconds(bytes / 1e9)
           << ", \"processor_seconds\": " << seconds(bytes / 1e9) << "}\n";
    }
    CAPTURE(text.str());
    const HardwareProfile fitted =
        fit_machine(prior, link, read_machine_records(text.str(), "m.jsonl"), "busy", "made up");
    CHECK_NOTHROW(parse_profile(to_json(fitted), "p.json"));
  }
}

TEST_CASE("without records the prior is unchanged") {
  const HardwareProfile prior = *find_profile("h100-roofline");
  HardwareProfile fitted =
      fit_machine(prior, {BytesPerSecond(1e9), Seconds(0)}, {"", {}}, prior.name, prior.source);
  fitted.software = prior.software;
  CHECK(fitted == prior);
}

TEST_CASE("bad records are refused by line and key") {
  const std::string hint = " (profile the machine again; format: traces/README.md)";
  const std::string head = kHead;
  CHECK(message_of("") == "m.jsonl: the file holds no records" + hint);
  CHECK(message_of("{\"record\": \"gemm\"}") ==
        "m.jsonl:1: /record: the first record must be \"machine\"" + hint);
  CHECK(message_of(head + "\n{\"record\": \"gemm\", \"m\": 4, \"n\": 4, \"seconds\": 1}") ==
        "m.jsonl:3: /k: the key is missing" + hint);
  CHECK(message_of(head + "{\"record\": \"memcpy\", \"bytes\": 4, \"seconds\": -1}") ==
        "m.jsonl:2: /seconds: a number above 0 is expected" + hint);
  CHECK(message_of(head + "{\"record\": \"memcpy\", \"bytes\": 4.5, \"seconds\": 1}") ==
        "m.jsonl:2: /bytes: a whole number is expected" + hint);
  CHECK(message_of(head + "{\"record\": \"memcpy\", \"byte\": 4, \"seconds\": 1}") ==
        "m.jsonl:2: /byte: the key is not known" + hint);
  CHECK(message_of(head +
                   "{\"record\": \"all_reduce\", \"ranks\": 1, \"bytes\": 4, \"seconds\": 1}") ==
        "m.jsonl:2: /ranks: an all-reduce needs 2 ranks or more" + hint);
  CHECK(message_of(head + "{\"record\": \"warp\"}") ==
        "m.jsonl:2: /record: \"warp\" is not one of gemm, attention, memcpy, pass, message, "
        "all_reduce" +
            hint);
  CHECK(message_of(head + "{\"record\": \"memcpy\", \"byt") ==
        "m.jsonl:2: the file ends in the middle, after 25 bytes" + hint);
}
