#include "shared/hardware/hardware.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"

namespace polyphony {
namespace {

HardwareProfile round_numbers() {
  HardwareProfile profile;
  profile.name = "round";
  profile.device = {"round", FlopsPerSecond(1e12), FlopsPerSecond(10e12),
                    {},      BytesPerSecond(1e9),  Bytes(1 << 30)};
  profile.gemm_efficiency = 0.5;
  profile.gemm_half_size = 100;
  profile.attention_efficiency = 0.25;
  profile.memory_efficiency = 0.8;
  profile.dispatch = Seconds(1e-6);
  return profile;
}

std::string refusal(const std::string& text) {
  try {
    parse_profile(text, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("devices and profiles are found by name") {
  for (const char* name :
       {"A40",   "L40S",  "RTX-4090", "RTX-5090", "RTX-PRO-6000", "A100-40", "A100-80",
        "A800",  "H100",  "H800",     "H200",     "H20",          "B200",    "B300",
        "GB200", "GB300", "MI300X",   "MI325X",   "MI355X",       "cpu-core"}) {
    REQUIRE(find_device(name) != nullptr);
    const HardwareProfile* profile = find_profile(default_profile(name));
    REQUIRE(profile != nullptr);
    CHECK(profile->device == find_device(name)->device);
    CHECK_FALSE(profile->source.empty());
    CHECK_FALSE(find_device(name)->source.empty());
  }
  CHECK(find_device("h100") == find_device("H100"));
  for (const char* name : {"RTX 4090", "rtx4090", "rtx_4090"})
    CHECK(find_device(name) == find_device("RTX-4090"));
  CHECK(find_device("mi300x") == find_device("MI300X"));
  CHECK(find_device("gb-300") == find_device("GB300"));
  CHECK(find_device("a100 80") == find_device("A100-80"));
  CHECK(find_device("RTX-409") == nullptr);
  CHECK(find_device("H101") == nullptr);
  CHECK(find_profile("h101-roofline") == nullptr);
  CHECK(device_names().size() == 20);
}

TEST_CASE("a device has the peaks of its data sheet") {
  const Device& h100 = find_device("H100")->device;
  CHECK(peak(h100, NumberFormat::bf16).value == 989e12);
  CHECK(peak(h100, NumberFormat::fp8).value == 1978e12);
  CHECK(peak(h100, NumberFormat::tf32).value == 494.5e12);
  CHECK(peak(h100, NumberFormat::nvfp4).value == 0);  // not supported
  CHECK(peak(find_device("L40S")->device, NumberFormat::fp8).value == 733e12);
  CHECK(peak(find_device("A100-80")->device, NumberFormat::fp8).value == 0);
  CHECK(peak(find_device("cpu-core")->device, NumberFormat::bf16).value == 40e9);
  CHECK(peak(find_device("cpu-core")->device, NumberFormat::tf32).value == 0);  // no matrix units
  CHECK(peak(find_device("B200")->device, NumberFormat::nvfp4).value == 9e15);
  CHECK(find_device("H100")->fabric_link.rate.value == 50e9);  // 400 Gb/s
}

TEST_CASE("a kernel takes the larger of compute and memory time, plus its launches") {
  const HardwareProfile profile = round_numbers();
  // m = n = k = 300: 54e6 flops; efficiency 0.5 · 300/400 = 0.375 of 1e12: 144 us; few bytes. One
  // launch: 1 us.
  const Kernel compute{.kind = KernelKind::gemm,
                       .flops = Flops(54e6),
                       .bytes = Bytes(8),
                       .launches = 1,
                       .m = 300,
                       .n = 300,
                       .k = 300};
  CHECK(kernel_time(profile, compute, NumberFormat::fp32).count() == doctest::Approx(145e-6));
  CHECK(kernel_time(profile, compute, NumberFormat::bf16).count() ==
        doctest::Approx(15.4e-6));  // ten times the peak
  // A CPU core waits for the operands, 100 us more for 80,000 bytes at 0.8e9 B/s; a GPU overlaps
  // them.
  Kernel fed = compute;
  fed.bytes = Bytes(80'000);
  CHECK(kernel_time(profile, fed, NumberFormat::fp32).count() == doctest::Approx(145e-6));
  HardwareProfile core = profile;
  core.products_wait = true;
  CHECK(kernel_time(core, fed, NumberFormat::fp32).count() == doctest::Approx(245e-6));
  // 800,000 bytes at 0.8e9 B/s: 1 ms; three launches.
  const Kernel memory{.kind = KernelKind::elementwise, .bytes = Bytes(800'000), .launches = 3};
  CHECK(kernel_time(profile, memory, NumberFormat::fp32).count() == doctest::Approx(1.003e-3));
  // 25e6 flops at a quarter of 1e12: 100 us.
  const Kernel attention{
      .kind = KernelKind::attention, .flops = Flops(25e6), .bytes = Bytes(0), .launches = 0};
  CHECK(kernel_time(profile, attention, NumberFormat::fp32).count() == doctest::Approx(100e-6));
  // A kernel without work still costs its launch.
  const Kernel empty{.kind = KernelKind::gemm, .launches = 1};
  CHECK(kernel_time(profile, empty, NumberFormat::fp32).count() == doctest::Approx(1e-6));
}

TEST_CASE("a profile that is written and read again is equal") {
  for (HardwareProfile profile : shipped_profiles()) {
    profile.corrections[{LayerKind::decoder_block, Phase::backward}] = 1.0 / 3;
    profile.corrections[{LayerKind::encoder_norm, Phase::forward}] = 0.9;
    CHECK(parse_profile(to_json(profile), "p.json") == profile);
  }
}

TEST_CASE("a profile names its library of collectives; earlier ones say whether it is NCCL") {
  const auto library = [](const char* more) {
    return parse_profile(std::string(R"({"profile": 1, "name": "p", "device": {"name": "d",
        "fp32": "1TFLOPS", "memory_rate": "1GBps", "memory": "1GiB"})") +
                             more + "}",
                         "p.json")
        .collectives;
  };
  CHECK(library("") == CollectiveLibrary::gloo);
  CHECK(library(R"(, "collectives": "rccl")") == CollectiveLibrary::rccl);
  CHECK(library(R"(, "nccl": true)") == CollectiveLibrary::nccl);
  CHECK(library(R"(, "nccl": false)") == CollectiveLibrary::gloo);
}

TEST_CASE("an invalid profile is refused with the JSON pointer of the error") {
  const std::string device =
      R"("device": {"name": "d", "fp32": "1TFLOPS", "memory_rate": "1GBps", "memory": "1GiB"})";
  const std::string head = R"({"profile": 1, "name": "p", )";
  CHECK(refusal(head + device + "}") == "accepted");
  const auto refused = [](const std::string& text, const char* pointer) {
    const std::string line = refusal(text);
    CAPTURE(line);
    return line.find(std::string("p.json: ") + pointer) == 0;
  };
  CHECK(refused(head + device + R"(, "gemm_eficiency": 0.5})", "/gemm_eficiency"));
  CHECK(refused(head + device + R"(, "collectives": "mpi"})", "/collectives"));
  CHECK(refusal(head + device + R"(, "collectives": "rccl", "nccl": true})") ==
        "p.json: /nccl: nccl must not be given together with collectives, which replaces it (keep "
        "\"collectives\" alone)");
  CHECK(refusal(head + device + R"(, "gemm_eficiency": 0.5})").find("gemm_efficiency") !=
        std::string::npos);
  CHECK(refused(head + device + R"(, "gemm_efficiency": 0})", "/gemm_efficiency"));
  CHECK(refused(head + device + R"(, "gemm_efficiency": "0.5"})", "/gemm_efficiency"));
  CHECK(refused(head + device + R"(, "dispatch": 3})", "/dispatch"));
  CHECK(refused(head + device + R"(, "dispatch": "3GB"})", "/dispatch"));
  CHECK(refused(head + device + R"(, "dispatch": "-3us"})", "/dispatch"));
  CHECK(refused(head + device + R"(, "corrections": {"decoder_blok": {}}})",
                "/corrections/decoder_blok"));
  CHECK(refused(head + device + R"(, "corrections": {"decoder_block": {"forward": 0}}})",
                "/corrections/decoder_block/forward"));
  CHECK(refused(
      head +
          R"("device": {"name": "d", "fp32": "0TFLOPS", "memory_rate": "1GBps", "memory": "1GiB"}})",
      "/device/fp32"));
  CHECK(refused(
      head +
          R"("device": {"name": "d", "fp32": "1TFLOPS", "memory_rate": "0GBps", "memory": "1GiB"}})",
      "/device/memory_rate"));
  // Values that are physically impossible are refused with the limit: a share of a peak above 1, or
  // a huge latency. Link rates of accelerators come from data sheets, those of a CPU are assumed.
  CHECK(refusal(head + device + R"(, "gemm_efficiency": 1.01})") ==
        "p.json: /gemm_efficiency: 1.01 is out of range (write a number from 1e-06 to 1)");
  CHECK(refusal(head + device + R"(, "message_latency": "1e300ns"})") ==
        "p.json: /message_latency: \"1e300ns\" is out of range (at most 1s)");
  for (const char* key : {"gemm_efficiency", "grouped_efficiency", "attention_efficiency",
                          "early_attention_efficiency", "memory_efficiency",
                          "optimizer_bytes_efficiency", "in_switch_efficiency"}) {
    const std::string said = std::string(", \"") + key + "\": ";
    CHECK(refusal(head + device + said + "1}") == "accepted");
    CHECK(refused(head + device + said + "1.001}", (std::string("/") + key).c_str()));
  }
  for (const char* key : {"message_efficiency", "collective_efficiency", "fabric_efficiency"}) {
    const std::string said = std::string(", \"") + key + "\": ", at = std::string("/") + key;
    CHECK(refusal(head + device + said + "4}") == "accepted");
    CHECK(refused(head + device + said + "4.1}", at.c_str()));
    for (const char* library :
         {R"("collectives": "nccl")", R"("collectives": "rccl")", R"("nccl": true)"}) {
      CHECK(refusal(head + device + said + "1.2, " + library + "}") == "accepted");
      CHECK(refused(head + device + said + "1.3, " + library + "}", at.c_str()));
    }
  }
  for (const char* key :
       {"dispatch", "op_overhead", "optimizer_overhead", "message_latency", "collective_latency"})
    CHECK(
        refused(head + device + ", \"" + key + R"(": "10.1s"})", (std::string("/") + key).c_str()));
  CHECK(refused(head + device + R"(, "stack": {"name": "s", "host": "1h"}})", "/stack/host"));
  for (const char* figure : {R"("fp32": "2000PFLOPS")", R"("bf16": "1FLOPS")",
                             R"("memory_rate": "1e9TBps")", R"("memory": "2PB")"}) {
    std::string changed = device;  // replaces the key, as duplicate keys are refused
    const std::string key = std::string(figure).substr(0, std::string(figure).find(':'));
    const auto at = changed.find(key);
    if (at == std::string::npos) {
      changed.insert(changed.size() - 1, std::string(", ") + figure);
    } else {
      changed.replace(at, changed.find_first_of(",}", at) - at, figure);
    }
    CHECK(refused(head + changed + "}", ("/device/" + key.substr(1, key.size() - 2)).c_str()));
  }
  CHECK(refusal(head + R"("x": 1})") != "accepted");
  CHECK(refusal("{") != "accepted");
  CHECK(refusal("[]") != "accepted");
  CHECK(refusal("") != "accepted");
}

}  // namespace polyphony
