// Parsing of published rows: which rows are errors, which are skipped, and the reasons.
#include <doctest/doctest.h>

#include <cmath>

#include <string>

#include "sim/judged/summary.h"
#include "sim/published/case_parts.h"

namespace polyphony::sim {
namespace {

const std::string kHeader =
    "id,model,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpus,gpu_type,tp,cp,pp,vpp,dp,ep,"
    "microbatch,global_batch,recompute,sequence_parallel,precision,measured_metric,measured_value,"
    "unit,shard,attention,mlp,experts,trainable,attention_kind,intra_node,software,stack,family,"
    "assumed";
// 8 GPUs, data parallel 8, 2 microbatches of 1.
const std::string kRow =
    "x_1,GPT,4,1024,8,8,4096,32000,1024,8,A100-80GB-SXM,1,1,1,1,8,1,1,16,none,0,bf16,"
    "iteration_time,100,ms,none,flash,plain,0,full,mha,nvlink3,\"Megatron-LM, "
    "2022\",megatron-core,f,";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::vector<PublishedRow> rows_of(const std::string& text) {
  std::vector<std::string> unknown;
  return read_published(text, "rows.csv", unknown);
}
std::string refusal(const std::string& text) {
  try {
    rows_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}
bool refused(const std::string& text, const std::string& start) {
  const std::string line = refusal(text);
  CAPTURE(line);
  return line.starts_with(start);
}

RowResult result_of(const std::string& row) {
  const auto results = run_published(rows_of(kHeader + "\n" + row + "\n"), {}, [](double) {});
  return results.front();
}
std::string reason(const std::string& from, const std::string& to) {
  return result_of(replaced(kRow, from, to)).reason;
}

}  // namespace

TEST_CASE("CSV: quotes, line ends, blank lines, a byte-order mark") {
  const CsvTable table = read_csv(
      "\xEF\xBB\xBF"
      "a, b ,c\r\n1,\"x, \"\"y\"\"\nz\",3\r\n\n 4 ,,6",
      "t.csv");
  CHECK(table.columns == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(table.lines.size() == 2);
  CHECK(table.lines[0].cells == std::vector<std::string>{"1", "x, \"y\"\nz", "3"});
  CHECK(table.lines[0].number == 2);
  CHECK(table.lines[1].cells == std::vector<std::string>{"4", "", "6"});
  CHECK(table.lines[1].number == 5);
}

TEST_CASE("CSV: errors name file and line") {
  CHECK(refused("", "rows.csv: is empty"));
  CHECK(refused("id,id\n", "rows.csv: line 1: column id appears twice"));
  CHECK(refused("id,\n", "rows.csv: line 1: column 2 has no name"));
  CHECK(refused("id,b\n1\n", "rows.csv: line 2: 1 cells, but the header has 2 columns"));
  CHECK(refused("id,b\n1,\"2\n3,4\n", "rows.csv: line 2: a quote is never closed"));
  CHECK(refused("id,b\n1,\"2\"3\n", "rows.csv: line 2: \"3\" follows a closing quote"));
}

TEST_CASE("rows: errors name line and column, and say how to fix them") {
  const auto with = [](const std::string& from, const std::string& to) {
    return kHeader + "\n" + replaced(kRow, from, to) + "\n";
  };
  CHECK(refusal(kHeader + "\n" + kRow + "\n") == "accepted");
  CHECK(refused("id,seq\nx,1\n", "rows.csv: line 1: column measured_metric is missing"));
  CHECK(refused(with(",1024,8,8,4096", ",1k,8,8,4096"),
                "rows.csv: line 2, column hidden: \"1k\" is not a number"));
  CHECK(refused(with(",1024,8,8,4096", ",1024.5,8,8,4096"),
                "rows.csv: line 2, column hidden: \"1024.5\" is not a count"));
  CHECK(refused(with("iteration_time", "speed"),
                "rows.csv: line 2, column measured_metric: \"speed\" is not a metric"));
  CHECK(refused(with("100,ms", "100,h"), "rows.csv: line 2, column unit: \"h\" is not a unit"));
  CHECK(
      refused(with("100,ms", "0,ms"), "rows.csv: line 2, column measured_value: is not positive"));
  CHECK(refused(with("100,ms", ",ms"), "rows.csv: line 2, column measured_value: is blank"));
  CHECK(refused(with("none,0,bf16", "none,no,bf16"),
                "rows.csv: line 2, column sequence_parallel: \"no\" is not a boolean"));
  CHECK(refused(kHeader + "\n" + kRow + "\n" + kRow + "\n",
                "rows.csv: line 3, column id: \"x_1\" appears twice"));
  std::vector<std::string> unknown;
  read_published("id,measured_metric,measured_value,unit,colour\n", "rows.csv", unknown);
  CHECK(unknown == std::vector<std::string>{"colour"});
}

TEST_CASE("rows: an id is given once in all files") {
  std::vector<PublishedRow> rows;
  std::vector<std::string> unknown;
  add_published(kHeader + "\n" + kRow + "\n", "a.csv", rows, unknown);
  add_published(kHeader + "\n" + replaced(kRow, "x_1", "x_2") + "\n", "b.csv", rows, unknown);
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].file == "b.csv");
  try {
    add_published(kHeader + "\n" + kRow + "\n", "c.csv", rows, unknown);
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(
        std::string(error.what()).starts_with("c.csv: line 2, column id: \"x_1\" is in a.csv too"));
  }
  CHECK(rows.size() == 2);
}

TEST_CASE("rows: without a column stack, it follows from the software") {
  const auto stack = [](const std::string& software, const std::string& year) {
    PublishedRow row;
    row.software = software;
    row.measured_on = year;
    return read_stack(row).name;
  };
  CHECK(stack("Megatron-LM core 0.12", "2025-02") == "megatron-core");
  CHECK(stack("Megatron-LM", "2021") == "megatron-2021");
  CHECK(stack("Megatron-LM", "2022-05") == "megatron-2022");
  CHECK(stack("NVIDIA Megatron-Bridge, container nemo:26.08", "") == "megatron-bridge");
  CHECK(stack("Megatron-DeepSpeed", "2023") == "megatron-deepspeed");
  CHECK(stack("torchtitan", "2025") == "fsdp2-compiled");
  CHECK(stack("PyTorch FSDP2", "2025") == "fsdp2");
  CHECK_THROWS_AS(stack("ColossalAI", "2023"), Skip);
}

TEST_CASE("rows: contradictory rows are skipped, and the reason gives the numbers") {
  CHECK(reason("x_1", "x_1").empty());
  CHECK(reason(",1024,8,A100", ",1024,16,A100") ==
        "contradiction: gpus 16, tp·cp·pp·dp = 1·1·1·8 = 8");
  CHECK(reason(",1,16,none", ",3,16,none") ==
        "contradiction: microbatch·dp = 3·8 does not divide global_batch 16");
  CHECK(reason(",8,8,4096", ",8,3,4096") == "contradiction: kv_heads 3 does not divide heads 8");
}

TEST_CASE("rows: shards that do not divide the replicas, a row that duplicates itself") {
  const auto reason_of = [](const std::string& shard_ranks, const std::string& duplicate_of) {
    const std::string text = kHeader + ",shard_ranks,duplicate_of\n" + kRow + "," + shard_ranks +
                             "," + duplicate_of + "\n";
    return run_published(rows_of(text), {}, [](double) {}).front().reason;
  };
  CHECK(reason_of("4", "x_2").empty());
  CHECK(reason_of("3", "") == "contradiction: shard_ranks 3 does not divide dp·cp = 8");
  CHECK(reason_of("", "x_1") == "contradiction: duplicate_of names the row itself");
}

TEST_CASE(
    "rows: a row with a required value missing, or without a profile, is skipped with a reason") {
  CHECK(reason("x_1,GPT,4,", "x_1,GPT,,") == "layers is not stated");
  CHECK(reason(",16,none,", ",16,,") == "recompute is not stated");
  CHECK(reason(",bf16,", ",,") == "precision is not stated");
  CHECK(reason(",32000,", ",,") == "vocab is not stated");
  CHECK(reason("A100-80GB-SXM", "MI250X").starts_with("device \"MI250X\" has no profile"));
  CHECK(reason("\"Megatron-LM, 2022\",megatron-core", "Colossal,")
            .starts_with("software \"Colossal\" names no stack that is known; write one in the "
                         "column stack: polyphony, megatron-2021, "));
  CHECK(reason("\"Megatron-LM, 2022\",megatron-core", "Colossal,colossal")
            .starts_with("stack \"colossal\" is unknown; write one in the column stack: "));
  CHECK(reason(",full,mha,", ",projector-only,mha,").starts_with("trainable projector-only"));
  CHECK(reason(",full,mha,", ",full,hybrid,").starts_with("attention_kind hybrid"));
  CHECK(reason(",bf16,", ",nvfp4,") == "A100-80 does not support precision nvfp4");
  CHECK(reason(",bf16,", ",int4,") == "precision int4 is not modeled");
}

TEST_CASE("rows: one step in every metric of time") {
  const double seconds = result_of(kRow).predicted / 1e3;
  CHECK(seconds > 0);
  CHECK(result_of(replaced(kRow, "100,ms", "0.1,s")).predicted == doctest::Approx(seconds));
  // 16 samples of 1024 tokens on 8 GPUs.
  CHECK(result_of(replaced(kRow, "iteration_time,100,ms", "tokens_per_sec_per_gpu,1,tok/s/GPU"))
            .predicted == doctest::Approx(16 * 1024 / seconds / 8));
  // 72·B·L·s·h²·(1 + s/6h + V/12Lh), B 16, L 4, s = h = 1024, V 32000.
  const double flops =
      72.0 * 16 * 4 * 1024 * 1024 * 1024 * (1 + 1 / 6.0 + 32000 / (12.0 * 4 * 1024));
  CHECK(result_of(replaced(kRow, "iteration_time,100,ms", "model_tflops_per_gpu,1,TFLOP/s/GPU"))
            .predicted == doctest::Approx(flops / 8 / seconds / 1e12));
  CHECK(result_of(replaced(kRow, "iteration_time,100,ms", "mfu,1,% of 312 TFLOP/s")).predicted ==
        doctest::Approx(100 * flops / 8 / seconds / 312e12));
}

TEST_CASE("rows: memory follows the rules of the row's software") {
  const auto memory = [](const std::string& metric, const std::string& stack) {
    return replaced(replaced(kRow, "iteration_time,100,ms", metric + ",1,GB"), "megatron-core",
                    stack);
  };
  const std::string eager =
      replaced(memory("param_plus_optimizer_memory", "megatron-2022"), ",flash,", ",eager,");
  CHECK(result_of(eager).memory_of == Keeping::megatron);
  // Of the blocks alone, 18·12·L·h² bytes with L 4 and h 1024: biases, norms and a word are 0.1 %.
  CHECK(result_of(eager).predicted ==
        doctest::Approx(18 * 12 * 4 * 1024 * 1024 / 1e9).epsilon(2e-3));

  const auto found = [&](const std::string& metric, const std::string& stack) {
    const RowResult result = result_of(memory(metric, stack));
    CHECK(result.memory_of == Keeping::fsdp);
    return result.predicted;
  };
  const double allocated = found("peak_memory", "fsdp2");
  CHECK(allocated > 0);
  // Nothing recomputed: 1024 rows of 1024 twice at a block's end, and logits of 32000 words, bf16.
  const double reserved_one = allocated + 2 * (2.0 * 1024 * 1024 + 1024.0 * 32000) / 1e9;
  CHECK(found("peak_reserved_memory", "fsdp2") == doctest::Approx(reserved_one));
  const RowResult core = result_of(memory("peak_memory", "megatron-core"));
  CHECK(result_of(memory("peak_reserved_memory", "megatron-core")).predicted ==
        doctest::Approx(core.predicted / 0.94));
  const auto reserved = run_published(
      rows_of(kHeader + ",stack_traits\n" + memory("peak_memory", "fsdp2") + ",reserved-memory\n"),
      {}, [](double) {});
  CHECK(reserved.front().predicted == doctest::Approx(reserved_one));

  const auto recomputed = [&](const std::string& how) {
    return result_of(replaced(memory("peak_memory", "fsdp2"), ",16,none,", ",16," + how + ","));
  };
  CHECK(recomputed("selective(op)").predicted < allocated);
  CHECK(recomputed("selective(per-op)").predicted == recomputed("selective(op)").predicted);
  CHECK(recomputed("full").predicted < recomputed("selective").predicted);
  CHECK(recomputed("selective(2)")
            .reason.starts_with("memory under recompute selective(2) of PyTorch"));
}

TEST_CASE("rows: memory reserved by FSDP2, tensor by tensor") {
  // Llama 8B on 8 GPUs, two sequences of 8192: 16384 rows of 4096, 14336 and 128256.
  const std::string row =
      "x_1,LLAMA3-8B,32,4096,32,8,14336,128256,8192,8,H100-80GB-SXM,1,1,1,1,8,1,2,16,selective(op),"
      "0,bf16,peak_reserved_memory,1,GiB,full,sdpa,gated,0,full,gqa,nvlink4,torchtitan,";
  const double rows = 16384, wide = 2 * rows * 14336, stream = 2 * rows * 4096;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096,
               ends = 2.0 * 128256 * 4096 + 4096;
  // Masters, moments, gradients; both ends gathered and the buffer they came in, two blocks.
  const double state = 16.0 / 8 * (32 * block + ends) + 2 * (2 * ends + 2 * block);
  // Of a block its input, q, v, attention's output and log-sum-exp, gate.
  const double tape = 3 * stream + stream / 4 + 4 * rows * 32 + wide;
  // The head's input and its norm's output, a scale a row; logarithms of the logits, the gradient
  // of the loss and theirs; room for the gradient that the last block returns.
  const double loss = 2 * stream + 4 * rows + 12 * rows * 128256 + stream;
  // Free, but not for logits: stream, norm, up and product; the logits in bf16.
  const double free = 2 * stream + 2 * wide + 2 * rows * 128256, workspace = 32 << 20;
  const double compiled = state + 32 * tape + loss + free + workspace, gib = 1 << 30;
  CHECK(result_of(row + "fsdp2-compiled,f,").predicted == doctest::Approx(compiled / gib));
  // Eager: the last product's output of each block, too; silu's in place of it.
  CHECK(result_of(row + "fsdp2,f,").predicted ==
        doctest::Approx((compiled + 32 * stream + wide - stream) / gib));
}

TEST_CASE("statistics of errors") {
  // |error|: 0.1, 0.2, 0.3, 0.6.
  const Errors errors = summarize({0.1, -0.2, 0.3, -0.6});
  CHECK(errors.count == 4);
  CHECK(errors.mean == doctest::Approx(0.3));
  CHECK(errors.median == doctest::Approx(0.25));
  CHECK(errors.worst == -0.6);
  CHECK(errors.bias == doctest::Approx(-0.1));
  CHECK(summarize({}).count == 0);
}

TEST_CASE("Kendall's tau and regret") {
  // 3 pairs, one of them the wrong way round: (2 - 1)/3.
  CHECK(*kendall_tau({1, 2, 3}, {1, 3, 2}) == doctest::Approx(1 / 3.0));
  CHECK(*kendall_tau({1, 2, 3}, {30, 20, 10}) == -1);
  // One pair tied in a: 2 agree, over sqrt(2 · 3).
  CHECK(*kendall_tau({1, 1, 2}, {1, 2, 3}) == doctest::Approx(2 / std::sqrt(6.0)));
  CHECK_FALSE(kendall_tau({1, 1}, {1, 2}).has_value());
  CHECK(regret({3, 1, 2}, {30, 12, 10}) == doctest::Approx(0.2));
}

TEST_CASE("the naive baseline is fitted to the other rows") {
  // Twice the batch in twice the time: e is the same, so the left-out row is met exactly.
  const std::string text =
      kHeader + "\n" + kRow + "\n" +
      replaced(replaced(replaced(kRow, "x_1", "x_2"), ",1,16,none", ",1,32,none"), "100,ms",
               "200,ms") +
      "\n";
  auto results = run_published(rows_of(text), {}, [](double) {});
  fit_naive(results);
  for (const RowResult& result : results) {
    REQUIRE(result.naive.has_value());
    CHECK(*result.naive / result.measured_step == doctest::Approx(1));
  }
  const auto summaries = summarize_blocks(results);
  REQUIRE(summaries.size() == 1);
  CHECK(summaries[0].complete.ours.count == 2);
}

TEST_CASE("rows: the share of selective recomputation, by hand") {
  // Of a token: 2·8·(8 + 4) weights of projections, 100·8 of scores (half of the pairs, two
  // products), 3·8·16 of the feed-forward part: 192, 800, 384.
  PublishedRow row;
  row.seq = 100;
  Module module;
  module.hidden = 8;
  module.heads = 2;
  module.kv_heads = 1;
  module.head_dim = 4;
  module.ffn = 16;
  module.gated = true;
  const auto share = [&](const std::string& what) {
    row.recompute = what;
    return selected_share(row, module);
  };
  CHECK(share("selective(op)").value() == doctest::Approx((192 + 384) / 2.0 / 1376));
  CHECK(share("selective(mlp)").value() == doctest::Approx(384.0 / 1376));
  CHECK(share("selective(mlp+core_attn)").value() == doctest::Approx((384.0 + 800) / 1376));
  CHECK_FALSE(share("selective(layernorm)").has_value());
}

}  // namespace polyphony::sim
