// Uploads: every method, failures half way, packed weights.

#include "core/gpu/upload.h"

#include "core/base/error.h"
#include "core/gpu/device_memory.h"
#include "core/graph/meta_graph.h"
#include "core/load/answer/projection.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"
#include "core/plan/dry_machine.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/injected.h"
#include "tests/gpu/model_file.h"
#include "tests/support/builders.h"
#include "tests/support/sanitizers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace loadline::gpu {

// --- Writes the file and describes it.

namespace {

std::vector<TensorKind> bytes_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<TensorKind> kinds;
  for (const std::uint64_t size : sizes) kinds.push_back({graph::DType::u8, {size}});
  return kinds;
}

}  // namespace

ModelFile::ModelFile(const std::vector<std::uint64_t>& sizes, std::uint32_t seed)
    : ModelFile(bytes_of(sizes), seed) {}

ModelFile::ModelFile(const std::vector<TensorKind>& kinds, std::uint32_t seed) {
  static std::atomic<int> count = 0;
  path_ = (std::filesystem::temp_directory_path() /
           fmt::format("loadline-gpu-{}-{}.bin", ::getpid(), count.fetch_add(1)))
              .string();
  graph::MetaGraph graph;
  graph.format = "test";
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::uint64_t elements =
        std::accumulate(kinds[i].shape.begin(), kinds[i].shape.end(), std::uint64_t{1}, std::multiplies<>());
    const std::uint64_t bytes = *graph::byte_size(kinds[i].dtype, elements);
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, total, bytes));
    graph::Tensor tensor;
    tensor.name = fmt::format("t{}", i);
    tensor.dtype = kinds[i].dtype;
    tensor.shape = kinds[i].shape;
    tensor.storage = graph::StorageId{static_cast<std::uint32_t>(i)};
    graph.tensors.push_back(tensor);
    total += bytes;
  }
  graph.files.push_back({.path = path_, .bytes = total});
  graph::validate(graph);
  graph_ = std::make_shared<const graph::MetaGraph>(std::move(graph));

  std::mt19937_64 random(seed);
  content_.resize(static_cast<std::size_t>(total));
  for (std::size_t at = 0; at < content_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(content_.data() + at, &word, std::min(sizeof word, content_.size() - at));
  }
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(content_.data()), static_cast<std::streamsize>(content_.size()));
}

ModelFile::~ModelFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::vector<std::byte> ModelFile::bytes(graph::StorageId id) const {
  const graph::Storage& storage = graph_->storage(id);
  const auto begin = content_.begin() + static_cast<std::ptrdiff_t>(storage.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(storage.bytes)};
}

void ModelFile::flip(std::uint64_t offset) const {
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(~std::to_integer<unsigned char>(content_[static_cast<std::size_t>(offset)])));
}

// --- The whole upload: every method, projected against measured, verified, and its failures.

namespace {

using ::testing::IsEmpty;

// NVIDIA's driver imports memory, and refuses pages of files.
bool imports_file_pages(const Device& device, const ModelFile& model) {
  const io::StorageReader reader(model.graph());
  return device.import_alignment() > 0 &&
         can_import_pages(device, reader.file_of(graph::StorageId{0}), 0, 1 << 16);
}

class Upload : public DeviceTest {
 protected:
  plan::Plan plan_of(std::string_view method, const ModelFile& model) const {
    const load::BoundRequest options{
        .request = {.staging_bytes = 64 << 10, .slots = 4, .activation_bytes = 5000}};
    return load::make_plan(*model.graph(), load::find_method(method),
                           load::find_order("file").make(*model.graph()), options);
  }
};

// The kernel is the judge: on a software device all memory of a load is this process's.
using UploadCount = Upload;
TEST_F(UploadCount, IsWhatIsProjected) {
  if (device().info().type != DeviceType::cpu) GTEST_SKIP() << "a GPU's memory is not memory of this process";
  if (testing::kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  std::vector<std::uint64_t> sizes(20, 4 << 20);
  sizes.insert(sizes.begin(), 48 << 20);
  const ModelFile model(sizes);
  for (const std::string_view method :
       {"staged_ring", "state_dict", "sequential", "per_tensor", "direct", "mmap_assign", "mmap_copy",
        "to_device", "meta_assign", "executorch_before", "executorch_after"}) {
    Progress progress;
    const UploadReport report = upload(model.graph(), plan_of(method, model), {}, progress);
    const double projected = static_cast<double>(report.projected_rss_anon) / (1 << 20);
    EXPECT_NEAR(static_cast<double>(report.rss_anon_peak) / (1 << 20), projected, 12) << method;
  }
}

TEST_F(Upload, ReadsFilePagesInPlaceWhereTheDeviceCan) {
  const ModelFile model({1'000'000, 4, 0, 333, 2'000'001, 70'000});
  const plan::Plan plan = plan_of("host_import", model);
  for (const bool imports : {true, false}) {
    Progress progress;
    const UploadReport report = upload(
        model.graph(), plan, {.verify = true, .validation = validation(), .import_pages = imports}, progress);
    EXPECT_EQ(report.verified, true) << report.mismatch;
    EXPECT_THAT(report.validation_messages, IsEmpty());
    EXPECT_EQ(report.imported_bytes, imports && imports_file_pages(device(), model) ? 3'070'338u : 0u);
    for (std::size_t space = 0; space < plan::kSpaceCount; ++space)
      EXPECT_EQ(report.measured.peaks[space].bytes, report.projected.peaks[space].bytes) << space;
  }
}

class UploadExtensions : public Upload {
 protected:
  void TearDown() override {
    inject_extensions({});
    Upload::TearDown();
  }
};

TEST_F(UploadExtensions, TheDriversCountIsACurveThatPeaksAsProjected) {
  inject_extensions({VK_EXT_MEMORY_BUDGET_EXTENSION_NAME});
  const ModelFile model(std::vector<std::uint64_t>(40, 1 << 20));
  for (const std::string_view method : {"staged_ring", "per_tensor", "sequential"}) {
    Progress progress;
    std::size_t samples = 0;
    const UploadReport report =
        upload(model.graph(), plan_of(method, model),
               {.sampled = [&](const plan::MemorySample&, std::size_t) { ++samples; }}, progress);
    ASSERT_TRUE(report.device_budget_peak) << method;
    // the ring for reading back may be there; NVIDIA's driver takes memory of its own, 16 MiB at a time
    const double near = device().info().type == DeviceType::cpu ? 1 << 20 : 17 << 20;
    EXPECT_NEAR(static_cast<double>(*report.device_budget_peak),
                static_cast<double>(report.projected_device_budget), near)
        << method;
    EXPECT_GT(report.projected_device_budget, 40u << 20) << method;
    EXPECT_EQ(report.measured.measured.size(), samples) << method;
    std::uint64_t most = 0;
    for (const plan::MemorySample& sample : report.measured.measured)
      most = std::max(most, sample.device_counted);
    EXPECT_LE(most, *report.device_budget_peak) << method;
    EXPECT_TRUE(samples < 20 || most > 0) << method;
  }
}

TEST_F(UploadExtensions, AnExpensiveCountIsReadSeldom) {
  constexpr double kSeconds = 0.002;
  inject_extensions({VK_EXT_MEMORY_BUDGET_EXTENSION_NAME}, kSeconds);
  const ModelFile model(std::vector<std::uint64_t>(100, 1 << 20));
  Progress progress;
  const UploadReport report = upload(model.graph(), plan_of("staged_ring", model), {}, progress);
  // a query takes at most a twentieth of the time
  EXPECT_LE(static_cast<double>(budget_queries()), report.seconds / kSeconds / 20 + 2);
  EXPECT_GE(budget_queries(), 1u);
  ASSERT_TRUE(report.device_budget_peak);
}

TEST_F(UploadExtensions, BlocksOnTheDeviceAreTheLastToLeaveIt) {
  inject_extensions({VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME});
  const ModelFile model(std::vector<std::uint64_t>(4, 1 << 20));
  Progress progress;
  const UploadReport report =
      upload(model.graph(), plan_of("staged_ring", model), {.verify = true}, progress);
  EXPECT_EQ(report.verified, true);
  const std::map<float, std::uint64_t> bytes = bytes_by_priority();
  ASSERT_EQ(bytes.size(), 2u);
  EXPECT_EQ(bytes.begin()->first, 0.5F);
  EXPECT_EQ(bytes.rbegin()->first, 1.0F);
  EXPECT_EQ(bytes.at(1.0F), (*report.measured.reserved_peak)[plan::index(plan::Space::device)]);
}

TEST_F(Upload, WithoutABudgetThereIsNoCountOfTheDriver) {
  if (device().info().memory_budget) GTEST_SKIP() << "the driver counts";
  const ModelFile model({1'000'000});
  Progress progress;
  const UploadReport report = upload(model.graph(), plan_of("staged_ring", model), {}, progress);
  EXPECT_EQ(report.device_budget_peak, std::nullopt);
  for (const plan::MemorySample& sample : report.measured.measured) EXPECT_EQ(sample.device_counted, 0u);
}

TEST_F(Upload, TheTimeIsProjectedByTheRates) {
  const ModelFile model(std::vector<std::uint64_t>(8, 1 << 20));
  const plan::Plan plan = plan_of("per_tensor", model);
  const auto projected = [&](const plan::CostModel& costs) {
    Progress progress;
    return upload(model.graph(), plan, {.costs = costs}, progress).projected_seconds;
  };
  plan::CostModel slow;
  slow.disk_read /= 1000;
  slow.memory_copy /= 1000;
  slow.pageable_link /= 1000;
  EXPECT_NEAR(projected(slow) / projected({}), 1000, 1);
  plan::CostModel pages;
  pages.device_pages = 1e6;  // 8 MiB of weights, given in eight seconds
  EXPECT_NEAR(projected(pages) - projected({}), (8 << 20) / 1e6, 0.05);
  const load::BoundRequest inputs{
      .request = {.staging_bytes = 64 << 10, .slots = 4, .activation_bytes = 5000}};
  EXPECT_DOUBLE_EQ(projected({}), load::project(*model.graph(), load::find_method("per_tensor"),
                                                load::find_order("file"), inputs)
                                      .seconds);
}

TEST_F(Upload, FilesInThePageCacheAreProjectedAtTheRateOfMemory) {
  const ModelFile model(std::vector<std::uint64_t>(8, 1 << 20));
  const plan::Plan plan = plan_of("per_tensor", model);
  plan::CostModel costs;
  costs.disk_read = 1e6;
  const auto report = [&](io::FileReading reading) {
    Progress progress;
    UploadReport made =
        upload(model.graph(), plan, {.reads = {.reading = reading}, .costs = costs}, progress);
    EXPECT_EQ(made.file_bytes, 8u << 20);
    EXPECT_GT(made.projected_seconds, 8);
    return made;
  };
  const UploadReport cached = report(io::FileReading::cached);  // the file was just written
  EXPECT_EQ(cached.cached_bytes, cached.file_bytes);
  EXPECT_LT(cached.expected_seconds, 0.1);
  const UploadReport direct = report(io::FileReading::direct);
  EXPECT_EQ(direct.cached_bytes, 0u);
  EXPECT_EQ(direct.expected_seconds, direct.projected_seconds);
}

// What the device reads in place is neither read into staging memory nor needs any.
TEST_F(Upload, ImportedPagesCostOnlyTheirCopies) {
  const ModelFile model(std::vector<std::uint64_t>(8, 1 << 20));
  if (!imports_file_pages(device(), model)) GTEST_SKIP() << "the device imports no pages of files";
  plan::CostModel costs;
  costs.staging_pages = costs.memory_copy = 1e6;
  const auto expected = [&](bool imports) {
    Progress progress;
    const UploadReport report = upload(model.graph(), plan_of("host_import", model),
                                       {.import_pages = imports, .costs = costs}, progress);
    EXPECT_EQ(report.imported_bytes, imports ? 8u << 20 : 0u);
    return report.expected_seconds;
  };
  EXPECT_GT(expected(false), 8);
  EXPECT_LT(expected(true), 0.01);
}

TEST_F(Upload, EveryMethodArrivesAndPeaksAsProjected) {
  const ModelFile model({1'000'000, 4, 0, 333, 2'000'001, 70'000});
  for (const load::Method& method : load::methods()) {
    if (method.traits.host_only) continue;  // nothing goes to the device
    Progress progress;
    const UploadReport report =
        upload(model.graph(), plan_of(method.id, model),
               {.verify = !method.traits.streams, .validation = validation()}, progress);
    EXPECT_THAT(report.validation_messages, IsEmpty()) << method.id;
    if (method.traits.streams) {
      EXPECT_EQ(report.bytes, 0u);
    } else {
      EXPECT_EQ(report.verified, true) << method.id << ": " << report.mismatch;
      EXPECT_EQ(report.tensors, 6u);
      EXPECT_EQ(report.bytes, 3'070'338u);
      EXPECT_GT(report.bytes_per_second, 0);
    }
    for (std::size_t space = 0; space < plan::kSpaceCount; ++space) {
      EXPECT_EQ(report.measured.peaks[space].bytes, report.projected.peaks[space].bytes) << method.id;
      EXPECT_EQ(report.measured.peaks[space].step, report.projected.peaks[space].step) << method.id;
    }
    EXPECT_EQ(report.measured.unified.bytes, report.projected.unified.bytes) << method.id;
    // a software device's memory can be mapped: files are read to where they stay
    if (method.id == "direct" && can_map_device_memory(device())) {
      EXPECT_EQ((*report.measured.reserved_peak)[plan::index(plan::Space::staging)], 0u);
    }
    // the model of the uploader's blocks is the uploader's own policy
    plan::DryMachine books({}, allocators::AllocatorModel::vulkan,
                           plan::pool_forecasts(plan_of(method.id, model), pool_alignment(device())));
    EXPECT_EQ((*plan::run(plan_of(method.id, model), books).reserved_peak)[plan::index(plan::Space::device)],
              (*report.measured.reserved_peak)[plan::index(plan::Space::device)])
        << method.id;
    EXPECT_EQ(report.device_ledger_peak, report.projected.peaks[plan::index(plan::Space::device)].bytes);
    EXPECT_EQ(progress.done(), progress.total());
  }
}

TEST_F(Upload, ReportsWithoutVerifying) {
  const ModelFile model({1000});
  Progress progress;
  const UploadReport report = upload(model.graph(), plan_of("staged_ring", model), {}, progress);
  EXPECT_EQ(report.verified, std::nullopt);
  EXPECT_EQ(report.staging_bytes, 4u << 12) << "a page for each slot";
  EXPECT_EQ(report.device, device().info().name);
  EXPECT_THAT(report.validation_messages, IsEmpty());
}

// Bytes that change between the load and the comparison are found and named.
TEST_F(Upload, VerifyNamesTheTensorAndTheByte) {
  const ModelFile model({100, 200, 300});
  plan::Plan plan = plan_of("per_tensor", model);
  // the last tensor's block gets a byte of another tensor
  const plan::BlockId last = [&] {
    for (std::size_t i = plan.blocks.size(); i-- > 0;)
      if (plan.blocks[i].space == plan::Space::device && plan.blocks[i].storage == graph::StorageId{2})
        return plan::BlockId{static_cast<std::uint32_t>(i)};
    throw Error(ErrorCode::usage, "no block holds the last tensor");
  }();
  const std::byte original = model.bytes(graph::StorageId{2})[150];
  std::uint64_t other = 0;
  while (model.bytes(graph::StorageId{0})[other] == original) ++other;
  plan::copy(plan, last, 150, graph::StorageId{0}, other, 1);
  Progress progress;
  const UploadReport report = upload(model.graph(), plan, {.verify = true}, progress);
  EXPECT_EQ(report.verified, false);
  EXPECT_THAT(testing::facts(report.mismatch), ::testing::StartsWith("'t2' 150 "));
}

TEST_F(Upload, AMissingTensorIsNotVerified) {
  const ModelFile model({100, 200});
  plan::Plan plan;
  const plan::BlockId block = plan::alloc(plan, {.bytes = 100,
                                                 .space = plan::Space::device,
                                                 .use = plan::BlockUse::storage,
                                                 .storage = graph::StorageId{0},
                                                 .extra = {}});
  plan::copy(plan, block, 0, graph::StorageId{0}, 0, 100);
  Progress progress;
  const UploadReport report = upload(model.graph(), plan, {.verify = true}, progress);
  EXPECT_EQ(report.verified, false);
  EXPECT_EQ(report.tensors, 1u);
  EXPECT_EQ(report.bytes, 100u);
  EXPECT_EQ(testing::facts(report.mismatch), "'t1'");
}

ErrorCode failure(const graph::MetaGraphPtr& graph, const plan::Plan& plan, const UploadOptions& options) {
  Progress progress;
  try {
    upload(graph, plan, options, progress);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::io;
}

TEST_F(Upload, Failures) {
  const ModelFile model({100, 200});
  const plan::Plan plan = plan_of("sequential", model);
  EXPECT_EQ(failure(model.graph(), plan, {.device = "no such card"}), ErrorCode::usage);
  EXPECT_EQ(failure(model.graph(), plan_of("layer_streaming", model), {.verify = true}), ErrorCode::usage);

  graph::MetaGraph unsound = *model.graph();
  unsound.notes.push_back({.severity = graph::Severity::error, .tensor = {}, .text = "a shard is missing"});
  EXPECT_EQ(failure(std::make_shared<const graph::MetaGraph>(unsound), plan, {}), ErrorCode::malformed);

  plan::Plan invalid = plan;
  plan::free(invalid, plan::BlockId{0});
  EXPECT_EQ(failure(model.graph(), invalid, {}), ErrorCode::usage);

  graph::MetaGraph shapes_only = *model.graph();
  for (graph::Storage& storage : shapes_only.storages) storage.file = graph::kNoFile;
  EXPECT_EQ(failure(std::make_shared<const graph::MetaGraph>(shapes_only), plan, {}), ErrorCode::usage);
}

}  // namespace

// --- Uploads that are canceled, or that the device gives up half way: one Error, and nothing is left
// behind.

namespace {

// What another thread does once `bytes` were copied; before anything was if that is 0.
struct Meanwhile {
  std::uint64_t bytes = 0;
  std::function<void(std::stop_source&)> act = [](std::stop_source& stop) { stop.request_stop(); };
};

class UploadFailure : public DeviceTest {
 protected:
  void TearDown() override {
    inject({});
    DeviceTest::TearDown();
  }
  static inline std::string failure_;  // what the last upload that failed said
  static plan::Plan plan_of(const ModelFile& model, std::string_view method,
                            std::optional<load::Prepacking> prepack = {}) {
    const load::BoundRequest inputs{
        .request = {.staging_bytes = 1 << 20, .slots = 4, .prepack = prepack, .activation_bytes = 5000}};
    return load::make_plan(*model.graph(), load::find_method(method),
                           load::find_order("file").make(*model.graph()), inputs);
  }
  // The code of the Error that ends the upload; nothing if it succeeds.
  static std::optional<ErrorCode> try_upload(const ModelFile& model, std::string_view method,
                                             const std::optional<Meanwhile>& meanwhile = {},
                                             std::optional<load::Prepacking> prepack = {}) {
    const bool imports = method == "host_import";
    const plan::Plan plan = plan_of(model, method, prepack);
    std::stop_source stop;
    Progress progress(stop.get_token());
    if (meanwhile && meanwhile->bytes == 0) meanwhile->act(stop);
    std::jthread beside;  // ended and joined before what it uses goes away
    if (meanwhile && meanwhile->bytes > 0)
      beside = std::jthread([&](const std::stop_token& over) {
        while (progress.done() < meanwhile->bytes && !over.stop_requested()) std::this_thread::yield();
        meanwhile->act(stop);
      });
    try {
      upload(model.graph(), plan, {.reads = {.threads = 2}, .import_pages = imports}, progress);
      return std::nullopt;
    } catch (const Error& error) {
      failure_ = error.what();
      EXPECT_NE(failure_, "");
      return error.code();
    }
  }
};

constexpr std::array kMethods = {"staged_ring", "state_dict", "direct", "executorch_after", "per_tensor"};

// Each call fails once, from the first to the one after the last: then the upload succeeds.
template <typename Upload>
void expect_every_failure(std::uint64_t Injected::*call, Upload upload, std::uint64_t least) {
  const Alive before = alive();
  std::uint64_t failed = 0;
  while (true) {
    Injected failures;
    failures.*call = failed + 1;
    inject(failures);
    const std::optional<ErrorCode> code = upload();
    EXPECT_EQ(alive(), before) << failed;
    if (!code) break;
    EXPECT_TRUE(*code == ErrorCode::gpu || *code == ErrorCode::no_fit) << failed;
    ASSERT_LT(++failed, 200u);
  }
  EXPECT_GE(failed, least);
}

TEST_F(UploadFailure, OfEachAllocationLeavesNothing) {
  const ModelFile model({3'000'000, 70'000, 5'000'000, 1, 900'000});
  for (const std::string_view method : kMethods) {
    SCOPED_TRACE(method);
    expect_every_failure(
        &Injected::allocation, [&] { return try_upload(model, method); }, 1);
    expect_every_failure(
        &Injected::buffer, [&] { return try_upload(model, method); }, 1);
  }
}

TEST_F(UploadFailure, WhileWeightsArePackedLeavesNothing) {
  const ModelFile model = ModelFile::of_kinds(std::vector<TensorKind>(6, {graph::DType::f32, {700, 900}}));
  const Alive before = alive();
  const auto packed = [&](const std::optional<Meanwhile>& meanwhile = {}) {
    return try_upload(model, "staged_ring", meanwhile, load::find_prepacking("transposed_f16"));
  };
  expect_every_failure(
      &Injected::submission, [&] { return packed(); }, 2);
  inject({});
  for (std::uint64_t bytes = 0; bytes < 6 * 700 * 900 * 4; bytes += 400'000) {
    const std::optional<ErrorCode> code = packed(Meanwhile{.bytes = bytes});
    EXPECT_EQ(code.value_or(ErrorCode::canceled), ErrorCode::canceled);  // or it was faster
    EXPECT_TRUE(code || bytes > 0);
    EXPECT_EQ(alive(), before);
  }
}

// The window onto the device's memory may be full: then the bytes go through staging memory.
TEST_F(UploadFailure, OfAMappingTakesAnotherWay) {
  const ModelFile model({3'000'000});
  const Alive before = alive();
  inject({.map = 1});
  EXPECT_EQ(try_upload(model, "direct"), std::nullopt) << failure_;
  EXPECT_EQ(alive(), before);
  for (const std::string_view method : kMethods) {
    SCOPED_TRACE(method);
    for (std::uint64_t k = 1; k < 6; ++k) {
      inject({.map = k});
      const std::optional<ErrorCode> code = try_upload(model, method);
      // what cannot be mapped on the device goes another way
      EXPECT_TRUE(!code || (*code == ErrorCode::gpu && method != "direct")) << k << ": " << failure_;
      EXPECT_EQ(alive(), before) << k;
    }
  }
}

// A driver may take pages of a file and lose the device when it first reads them: a device of its own is
// lost.
TEST_F(UploadFailure, OfTheFirstImportTakesAnotherWay) {
  const ModelFile model({3'000'000, 70'000});
  if (!imports_file_pages(device(), model)) GTEST_SKIP() << "the device imports no pages of files";
  const Alive before = alive();
  inject({.submission = 1, .device_alone = true});
  EXPECT_EQ(try_upload(model, "host_import"), std::nullopt);
  EXPECT_EQ(alive(), before);
}

// A refused import is no failure: the bytes go another way.
TEST_F(UploadFailure, OfImportedPagesLeavesNothing) {
  const ModelFile model({3'000'000, 70'000, 5'000'000, 1, 900'000});
  const Alive before = alive();
  int ended = 0, went_on = 0;
  for (const auto call : {&Injected::allocation, &Injected::buffer, &Injected::submission})
    for (std::uint64_t k = 1; k < 20; ++k) {
      Injected failures;
      failures.*call = k;
      inject(failures);
      const std::optional<ErrorCode> code = try_upload(model, "host_import");
      EXPECT_EQ(alive(), before) << k;
      EXPECT_TRUE(!code || *code == ErrorCode::gpu || *code == ErrorCode::no_fit) << k;
      ++(code ? ended : went_on);
    }
  EXPECT_GT(ended, 5);
  EXPECT_GT(went_on, 5);
}

TEST_F(UploadFailure, OfTheDeviceAtEachSubmissionLeavesNothing) {
  const ModelFile model({3'000'000, 70'000, 5'000'000, 1, 900'000});
  for (const std::string_view method : kMethods) {
    SCOPED_TRACE(method);
    const bool submits = method != "direct";  // a software device's memory is written in place
    expect_every_failure(
        &Injected::submission, [&] { return try_upload(model, method); }, submits ? 2 : 0);
  }
}

TEST_F(UploadFailure, OfAFileThatBecomesShorterIsAnError) {
  for (const std::string_view method : kMethods) {
    const ModelFile model({30'000'000, 70'000, 5'000'000});
    const Alive before = alive();
    const auto cut = [&](std::stop_source&) { std::filesystem::resize_file(model.path(), 1000); };
    const std::optional<ErrorCode> code = try_upload(model, method, Meanwhile{1, cut});
    EXPECT_EQ(code.value_or(ErrorCode::io), ErrorCode::io) << method;  // or it was faster
    EXPECT_EQ(alive(), before) << method;
    EXPECT_EQ(try_upload(model, method), ErrorCode::io) << method;
  }
}

TEST_F(UploadFailure, CanceledAtAnyMomentLeavesNothing) {
  const ModelFile model({30'000'000, 70'000, 50'000'000, 1, 9'000'000});
  const Alive before = alive();
  for (std::uint64_t round = 0; round < 50; ++round) {
    const Meanwhile cancel = {.bytes = round * 1'600'000};
    const auto code = try_upload(model, kMethods[round % kMethods.size()], cancel);
    EXPECT_EQ(code.value_or(ErrorCode::canceled), ErrorCode::canceled) << round;  // or it was faster
    EXPECT_TRUE(code || round > 0);
    EXPECT_EQ(alive(), before) << round;
  }
}

}  // namespace

// --- Weights packed on the device equal those that the host packs, bit for bit, by every method.

namespace {

class PackedUpload : public DeviceTest {
 protected:
  static UploadReport upload_packed(const ModelFile& model, std::string_view method,
                                    const load::Prepacking& prepacking) {
    // slots that are no multiple of any block
    const load::BoundRequest inputs{.request = {.staging_bytes = 40'000, .slots = 4, .prepack = prepacking}};
    const plan::Plan plan = load::make_plan(*model.graph(), load::find_method(method),
                                            load::find_order("file").make(*model.graph()), inputs);
    Progress progress;
    return upload(model.graph(), plan, {.verify = true, .validation = validation()}, progress);
  }
};

// Odd sizes: rows that are no multiple of four, and tensors that begin anywhere in the file.
const std::vector<TensorKind> kKinds = {
    {graph::DType::u8, {33}},         {graph::DType::f32, {37, 53}}, {graph::DType::f16, {64, 71}},
    {graph::DType::bf16, {5, 7}},     {graph::DType::q8_0, {9, 64}}, {graph::DType::q4_0, {6, 96}},
    {graph::DType::q4_k, {3, 512}},   {graph::DType::f32, {11}},     {graph::DType::f16, {2, 3, 5}},
    {graph::DType::bf16, {1, 257}},   {graph::DType::f32, {0, 4}},   {graph::DType::f32, {257, 1}},
    {graph::DType::q8_0, {700, 256}}, {graph::DType::i32, {4, 4}},
};

TEST_F(PackedUpload, EqualsTheHostByEveryMethod) {
  const ModelFile model = ModelFile::of_kinds(kKinds);
  std::set<std::string_view> refused;
  for (const load::Method& method : load::methods()) {
    // nothing stays that could be compared
    if (method.traits.streams || method.traits.host_only) continue;
    for (const load::PrepackingRow& row : load::prepackings()) {
      try {
        const UploadReport report = upload_packed(model, method.id, row.prepacking);
        EXPECT_EQ(report.verified, true) << method.id << " " << row.id << ": " << report.mismatch;
        EXPECT_THAT(report.validation_messages, IsEmpty()) << method.id << " " << row.id;
        for (std::size_t space = 0; space < plan::kSpaceCount; ++space)
          EXPECT_EQ(report.measured.peaks[space].bytes, report.projected.peaks[space].bytes) << method.id;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
        refused.insert(method.id);
      }
    }
  }
  EXPECT_THAT(refused, IsEmpty());
}

// Every pattern of 16 bits, and a million of 32, of which some are next to where rounding changes.
TEST_F(PackedUpload, EqualsTheHostForEveryNumber) {
  const ModelFile model = ModelFile::of_kinds({{graph::DType::f16, {1024, 256}},
                                               {graph::DType::bf16, {1024, 256}},
                                               {graph::DType::f32, {1024, 1024}},
                                               {graph::DType::q4_k, {64, 4096}}});
  for (const load::PrepackingRow& row : load::prepackings()) {
    const UploadReport report = upload_packed(model, "staged_ring", row.prepacking);
    EXPECT_EQ(report.verified, true) << row.id << ": " << report.mismatch;
  }
}

TEST_F(PackedUpload, CostsTheHostNothing) {
  const ModelFile model = ModelFile::of_kinds(std::vector<TensorKind>(8, {graph::DType::f32, {256, 1024}}));
  const UploadReport report = upload_packed(model, "staged_ring", load::find_prepacking("f16"));
  EXPECT_EQ(report.measured.peaks[plan::index(plan::Space::host)].bytes, 0u);
  EXPECT_EQ(report.measured.peaks[plan::index(plan::Space::staging)].bytes, 40'000u);
  EXPECT_EQ(report.measured.peaks[plan::index(plan::Space::device)].bytes, 8u * 256 * 1024 * 2);
  EXPECT_EQ((*report.measured.reserved_peak)[plan::index(plan::Space::staging)] < (1u << 20), true);
}

TEST_F(PackedUpload, NamesWhatDiffers) {
  const ModelFile model = ModelFile::of_kinds({{graph::DType::f32, {64, 64}}});
  const load::BoundRequest inputs{.request = {.prepack = load::find_prepacking("transposed")}};
  plan::Plan plan =
      load::make_plan(*model.graph(), load::find_method("per_tensor"), {graph::StorageId{0}}, inputs);
  for (plan::Step& step : plan.steps)
    if (step.verb == plan::Verb::copy && plan.block(step.block).prepack())
      step.bytes /= 2;  // half of it never comes
  Progress progress;
  const UploadReport report = upload(model.graph(), plan, {.verify = true}, progress);
  EXPECT_EQ(report.verified, false);
  EXPECT_THAT(testing::facts(report.mismatch), ::testing::StartsWith("'t0' "));
}

}  // namespace

}  // namespace loadline::gpu
