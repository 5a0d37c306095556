// Importance matrices in both forms, right and wrong.
#include "core/base/error.h"
#include "importers/gguf/gguf.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hostile.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::as_bytes;
using testing::error_of;
using testing::GgufBuilder;
using testing::Hostile;

ImportanceMatrix read(std::string_view bytes) {
  return read_importance_matrix(SourceFile::from_memory("m.imatrix", as_bytes(bytes)));
}

template <typename T>
std::string number(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string text(std::string_view text) {
  return number(static_cast<std::int32_t>(text.size())) + std::string(text);
}

// --- GGUF

struct FloatTensor {
  std::string name;
  std::vector<std::uint64_t> sizes;  // fastest first
  std::vector<float> values;
};

std::string gguf_file(const std::vector<FloatTensor>& tensors, bool big_endian = false,
                      std::string_view type = "imatrix") {
  GgufBuilder builder(big_endian);
  builder.key("general.type", type).strings("imatrix.datasets", {"wiki.txt", "code.txt"});
  builder.key("imatrix.chunk_count", 12).key("imatrix.chunk_size", 512);
  for (const FloatTensor& tensor : tensors)
    builder.tensor(tensor.name, tensor.sizes, 0, 4 * tensor.values.size());
  std::string bytes = builder.header();
  for (const FloatTensor& tensor : tensors) {
    bytes.resize((bytes.size() + 31) / 32 * 32);
    for (const float value : tensor.values) bytes += builder.number(value);
  }
  return bytes;
}

std::vector<FloatTensor> sample_tensors() {
  return {{"blk.0.ffn_up_exps.weight.in_sum2", {3, 2}, {2, 4, 6, 0, 0, 0}},
          {"blk.0.ffn_up_exps.weight.counts", {1, 2}, {2, 0}},
          {"blk.0.attn_q.weight.in_sum2", {4}, {8, 0, 4, 2}},
          {"blk.0.attn_q.weight.counts", {1}, {4}},
          {"more", {1}, {7}}};
}
const ImportanceMatrix kSample = {
    {{"blk.0.attn_q.weight", {2, 0, 1, 0.5F}}, {"blk.0.ffn_up_exps.weight", {1, 2, 3, 1, 1, 1}}},
    {"wiki.txt", "code.txt"},
    12};

TEST(Importance, GgufSumsAreDividedByTheirCounts) {
  EXPECT_EQ(read(gguf_file(sample_tensors())), kSample);
  EXPECT_EQ(read(gguf_file(sample_tensors(), true)), kSample);
}

TEST(Importance, HostileGgufFiles) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto replaced = [](std::size_t at, FloatTensor tensor) {
    std::vector<FloatTensor> tensors = sample_tensors();
    tensors[at] = std::move(tensor);
    return gguf_file(tensors);
  };
  const std::string sums = "blk.0.attn_q.weight.in_sum2", counts = "blk.0.attn_q.weight.counts";
  std::string halves = gguf_file({{sums, {4}, {1, 1, 1, 1}}, {counts, {1}, {1}}});
  const std::size_t type = halves.find(sums) + sums.size() + 4 + 8;
  halves[type] = 1;
  testing::expect_errors(
      {{"a model", gguf_file(sample_tensors(), false, "model"), "general.type is not 'imatrix'"},
       {"no general.type", GgufBuilder().bytes(), "general.type is not 'imatrix'"},
       {"no entries", gguf_file({}), "has no tensor NAME.in_sum2"},
       {"no counts", replaced(3, {"other", {1}, {1}}), "has no tensor 'blk.0.attn_q.weight.counts'"},
       {"no sums", replaced(2, {"other", {1}, {1}}), "has no tensor 'blk.0.attn_q.weight.in_sum2'"},
       {"two counts", replaced(3, {counts, {1, 2}, {1, 1}}), "has 2 counts for 4 sums in rows of 4"},
       {"no columns", replaced(2, {sums, {0}, {}}), "has 1 counts for 0 sums"},
       {"a negative count", replaced(3, {counts, {1}, {-1}}), "has a count of -1"},
       {"a count that is no number", replaced(3, {counts, {1}, {kNaN}}), "has a count of nan"},
       {"a negative weight", replaced(2, {sums, {4}, {1, 2, -4, 8}}), "weight 2 is -1"},
       {"a weight that is no number", replaced(2, {sums, {4}, {1, 2, 4, kNaN}}), "weight 3 is nan"},
       {"an infinite weight", replaced(2, {sums, {4}, {1, kInfinity, 4, 8}}), "weight 1 is inf"},
       {"sums of another type", halves, "is F16, not F32"}},
      [](std::string_view bytes) { read(bytes); });
}

TEST(Importance, EveryPrefixAndFlipOfAGgufFileIsAClearError) {
  const std::string sample = gguf_file(sample_tensors());
  for (std::size_t length = 0; length < sample.size(); ++length)
    EXPECT_NE(error_of([&] { read(std::string_view(sample).substr(0, length)); }), "") << length;
  testing::expect_flips_survived("m.imatrix", sample, sample.size(),
                                 [](std::string_view bytes) { read(bytes); });
}

// --- the binary form

std::string entry(std::string_view name, std::int32_t calls, const std::vector<float>& values) {
  std::string bytes = text(name) + number(calls) + number(static_cast<std::int32_t>(values.size()));
  for (const float value : values) bytes += number(value);
  return bytes;
}
std::string binary_sample() {
  return number(std::int32_t{2}) + entry("blk.0.ffn_up_exps.weight", 2, {2, 4, 6, 2, 2, 2}) +
         entry("blk.0.attn_q.weight", 0, {2, 0, 1, 0.5F}) + number(std::int32_t{12}) + text("wiki.txt");
}

TEST(Importance, BinaryValuesAreDividedByTheirCalls) {
  ImportanceMatrix expected = kSample;
  expected.datasets = {"wiki.txt"};
  EXPECT_EQ(read(binary_sample()), expected);
  expected.datasets = {};
  expected.chunks = 0;
  const std::string oldest = binary_sample();
  EXPECT_EQ(read(oldest.substr(0, oldest.size() - 16)), expected);
}

TEST(Importance, HostileBinaryFiles) {
  const std::string one = number(std::int32_t{1});
  testing::expect_errors(
      {{"empty", "", "a count takes 4 bytes, 0 follow"},
       {"no entries", number(std::int32_t{0}), "claims 0 entries"},
       {"fewer than none", number(std::int32_t{-1}), "claims -1 entries"},
       {"too many entries", number(std::int32_t{1 << 30}) + std::string(99, 'x'),
        "claims 1073741824 entries, 99"},
       {"an empty name", one + text("") + std::string(30, '\1'), "claims 0 bytes of a name"},
       {"a name past the end", one + number(std::int32_t{100}) + std::string(30, 'x'),
        "claims 100 bytes of a name"},
       {"no values", one + entry("w", 1, {}) + std::string(30, '\0'), "claims 0 values"},
       {"more values than bytes",
        one + text("w") + one + number(std::int32_t{INT32_MAX}) + std::string(8, 'x'),
        "claims 2147483647 values, 8 bytes follow"},
       {"twice the same name", number(std::int32_t{2}) + entry("w", 1, {1}) + entry("w", 1, {1}),
        "occurs twice"},
       {"a negative weight", one + entry("w", 1, {1, -3}), "weight 1 is -3"},
       {"bytes after the end", binary_sample() + "x", "1 bytes after the importance matrix"},
       {"a dataset past the end", one + entry("w", 1, {1}) + one + number(std::int32_t{5}) + "wiki",
        "claims 5 bytes of a dataset's name"}},
      [](std::string_view bytes) { read(bytes); });
}

TEST(Importance, EveryPrefixOfABinaryFileIsAClearError) {
  const std::string sample = binary_sample();
  const std::size_t end = sample.size() - 16;  // of the entries
  for (std::size_t length = 0; length < sample.size(); ++length)
    if (length != end && length != end + 4)
      EXPECT_NE(error_of([&] { read(std::string_view(sample).substr(0, length)); }), "") << length;
  testing::expect_flips_survived("m.imatrix", sample, sample.size(),
                                 [](std::string_view bytes) { read(bytes); });
}

// --- looking up

TEST(Importance, WeightsAreFoundByNameAndExpert) {
  const auto weights = [](std::string_view tensor, std::uint64_t columns, std::uint64_t expert,
                          std::uint64_t experts) {
    const auto found = column_importance(kSample, tensor, columns, expert, experts);
    return std::vector<float>(found.begin(), found.end());
  };
  EXPECT_EQ(weights("blk.0.attn_q.weight", 4, 0, 1), (std::vector<float>{2, 0, 1, 0.5F}));
  EXPECT_EQ(weights("blk.0.ffn_up_exps.weight", 3, 1, 2), (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE(weights("blk.1.attn_q.weight", 4, 0, 1).empty());
  EXPECT_EQ(error_of([&] { weights("blk.0.attn_q.weight", 8, 0, 1); }),
            "tensor 'blk.0.attn_q.weight': has 8 columns in 1 experts, the importance matrix has 4 weights");
  EXPECT_NE(error_of([&] { weights("blk.0.attn_q.weight", UINT64_MAX / 2, 0, 4); }), "");
}

}  // namespace
}  // namespace loadline
