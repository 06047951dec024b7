#include "exec/checkpoint/safetensors.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstring>

#include "tests/exec/support/temp_folder.h"

namespace polyphony::exec {
namespace {

using testing::refusal;
using testing::slurp;
using testing::spill;
using testing::TempFolder;

std::vector<NamedTensor> some_tensors() {
  return {{"b", torch::tensor({{1.5F, -2.0F, 3.0F}, {4.0F, 5.0F, 6.25F}})},
          {"a", torch::tensor({1.0 / 3, -1e300}, torch::kFloat64)},
          {"empty", torch::empty({0, 4})},
          {"count", torch::tensor(std::int64_t{-7})},
          {"half", torch::tensor({1.0F, 2.5F}).to(torch::kBFloat16)}};
}

std::string with_header(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE("safetensors round trip bit for bit") {
    const TempFolder folder;
    const std::string path = folder / "x.safetensors";
    const FileDigest written = write_safetensors(path, some_tensors(), {{"a", "rows 1/2"}});
    CHECK(written == digest(path));
    CHECK(static_cast<std::uint64_t>(written.size.value) == slurp(path).size());
    const Safetensors file(path);
    CHECK(file.metadata() == std::map<std::string, std::string>{{"a", "rows 1/2"}});
    CHECK(file.entries().size() == 5);
    for (const auto& [name, tensor] : some_tensors()) {
      const torch::Tensor read = file.read(name);
      CHECK((read.scalar_type() == tensor.scalar_type()));
      CHECK(read.sizes() == tensor.sizes());
      CHECK(read.equal(tensor));
    }
    CHECK(refusal([&] { file.read("c"); }).find(path + ": has no tensor \"c\"") == 0);
  }

  TEST_CASE("a safetensors file has the published layout") {
    const TempFolder folder;
    const std::string path = folder / "x.safetensors";
    write_safetensors(path, {{"w", torch::tensor({1.0F, 2.0F})}}, {});
    // 57 characters of header, padded to 64; 1.0 and 2.0 are 0x3f800000 and 0x40000000.
    const std::string header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    const std::string data("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
    const std::size_t padded = (header.size() + 7) / 8 * 8;
    CHECK(slurp(path) == with_header(header + std::string(padded - header.size(), ' '), data));
  }

  TEST_CASE("a safetensors file truncated anywhere is rejected") {
    const TempFolder folder;
    const std::string path = folder / "x.safetensors", cut = folder / "cut.safetensors";
    write_safetensors(path, some_tensors(), {{"a", "whole"}});
    const std::string bytes = slurp(path);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      spill(cut, bytes.substr(0, length));
      CHECK(refusal([&] { Safetensors{cut}; }).find(cut + ": ") == 0);
    }
    spill(cut, bytes + "x");
    CHECK(refusal([&] { Safetensors{cut}; }).find("bytes of data, but its header describes") !=
          std::string::npos);
    CHECK(refusal([&] { Safetensors{folder / "none"}; }) ==
          folder / "none" + ": cannot be opened (restore the file, or use another checkpoint)");
  }

  TEST_CASE("no flipped bit of a safetensors header crashes the reader") {
    const TempFolder folder;
    const std::string path = folder / "x.safetensors";
    write_safetensors(path, some_tensors(), {{"a", "whole"}});
    const std::string bytes = slurp(path);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    int refused = 0;
    for (std::size_t i = 0; i < 8 + length; ++i) {
      for (const int bit : {0, 6}) {
        std::string bent = bytes;
        bent[i] = static_cast<char>(bent[i] ^ (1 << bit));
        spill(path, bent);
        refused += refusal([&] {
                     const Safetensors file(path);
                     for (const auto& [name, entry] : file.entries()) file.read(name);
                   }).empty()
                       ? 0
                       : 1;
      }
    }
    CHECK(refused >
          static_cast<int>(length));  // a changed letter of a tensor's name is a legal file
  }

  TEST_CASE("invalid headers are rejected with the reason") {
    const TempFolder folder;
    const std::string path = folder / "x.safetensors";
    const auto refused = [&](const std::string& header, const std::string& data = "12345678") {
      spill(path, with_header(header, data));
      return refusal([&] { Safetensors{path}; });
    };
    const std::string damaged =
        " (the file is damaged or truncated: restore it, or use another checkpoint)";
    const auto w = [](const std::string& shape, const std::string& offsets) {
      return "{\"w\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
    };
    CHECK(refused(w("[2]", "[0,8]")).empty());
    CHECK(refused(w("[3]", "[0,8]")) ==
          path + ": /w: its shape and its data_offsets do not agree" + damaged);
    CHECK(refused(w("[4611686018427387904,4]", "[0,8]")).find("do not agree") != std::string::npos);
    CHECK(refused(w("[0,4611686018427387904,4]", "[0,0]"), "").find("do not agree") !=
          std::string::npos);
    CHECK(refused(w("[1]", "[4,8]")) ==
          path + ": tensors leave a gap or overlap at byte 0 of the data" + damaged);
    CHECK(refused(w("[-1]", "[0,8]")).find("/w/shape/0: -1 is out of range") != std::string::npos);
    CHECK(refused(w("[2]", "[0,8,9]")).find("/w/data_offsets: list has 3 values") !=
          std::string::npos);
    CHECK(refused("{\"w\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,8]}}")
              .find("unknown value \"F4\"") != std::string::npos);
    CHECK(refused("{\"w\":7}").find("/w: 7 is not allowed here") != std::string::npos);
    CHECK(refused("[]").find("a list is not allowed here") != std::string::npos);
    CHECK(refused("{\"w\":").find("not JSON") != std::string::npos);
    CHECK(refused("{}", "").empty());
  }

  TEST_CASE("a full disk is an error that names the file") {
    CHECK(refusal([] {
            SyncedFile file("/dev/full");
            file.write("x", 1);
            file.finish();
          }) ==
          "/dev/full: cannot be written: No space left on device (free some disk space, or choose "
          "a folder on another disk)");
    CHECK(refusal([] { SyncedFile("/no/such/folder/x"); }) ==
          "/no/such/folder/x: cannot be created: No such file or directory (choose a folder that "
          "every rank can write to)");
  }

  TEST_CASE("checksums: FNV-1a over words") {
    const TempFolder folder;
    const std::string path = folder / "x";
    spill(path, "");
    CHECK(digest(path) == FileDigest{Bytes(0), 0xcbf29ce484222325});
    // One word 1: (basis xor 1) · prime, the published FNV-1a of the byte 1.
    spill(path, std::string("\x01", 1));
    CHECK(digest(path) == FileDigest{Bytes(1), 0xaf63bc4c8601b62c});
    // Blocks are 1 MiB: writing in odd pieces gives the same hash as reading in blocks.
    std::string large((std::size_t{1} << 20) * 2 + 13, 'x');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 + i / 257);
    SyncedFile file(path);
    for (std::size_t i = 0; i < large.size();) {
      const std::size_t part = std::min<std::size_t>(i % 7777 + 1, large.size() - i);
      file.write(large.data() + i, part);
      i += part;
    }
    const FileDigest written = file.finish();
    CHECK(written == digest(path));
    CHECK(slurp(path) == large);
  }
}

}  // namespace polyphony::exec
