// Weights packed on the device equal those that the host packs, bit for bit, by every method.
#include "core/base/error.h"
#include "core/gpu/upload.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"
#include "tests/gpu/device_test.h"
#include "tests/gpu/model_file.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PackedUpload : public DeviceTest {
 protected:
  static UploadReport upload_packed(const ModelFile& model, std::string_view method,
                                    const Prepacking& prepacking) {
    // slots that are no multiple of any block
    const LoadInputs inputs{.request = {.staging_bytes = 40'000, .slots = 4, .prepack = prepacking}};
    const Plan plan =
        make_plan(*model.graph(), find_method(method), find_order("file").make(*model.graph()), inputs);
    Progress progress;
    return upload(model.graph(), plan, {.verify = true, .validation = true}, progress);
  }
};

// Odd sizes: rows that are no multiple of four, and tensors that begin anywhere in the file.
const std::vector<TensorKind> kKinds = {
    {DType::u8, {33}},         {DType::f32, {37, 53}},  {DType::f16, {64, 71}},  {DType::bf16, {5, 7}},
    {DType::q8_0, {9, 64}},    {DType::q4_0, {6, 96}},  {DType::q4_k, {3, 512}}, {DType::f32, {11}},
    {DType::f16, {2, 3, 5}},   {DType::bf16, {1, 257}}, {DType::f32, {0, 4}},    {DType::f32, {257, 1}},
    {DType::q8_0, {700, 256}}, {DType::i32, {4, 4}},
};

TEST_F(PackedUpload, EqualsTheHostByEveryMethod) {
  const ModelFile model = ModelFile::of_kinds(kKinds);
  std::set<std::string_view> refused;
  for (const Method& method : methods()) {
    if (method.traits.streams) continue;  // nothing stays that could be compared
    for (const PrepackingRow& row : prepackings()) {
      try {
        const UploadReport report = upload_packed(model, method.id, row.prepacking);
        EXPECT_EQ(report.verified, true) << method.id << " " << row.id << ": " << report.mismatch;
        EXPECT_THAT(report.validation_messages, IsEmpty()) << method.id << " " << row.id;
        for (std::size_t space = 0; space < kSpaceCount; ++space)
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
  const ModelFile model = ModelFile::of_kinds({{DType::f16, {1024, 256}},
                                               {DType::bf16, {1024, 256}},
                                               {DType::f32, {1024, 1024}},
                                               {DType::q4_k, {64, 4096}}});
  for (const PrepackingRow& row : prepackings()) {
    const UploadReport report = upload_packed(model, "staged_ring", row.prepacking);
    EXPECT_EQ(report.verified, true) << row.id << ": " << report.mismatch;
  }
}

TEST_F(PackedUpload, CostsTheHostNothing) {
  const ModelFile model = ModelFile::of_kinds(std::vector<TensorKind>(8, {DType::f32, {256, 1024}}));
  const UploadReport report = upload_packed(model, "staged_ring", find_prepacking("f16"));
  EXPECT_EQ(report.measured.peaks[index(Space::host)].bytes, 0u);
  EXPECT_EQ(report.measured.peaks[index(Space::staging)].bytes, 40'000u);
  EXPECT_EQ(report.measured.peaks[index(Space::device)].bytes, 8u * 256 * 1024 * 2);
  EXPECT_EQ((*report.measured.reserved_peak)[index(Space::staging)] < (1u << 20), true);
}

TEST_F(PackedUpload, NamesWhatDiffers) {
  const ModelFile model = ModelFile::of_kinds({{DType::f32, {64, 64}}});
  const LoadInputs inputs{.request = {.prepack = find_prepacking("transposed")}};
  Plan plan = make_plan(*model.graph(), find_method("per_tensor"), {StorageId{0}}, inputs);
  for (Step& step : plan.steps)
    if (step.verb == Verb::copy && plan.block(step.block).prepack) step.bytes /= 2;  // half of it never comes
  Progress progress;
  const UploadReport report = upload(model.graph(), plan, {.verify = true}, progress);
  EXPECT_EQ(report.verified, false);
  EXPECT_THAT(report.mismatch, HasSubstr("tensor 't0': byte "));
  EXPECT_THAT(report.mismatch, HasSubstr("as packed on the host"));
}

}  // namespace
}  // namespace loadline::gpu
