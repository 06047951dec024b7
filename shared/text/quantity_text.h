// Quantities as text, a number and a unit: "400Gbps", "80GiB", "989TFLOPS".
//   time           ns us ms s min h                                       -> Seconds
//   bytes          B kB MB GB TB PB (1000), KiB MiB GiB TiB (1024)        -> Bytes, rounded
//   rate           kbps Mbps Gbps Tbps (bits), Bps kBps MBps GBps TBps    -> BytesPerSecond
//                  or Mbit/s, MB/s, MiB/s and the like; 400Gbps = 50GBps
//   compute rate   FLOPS MFLOPS GFLOPS TFLOPS PFLOPS, or GFLOP/s          -> FlopsPerSecond
//   price          USD/GPUh                                               -> double
//   power          W kW MW                                                -> Watts
// One space is allowed before the unit. The parse functions throw InputError if the text has no
// unit or an unknown one, or if the value is negative or infinite; file and pointer are left empty
// for the caller to fill in. to_text() returns the shortest text that parses back to the same
// value.
#pragma once

#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony {

enum class UnitKind : std::uint8_t { time, bytes, rate, compute_rate, price, power };

Seconds parse_seconds(const std::string& text);
Bytes parse_bytes(const std::string& text);
BytesPerSecond parse_rate(const std::string& text);
FlopsPerSecond parse_compute_rate(const std::string& text);
double parse_price(const std::string& text);  // dollars per GPU and hour
Watts parse_power(const std::string& text);

// Returns the value in base units: s, B, B/s, FLOP/s, USD/GPUh, W.
double parse_quantity(UnitKind kind, const std::string& text);

std::string to_text(Seconds value);
std::string to_text(Bytes value);
std::string to_text(BytesPerSecond value);
std::string to_text(FlopsPerSecond value);
std::string to_text(Watts value);
std::string price_text(double dollars_per_rank_hour);

// Return a rounded text for display, with three significant digits ("21.8s", "76.1GiB").
std::string short_text(Seconds value);
std::string short_text(Bytes value);

// Returns all unit names of a kind, for messages and the JSON Schema.
std::vector<std::string> unit_names(UnitKind kind);
const char* name(UnitKind kind);

}  // namespace polyphony
