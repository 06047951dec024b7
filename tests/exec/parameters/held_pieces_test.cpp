#include <cmath>

#include "exec/transport/in_process.h"
#include "shared/chunk/held_sizes.h"
#include "tests/exec/parameters/held_parameters.h"
#include "tests/exec/support/fused_adamw.h"
#include "tests/exec/support/update_terms.h"

#include <doctest/doctest.h>  // after LibTorch, which has a CHECK of its own

using namespace polyphony;
using namespace polyphony::exec;
using namespace polyphony::exec::testing;
using torch::Tensor;

namespace {

constexpr double kPiecesRate = 0.01, kPiecesClip = 0.5;

HeldOptions options(Shard shard, int shards, int index) {
  return {.place = {}, .shard = shard, .shards = shards, .shard_index = index};
}

std::int64_t bytes_of_pieces(HeldParameters& held, Tensor HeldPiece::* member) {
  std::int64_t total = 0;
  for (HeldPiece& piece : held.pieces())
    if ((piece.*member).defined()) total += static_cast<std::int64_t>((piece.*member).nbytes());
  return total;
}

}  // namespace

TEST_SUITE("held parameters") {
  TEST_CASE("unsharded, the bits are those of one fused call per parameter") {
    for (const torch::Dtype dtype : {torch::kFloat32, torch::kFloat64}) {
      auto ours = locals(module_under_test(), {}, dtype), theirs = ours;
      for (LocalParameter& parameter : theirs) {
        parameter.value = parameter.value.clone();
        parameter.grad = parameter.grad.clone();
      }
      HeldParameters held(pointers(ours), {});
      FusedAdamW adamw(pointers(theirs), kAdamW);
      for (int step = 0; step < 3; ++step) {
        for (std::size_t i = 0; i < ours.size(); ++i) {
          ours[i].grad.copy_(drawn(ours[i].spec, {}, step, 0, 0, dtype));
          theirs[i].grad.copy_(ours[i].grad);
        }
        held.step(kAdamW, kPiecesRate, update_terms(kPiecesClip, step + 1));
        adamw.step(kPiecesRate, kPiecesClip);
        for (std::size_t i = 0; i < ours.size(); ++i)
          CHECK(torch::equal(ours[i].value, theirs[i].value));
      }
      CHECK(held.squared_norm().item<double>() == 0);
    }
  }

  TEST_CASE("bf16: masters follow the fp32 curve bit for bit, values are their rounding") {
    // Steps far below half a unit of bf16 at 1 (2⁻⁹): values rounded every time would never move.
    constexpr double kSmall = 1e-5;
    auto narrow = locals(module_under_test(), {}, torch::kBFloat16);
    auto wide = locals(module_under_test(), {}, torch::kFloat32);
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i].value.copy_(narrow[i].value);
    HeldParameters held(pointers(narrow), {}), plain(pointers(wide), {});
    REQUIRE((held.gradient().scalar_type() == torch::kFloat32));
    for (int step = 0; step < 100; ++step) {
      for (auto* list : {&narrow, &wide})
        for (LocalParameter& p : *list) p.grad.copy_(drawn(p.spec, {}, 0, 0, 0, torch::kFloat32));
      held.step(kAdamW, kSmall, update_terms(1, step + 1));
      plain.step(kAdamW, kSmall, update_terms(1, step + 1));
    }
    CHECK(held.pieces().size() == wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const HeldPiece& piece = held.pieces()[i];
      CAPTURE(piece.parameter->spec.name);
      CHECK(torch::equal(piece.master, plain.pieces()[i].value));
      CHECK(torch::equal(piece.value, piece.master.to(torch::kBFloat16)));
      // Equal gradients every time: each step is ±rate (1711.05101, algorithm 2), 100 of them 1e-3.
      if (piece.parameter->spec.name == "language.head.norm.weight")
        CHECK((piece.master - initial_value(piece.parameter->spec, {}, 1, torch::kBFloat16, true))
                  .abs()
                  .max()
                  .item<double>() == doctest::Approx(1e-3).epsilon(1e-3));
    }
  }

  TEST_CASE("a skipped step changes only the gradient") {
    auto ours = locals(module_under_test(), {}, torch::kBFloat16);
    HeldParameters held(pointers(ours), {});
    for (const bool skip : {false, true}) {
      std::vector<torch::Tensor> before;
      for (const HeldPiece& piece : held.pieces())
        for (const torch::Tensor& held_there :
             {piece.value, piece.master, piece.first_moment, piece.second_moment})
          before.push_back(held_there.clone());
      for (LocalParameter& p : ours) p.grad.copy_(drawn(p.spec, {}, 0, 0, 0, torch::kFloat32));
      if (skip) ours.back().grad[0][0] = std::nan("");
      held.step(kAdamW, kPiecesRate, update_terms(skip ? std::nan("") : kPiecesClip, 1, skip));
      std::size_t same = 0, i = 0;
      for (const HeldPiece& piece : held.pieces())
        for (const torch::Tensor& held_there :
             {piece.value, piece.master, piece.first_moment, piece.second_moment})
          same += torch::equal(held_there, before[i++]) ? 1 : 0;
      CHECK(same == (skip ? before.size() : 0));
      CHECK(held.squared_norm().item<double>() == 0);
    }
  }

  TEST_CASE("an element that is not finite is found and named, and the norm is not finite either") {
    run_in_process(2, [&](Transport& transport) {
      const auto group = transport.make_group("shards", {Rank(0), Rank(1)});
      const int index = static_cast<int>(transport.rank().value);
      auto mine = locals(module_under_test(), {}, torch::kFloat32);
      HeldParameters half(pointers(mine), options(Shard::gradients, 2, index));
      half.open_gradient();
      CHECK(half.not_finite(half.gradient_norms()).empty());
      // Stack order: the last parameter, in the second half of the flat gradient.
      if (index == 0) mine.back().grad[3][1] = std::nan("");
      half.reduce_scatter(*group);
      CHECK(half.not_finite(half.gradient_norms()) == (index == 1 ? mine.back().spec.name : ""));
      CHECK(std::isnan(half.squared_norm().item<double>()) == (index == 1));
      half.zero_gradient();
      CHECK(half.squared_norm().item<double>() == 0);
    });
  }

  TEST_CASE("resident bytes equal the predicted ones, and are freed on release") {
    Module module = module_under_test();
    const auto check = [&](torch::Dtype dtype, NumberFormat format, Shard shard, bool frozen) {
      module.trainable = frozen ? Trainable::frozen : Trainable::full;
      run_in_process(3, [&](Transport& transport) {
        const int index = static_cast<int>(transport.rank().value);
        const auto group = transport.make_group("shards", {Rank(0), Rank(1), Rank(2)});
        auto list = locals(module, {}, dtype);
        HeldParameters held(pointers(list), options(shard, 3, index));
        const HeldBytes expected =
            held_bytes(held_elements(parameters(module), {}), shard, 3, index, format);
        const auto whole = [&](Tensor LocalParameter::* member) {
          std::int64_t total = 0;
          for (LocalParameter& p : list)
            if ((p.*member).defined()) total += static_cast<std::int64_t>((p.*member).nbytes());
          return Bytes(total);
        };
        const Bytes kept(bytes_of_pieces(held, &HeldPiece::value));
        CHECK(expected.optimizer == Bytes(bytes_of_pieces(held, &HeldPiece::first_moment) +
                                          bytes_of_pieces(held, &HeldPiece::second_moment) +
                                          bytes_of_pieces(held, &HeldPiece::master)));
        const bool full = shard == Shard::full, divided = full || shard == Shard::gradients;
        CHECK(expected.values == (full ? kept : whole(&LocalParameter::value)));
        CHECK(expected.gradient == (divided ? Bytes(bytes_of_pieces(held, &HeldPiece::gradient))
                                            : whole(&LocalParameter::grad)));
        held.gather(*group);
        held.open_gradient();
        CHECK(whole(&LocalParameter::value) == (full ? expected.gathered : expected.values));
        if (divided) CHECK(whole(&LocalParameter::grad) == expected.whole_gradient);
        const c10::weak_intrusive_ptr<c10::StorageImpl> values(
            c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
                list.front().value.storage().unsafeGetStorageImpl()));
        held.release();
        CHECK(values.expired() == full);
        if (!frozen && divided) {
          held.reduce_scatter(*group);
          CHECK(whole(&LocalParameter::grad) == Bytes(0));
        }
      });
    };
    for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::full}) {
      for (const bool frozen : {false, true}) {
        check(torch::kFloat64, NumberFormat::fp64, shard, frozen);
        check(torch::kFloat32, NumberFormat::fp32, shard, frozen);
        check(torch::kBFloat16, NumberFormat::bf16, shard, frozen);
      }
    }
  }

  TEST_CASE("bytes of a thousand trained and a hundred frozen parameters over four ranks") {
    // bf16: values 2, gradients 4, optimizer 4 + 4 + 4 bytes.
    const HeldElements elements{1000, 100};
    const auto bytes = [&](Shard shard) {
      return held_bytes(elements, shard, 4, 1, NumberFormat::bf16);
    };
    const auto is = [](const HeldBytes& held, std::int64_t values, std::int64_t gathered,
                       std::int64_t gradient, std::int64_t whole, std::int64_t optimizer) {
      return held == HeldBytes{Bytes(values), Bytes(gathered), Bytes(gradient), Bytes(whole),
                               Bytes(optimizer)};
    };
    CHECK(is(bytes(Shard::none), 2200, 0, 4000, 0, 12000));
    CHECK(is(bytes(Shard::optimizer), 2200, 0, 4000, 0, 3000));
    CHECK(is(bytes(Shard::gradients), 2200, 0, 1000, 4000, 3000));
    CHECK(is(bytes(Shard::full), 550, 2200, 1000, 4000, 3000));
  }
}
