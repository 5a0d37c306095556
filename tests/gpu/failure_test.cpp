// Uploads that are cancelled, or that the device gives up half way: one Error, and nothing is left behind.
#include "core/base/error.h"
#include "core/gpu/upload.h"
#include "core/load/answer/projection.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/injected.h"
#include "tests/gpu/model_file.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

class UploadFailure : public DeviceTest {
 protected:
  void TearDown() override {
    inject({});
    DeviceTest::TearDown();
  }
  // The code of the Error that ends the upload; nothing if it succeeds.
  static std::optional<ErrorCode> try_upload(const ModelFile& model, std::string_view method,
                                             std::stop_token stop = {},
                                             std::optional<Prepacking> prepack = {}) {
    const bool imports = method == "host_import";
    const LoadInputs inputs{
        .request = {.staging_bytes = 1 << 20, .slots = 4, .prepack = prepack, .activation_bytes = 5000}};
    const Plan plan =
        make_plan(*model.graph(), find_method(method), find_order("file").make(*model.graph()), inputs);
    Progress progress(std::move(stop));
    try {
      upload(model.graph(), plan, {.reads = {.threads = 2}, .import_pages = imports}, progress);
      return std::nullopt;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
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
  const ModelFile model = ModelFile::of_kinds(std::vector<TensorKind>(6, {DType::f32, {700, 900}}));
  const Alive before = alive();
  const auto packed = [&](std::stop_token stop = {}) {
    return try_upload(model, "staged_ring", std::move(stop), find_prepacking("transposed_f16"));
  };
  expect_every_failure(
      &Injected::submission, [&] { return packed(); }, 2);
  inject({});
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    std::stop_source stop;
    std::jthread canceller([&stop, after = std::chrono::microseconds(random() % 60'000)] {
      std::this_thread::sleep_for(after);
      stop.request_stop();
    });
    const std::optional<ErrorCode> code = packed(stop.get_token());
    EXPECT_TRUE(!code || *code == ErrorCode::cancelled);
    EXPECT_EQ(alive(), before);
  }
}

// The window onto the device's memory may be full: then the bytes go through staging memory.
TEST_F(UploadFailure, OfAMappingTakesAnotherWay) {
  const ModelFile model({3'000'000});
  const Alive before = alive();
  inject({.map = 1});
  EXPECT_EQ(try_upload(model, "direct"), std::nullopt);
  EXPECT_EQ(alive(), before);
  for (const std::string_view method : kMethods) {
    SCOPED_TRACE(method);
    for (std::uint64_t k = 1; k < 6; ++k) {
      inject({.map = k});
      const std::optional<ErrorCode> code = try_upload(model, method);
      // what cannot be mapped on the device goes another way
      EXPECT_TRUE(!code || (*code == ErrorCode::gpu && method != "direct")) << k;
      EXPECT_EQ(alive(), before) << k;
    }
  }
}

// A driver may take pages of a file and lose the device when it first reads them: a device of its own is
// lost.
TEST_F(UploadFailure, OfTheFirstImportTakesAnotherWay) {
  if (device().import_alignment() == 0) GTEST_SKIP() << "the device cannot import pages";
  const ModelFile model({3'000'000, 70'000});
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
    std::jthread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      std::filesystem::resize_file(model.path(), 1000);
    });
    const std::optional<ErrorCode> code = try_upload(model, method);
    cutter.join();
    EXPECT_EQ(code.value_or(ErrorCode::io), ErrorCode::io) << method;  // or it was faster
    EXPECT_EQ(alive(), before) << method;
    EXPECT_EQ(try_upload(model, method), ErrorCode::io) << method;
  }
}

TEST_F(UploadFailure, CancelledAtAnyMomentLeavesNothing) {
  const ModelFile model({30'000'000, 70'000, 50'000'000, 1, 9'000'000});
  const Alive before = alive();
  std::mt19937_64 random(1);
  int cancelled = 0;
  for (int round = 0; round < 50; ++round) {
    std::stop_source source;
    const auto after = std::chrono::microseconds(random() % 60'000);
    std::jthread stopper([&] {
      std::this_thread::sleep_for(after);
      source.request_stop();
    });
    const auto code =
        try_upload(model, kMethods[static_cast<std::size_t>(round) % kMethods.size()], source.get_token());
    stopper.join();
    EXPECT_TRUE(!code || *code == ErrorCode::cancelled);
    if (code) ++cancelled;
    EXPECT_EQ(alive(), before) << round;
  }
  EXPECT_GT(cancelled, 5);
}

}  // namespace
}  // namespace loadline::gpu
