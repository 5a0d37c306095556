// Packed weights against the definition of each layout, number by number; what a plan may pack.
#include "core/convert/numbers/prepack.h"

#include "core/base/error.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/quantize.h"
#include "core/load/request/method.h"
#include "core/load/request/request.h"
#include "core/plan/dry_machine.h"
#include "core/plan/host_machine.h"
#include "core/plan/run.h"
#include "tests/support/builders.h"

#include <cstring>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// All numbers in the target type, in the stored order.
std::vector<std::byte> converted(const Prepack& how, std::span<const std::byte> stored) {
  std::vector<std::byte> numbers(static_cast<std::size_t>(how.elements()) * dtype_info(how.to).block_bytes);
  if (can_cast(how.from, how.to)) {
    cast(how.from, stored, how.to, numbers);
    return numbers;
  }
  std::vector<float> wide(static_cast<std::size_t>(how.elements()));
  dequantize(how.from, stored, wide);
  for (float& value : wide)
    if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  cast(DType::f32, std::as_bytes(std::span(wide)), how.to, numbers);
  return numbers;
}

std::vector<std::byte> by_definition(const Prepack& how, std::span<const std::byte> stored) {
  const std::vector<std::byte> numbers = converted(how, stored);
  const std::size_t wide = dtype_info(how.to).block_bytes;
  std::vector<std::byte> out(static_cast<std::size_t>(prepacked_bytes(how)));
  for (std::uint64_t r = 0; r < how.rows; ++r)
    for (std::uint64_t c = 0; c < how.columns; ++c) {
      std::uint64_t place = r * how.columns + c;
      if (how.layout == PrepackLayout::transposed) place = c * how.rows + r;
      if (how.layout == PrepackLayout::four_rows) place = (r / 4 * how.columns + c) * 4 + r % 4;
      std::memcpy(out.data() + place * wide, numbers.data() + (r * how.columns + c) * wide, wide);
    }
  return out;
}

TEST(Prepack, IsWhatItsLayoutSaysHoweverItIsDivided) {
  std::mt19937_64 random(3);
  for (const DType from : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_k})
    for (const DType to : {DType::f32, DType::f16, DType::bf16})
      for (const PrepackLayout layout :
           {PrepackLayout::rows, PrepackLayout::transposed, PrepackLayout::four_rows})
        for (const std::uint64_t rows : {1u, 3u, 4u, 7u, 18u}) {
          if (!can_prepack(from, to)) continue;
          const DTypeInfo& info = dtype_info(from);
          const Prepack how{from, to, layout, rows, info.block_elements > 1 ? 768u : 211u};
          const std::vector<std::byte> stored = random_bytes(static_cast<std::size_t>(stored_bytes(how)));
          const std::vector<std::byte> expected = by_definition(how, stored);
          std::vector<std::byte> out(expected.size(), std::byte{0xEE});
          const std::size_t blocks = stored.size() / info.block_bytes;
          for (std::size_t at = 0; at < blocks;) {
            const std::size_t count = std::min<std::size_t>(1 + random() % 3000, blocks - at);
            prepack(how, at * info.block_elements,
                    std::span(stored).subspan(at * info.block_bytes, count * info.block_bytes), out);
            at += count;
          }
          EXPECT_EQ(out, expected) << info.name << " " << static_cast<int>(layout) << " " << rows;
        }
  EXPECT_FALSE(can_prepack(DType::q8_0, DType::f32));
  EXPECT_FALSE(can_prepack(DType::i32, DType::i32));
}

// A model of f32 matrices, as bytes that are numbers.
MetaGraphPtr matrices(const testing::TemporaryFolder& folder) {
  MetaGraph graph = *testing::byte_model(folder, {4 * 35 * 6, 4 * 9});
  graph.tensors[0].dtype = graph.tensors[1].dtype = DType::f32;
  graph.tensors[0].shape = {35, 6};
  graph.tensors[1].shape = {9};
  return std::make_shared<const MetaGraph>(std::move(graph));
}

Plan packed_plan(const MetaGraph& graph, std::string_view method, std::string_view prepacking) {
  const LoadInputs inputs{.request = {.prepack = find_prepacking(prepacking)}};
  return make_plan(graph, find_method(method), {StorageId{0}, StorageId{1}}, inputs);
}

TEST(Prepacking, OfAPlanIsProjectedAndRehearsedAlike) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = matrices(folder);
  for (const PrepackingRow& row : prepackings()) {
    const Plan plan = packed_plan(*graph, "staged_ring", row.id);
    EXPECT_EQ(check_plan(plan, *graph), std::nullopt) << row.id;
    const StorageReader reader(graph);
    HostMachine host(reader);
    DryMachine dry;
    EXPECT_EQ(run(plan, host).peaks[index(Space::device)].bytes,
              run(plan, dry).peaks[index(Space::device)].bytes);
  }
  // 35 rows become 36; a vector is only converted
  DryMachine dry;
  EXPECT_EQ(run(packed_plan(*graph, "staged_ring", "four_rows_f16"), dry).peaks[index(Space::device)].bytes,
            2u * (36 * 6 + 9));
}

TEST(Prepacking, WritesThePackedWeightOnTheHostMachine) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = matrices(folder);
  const Plan plan = packed_plan(*graph, "direct", "transposed_f16");
  const StorageReader reader(graph);
  HostMachine host(reader);
  (void)run(plan, host);
  std::vector<std::byte> stored(graph->storages[0].bytes);
  reader.read(StorageId{0}, 0, stored);
  const std::span<const std::byte> made = host.bytes(BlockId{0});
  EXPECT_EQ(std::vector(made.begin(), made.end()), by_definition(*plan.blocks[0].prepack, stored));
}

TEST(Prepacking, LeavesWhatItCannotPack) {
  const testing::TemporaryFolder folder;
  MetaGraph graph = *matrices(folder);
  graph.tensors[1].strides = {2};  // every second number
  graph.tensors[1].shape = {5};
  const auto prepacks = storage_prepacks(graph, find_prepacking("f16"));
  EXPECT_TRUE(prepacks[0]);
  EXPECT_FALSE(prepacks[1]);
  EXPECT_FALSE(storage_prepacks(graph, find_prepacking("f32"))[0]) << "it is what is asked for already";
}

TEST(Prepacking, OfAPackedBlockIsChecked) {
  const testing::TemporaryFolder folder;
  const MetaGraphPtr graph = matrices(folder);
  Plan plan = packed_plan(*graph, "direct", "f16");
  Plan odd = plan;
  for (Step& step : odd.steps)
    if (step.verb == Verb::copy) step.bytes = 6;
  EXPECT_THAT(check_plan(odd, *graph).value_or(""), HasSubstr("no whole numbers"));
  Plan read = plan;
  const BlockId host = alloc(read, {.space = Space::host, .bytes = 4, .use = BlockUse::temporary});
  copy(read, host, 0, BlockId{0}, 0, 4);
  EXPECT_THAT(check_plan(read, *graph).value_or(""), HasSubstr("packed"));
  plan.blocks[0].bytes += 1;
  EXPECT_THAT(check_plan(plan, *graph).value_or(""), HasSubstr("no packed weight"));
  EXPECT_THROW(find_prepacking("f17"), Error);
}

}  // namespace
}  // namespace loadline
