// The whole upload: every method, projected against measured, verified, and its failures.
#include "core/gpu/upload.h"

#include "core/base/error.h"
#include "core/gpu/device_memory.h"
#include "core/load/answer/projection.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/plan/dry_machine.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/injected.h"
#include "tests/gpu/model_file.h"
#include "tests/support/sanitizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Upload : public DeviceTest {
 protected:
  Plan plan_of(std::string_view method, const ModelFile& model) const {
    const LoadInputs options{.request = {.staging_bytes = 64 << 10, .slots = 4, .activation_bytes = 5000}};
    return make_plan(*model.graph(), find_method(method), find_order("file").make(*model.graph()), options);
  }
};

// The kernel is the judge: on a software device all memory of a load is this process's.
using UploadCount = Upload;
TEST_F(UploadCount, IsWhatIsProjected) {
  if (device().info().type != DeviceType::cpu) GTEST_SKIP() << "a GPU's memory is no memory of this process";
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
  const Plan plan = plan_of("host_import", model);
  for (const bool imports : {true, false}) {
    Progress progress;
    const UploadReport report =
        upload(model.graph(), plan, {.verify = true, .validation = true, .import_pages = imports}, progress);
    EXPECT_EQ(report.verified, true) << report.mismatch;
    EXPECT_THAT(report.validation_messages, IsEmpty());
    EXPECT_EQ(report.imported_bytes, imports && device().import_alignment() > 0 ? 3'070'338u : 0u);
    for (std::size_t space = 0; space < kSpaceCount; ++space)
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
               {.sampled = [&](const MemorySample&, std::size_t) { ++samples; }}, progress);
    ASSERT_TRUE(report.device_budget_peak) << method;
    // the ring for reading back may be there
    EXPECT_NEAR(static_cast<double>(*report.device_budget_peak),
                static_cast<double>(report.projected_device_budget), 1 << 20)
        << method;
    EXPECT_GT(report.projected_device_budget, 40u << 20) << method;
    EXPECT_EQ(report.measured.measured.size(), samples) << method;
    std::uint64_t most = 0;
    for (const MemorySample& sample : report.measured.measured) most = std::max(most, sample.device_counted);
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
  EXPECT_EQ(bytes.at(1.0F), (*report.measured.reserved_peak)[index(Space::device)]);
}

TEST_F(Upload, WithoutABudgetThereIsNoCountOfTheDriver) {
  if (device().info().memory_budget) GTEST_SKIP() << "the driver counts";
  const ModelFile model({1'000'000});
  Progress progress;
  const UploadReport report = upload(model.graph(), plan_of("staged_ring", model), {}, progress);
  EXPECT_EQ(report.device_budget_peak, std::nullopt);
  for (const MemorySample& sample : report.measured.measured) EXPECT_EQ(sample.device_counted, 0u);
}

TEST_F(Upload, TheTimeIsProjectedByTheRates) {
  const ModelFile model(std::vector<std::uint64_t>(8, 1 << 20));
  const Plan plan = plan_of("per_tensor", model);
  const auto projected = [&](const CostModel& costs) {
    Progress progress;
    return upload(model.graph(), plan, {.costs = costs}, progress).projected_seconds;
  };
  CostModel slow;
  slow.disk_read /= 1000;
  slow.memory_copy /= 1000;
  slow.pageable_link /= 1000;
  EXPECT_NEAR(projected(slow) / projected({}), 1000, 1);
  CostModel pages;
  pages.device_pages = 1e6;  // 8 MiB of weights, given in eight seconds
  EXPECT_NEAR(projected(pages) - projected({}), (8 << 20) / 1e6, 0.05);
  const LoadInputs inputs{.request = {.staging_bytes = 64 << 10, .slots = 4, .activation_bytes = 5000}};
  EXPECT_DOUBLE_EQ(projected({}),
                   project(*model.graph(), find_method("per_tensor"), find_order("file"), inputs).seconds);
}

TEST_F(Upload, FilesInThePageCacheAreProjectedAtTheRateOfMemory) {
  const ModelFile model(std::vector<std::uint64_t>(8, 1 << 20));
  const Plan plan = plan_of("per_tensor", model);
  CostModel costs;
  costs.disk_read = 1e6;
  const auto report = [&](FileReading reading) {
    Progress progress;
    UploadReport made =
        upload(model.graph(), plan, {.reads = {.reading = reading}, .costs = costs}, progress);
    EXPECT_EQ(made.file_bytes, 8u << 20);
    EXPECT_GT(made.projected_seconds, 8);
    return made;
  };
  const UploadReport cached = report(FileReading::cached);  // the file was just written
  EXPECT_EQ(cached.cached_bytes, cached.file_bytes);
  EXPECT_LT(cached.expected_seconds, 0.1);
  const UploadReport direct = report(FileReading::direct);
  EXPECT_EQ(direct.cached_bytes, 0u);
  EXPECT_EQ(direct.expected_seconds, direct.projected_seconds);
}

// What the device reads in place is neither read into staging memory nor needs any.
TEST_F(Upload, ImportedPagesCostOnlyTheirCopies) {
  if (device().import_alignment() == 0) GTEST_SKIP() << "the device cannot import pages";
  const ModelFile model(std::vector<std::uint64_t>(8, 1 << 20));
  CostModel costs;
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
  for (const Method& method : methods()) {
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
    for (std::size_t space = 0; space < kSpaceCount; ++space) {
      EXPECT_EQ(report.measured.peaks[space].bytes, report.projected.peaks[space].bytes) << method.id;
      EXPECT_EQ(report.measured.peaks[space].step, report.projected.peaks[space].step) << method.id;
    }
    EXPECT_EQ(report.measured.unified.bytes, report.projected.unified.bytes) << method.id;
    // a software device's memory can be mapped: files are read to where they stay
    if (method.id == "direct" && can_map_device_memory(device())) {
      EXPECT_EQ((*report.measured.reserved_peak)[index(Space::staging)], 0u);
    }
    // the model of the uploader's blocks is the uploader's own policy
    DryMachine books({}, AllocatorModel::vulkan,
                     pool_forecasts(plan_of(method.id, model), pool_alignment(device())));
    EXPECT_EQ((*run(plan_of(method.id, model), books).reserved_peak)[index(Space::device)],
              (*report.measured.reserved_peak)[index(Space::device)])
        << method.id;
    EXPECT_EQ(report.device_ledger_peak, report.projected.peaks[index(Space::device)].bytes);
    EXPECT_EQ(progress.done(), progress.total());
  }
}

TEST_F(Upload, ReportsWithoutVerifying) {
  const ModelFile model({1000});
  Progress progress;
  const UploadReport report = upload(model.graph(), plan_of("staged_ring", model), {}, progress);
  EXPECT_EQ(report.verified, std::nullopt);
  EXPECT_EQ(report.staging_bytes, 64u << 10);
  EXPECT_EQ(report.device, device().info().name);
  EXPECT_THAT(report.validation_messages, IsEmpty());
}

// Bytes that change between the load and the comparison are found and named.
TEST_F(Upload, VerifyNamesTheTensorAndTheByte) {
  const ModelFile model({100, 200, 300});
  Plan plan = plan_of("per_tensor", model);
  // the last tensor's block gets a byte of another tensor
  const BlockId last = [&] {
    for (std::size_t i = plan.blocks.size(); i-- > 0;)
      if (plan.blocks[i].space == Space::device && plan.blocks[i].storage == StorageId{2})
        return BlockId{static_cast<std::uint32_t>(i)};
    throw Error(ErrorCode::usage, "no block holds the last tensor");
  }();
  const std::byte original = model.bytes(StorageId{2})[150];
  std::uint64_t other = 0;
  while (model.bytes(StorageId{0})[other] == original) ++other;
  copy(plan, last, 150, StorageId{0}, other, 1);
  Progress progress;
  const UploadReport report = upload(model.graph(), plan, {.verify = true}, progress);
  EXPECT_EQ(report.verified, false);
  EXPECT_THAT(report.mismatch, HasSubstr("tensor 't2': byte 150 is"));
}

TEST_F(Upload, AMissingTensorIsNotVerified) {
  const ModelFile model({100, 200});
  Plan plan;
  const BlockId block = alloc(
      plan,
      {.space = Space::device, .bytes = 100, .use = BlockUse::storage, .storage = StorageId{0}, .label = {}});
  copy(plan, block, 0, StorageId{0}, 0, 100);
  Progress progress;
  const UploadReport report = upload(model.graph(), plan, {.verify = true}, progress);
  EXPECT_EQ(report.verified, false);
  EXPECT_EQ(report.tensors, 1u);
  EXPECT_EQ(report.bytes, 100u);
  EXPECT_THAT(report.mismatch, HasSubstr("'t1' is not on the device"));
}

ErrorCode failure(const MetaGraphPtr& graph, const Plan& plan, const UploadOptions& options) {
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
  const Plan plan = plan_of("sequential", model);
  EXPECT_EQ(failure(model.graph(), plan, {.device = "no such card"}), ErrorCode::usage);
  EXPECT_EQ(failure(model.graph(), plan_of("layer_streaming", model), {.verify = true}), ErrorCode::usage);

  MetaGraph unsound = *model.graph();
  unsound.notes.push_back({.severity = Severity::error, .tensor = {}, .text = "a shard is missing"});
  EXPECT_EQ(failure(std::make_shared<const MetaGraph>(unsound), plan, {}), ErrorCode::malformed);

  Plan invalid = plan;
  free(invalid, BlockId{0});
  EXPECT_EQ(failure(model.graph(), invalid, {}), ErrorCode::usage);

  MetaGraph shapes_only = *model.graph();
  for (Storage& storage : shapes_only.storages) storage.file = kNoFile;
  EXPECT_EQ(failure(std::make_shared<const MetaGraph>(shapes_only), plan, {}), ErrorCode::usage);
}

}  // namespace
}  // namespace loadline::gpu
