// Casts to FP8 and products of FP8 operands (exec/fused/fp8.h).
#include "exec/fused/fp8.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "exec/cuda/fp8_body.h"
#include "tests/exec/fused/operation.h"
#include "tests/exec/reference/plain_fp8.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

namespace polyphony::exec::testing {

namespace {

using kernels::Forms;
using kernels::Fp8Format;
using kernels::Fp8Operand;
using torch::Tensor;

constexpr Fp8Scaling kScalings[] = {Fp8Scaling::tensorwise, Fp8Scaling::rowwise};
constexpr Fp8Format kFormats[] = {Fp8Format::e4m3, Fp8Format::e5m2};

torch::Dtype dtype_of(Fp8Format format) {
  return format == Fp8Format::e4m3 ? torch::kFloat8_e4m3fn : torch::kFloat8_e5m2;
}
Tensor bits(const Tensor& fp8) { return fp8.view(torch::kUInt8); }
Tensor with_form(Forms form, const std::function<Tensor()>& make) {
  const FormsFor forms(form);
  return make();
}

// Compares fp8_of() with ATen's cast, for every sign, exponent, and the upper 15 bits of mantissas:
// ties and their neighbors are among them.
template <class Format>
std::int64_t differing(torch::Dtype dtype) {
  std::int64_t different = 0;
  constexpr std::int64_t kStep = 1 << 8, kPart = 1 << 20;
  for (std::int64_t first = 0; first < (std::int64_t{1} << 24); first += kPart) {
    Tensor all = torch::empty({kPart}, torch::kFloat32);
    std::vector<std::uint8_t> ours(kPart);
    for (std::int64_t i = 0; i < kPart; ++i) {
      // The lowest bit, too: just above a tie is not a tie.
      const auto pattern = static_cast<std::uint32_t>((first + i) * kStep + (i & 1));
      float x;
      std::memcpy(&x, &pattern, sizeof x);
      all.mutable_data_ptr<float>()[i] = x;
      ours[static_cast<std::size_t>(i)] = kernels::fp8_of<Format>(x);
    }
    const Tensor theirs = bits(all.to(dtype)), nan = all.isnan();
    const Tensor mine = torch::from_blob(ours.data(), {kPart}, torch::kUInt8);
    different += ((mine != theirs) & nan.logical_not()).sum().item<std::int64_t>();
    different += (mine.view(dtype).to(torch::kFloat32).isnan().logical_not() & nan)
                     .sum()
                     .item<std::int64_t>();
  }
  return different;
}

}  // namespace

TEST_SUITE("fp8") {
  TEST_CASE("numbers are cast as ATen casts them") {
    CHECK(differing<kernels::E4m3>(torch::kFloat8_e4m3fn) == 0);
    CHECK(differing<kernels::E5m2>(torch::kFloat8_e5m2) == 0);
  }

  TEST_CASE("our kernels and ATen's operators cast to the same bits") {
    torch::manual_seed(3);
    for (const auto type : {torch::kBFloat16, torch::kFloat32, torch::kFloat64})
      for (const auto& [rows, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {1, 16}, {16, 16}, {67, 48}, {200, 16}, {5, 1040}, {0, 32}})
        for (const Fp8Format format : kFormats)
          for (const Fp8Scaling scaling : kScalings) {
            CAPTURE(rows);
            CAPTURE(width);
            Tensor x = (torch::randn({rows, width}, torch::kFloat64) *
                        torch::randn({rows, 1}, torch::kFloat64).exp())
                           .to(type);
            if (rows > 4) x[3].zero_();
            for (const bool transposed : {false, true}) {
              const auto cast = [&] {
                return transposed ? kernels::cast_transposed_fp8(x, format, scaling)
                                  : kernels::cast_fp8(x, format, scaling);
              };
              Fp8Operand ours, theirs;
              with_form(Forms::fused, [&] { return (ours = cast()).scale; });
              with_form(Forms::aten, [&] { return (theirs = cast()).scale; });
              CHECK(ours.scale.equal(theirs.scale));
              CHECK(bits(ours.values).equal(bits(theirs.values)));
              const std::int64_t padded = (rows + 15) / 16 * 16;
              CHECK((ours.values.sizes() ==
                     (transposed ? at::IntArrayRef{width, padded} : at::IntArrayRef{rows, width})));
              CHECK(ours.values.is_contiguous());
              // What is left of x: a row of zeros stays one, and padding is zero.
              const Tensor back = ours.values.to(torch::kFloat32) * ours.scale;
              if (rows == 0) continue;
              const Tensor plain =
                  plain_cast((transposed ? x.t().contiguous() : x).to(torch::kFloat32),
                             dtype_of(format), scaling);
              CHECK((transposed ? back.narrow(1, 0, rows) : back).equal(plain));
              if (transposed && padded > rows)
                CHECK(back.narrow(1, rows, padded - rows).abs().max().item<float>() == 0);
              // The largest magnitude of each row is kept: it is cast to the format's largest.
              if (scaling == Fp8Scaling::rowwise) {
                const Tensor most = (transposed ? x.t() : x).to(torch::kFloat32).abs().amax(1);
                CHECK(torch::allclose(back.abs().amax(1), most, 1e-6, 0));
              }
            }
          }
  }

  TEST_CASE("a number that is not finite is not hidden") {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
      for (const Forms form : {Forms::fused, Forms::aten})
        for (const Fp8Scaling scaling : kScalings)
          for (const bool transposed : {false, true}) {
            const Tensor x = torch::ones({32, 32}, torch::kBFloat16);
            x[5][7] = bad;
            Fp8Operand cast;
            with_form(form, [&] {
              cast = transposed ? kernels::cast_transposed_fp8(x, Fp8Format::e4m3, scaling)
                                : kernels::cast_fp8(x, Fp8Format::e4m3, scaling);
              return cast.scale;
            });
            const Tensor other = torch::ones({16, 32}, torch::kFloat32).to(torch::kFloat8_e4m3fn);
            const Tensor y =
                kernels::fp8_product(cast, {other, torch::ones({1})}, torch::kFloat32, false);
            const std::int64_t row = transposed ? 7 : 5;
            CHECK(y[row].isnan().all().item<bool>());
            if (scaling == Fp8Scaling::rowwise)  // and no other row is touched
              CHECK(y.isnan().any(1).sum().item<std::int64_t>() == 1);
          }
  }

  TEST_CASE("operands as small as bf16 has them do not become NaN") {
    for (const Forms form : {Forms::fused, Forms::aten})
      for (const Fp8Format format : kFormats)
        for (const Fp8Scaling scaling : kScalings)
          for (const double small : {1e-40, 1e-37, 1e-33, 1e-30}) {
            Tensor x = torch::zeros({16, 32}, torch::kBFloat16);
            x[2][5] = small;
            Fp8Operand cast;
            with_form(form, [&] { return (cast = kernels::cast_fp8(x, format, scaling)).scale; });
            const Tensor back = cast.values.to(torch::kFloat32) * cast.scale;
            CHECK_FALSE(back.isnan().any().item<bool>());
            if (small >= 1e-33) CHECK(torch::allclose(back, x.to(torch::kFloat32), 1e-2, 0));
          }
  }

  // LibTorch's own kernel for CPUs has tensorwise scales.
  TEST_CASE("products equal those of _scaled_mm") {
    torch::manual_seed(4);
    const Tensor x = torch::randn({48, 64}), w = torch::randn({32, 64});
    for (const Fp8Format format : kFormats) {
      const Fp8Operand a = kernels::cast_fp8(x, format, Fp8Scaling::tensorwise),
                       b = kernels::cast_fp8(w, Fp8Format::e4m3, Fp8Scaling::tensorwise);
      const Tensor ours = kernels::fp8_product(a, b, torch::kFloat32, false);
      const Tensor theirs = at::_scaled_mm(a.values, b.values.t(), a.scale, b.scale, std::nullopt,
                                           std::nullopt, torch::kFloat32);
      CHECK((ours - theirs).abs().max().item<float>() < 1e-5F * theirs.abs().max().item<float>());
    }
  }
}

}  // namespace polyphony::exec::testing
