// What is found in a model: faults, statistics, pictures, differences.

#include "core/base/error.h"
#include "core/inspect/doctor.h"
#include "core/inspect/model_differences.h"
#include "core/inspect/tensor_values.h"
#include "core/load/order/optimal_order.h"
#include "exporters/convert.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- Findings about files: each on a model made to have it, and none on one made well.

namespace {

using testing::TemporaryFolder;
using testing::write_file;

bool any_conversion(const std::vector<Remedy>&) { return true; }

exporters::ConvertEnvironment conversion_environment() {
  return {.policies = {},
          .order = [](const graph::MetaGraph& graph,
                      const std::string& order) { return load::written_order(graph, order); },
          .importance = {},
          .share = {}};
}

// A file of `bytes` bytes that repeats nothing, and a graph over it.
class Model {
 public:
  explicit Model(std::uint64_t bytes, std::string name = "m.bin") {
    std::string content;
    for (std::uint64_t i = 0; i < bytes; ++i) content.push_back(static_cast<char>((i * 2654435761U) >> 13));
    write_file(folder_ / name, content);
    graph_.files.push_back({folder_ / name, bytes});
  }
  Model& tensor(const char* name, graph::DType dtype, std::uint64_t elements, std::uint64_t offset) {
    const std::uint64_t bytes = graph::byte_size(dtype, elements).value();
    graph_.storages.push_back(graph::plain_storage(graph::FileId{0}, offset, bytes));
    graph_.tensors.push_back({name,
                              dtype,
                              {elements},
                              {},
                              graph::StorageId{static_cast<std::uint32_t>(graph_.storages.size() - 1)},
                              0});
    return *this;
  }
  graph::MetaGraph& graph() { return graph_; }
  const TemporaryFolder& folder() const { return folder_; }
  std::vector<inspect::Finding> findings() const {
    Progress progress;
    const auto graph = std::make_shared<const graph::MetaGraph>(graph_);
    const auto can_convert = [&](const std::vector<Remedy>& settings) {
      return exporters::can_convert(graph, settings, conversion_environment());
    };
    return inspect::diagnose(io::StorageReader(graph), can_convert, progress);
  }
  // The one of that id; nothing found is a count of 0.
  inspect::Finding finding(std::string_view id) const {
    for (const inspect::Finding& found : findings())
      if (found.id == id) return found;
    return {};
  }

 private:
  TemporaryFolder folder_;
  graph::MetaGraph graph_;
};

TEST(Doctor, FindsNothingInAWellMadeFile) {
  Model model(3 * 8192);
  model.tensor("embed", graph::DType::f32, 2048, 0)
      .tensor("layers.0.w", graph::DType::f32, 2048, 8192)
      .tensor("lm_head", graph::DType::f32, 2048, 16384);
  EXPECT_TRUE(model.findings().empty());
}

TEST(Doctor, HolesOfSparseFilesAreNotRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "sparse.bin";
  constexpr std::uint64_t kEach = std::uint64_t{1} << 36;  // more than could be read in a test
  write_file(path, std::string(8192, 'x'));
  std::filesystem::resize_file(path, 8192 + 2 * kEach);
  auto graph = std::make_shared<graph::MetaGraph>();
  graph->files.push_back({path, 8192 + 2 * kEach});
  for (const auto& [offset, bytes] :
       {std::pair(std::uint64_t{0}, std::uint64_t{8192}), {8192, kEach}, {8192 + kEach, kEach}}) {
    graph->storages.push_back(graph::plain_storage(graph::FileId{0}, offset, bytes));
    const auto id = static_cast<std::uint32_t>(graph->tensors.size());
    graph->tensors.push_back(
        {"t" + std::to_string(id), graph::DType::u8, {bytes}, {}, graph::StorageId{id}, 0});
  }
  Progress progress;
  const std::vector<inspect::Finding> findings =
      inspect::diagnose(io::StorageReader(graph), any_conversion, progress);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].id, "unwritten");
  EXPECT_EQ(findings[0].count, 2u);
  EXPECT_EQ(findings[0].bytes, 2 * kEach);
}

TEST(Doctor, Alignment) {
  Model model(40'000);
  model.tensor("a", graph::DType::f32, 100, 2)
      .tensor("b", graph::DType::f16, 100, 502)
      .tensor("c", graph::DType::u8, 64, 1024);
  EXPECT_EQ(model.finding("alignment").count, 1u);
  EXPECT_EQ(model.finding("alignment").bytes, 400u);
  EXPECT_EQ(model.finding("vector_alignment").count, 1u);
  EXPECT_EQ(graph::index(*model.finding("vector_alignment").example), 1u);
}

// Every advice is a conversion that this model allows, and what it was given for is gone after it.
TEST(Doctor, AdviceIsTakenAndMends) {
  const auto f32 = graph::DType::f32, u8 = graph::DType::u8, i16 = graph::DType::i16,
             e8 = graph::DType::f8_e8m0;
  std::size_t taken = 0, none = 0;
  for (const auto& [first, second] : {std::pair(f32, i16), {f32, u8}, {i16, u8}, {f32, e8}}) {
    Model model(40'000);
    model.tensor("model.norm.weight", first, 2000, 3)
        .tensor("model.layers.0.w", first, 2000, 16'100)
        .tensor("model.embed_tokens.weight", second, 4096, 30'001);
    for (const inspect::Finding& found : model.findings()) {
      if (found.settings.empty()) {
        ++none;
        continue;
      }
      exporters::ConvertRequest request;
      for (const Remedy& setting : found.settings)
        set_option(*find_option(exporters::convert_options(), setting.option), request, setting.value);
      const auto graph = std::make_shared<const graph::MetaGraph>(model.graph());
      const std::string out =
          model.folder() / fmt::format("{}-{}", found.id, exporters::find_exporter(request.to).extension);
      Progress progress;
      exporters::convert_model(exporters::bind_conversion(graph, request, out, conversion_environment()),
                               progress);
      const auto mended = std::make_shared<const graph::MetaGraph>(importers::open_model(out, {}));
      for (const inspect::Finding& left :
           inspect::diagnose(io::StorageReader(mended), any_conversion, progress))
        EXPECT_NE(left.id, found.id) << left.text;
      ++taken;
    }
  }
  EXPECT_GE(taken, 12u);
  EXPECT_EQ(none, 0u);
}

TEST(Doctor, PagesSharedWithNeighbors) {
  Model model(40'000);
  model.tensor("a", graph::DType::u8, 4096, 100)
      .tensor("b", graph::DType::u8, 10, 8192)
      .tensor("c", graph::DType::u8, 4097, 12288);
  EXPECT_EQ(model.finding("page_straddle").count, 1u);
  EXPECT_EQ(model.finding("page_straddle").bytes, 4096u);
}

TEST(Doctor, OrderOfUseAgainstOrderOnDisk) {
  Model model(40'000);
  model.tensor("lm_head.weight", graph::DType::u8, 64, 0)
      .tensor("layers.1.w", graph::DType::u8, 64, 64)
      .tensor("layers.0.w", graph::DType::u8, 64, 128)
      .tensor("embed_tokens.weight", graph::DType::u8, 64, 192);
  EXPECT_EQ(model.finding("order").count, 3u);
  EXPECT_EQ(testing::facts(model.finding("order").text), "3 3");
}

TEST(Doctor, HolesAndTrailingBytes) {
  Model model(40'000);
  model.graph().format = "safetensors";
  model.tensor("a", graph::DType::u8, 64, 64)
      .tensor("b", graph::DType::u8, 64, 256)
      .tensor("c", graph::DType::u8, 64, 8192);
  EXPECT_EQ(model.finding("holes").count, 1u);  // the other is what aligning takes
  EXPECT_EQ(model.finding("holes").bytes, 8192u - 320);
  EXPECT_EQ(model.finding("trailing").bytes, 40'000u - 8256);
  EXPECT_EQ(model.finding("trailing").files.size(), 1u);
  model.graph().format = "torch";  // its directory lies there
  EXPECT_EQ(model.finding("trailing").count, 0u);
}

TEST(Doctor, DuplicatesByContent) {
  Model model(1);
  std::string content(3 * 8192, 'a');
  content.replace(8192, 8192, std::string(8192, 'b'));
  const std::string path = model.folder() / "m.bin";
  write_file(path, content);
  model.graph().files = {{path, content.size()}};
  model.tensor("x", graph::DType::u8, 8192, 0)
      .tensor("y", graph::DType::u8, 8192, 8192)
      .tensor("z", graph::DType::u8, 8192, 16384);
  EXPECT_EQ(model.finding("duplicates").count, 1u);
  EXPECT_EQ(model.finding("duplicates").bytes, 8192u);
  content.back() = '!';  // alike at the beginning only
  write_file(path, content);
  EXPECT_EQ(model.finding("duplicates").count, 0u);
}

// As large as a model: not read whole to be proved alike.
TEST(Doctor, LargeDuplicatesAreTakenBySamples) {
  constexpr std::uint64_t kEach = std::uint64_t{3} << 30;
  Model model(1);
  const std::string path = model.folder() / "m.bin";
  std::filesystem::resize_file(path, 2 * kEach);
  // a hole with nothing in it would not be read at all
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  for (const std::uint64_t at : {std::uint64_t{0}, kEach})
    file.seekp(static_cast<std::streamoff>(at)).put('x');
  file.close();
  model.graph().files = {{path, 2 * kEach}};
  model.tensor("x", graph::DType::u8, kEach, 0).tensor("y", graph::DType::u8, kEach, kEach);
  EXPECT_EQ(model.finding("duplicates").bytes, kEach);
  EXPECT_NE(model.finding("duplicates").text.find("samples"), std::string::npos);
}

TEST(Doctor, ViewsThatLeaveMostUnused) {
  Model model(100'000);
  model.tensor("view", graph::DType::u8, 90'000, 0);
  model.graph().tensors[0].shape = {100};
  EXPECT_EQ(model.finding("unused_bytes").bytes, 89'900u);
  model.graph().tensors.push_back(model.graph().tensors[0]);  // the same bytes by another name
  model.graph().tensors.back().name = "tied";
  EXPECT_EQ(model.finding("unused_bytes").bytes, 89'900u);
}

TEST(Doctor, EncodedStorages) {
  Model model(100);
  model.tensor("w", graph::DType::i16, 32, 0);
  model.graph().storages[0].encoding = graph::Encoding::byte_swapped;
  model.graph().storages[0].unit = 2;
  EXPECT_EQ(model.finding("encoded").count, 1u);
  EXPECT_EQ(testing::facts(model.finding("encoded").text), "1 1");
}

TEST(Doctor, MissingAndUnclaimed) {
  Model model(100, "m.index.json");
  write_file(model.folder() / "m-00001-of-00002.safetensors", std::string(64, 'x'));
  write_file(model.folder() / "m-00002-of-00002.safetensors", std::string(64, 'x'));
  write_file(model.folder() / "notes.txt", "x");
  model.graph().files.push_back({model.folder() / "m-00001-of-00002.safetensors", 64});
  model.tensor("w", graph::DType::u8, 64, 0);
  model.graph().storages[0].file = graph::FileId{1};
  model.graph().missing = {"gone"};
  EXPECT_EQ(model.finding("missing").severity, graph::Severity::error);
  const inspect::Finding unclaimed = model.finding("unclaimed");
  EXPECT_EQ(unclaimed.count, 1u);
  EXPECT_EQ(unclaimed.bytes, 64u);
  EXPECT_TRUE(unclaimed.files.at(0).ends_with("m-00002-of-00002.safetensors"));
  EXPECT_EQ(model.findings().front().id, "missing");  // the gravest first
}

TEST(Doctor, ShapesAloneHaveNoFindings) {
  graph::MetaGraph graph;
  graph.storages = {graph::shapes_only_storage(10)};
  graph.tensors = {{"t", graph::DType::u8, {10}, {}, graph::StorageId{0}, 0}};
  Progress progress;
  EXPECT_TRUE(inspect::diagnose(io::StorageReader(std::make_shared<const graph::MetaGraph>(graph)),
                                any_conversion, progress)
                  .empty());
}

TEST(Doctor, CanBeCanceled) {
  Model model(40'000);
  model.tensor("a", graph::DType::u8, 8192, 0).tensor("b", graph::DType::u8, 8192, 8192);
  std::stop_source stop;
  stop.request_stop();
  Progress progress(stop.get_token());
  EXPECT_THROW(inspect::diagnose(io::StorageReader(std::make_shared<const graph::MetaGraph>(model.graph())),
                                 any_conversion, progress),
               Error);
}

}  // namespace

// --- Statistics of tensors in files: contiguous, strided, large, narrow, refused and canceled.

namespace {

// One tensor over a file of its own.
class OneTensor {
 public:
  template <typename T>
  OneTensor(const std::vector<T>& values, graph::DType dtype, graph::Shape shape, graph::Strides strides = {},
            std::uint64_t offset = 0) {
    std::string bytes(values.size() * sizeof(T), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    write_file(folder_ / "m.bin", bytes);
    graph_.files.push_back({folder_ / "m.bin", bytes.size()});
    graph_.storages.push_back(graph::plain_storage(graph::FileId{0}, 0, bytes.size()));
    graph_.tensors.push_back(
        {"weight", dtype, std::move(shape), std::move(strides), graph::StorageId{0}, offset});
  }
  convert::ValueStats stats() {
    return inspect::tensor_stats(io::StorageReader(std::make_shared<const graph::MetaGraph>(graph_)),
                                 graph::TensorId{0}, progress_);
  }
  // The Error that measuring gives.
  Error error() {
    try {
      (void)stats();
    } catch (const Error& found) {
      return found;
    }
    return {ErrorCode::usage, "no error"};
  }
  graph::MetaGraph& graph() { return graph_; }
  const Progress& progress() const { return progress_; }

 private:
  TemporaryFolder folder_;
  graph::MetaGraph graph_;
  Progress progress_;
};

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

TEST(TensorStats, LargerThanTheBufferAndNoMultipleOfIt) {
  const std::size_t count = (std::size_t{3} << 18) + 12'347;
  OneTensor tensor(counting(count), graph::DType::f32, {count});
  const convert::ValueStats stats = tensor.stats();
  EXPECT_EQ(stats.count, count);
  EXPECT_EQ(stats.max, convert::Number(static_cast<double>(count - 1)));
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(stats.mean, (n - 1) / 2, 1e-6);
  EXPECT_NEAR(stats.deviation, std::sqrt((n * n - 1) / 12), 1e-6);
  EXPECT_EQ(tensor.progress().done(), count * 4);
}

TEST(TensorStats, BlocksAcrossTheBuffersEnd) {
  const std::size_t blocks = 40'000;  // 34 bytes do not divide 1 MiB
  std::vector<std::uint8_t> bytes(blocks * 34, 0);
  for (std::size_t i = 0; i < blocks; ++i) {
    bytes[i * 34 + 1] = 0x3C;                          // d = 1
    bytes[i * 34 + 2] = static_cast<std::uint8_t>(i);  // one number of 32, as i8
  }
  OneTensor tensor(bytes, graph::DType::q8_0, {blocks, 32});
  const convert::ValueStats stats = tensor.stats();
  EXPECT_EQ(stats.count, blocks * 32);
  EXPECT_EQ(stats.min, convert::Number(-128.0));
  EXPECT_EQ(stats.max, convert::Number(127.0));
  EXPECT_EQ(stats.zeros, blocks * 31 + (blocks + 255) / 256);
  EXPECT_EQ(stats.sparse_groups, stats.groups);
}

TEST(TensorStats, OddCountsOfNarrowElements) {
  OneTensor tensor(std::vector<std::uint8_t>{0x21, 0x43, 0xF5}, graph::DType::u4, {5});
  EXPECT_EQ(tensor.stats().count, 5u);
  EXPECT_EQ(tensor.stats().max, convert::Number(std::uint64_t{5}));
}

TEST(TensorStats, StridedViewsTakeEachElementOnce) {
  {  // transposed: the same elements
    OneTensor tensor(counting(600), graph::DType::f32, {20, 30}, {1, 20});
    EXPECT_EQ(tensor.stats().count, 600u);
    EXPECT_DOUBLE_EQ(tensor.stats().mean, 299.5);
  }
  {  // columns 3 and 4 of rows of 10, every second row
    OneTensor tensor(counting(200), graph::DType::f32, {10, 2}, {20, 1}, 12);
    const convert::ValueStats stats = tensor.stats();
    EXPECT_EQ(stats.count, 20u);
    EXPECT_EQ(stats.min, convert::Number(3.0));
    EXPECT_EQ(stats.max, convert::Number(184.0));
    EXPECT_DOUBLE_EQ(stats.mean, 93.5);
  }
  {  // every third, over more than one buffer
    const std::size_t count = 400'000;
    OneTensor tensor(counting(3 * count), graph::DType::f32, {count}, {3});
    const convert::ValueStats stats = tensor.stats();
    EXPECT_EQ(stats.count, count);
    EXPECT_EQ(stats.max, convert::Number(3.0 * (count - 1)));
    EXPECT_NEAR(stats.mean, 1.5 * (count - 1), 1e-6);
  }
  {  // one element per 2 MiB
    OneTensor tensor(counting(std::size_t{5} << 19), graph::DType::f32, {5}, {1 << 19});
    EXPECT_EQ(tensor.stats().max, convert::Number(static_cast<double>(4 << 19)));
  }
  {  // a row repeated 7 times is measured once
    OneTensor tensor(counting(5), graph::DType::f32, {7, 5}, {0, 1});
    EXPECT_EQ(tensor.stats().count, 5u);
  }
  {  // three dimensions, none of which joins another
    OneTensor tensor(counting(2 * 4 * 9), graph::DType::f32, {2, 2, 3}, {36, 18, 3});
    EXPECT_EQ(tensor.stats().count, 12u);
    EXPECT_DOUBLE_EQ(tensor.stats().mean, (0 + 36) / 2.0 + (0 + 18) / 2.0 + 3);
  }
}

TEST(TensorStats, GroupsOfFourAreTheTensorsOwn) {
  // rows of ones, ones, zeros, zeros in memory: as columns each group of four has two zeros
  std::vector<float> values(16, 0);
  std::fill_n(values.begin(), 8, 1.0f);
  OneTensor rows(values, graph::DType::f32, {4, 4});
  EXPECT_EQ(rows.stats().sparse_groups, 2u);
  OneTensor columns(values, graph::DType::f32, {4, 4}, {1, 4});
  EXPECT_EQ(columns.stats().sparse_groups, 4u);
}

TEST(TensorStats, ATransposedTensorLargerThanTheBuffer) {
  const std::uint64_t size = 1500;
  OneTensor tensor(counting(size * size), graph::DType::f32, {size, size}, {1, size});
  const convert::ValueStats stats = tensor.stats();
  EXPECT_EQ(stats.count, size * size);
  EXPECT_EQ(stats.max, convert::Number(static_cast<double>(size * size - 1)));
  EXPECT_NEAR(stats.mean, static_cast<double>(size * size - 1) / 2, 1e-5);
  EXPECT_EQ(tensor.progress().done(), size * size * 4);
}

TEST(TensorStats, EmptyAndScalar) {
  OneTensor empty(counting(1), graph::DType::f32, {0, 5});
  EXPECT_EQ(empty.stats().count, 0u);
  OneTensor scalar(counting(2), graph::DType::f32, {}, {}, 4);
  EXPECT_EQ(scalar.stats().min, convert::Number(1.0));
}

TEST(TensorStats, Refusals) {
  OneTensor text(counting(64), graph::DType::string, {2});
  EXPECT_EQ(text.error().code(), ErrorCode::unsupported);
  EXPECT_EQ(text.error().place().tensor, "weight");
  OneTensor unknown(counting(64), graph::DType::opaque, {});
  EXPECT_EQ(unknown.error().code(), ErrorCode::unsupported);
  OneTensor books(counting(74), graph::DType::iq2_xs, {256});
  EXPECT_EQ(books.stats().count, 256u);
  OneTensor overlapping(counting(64), graph::DType::f32, {32, 32}, {1, 1});
  EXPECT_EQ(overlapping.error().code(), ErrorCode::unsupported);
  OneTensor whole(counting(1), graph::DType::i4, {2, 4}, {4, 1});
  EXPECT_EQ(whole.stats().count, 8u);
  OneTensor narrow(counting(64), graph::DType::i4, {4}, {2});
  EXPECT_EQ(narrow.error().code(), ErrorCode::unsupported);
  OneTensor shapes_only(counting(4), graph::DType::f32, {4});
  shapes_only.graph().storages[0] = graph::shapes_only_storage(16);
  EXPECT_EQ(shapes_only.error().code(), ErrorCode::usage);
}

// Four tensors over one file of 64 floats; the second cannot be measured.
graph::MetaGraph four_tensors(const TemporaryFolder& folder) {
  const auto values = counting(64);
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  write_file(folder / "m.bin", bytes);
  graph::MetaGraph graph;
  graph.files.push_back({folder / "m.bin", bytes.size()});
  for (std::uint32_t i = 0; i < 4; ++i) {
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, std::uint64_t{64} * i, 64));
    graph.tensors.push_back({"t" + std::to_string(i), graph::DType::f32, {16}, {}, graph::StorageId{i}, 0});
  }
  graph.tensors[1].dtype = graph::DType::string;
  return graph;
}

TEST(TensorStats, SeveralAtOnceAndOneThatCannot) {
  const TemporaryFolder folder;
  graph::MetaGraph graph = four_tensors(folder);
  graph.storages[3].encoding = graph::Encoding::unreadable;
  const io::StorageReader reader(std::make_shared<const graph::MetaGraph>(graph));
  const std::vector<graph::TensorId> order = {graph::TensorId{3}, graph::TensorId{2}, graph::TensorId{1},
                                              graph::TensorId{0}};
  std::vector<inspect::MeasuredTensor> found(4);
  Progress progress;
  inspect::measure_tensors(reader, order, progress, [&](std::size_t i, inspect::MeasuredTensor measured) {
    found[i] = std::move(measured);
  });
  EXPECT_FALSE(found[0].stats);
  EXPECT_NE(found[0].refusal, "");
  EXPECT_EQ(found[1].stats.value().max, convert::Number(47.0));
  EXPECT_NE(found[2].refusal, "");
  EXPECT_EQ(found[3].stats.value().max, convert::Number(15.0));
  EXPECT_EQ(progress.done(), 128u);
}

TEST(TensorStats, AFileThatCannotBeReadEndsTheWhole) {
  const TemporaryFolder folder;
  const graph::MetaGraph graph = four_tensors(folder);
  write_file(folder / "m.bin", "shorter");
  const io::StorageReader reader(std::make_shared<const graph::MetaGraph>(graph));
  Progress progress;
  try {
    inspect::measure_tensors(
        reader, std::vector{graph::TensorId{0}, graph::TensorId{2}}, progress,
        [](std::size_t, const inspect::MeasuredTensor&) { ADD_FAILURE() << "nothing can be measured"; });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
  }
}

TEST(TensorStats, Canceled) {
  OneTensor tensor(counting(64), graph::DType::f32, {64});
  std::stop_source stop;
  stop.request_stop();
  Progress progress(stop.get_token());
  const io::StorageReader reader(std::make_shared<const graph::MetaGraph>(tensor.graph()));
  EXPECT_THROW(
      {
        try {
          (void)inspect::tensor_stats(reader, graph::TensorId{0}, progress);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::canceled);
          throw;
        }
      },
      Error);
}

}  // namespace

// --- Histograms and cells against sums over the whole tensor, and pairs of tensors.

namespace {

// Tensors over one file, one behind the other.
class Tensors {
 public:
  template <typename T>
  graph::TensorId add(const std::vector<T>& values, graph::DType dtype, graph::Shape shape) {
    const std::uint64_t offset = bytes_.size();
    bytes_.resize(bytes_.size() + values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes_.data() + offset, values.data(), values.size() * sizeof(T));
    const graph::StorageId storage =
        graph_.add_storage(graph::plain_storage(graph::FileId{0}, offset, values.size() * sizeof(T)));
    graph_.tensors.push_back(
        {graph::Name("t" + std::to_string(graph_.tensors.size())), dtype, std::move(shape), {}, storage, 0});
    return graph::TensorId{static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
  }
  io::StorageReader reader() {
    testing::write_file(folder_ / "m.bin", bytes_);
    graph_.files = {{folder_ / "m.bin", bytes_.size()}};
    return io::StorageReader(std::make_shared<const graph::MetaGraph>(graph_));
  }
  Progress progress;

 private:
  testing::TemporaryFolder folder_;
  graph::MetaGraph graph_;
  std::string bytes_;
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(ValuePicture, CellsAreMeansOfTheirParts) {
  Tensors tensors;
  const graph::TensorId id = tensors.add(ramp(24), graph::DType::f32, {4, 6});
  const io::StorageReader reader = tensors.reader();
  const inspect::ValuePicture picture = inspect::picture_values(reader, id, 2, 3, tensors.progress);
  EXPECT_EQ(picture.cells.range, (inspect::CellRange{0, 4, 0, 6}));
  EXPECT_EQ(picture.cells.mean, (std::vector<float>{3.5f, 5.5f, 7.5f, 15.5f, 17.5f, 19.5f}));
  EXPECT_EQ(picture.cells.largest, (std::vector<float>{7, 9, 11, 19, 21, 23}));
  EXPECT_EQ(picture.stats.count, 24u);
  EXPECT_EQ(
      std::accumulate(picture.histogram.counts.begin(), picture.histogram.counts.end(), std::uint64_t{0}),
      24u);
  EXPECT_EQ(picture.histogram.counts.front(), 1u);
  EXPECT_EQ(picture.histogram.counts.back(), 1u);
  EXPECT_EQ(tensors.progress.done(), tensors.progress.total());
}

TEST(ValuePicture, KernelsOfOneOutputAreARow) {
  const auto sides = [](graph::Shape shape) {
    const inspect::MatrixSides found = inspect::matrix_sides({"w", graph::DType::f32, std::move(shape)});
    return std::pair(found.rows, found.columns);
  };
  EXPECT_EQ(sides({512, 256, 3, 3}), std::pair(std::uint64_t{512}, std::uint64_t{2304}));
  EXPECT_EQ(sides({64, 32, 5}), std::pair(std::uint64_t{64}, std::uint64_t{160}));
  EXPECT_EQ(sides({8, 64, 32}), std::pair(std::uint64_t{512}, std::uint64_t{32})) << "experts, not kernels";
  EXPECT_EQ(sides({2, 6}), std::pair(std::uint64_t{2}, std::uint64_t{6}));
  EXPECT_EQ(sides({0, 3, 3}), std::pair(std::uint64_t{0}, std::uint64_t{0}));
}

TEST(ValuePicture, APartHasCellsOfItsOwn) {
  Tensors tensors;
  const graph::TensorId id = tensors.add(ramp(24), graph::DType::f32, {4, 6});
  const io::StorageReader reader = tensors.reader();
  const inspect::ValueCells cells = inspect::value_cells(reader, id, {1, 2, 3, 2}, 8, 8, tensors.progress);
  EXPECT_EQ(cells.height, 2u) << "no more cells than values";
  EXPECT_EQ(cells.mean, (std::vector<float>{9, 10, 15, 16}));
  for (const inspect::CellRange& wrong :
       {inspect::CellRange{0, 0, 0, 1}, inspect::CellRange{4, 1, 0, 1}, inspect::CellRange{3, 2, 0, 1},
        inspect::CellRange{0, 1, 6, 1}, inspect::CellRange{0, 1, 5, 2},
        inspect::CellRange{1, UINT64_MAX, 0, 1}})
    EXPECT_THROW(inspect::value_cells(reader, id, wrong, 8, 8, tensors.progress), Error);
}

// Rows of 2,500 do not fill blocks of a buffer; a part begins inside one.
TEST(ValuePicture, BlocksAndBuffersDoNotShow) {
  constexpr std::size_t kRows = 300, kColumns = 2'528;
  std::vector<std::byte> blocks(kRows * kColumns / 32 * 34);
  for (std::size_t i = 0; i < blocks.size(); i += 34) {
    blocks[i + 1] = std::byte{0x3C};  // a scale of 1
    for (std::size_t k = 0; k < 32; ++k) blocks[i + 2 + k] = static_cast<std::byte>((i / 34) % 100);
  }
  Tensors tensors;
  const graph::TensorId id = tensors.add(blocks, graph::DType::q8_0, {kRows, kColumns});
  const io::StorageReader reader = tensors.reader();
  const inspect::ValueCells cells = inspect::value_cells(reader, id, {7, 1, 32, 64}, 1, 2, tensors.progress);
  const auto block = [&](std::size_t column) {
    return static_cast<float>((7 * kColumns + column) / 32 % 100);
  };
  EXPECT_EQ(cells.mean, (std::vector<float>{block(32), block(64)}));
  const inspect::ValuePicture whole = inspect::picture_values(reader, id, 4, 4, tensors.progress);
  double sum = 0;
  for (const float mean : whole.cells.mean) sum += static_cast<double>(mean) / 16;
  EXPECT_NEAR(sum, whole.stats.mean, 1e-4);
}

TEST(ValuePicture, WhatIsNotFiniteIsLeftOut) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinite = std::numeric_limits<float>::infinity();
  Tensors tensors;
  const graph::TensorId id =
      tensors.add(std::vector<float>{kNan, kInfinite, 1, 3}, graph::DType::f32, {2, 2});
  const graph::TensorId empty = tensors.add(std::vector<float>{}, graph::DType::f32, {0, 4});
  const graph::TensorId scalar = tensors.add(std::vector<float>{5}, graph::DType::f32, {});
  const graph::TensorId huge = tensors.add(std::vector<double>{-1e308, 1e308}, graph::DType::f64, {2});
  const io::StorageReader reader = tensors.reader();
  const inspect::ValuePicture picture = inspect::picture_values(reader, id, 4, 4, tensors.progress);
  EXPECT_TRUE(std::isnan(picture.cells.mean[0]));
  EXPECT_TRUE(std::isnan(picture.cells.largest[1]));
  EXPECT_EQ(picture.cells.mean[3], 3);
  EXPECT_EQ(picture.histogram.low, 1);
  EXPECT_EQ(inspect::picture_values(reader, empty, 4, 4, tensors.progress).cells.mean.size(), 0u);
  EXPECT_EQ(inspect::picture_values(reader, scalar, 4, 4, tensors.progress).cells.mean,
            std::vector<float>{5});
  const inspect::ValueHistogram wide =
      inspect::picture_values(reader, huge, 4, 4, tensors.progress).histogram;
  EXPECT_EQ(wide.counts.front(), 1u);
  EXPECT_EQ(wide.counts.back(), 1u);
}

TEST(ValuePicture, PairsAreComparedElementByElement) {
  Tensors tensors;
  std::vector<float> values = ramp(400'000);
  const graph::TensorId first = tensors.add(values, graph::DType::f32, {400'000});
  values[7] += 4;
  values[399'999] -= 1;
  const graph::TensorId second = tensors.add(values, graph::DType::f32, {1000, 400});
  const graph::TensorId half =
      tensors.add(std::vector<std::uint16_t>(400'000, 0x3C00), graph::DType::f16, {400'000});
  const graph::TensorId other = tensors.add(ramp(3), graph::DType::f32, {3});
  const io::StorageReader reader = tensors.reader();
  const inspect::ValueComparison same = inspect::compare_values(reader, first, first, tensors.progress);
  EXPECT_EQ(same.equal, 400'000u);
  EXPECT_EQ(same.largest, 0);
  EXPECT_NEAR(same.cosine, 1, 1e-12);
  const inspect::ValueComparison found = inspect::compare_values(reader, first, second, tensors.progress);
  EXPECT_EQ(found.equal, 399'998u);
  EXPECT_EQ(found.largest, 4);
  EXPECT_NEAR(found.mean, 5.0 / 400'000, 1e-12);
  EXPECT_EQ(std::accumulate(found.scatter.begin(), found.scatter.end(), std::uint64_t{0}), 400'000u);
  EXPECT_EQ(inspect::compare_values(reader, first, half, tensors.progress).equal, 1u) << "types may differ";
  EXPECT_THROW(inspect::compare_values(reader, first, other, tensors.progress), Error);
}

}  // namespace

// --- Differences of metadata, types and ties.

namespace {

graph::MetaGraph with_config(const std::string& text) {
  graph::MetaGraph graph;
  graph.metadata.push_back({std::string(graph::kConfigKey), text});
  return graph;
}

std::vector<inspect::MetadataDifference> diff(const graph::MetaGraph& a, const graph::MetaGraph& b) {
  Progress progress;
  return inspect::diff_metadata(a, b, progress);
}

// "key: a | b", with "-" for what a model has not.
std::vector<std::string> lines(const std::vector<inspect::MetadataDifference>& differences) {
  std::vector<std::string> result;
  for (const inspect::MetadataDifference& found : differences)
    result.push_back(found.key + ": " + found.a.value_or("-") + " | " + found.b.value_or("-"));
  return result;
}

using Lines = std::vector<std::string>;

TEST(DiffMetadata, SettingsOfConfigJson) {
  const graph::MetaGraph a =
      with_config(R"({"a": 1, "rope": {"factor": 2.5, "type": "x"}, "gone": null, "e": {}})");
  const graph::MetaGraph b =
      with_config(R"({"rope": {"type": "y", "factor": 2.5}, "a": 1.0, "new": [1, 2], "e": {}})");
  EXPECT_EQ(lines(diff(a, b)), (Lines{"config.json: rope.type: \"x\" | \"y\"", "config.json: gone: null | -",
                                      "config.json: new: - | [1,2]"}));
}

TEST(DiffMetadata, LongListsNameTheFirstOtherElement) {
  std::string list = "[0";
  for (int i = 1; i < 100; ++i) list += "," + std::to_string(i);
  const graph::MetaGraph a = with_config("{\"x\": " + list + "]}"),
                         b = with_config("{\"x\": " + list + ",7]}");
  EXPECT_EQ(lines(diff(a, b)), (Lines{"config.json: x: 100 elements | 101 elements, number 100 is 7"}));
}

TEST(DiffMetadata, WhatIsNoPlainJsonIsComparedAsText) {
  const std::string deep = "{\"x\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(diff(with_config(deep), with_config(deep)).empty());
  EXPECT_EQ(diff(with_config(deep), with_config("{}")).size(), 1u);
  EXPECT_EQ(diff(with_config("{\"a\":"), with_config("{}")).size(), 1u);
  EXPECT_TRUE(diff(with_config("[\"}\"]"), with_config("[\"}\"]")).empty());
  // brackets in strings have no depth
  const std::string text = "{\"x\":\"" + std::string(1000, '{') + "\\\"{\"}";
  EXPECT_EQ(lines(diff(with_config(text), with_config("{\"x\":1}")))[0].substr(0, 16), "config.json: x: ");
}

TEST(DiffMetadata, TypesOfEqualNumbers) {
  graph::MetaGraph a, b;
  a.metadata = {{"n", std::uint32_t{8}}, {"same", std::string("x")}, {"f", 0.5F}};
  b.metadata = {{"f", 0.5F}, {"n", std::int32_t{8}}, {"same", std::string("x")}, {"more", true}};
  EXPECT_EQ(lines(diff(a, b)), (Lines{"n: 8 (u32) | 8 (i32)", "more: - | true"}));
}

TEST(DiffMetadata, ArraysInFiles) {
  const TemporaryFolder folder;
  const auto graph = [&](const char* name, const std::vector<std::string>& words) {
    std::string bytes;
    for (const std::string& word : words) {
      bytes += std::string({static_cast<char>(word.size()), 0, 0, 0, 0, 0, 0, 0}) + word;
    }
    testing::write_file(folder / name, bytes);
    graph::MetaGraph made;
    made.files.push_back({folder / name, bytes.size()});
    made.metadata.push_back({"words", graph::MetaArray{graph::MetaType::string, false, graph::FileId{0},
                                                       words.size(), 0, bytes.size()}});
    return made;
  };
  const graph::MetaGraph a = graph("a", {"x", "y", "z"});
  EXPECT_TRUE(diff(a, graph("b", {"x", "y", "z"})).empty());
  EXPECT_EQ(lines(diff(a, graph("c", {"x", "Y", "z"}))),
            (Lines{"words: 3 strings, number 1 is \"y\" | 3 strings, number 1 is \"Y\""}));
  EXPECT_EQ(lines(diff(a, graph("d", {"x"}))), (Lines{"words: 3 strings | 1 string"}));
  testing::write_file(folder / "c", "short");
  const graph::MetaGraph cut = graph("e", {"x", "y", "z"});
  testing::write_file(folder / "e", "cut");
  EXPECT_THROW((void)diff(a, cut), Error);
}

graph::MetaGraph weights(const std::vector<std::pair<std::string, graph::DType>>& list) {
  graph::MetaGraph graph;
  for (const auto& [name, dtype] : list) {
    const std::uint64_t bytes = graph::byte_size(dtype, 256).value();
    graph.tensors.push_back(
        {name, dtype, {1, 256}, {}, graph.add_storage(graph::shapes_only_storage(bytes)), 0});
  }
  return graph;
}

TEST(DiffTypes, GroupsByPatternAndTypes) {
  const graph::MetaGraph a = weights({{"blk.0.v.weight", graph::DType::q4_k},
                                      {"blk.1.v.weight", graph::DType::q4_k},
                                      {"blk.2.v.weight", graph::DType::q6_k},
                                      {"blk.10.v.weight", graph::DType::q4_k},
                                      {"norm", graph::DType::f32}});
  const graph::MetaGraph b = weights({{"blk.0.v.weight", graph::DType::q5_k},
                                      {"blk.1.v.weight", graph::DType::q5_k},
                                      {"blk.2.v.weight", graph::DType::q6_k},
                                      {"blk.10.v.weight", graph::DType::q5_k},
                                      {"norm", graph::DType::f32}});
  const auto groups = inspect::type_groups(a, b, inspect::match_weights(a, b));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].pattern, "blk.N.v.weight");
  EXPECT_EQ(groups[0].a + " " + groups[0].b, "Q4_K Q5_K");
  EXPECT_EQ(groups[0].count, 3u);
  EXPECT_EQ(groups[0].bytes_b, 3u * 176);
  EXPECT_EQ(inspect::ranges_text(groups[0].layers), "0-1, 10");
  EXPECT_FALSE(groups[0].all_layers);
  EXPECT_TRUE(groups[2].all_layers);
  EXPECT_EQ(groups[2].pattern, "norm");
}

TEST(DiffTypes, Ties) {
  graph::MetaGraph a = weights({{"embed", graph::DType::f32}, {"other", graph::DType::f32}});
  a.tensors.push_back(a.tensors[0]);
  a.tensors[2].name = "head";
  graph::MetaGraph b = weights({{"embed", graph::DType::f32}, {"other", graph::DType::f32}});
  EXPECT_EQ(inspect::ties_missing(a, b), (std::vector<std::vector<std::string>>{{"embed", "head"}}));
  EXPECT_TRUE(inspect::ties_missing(b, a).empty());
  EXPECT_TRUE(inspect::ties_missing(a, a).empty());
}

}  // namespace

}  // namespace loadline::tests
