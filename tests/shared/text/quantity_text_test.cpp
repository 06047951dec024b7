#include "shared/text/quantity_text.h"

#include <doctest/doctest.h>

#include "shared/error.h"
#include "shared/text/number_text.h"

using namespace polyphony;

namespace {

template <class Parse>
std::string refusal(Parse parse, const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("bits and bytes: 400 Gbit/s are 50 GB/s") {
  CHECK(parse_rate("400Gbps") == BytesPerSecond(50e9));
  CHECK(parse_rate("50GBps") == BytesPerSecond(50e9));
  CHECK(parse_rate("50 GB/s") == BytesPerSecond(50e9));
  CHECK(parse_rate("1GiB/s") == BytesPerSecond(1073741824.0));
  CHECK(parse_rate("10Mbit/s") == BytesPerSecond(1.25e6));
}

TEST_CASE("bytes: decimal and binary prefixes differ") {
  CHECK(parse_bytes("80GiB") == Bytes(std::int64_t{80} << 30));
  CHECK(parse_bytes("80GB") == Bytes(80'000'000'000));
  CHECK(parse_bytes("1.5KiB") == Bytes(1536));
  CHECK(parse_bytes("0B") == Bytes(0));
}

TEST_CASE("times, compute rates, prices") {
  CHECK(parse_seconds("3.2us").count() == doctest::Approx(3.2e-6).epsilon(1e-15));
  CHECK(parse_seconds("2min") == Seconds(120));
  CHECK(parse_compute_rate("989TFLOPS") == FlopsPerSecond(989e12));
  CHECK(parse_compute_rate("1.979PFLOP/s").value == doctest::Approx(1.979e15).epsilon(1e-15));
  CHECK(parse_price("2.50USD/GPUh") == 2.5);
}

TEST_CASE("errors about quantities state what to write") {
  CHECK(refusal(parse_rate, "400") ==
        "\"400\" has no unit (write it like \"400Gbps\"; units: Bps, kBps, MBps, GBps, TBps, kbps, "
        "Mbps, Gbps, Tbps)");
  CHECK(refusal(parse_bytes, "80GiBs") ==
        "\"80GiBs\" is not a number of bytes: unknown unit \"GiBs\" (units: B, kB, KiB, MB, MiB, "
        "GB, GiB, TB, TiB, PB)");
  CHECK(refusal(parse_seconds, "-3s") == "\"-3s\" is negative (it must be 0 or more)");
  CHECK(refusal(parse_seconds, "") == "\"\" is not a time (write it like \"3.2us\")");
  CHECK(refusal(parse_seconds, "inf s") == "\"inf s\" is not a time (the number is out of range)");
  CHECK(refusal(parse_seconds, "nans") == "\"nans\" is not a time (the number is out of range)");
  CHECK(refusal(parse_seconds, "1e999s") ==
        "\"1e999s\" is not a time (the number is out of range)");
  CHECK(refusal(parse_seconds, "0x10s") ==
        "\"0x10s\" is not a time: unknown unit \"x10s\" (units: ns, us, ms, s, min, h)");
  CHECK(refusal(parse_bytes, "5000000TB") == "\"5000000TB\" is too large (at most 4000000TB)");
  CHECK(refusal(parse_rate, "50gbps").find("unknown unit \"gbps\"") !=
        std::string::npos);  // upper and lower case distinguish bytes and bits
  CHECK(refusal(parse_price, "2.50EUR/GPUh").find("units: USD/GPUh") != std::string::npos);
}

TEST_CASE("printed quantities parse back to the same value, in the shortest form") {
  CHECK(to_text(Bytes(std::int64_t{80} << 30)) == "80GiB");
  CHECK(to_text(Bytes(80'000'000'000)) == "80GB");
  CHECK(to_text(BytesPerSecond(50e9)) == "50GBps");
  CHECK(to_text(FlopsPerSecond(989e12)) == "989TFLOPS");
  CHECK(to_text(Seconds(2e-6)) == "2us");
  CHECK(to_text(Seconds(0)) == "0s");
  CHECK(price_text(2.5) == "2.5USD/GPUh");
  // Arbitrary values over 60 powers of two.
  double value = 1.2345678901234567e-9;
  for (int i = 0; i < 60; ++i, value *= 2.0000001) {
    CHECK(parse_seconds(to_text(Seconds(value))) == Seconds(value));
    CHECK(parse_rate(to_text(BytesPerSecond(value * 1e9))) == BytesPerSecond(value * 1e9));
    const Bytes bytes((std::int64_t{1} << i) + i * 12345);
    CHECK(parse_bytes(to_text(bytes)) == bytes);
  }
}

TEST_CASE("display texts have three significant digits") {
  CHECK(short_text(Seconds(21.8123)) == "21.8s");
  CHECK(short_text(Seconds(0.00123456)) == "1.23ms");
  CHECK(short_text(Bytes(81'711'000'000)) == "76.1GiB");
  CHECK(short_text(Bytes(1023)) == "1023B");
}

TEST_CASE("number_of() needs a finite number that fills the whole text") {
  CHECK(number_of("-2.5e3") == -2500);
  for (const char* none : {"", "x", "3 GB", "inf", "nan"}) {
    CAPTURE(none);
    CHECK_FALSE(number_of(none).has_value());
  }
}
