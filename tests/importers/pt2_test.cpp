// torch.export archives: golden, prefixes, models of several names, and the hostile table.
#include "core/base/error.h"
#include "tests/support/builders.h"
#include "tests/support/graph_json.h"
#include "tests/support/hostile.h"
#include "tests/support/pickles.h"
#include "tests/support/samples.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loadline {
namespace {

using testing::import_bytes;
using testing::pattern;
using testing::pt2_entry;
using testing::Records;

const Records kRest = {
    {"data/weights/weight_0", pattern(24)}, {"archive_format", "pt2"}, {"archive_version", "0"}};

std::string file_of(const std::string& config, const Records& records = kRest) {
  return testing::pt2_zip(config, records);
}

TEST(Pt2, SampleEqualsItsGolden) {
  testing::expect_golden("pt2_sample.json", graph_json(import_bytes("m.pt2", testing::sample_pt2())));
}

TEST(Pt2, EveryPrefixIsAClearError) { testing::expect_prefixes_refused("m.pt2", testing::sample_pt2()); }

TEST(Pt2, EveryFlippedByteIsSurvived) {
  testing::expect_flips_survived("m.pt2", testing::sample_pt2(), testing::sample_pt2().size());
}

TEST(Pt2, SeveralModelsKeepTheirNamesApart) {
  Records records = kRest;
  records.emplace_back("data/weights/other_weights_config.json",
                       fmt::format(R"({{"config": {{{}}}}})", pt2_entry("w", "weight_0", "6", "1")));
  const MetaGraph graph = import_bytes("m.pt2", file_of(pt2_entry("w", "weight_0", "2,3", "3,1"), records));
  EXPECT_EQ(testing::tensor_named(graph, "model.w").shape.size(), 2u);
  EXPECT_EQ(testing::tensor_named(graph, "other.w").shape.size(), 1u);
  EXPECT_EQ(graph.storages.size(), 1u);
}

TEST(Pt2, ConfigsOfOlderWritersAreRead) {
  Records records = kRest;
  records.emplace_back("data/weights/model_model_param_config.json",
                       fmt::format(R"({{"config": {{{}}}}})", pt2_entry("old", "weight_0", "6", "1")));
  EXPECT_EQ(import_bytes("m.pt2", file_of("", records)).tensors.at(0).name, "old");
}

TEST(Pt2, FakeWeightsHaveShapesOnly) {
  Records records = kRest;
  records[0].second.clear();
  const MetaGraph graph = import_bytes("m.pt2", file_of(pt2_entry("w", "weight_0", "2,3", "3,1"), records));
  EXPECT_EQ(graph.storage(graph.tensors[0].storage).file, kNoFile);
  EXPECT_EQ(graph.storage(graph.tensors[0].storage).bytes, 24u);
}

TEST(Pt2, WhatIsNotReadIsNoted) {
  Records records = kRest;
  records.emplace_back("data/aotinductor/model/x.so",
                       "\x7F"
                       "ELF");
  records.emplace_back("models/model.json", "{}");
  std::string pickled = pt2_entry("p", "weight_0", "6", "1");
  pickled.replace(pickled.find("\"use_pickle\": false"), 19, "\"use_pickle\": true");
  std::string sparse = pt2_entry("s", "weight_0", "6", "1");
  sparse.replace(sparse.find("\"layout\": 7"), 11, "\"layout\": 1");
  const MetaGraph graph = import_bytes(
      "m.pt2", file_of(pickled + "," + sparse + "," + pt2_entry("o", "weight_0", "6", "1", 0, 99), records));
  EXPECT_TRUE(testing::has_note(graph, Severity::warning, "compiled code"));
  EXPECT_TRUE(testing::has_note(graph, Severity::info, "the exported graph is not read"));
  EXPECT_TRUE(testing::has_note(graph, Severity::error, "a pickled object"));
  EXPECT_TRUE(testing::has_note(graph, Severity::error, "has layout 1"));
  EXPECT_TRUE(testing::has_note(graph, Severity::warning, "unknown dtype 99"));
  EXPECT_EQ(graph.tensors.size(), 1u);
}

TEST(Pt2, HostileFilesGiveTheirError) {
  const auto with = [](std::size_t record, const std::string& content) {
    Records records = kRest;
    records[record].second = content;
    return file_of(pt2_entry("w", "weight_0", "6", "1"), records);
  };
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string entry = pt2_entry("w", "weight_0", "6", "1");
    return file_of(entry.replace(entry.find(from), from.size(), to));
  };
  const auto sized = [](std::string_view sizes, std::string_view strides, int offset = 0) {
    return file_of(pt2_entry("w", "weight_0", sizes, strides, offset));
  };
  std::vector<testing::ZipSpec> compressed = testing::torch_members(
      fmt::format(R"({{"config": {{{}}}}})", pt2_entry("w", "weight_0", "6", "1")), kRest);
  compressed[0].name = "model/data/weights/model_weights_config.json";
  compressed[1].deflate = true;
  testing::expect_hostile(
      "m.pt2",
      {{"another format", with(1, "pt3"), "without an archive_format 'pt2'"},
       {"no format", file_of("", {kRest[0], kRest[2]}), "without an archive_format 'pt2'"},
       {"version 1", with(2, "1"), "version '1'"},
       {"a compressed weight", testing::zip_bytes(compressed), "is compressed"},
       {"config is no JSON", file_of("nonsense"), "is no JSON object"},
       {"config nested deep", file_of("\"a\": " + testing::repeat("[", 100'000)), "is no JSON object"},
       {"entry is a number", file_of("\"w\": 5"), "its entry in the config is no object"},
       {"no path", changed("\"path_name\": \"weight_0\",", ""), "path_name is no string"},
       {"path outside", changed("\"weight_0\"", "\"../../../etc/passwd\""),
        "which the archive does not hold"},
       {"absent weight", changed("\"weight_0\"", "\"weight_7\""), "which the archive does not hold"},
       {"use_pickle is a text", changed("\"use_pickle\": false", "\"use_pickle\": \"no\""),
        "use_pickle is no boolean"},
       {"no meta", changed("\"tensor_meta\"", "\"meta\""), "tensor_meta is no object"},
       {"symbolic size", changed("\"as_int\": 6", "\"as_expr\": \"s0\""), "sizes is no whole number"},
       {"negative size", sized("-6", "1"), "sizes is no whole number"},
       {"fractional size", sized("6.0", "1"), "sizes is no whole number"},
       {"size 2^64", sized("18446744073709551616", "1"), "is no JSON object"},
       {"sizes are a number", changed("\"sizes\": [{\"as_int\": 6}]", "\"sizes\": 6"), "sizes is no array"},
       {"layout is a text", changed("\"layout\": 7", "\"layout\": \"x\""), "layout is no whole number"},
       {"dtype is negative", changed("\"dtype\": 7", "\"dtype\": -7"), "dtype is no whole number"},
       {"one element too many", sized("7", "1"), "needs 28 bytes"},
       {"offset past the end", sized("6", "1", 1), "needs 28 bytes"},
       {"stride past the end", sized("6", "2"), "needs 44 bytes"},
       {"stride that wraps", sized("5", "4611686018427387904"), "needs more than 2^64 bytes"},
       {"product 2^64", sized("4294967296,4294967296", "0,0"), "overflows 64 bits"},
       {"fewer strides", sized("2,3", "1"), "1 strides for rank 2"}});
}

testing::ZipSpec stored(std::string name, std::string content) {
  testing::ZipSpec spec;
  spec.name = std::move(name);
  spec.content = std::move(content);
  return spec;
}

std::string state_dict(std::string_view name) {
  using namespace testing::pickle;
  return testing::torch_zip(
      stream("}" + text(name) + tensor(storage("0", "FloatStorage", 6), 0, {2, 3}, {3, 1}) + "s"),
      {{"data/0", pattern(24)}});
}

TEST(Pt2, StateDictsInsideTheArchiveAreReadInPlace) {
  Records records = kRest;
  records.emplace_back("data/weights/model.pt", state_dict("w"));
  records.emplace_back("data/constants/model.pt", state_dict("c"));
  const std::string old = testing::zip_bytes({stored("serialized_exported_program.json", "{}"),
                                              stored("serialized_state_dict.pt", state_dict("w")),
                                              stored("serialized_constants.pt", state_dict("c"))});
  for (const std::string& bytes : {file_of("", records), old}) {
    const MetaGraph graph = import_bytes("m.pt2", bytes);
    for (const char* name : {"w", "c"}) {
      const Tensor& tensor = testing::tensor_named(graph, name);
      EXPECT_EQ(bytes.substr(graph.storage(tensor.storage).offset, 24), pattern(24));
    }
  }
}

TEST(Pt2, StateDictsInsideTheArchiveAreTrustedNoMore) {
  using namespace testing::pickle;
  const auto old = [](std::string content) {
    return testing::zip_bytes({stored("serialized_state_dict.pt", std::move(content))});
  };
  testing::ZipSpec compressed = stored("serialized_state_dict.pt", state_dict("w"));
  compressed.deflate = true;
  const std::string sample = state_dict("w");
  testing::expect_hostile(
      "m.pt2", {{"no archive", old("hello"), "at least 22 bytes"},
                {"an archive cut short", old(sample.substr(0, sample.size() - 5)), "no end record"},
                {"code", old(testing::torch_zip(stream(global("os", "system")), {})), "names 'os.system'"},
                {"TorchScript", old(testing::torch_zip(stream("}"), {{"constants.pkl", ""}})), "TorchScript"},
                {"compressed", testing::zip_bytes({compressed}), "is compressed"},
                {"an archive in itself", old(old(sample)), "lies in no folder"}});
}

TEST(Pt2, OneNameInWeightsAndConstantsIsRefused) {
  Records records = kRest;
  records.emplace_back("data/constants/tensor_0", pattern(4));
  records.emplace_back("data/constants/model_constants_config.json",
                       fmt::format(R"({{"config": {{{}}}}})", pt2_entry("w", "tensor_0", "1", "1")));
  EXPECT_NE(testing::import_error("m.pt2", file_of(pt2_entry("w", "weight_0", "6", "1"), records))
                .find("occurs twice"),
            std::string::npos);
}

}  // namespace
}  // namespace loadline
