// Not a test: scripts/oracle_tokenizer and scripts/bench_tokenizer run this.
//   tokenizer_bench encode|encode-special|decode|decode-skip TOKENIZER IN OUT
//   tokenizer_bench time TOKENIZER IN ROUNDS
// IN is a list of texts (for decode: of lists of ids), OUT a list of lists of ids (of texts): each
// as its number of bytes (4 bytes, little-endian) and its bytes.
#include <chrono>
#include <cstring>
#include <iostream>

#include "shared/error.h"
#include "shared/files/whole.h"
#include "shared/tokenizer/tokenizer.h"

namespace {

using polyphony::Tokenizer;

std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at, 4);
    records.push_back(bytes.substr(at + 4, size));
    at += 4 + std::size_t{size};
  }
  return records;
}

std::string converted(const Tokenizer& tokenizer, const std::string& mode,
                      const std::string& record) {
  if (mode.starts_with("decode")) {
    std::vector<std::int32_t> ids(record.size() / 4);
    std::memcpy(ids.data(), record.data(), 4 * ids.size());
    return tokenizer.decode(ids, mode == "decode-skip");
  }
  const std::vector<std::int32_t> ids = tokenizer.encode(record, mode == "encode-special");
  std::string bytes(4 * ids.size(), '\0');
  std::memcpy(bytes.data(), ids.data(), bytes.size());
  return bytes;
}

int run(const std::string& mode, const std::string& path, const std::string& in,
        const std::string& out) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto start) {
    return std::chrono::duration<double>(now() - start).count();
  };
  const auto start = now();
  const Tokenizer tokenizer = Tokenizer::load(path);
  const double load = since(start);
  const std::vector<std::string> records = records_of(polyphony::read_records(in));
  if (mode == "time") {  // one line: seconds to load, seconds of each round
    std::cout << load;
    for (int round = 0; round < std::stoi(out); ++round) {
      const auto begin = now();
      std::size_t ids = 0;
      for (const std::string& record : records) ids += tokenizer.encode(record).size();
      std::cout << " " << since(begin) << (ids == 0 ? " none" : "");
    }
    std::cout << "\n";
    return 0;
  }
  std::string all;
  for (const std::string& record : records) {
    const std::string one = converted(tokenizer, mode, record);
    const auto size = static_cast<std::uint32_t>(one.size());
    all.append(reinterpret_cast<const char*>(&size), 4);
    all += one;
  }
  polyphony::write_file(out, all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: tokenizer_bench MODE TOKENIZER IN OUT\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const polyphony::InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
