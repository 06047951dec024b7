#include "shared/weights/arrangement.h"

#include <algorithm>
#include <array>

#include "shared/checkpoint/tensor_size.h"
#include "shared/error.h"
#include "shared/weights/number_bytes.h"

namespace polyphony {
namespace {

// Walks the loops of a part, and leaves out whole branches that no run touches.
class Walk {
 public:
  Walk(const TensorPart& part, const std::vector<ElementRun>& runs, const TensorPart::Line& line)
      : part_(part), runs_(runs), line_(line), spans_(part.loops.size() + 1) {
    spans_.back() = part.length;
    for (std::size_t i = part.loops.size(); i-- > 0;)
      spans_[i] = spans_[i + 1] + (part.loops[i].count - 1) * part.loops[i].parameter;
  }
  void go() { go(0, part_.tensor_begin, part_.parameter_begin); }

 private:
  // Returns the first run that ends after `global`.
  std::vector<ElementRun>::const_iterator first_after(std::int64_t global) const {
    return std::upper_bound(
        runs_.begin(), runs_.end(), global,
        [](std::int64_t place, const ElementRun& run) { return place < run.global + run.count; });
  }

  void go(std::size_t depth, std::int64_t tensor, std::int64_t parameter) {
    const std::int64_t end = parameter + spans_[depth];
    auto run = first_after(parameter);
    if (run == runs_.end() || run->global >= end) return;
    if (depth < part_.loops.size()) {
      const TensorPart::Loop& loop = part_.loops[depth];
      for (std::int64_t i = 0; i < loop.count; ++i)
        go(depth + 1, tensor + i * loop.tensor, parameter + i * loop.parameter);
      return;
    }
    for (; run != runs_.end() && run->global < end; ++run) {
      const std::int64_t from = std::max(parameter, run->global);
      const std::int64_t to = std::min(end, run->global + run->count);
      line_(tensor + (from - parameter) * part_.step, run->local + from - run->global, to - from);
    }
  }

  const TensorPart& part_;
  const std::vector<ElementRun>& runs_;
  const TensorPart::Line& line_;
  std::vector<std::int64_t> spans_;  // elements of the parameter from a branch's begin to its end
};

template <class From, class To>
void gather_part(const Arrangement& arrangement, const TensorPart& part, bool adds,
                 const std::vector<ElementRun>& runs, const std::byte* tensor, std::byte* out) {
  constexpr auto kFrom = static_cast<std::int64_t>(sizeof(typename From::Bits));
  constexpr auto kTo = static_cast<std::int64_t>(sizeof(typename To::Bits));
  const bool plain = std::is_same_v<From, To> && part.step == 1 && arrangement.offset == 0 && !adds;
  part.lines(runs, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    const std::byte* source = tensor + from * kFrom;
    std::byte* target = out + to * kTo;
    if (plain) {
      std::memcpy(target, source, static_cast<std::size_t>(count * kTo));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, source += part.step * kFrom, target += kTo) {
      const double other = adds ? read_number<To>(target) : arrangement.offset;
      write_number<To>(target, read_number<From>(source) + other);
    }
  });
}

// The values of the 256 numbers of a format of one byte.
std::array<double, 256> values_of(const std::string& format) {
  std::array<double, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = format == "F8_E4M3" ? widen_e4m3(static_cast<std::uint8_t>(i))
                                    : widen_e5m2(static_cast<std::uint8_t>(i));
  return values;
}

// The same for a tensor in FP8, run by run of elements with the same scale.
template <class To>
void gather_scaled(const Arrangement& arrangement, const TensorPart& part, bool adds,
                   const std::vector<ElementRun>& runs, const TensorBytes& tensor, std::byte* out) {
  constexpr auto kTo = static_cast<std::int64_t>(sizeof(typename To::Bits));
  POLYPHONY_CHECK(tensor.scales.has_value(), part.tensor << " has no scales");
  const std::array<double, 256> values = values_of(tensor.format);
  part.lines(runs, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::byte* target = out + to * kTo;
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t place = from + done * part.step;
      const WeightScales::Run run = tensor.scales->at(place);
      const std::int64_t most = part.step == 1 ? std::min(count - done, run.count) : 1;
      for (std::int64_t i = 0; i < most; ++i, target += kTo) {
        const double other = adds ? read_number<To>(target) : arrangement.offset;
        const auto number = std::to_integer<std::size_t>(tensor.data[place + i]);
        write_number<To>(target, values[number] * run.scale + other);
      }
      done += most;
    }
  });
}

}  // namespace

TensorPart whole_tensor(const std::string& name, std::vector<std::int64_t> shape,
                        std::int64_t begin) {
  TensorPart part;
  part.tensor = name;
  part.length = element_count(shape);
  part.shape = std::move(shape);
  part.parameter_begin = begin;
  return part;
}

std::int64_t TensorPart::count() const {
  std::int64_t count = length;
  for (const Loop& loop : loops) count *= loop.count;
  return count;
}

void TensorPart::lines(const std::vector<ElementRun>& runs, const Line& line) const {
  Walk(*this, runs, line).go();
}

void gather(const Arrangement& arrangement, const std::vector<ElementRun>& runs,
            const TensorSource& tensor, const std::string& to, std::byte* out) {
  bool first = true;
  for (const TensorPart& part : arrangement.parts) {
    const TensorBytes bytes = tensor(part.tensor);
    const bool adds = arrangement.sums && !first;
    first = false;
    with_format(to, [&](auto target) {
      using To = decltype(target);
      if (is_fp8(bytes.format)) return gather_scaled<To>(arrangement, part, adds, runs, bytes, out);
      with_format(bytes.format, [&](auto from) {
        gather_part<decltype(from), To>(arrangement, part, adds, runs, bytes.data, out);
      });
    });
  }
}

std::string scatter(const Arrangement& arrangement, const std::string& tensor,
                    const std::byte* parameter, const std::string& from, const std::string& to) {
  // Parts of a sum are equal shares: the tensors of a model that learns from still images only.
  const double share = arrangement.sums ? 1.0 / static_cast<double>(arrangement.parts.size()) : 1;
  std::string bytes;
  with_format(from, [&](auto source_format) {
    with_format(to, [&](auto target_format) {
      using From = decltype(source_format);
      using To = decltype(target_format);
      constexpr auto kFrom = static_cast<std::int64_t>(sizeof(typename From::Bits));
      constexpr auto kTo = static_cast<std::int64_t>(sizeof(typename To::Bits));
      for (const TensorPart& part : arrangement.parts) {
        if (part.tensor != tensor) continue;
        bytes.resize(static_cast<std::size_t>(element_count(part.shape) * kTo));
        auto* const out = reinterpret_cast<std::byte*>(bytes.data());
        constexpr std::int64_t kAll = INT64_MAX / 2;
        part.lines({{0, 0, kAll}}, [&](std::int64_t place, std::int64_t local, std::int64_t run) {
          for (std::int64_t i = 0; i < run; ++i) {
            const double value = read_number<From>(parameter + (local + i) * kFrom);
            write_number<To>(out + (place + i * part.step) * kTo,
                             (value - arrangement.offset) * share);
          }
        });
      }
    });
  });
  return bytes;
}

}  // namespace polyphony
