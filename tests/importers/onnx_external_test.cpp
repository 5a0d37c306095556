// ONNX external data: where it may lie, and what its numbers may say.
#include "core/base/error.h"
#include "core/io/graph_reader.h"
#include "importers/onnx/onnx.h"
#include "importers/resolve.h"
#include "tests/support/builders.h"
#include "tests/support/hostile.h"
#include "tests/support/onnx_builder.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using namespace testing::onnx;
using testing::Hostile;
using testing::Proto;
using testing::TemporaryFolder;
using testing::write_file;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string model_with(const Entries& entries) {
  return weights_model({external_tensor("w", kUint8, {4}, entries)});
}
std::string model_at(const std::string& location) { return model_with({{"location", location}}); }

std::string error_of(const std::string& path) {
  return testing::error_of([&] { open_model(path, {}); });
}

std::string weight_bytes(const std::string& path, std::size_t number = 0) {
  const auto graph = std::make_shared<const MetaGraph>(open_model(path, {}));
  const Tensor& tensor = graph->tensors.at(number);
  std::string bytes(tensor_bytes(*graph, tensor), '\0');
  StorageReader(graph).read(tensor.storage, tensor.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(OnnxExternal, RangesOfAFile) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123456789");
  const auto read = [&](const Entries& entries) {
    write_file(folder / "m.onnx", model_with(entries));
    return weight_bytes(folder / "m.onnx");
  };
  EXPECT_EQ(read({{"location", "w.data"}, {"offset", "3"}, {"length", "4"}}), "3456");
  EXPECT_EQ(read({{"location", "w.data"}, {"offset", "6"}}), "6789");
  EXPECT_EQ(read({{"location", "w.data"}}), "0123");
  EXPECT_EQ(read({{"location", ".//w.data"}, {"basepath", "/x"}}), "0123");
}

TEST(OnnxExternal, FilesInFoldersBelow) {
  TemporaryFolder folder;
  write_file(folder / "parts/w.data", "abcd");
  write_file(folder / "m.onnx", model_at("parts/w.data"));
  EXPECT_EQ(weight_bytes(folder / "m.onnx"), "abcd");
}

TEST(OnnxExternal, OneRangeIsOneStorage) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123456789");
  const auto tensor_at = [](std::string_view name, const std::string& offset) {
    return external_tensor(name, kUint8, {4}, {{"location", "w.data"}, {"offset", offset}, {"length", "4"}});
  };
  write_file(folder / "m.onnx",
             weights_model({tensor_at("a", "2"), tensor_at("b", "2"), tensor_at("overlaps", "4")}));
  const MetaGraph graph = open_model(folder / "m.onnx", {});
  EXPECT_EQ(graph.storages.size(), 2u);
  EXPECT_EQ(tied_groups(graph).size(), 1u);
  EXPECT_EQ(graph.files.size(), 2u);
  EXPECT_TRUE(graph.notes.empty());
}

TEST(OnnxExternal, AMissingFileLeavesShapes) {
  TemporaryFolder folder;
  write_file(folder / "m.onnx", model_at("w.data"));
  const MetaGraph graph = open_model(folder / "m.onnx", {});
  EXPECT_EQ(graph.missing, std::vector<std::string>{"w"});
  EXPECT_EQ(graph.tensors[0].shape, std::vector<std::uint64_t>{4});
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_EQ(graph.notes[0].severity, Severity::error);
  EXPECT_EQ(graph.notes[0].text, "'w.data' is missing; it held 1 tensor: 'w'");
  EXPECT_THROW(require_sound(graph, "convert"), Error);
}

TEST(OnnxExternal, OddEntriesAreNoted) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123456789");
  write_file(folder / "m.onnx",
             model_with({{"location", "w.data"}, {"length", "6"}, {"checksum", "ab"}, {"__class__", "x"}}));
  const MetaGraph graph = open_model(folder / "m.onnx", {});
  ASSERT_EQ(graph.notes.size(), 3u);
  EXPECT_NE(graph.notes[0].text.find("needs 4 bytes, its external data has 6"), std::string::npos);
  EXPECT_NE(graph.notes[1].text.find("unknown key '__class__'"), std::string::npos);
  EXPECT_EQ(graph.notes[2].severity, Severity::info);
}

TEST(OnnxExternal, HostileEntriesGiveTheirError) {
  TemporaryFolder folder;
  fs::create_directories(folder / "model");
  write_file(folder / "secret", "secret");
  write_file(folder / "model/w.data", "0123456789");
  write_file(folder / "model/a..b", "0123456789");
  write_file(folder / "model/sub/x", "x");
  fs::create_symlink("../secret", folder / "model/link");
  fs::create_symlink("..", folder / "model/up");
  fs::create_symlink("/dev/zero", folder / "model/zero");
  fs::create_symlink("/proc/self/environ", folder / "model/environ");
  ASSERT_EQ(::mkfifo((folder / "model/fifo").c_str(), 0600), 0);
  const std::string model_path = folder / "model/m.onnx";
  const auto at = [](const std::string& location) { return model_at(location); };
  const auto with = [](Entries entries) {
    entries.insert(entries.begin(), {"location", "w.data"});
    return model_with(entries);
  };
  const std::vector<Hostile> table = {
      {"parent folder", at("../secret"),
       "m.onnx: names a file '../secret' outside its folder or not cleanly inside it"},
      {"parent folder behind a folder", at("sub/../../secret"), "outside its folder"},
      {"parent folder inside", at("sub/../w.data"), "outside its folder"},
      {"dots at the end", at("sub/.."), "outside its folder"},
      {"absolute", at("/etc/passwd"), "outside its folder"},
      {"slashes", at("//etc/passwd"), "outside its folder"},
      {"a drive", at("C:\\x"), "outside its folder"},
      {"backslashes", at("..\\secret"), "outside its folder"},
      {"NUL", at(std::string("w.data\0.txt", 11)), "outside its folder"},
      {"empty", at(""), "is no file name"},
      {"a dot", at("."), "is no file name"},
      {"in memory", at("#tensor"), "is no file name"},
      {"link to a file outside", at("link"), "outside the model's folder"},
      {"linked folder", at("up/secret"), "m.onnx': links to"},
      {"link to a device", at("zero"), "outside the model's folder"},
      {"link into /proc", at("environ"), "outside the model's folder"},
      {"fifo", at("fifo"), "is not a regular file"},
      {"folder", at("sub"), "is not a regular file"},
      {"no location", model_with({{"offset", "0"}}), "no location is given"},
      {"location twice", with({{"location", "other"}}), "gives 'location' twice"},
      {"offset twice", with({{"offset", "0"}, {"offset", "4"}}), "gives 'offset' twice"},
      {"negative length", with({{"length", "-1"}}), "length '-1' is not a whole number"},
      {"negative offset", with({{"offset", "-1"}}), "offset '-1' is not a whole number"},
      {"exponent", with({{"length", "1e3"}}), "length '1e3'"},
      {"hexadecimal", with({{"offset", "0x4"}}), "offset '0x4'"},
      {"space", with({{"offset", " 4"}}), "offset ' 4'"},
      {"plus", with({{"offset", "+4"}}), "offset '+4'"},
      {"empty number", with({{"offset", ""}}), "offset ''"},
      {"over 64 bits", with({{"length", "99999999999999999999"}}), "length '99999999999999999999'"},
      {"2^64-1", with({{"offset", "8"}, {"length", "18446744073709551615"}}),
       "18446744073709551615 bytes at 8 of 'w.data', which has 10"},
      {"a petabyte", with({{"length", "1125899906842624"}}), "which has 10"},
      {"offset past the end", with({{"offset", "11"}}), "the bytes at 11 of 'w.data', which has 10"},
      {"length past the end", with({{"offset", "7"}, {"length", "4"}}),
       "4 bytes at 7 of 'w.data', which has 10"},
      {"too few to the end", with({{"offset", "8"}}), "needs 4 bytes for [4] U8, its external data has 2"},
      {"length too small", with({{"length", "3"}}), "needs 4 bytes for [4] U8, its external data has 3"},
      {"with raw_data",
       weights_model({external_tensor("w", kUint8, {4}, {{"location", "w.data"}}).text(9, "1234")}),
       "is external, and it has values in raw_data"},
      {"strings", weights_model({external_tensor("w", kString, {1}, {{"location", "w.data"}})}),
       "strings cannot be external"},
      {"product 2^64",
       weights_model({external_tensor("w", kUint8, {1ULL << 32, 1ULL << 32}, {{"location", "w.data"}})}),
       "overflows 64 bits"},
  };
  testing::expect_errors(table, [&](std::string_view bytes) {
    write_file(model_path, bytes);
    open_model(model_path, {});
  });
  // what merely looks bad is a name
  write_file(model_path, at("a..b"));
  EXPECT_EQ(weight_bytes(model_path), "0123");
}

TEST(OnnxExternal, AFolderIsItsModel) {
  TemporaryFolder folder;
  write_file(folder / "w.data", "0123");
  write_file(folder / "other.onnx", "nothing");
  write_file(folder / "model.onnx", model_at("w.data"));
  write_file(folder / "config.json", R"({"model_type":"llama"})");
  const MetaGraph graph = open_model(folder.path().string(), {});
  EXPECT_EQ(graph.files.size(), 2u);
  EXPECT_NE(find_metadata(graph, kConfigKey), nullptr);
  ASSERT_EQ(graph.notes.size(), 1u);
  EXPECT_NE(graph.notes[0].text.find("the folder also holds 'other.onnx'"), std::string::npos);
}

// A hard link cannot be told from a file: see onnx_external.cpp.
TEST(OnnxExternal, HardLinksAreFiles) {
  TemporaryFolder folder;
  write_file(folder / "blob", "0123");
  write_file(folder / "m.onnx", model_at("w.data"));
  fs::create_hard_link(folder / "blob", folder / "w.data");
  EXPECT_EQ(weight_bytes(folder / "m.onnx"), "0123");
}

TEST(OnnxExternal, LinksOfTheUserOpenWhenAsked) {
  TemporaryFolder folder;
  write_file(folder / "elsewhere/blob", "0123");
  write_file(folder / "model/m.onnx", model_at("w.data"));
  fs::create_symlink("../elsewhere/blob", folder / "model/w.data");
  EXPECT_NE(error_of(folder / "model/m.onnx").find("outside the model's folder"), std::string::npos);
  ResolveOptions options;
  options.follow_links = true;
  EXPECT_EQ(open_model(folder / "model/m.onnx", options).files.size(), 2u);
}

// hub/models--o--n/{blobs, snapshots/C/onnx/*}: links out of the snapshot into blobs/, through one more into
// the cache's shared blobs/, and nowhere else.
class OnnxHubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "hub/models--o--n/blobs/model", model_at("model.onnx_data"));
    write_file(folder_ / "hub/models--o--n/blobs/data", "0123");
    write_file(folder_ / "hub/blobs/shared", "4567");
    write_file(folder_ / "hub/models--other/blobs/data", "89ab");
    fs::create_directories(snapshot_);
    fs::create_symlink("../../../blobs/model", snapshot_ / "model.onnx");
  }
  void link_data(const std::string& target) {
    fs::remove(snapshot_ / "model.onnx_data");
    fs::create_symlink(target, snapshot_ / "model.onnx_data");
  }
  TemporaryFolder folder_;
  fs::path snapshot_ = folder_.path() / "hub/models--o--n/snapshots/c0ffee/onnx";
};

TEST_F(OnnxHubCache, LinksIntoTheRepositorysBlobsOpen) {
  link_data("../../../blobs/data");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "0123");
}

TEST_F(OnnxHubCache, LinksIntoTheSharedBlobsOpen) {
  link_data("../../../../blobs/shared");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "4567");
  // in two hops
  fs::create_symlink("../../blobs/shared", folder_.path() / "hub/models--o--n/blobs/hop");
  link_data("../../../blobs/hop");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "4567");
}

TEST_F(OnnxHubCache, NamesMayLeadIntoFoldersOfTheSnapshot) {
  link_data("../../../../blobs/shared");
  write_file(folder_ / "hub/models--o--n/blobs/root", model_at("onnx/model.onnx_data"));
  fs::create_symlink("../../blobs/root", snapshot_.parent_path() / "model.onnx");
  EXPECT_EQ(weight_bytes((snapshot_.parent_path() / "model.onnx").string()), "4567");
  // and a folder of it may be a link itself, as long as it ends in the cache's blobs
  fs::create_directory_symlink(folder_.path() / "hub/models--other", snapshot_.parent_path() / "other");
  write_file(folder_ / "hub/models--o--n/blobs/bad", model_at("other/blobs/data"));
  fs::create_symlink("../../blobs/bad", snapshot_.parent_path() / "bad.onnx");
  EXPECT_NE(error_of((snapshot_.parent_path() / "bad.onnx").string()).find("outside the model's folder"),
            std::string::npos);
}

TEST_F(OnnxHubCache, OtherRepositoriesStayClosed) {
  link_data("../../../../models--other/blobs/data");
  EXPECT_NE(error_of((snapshot_ / "model.onnx").string()).find("outside the model's folder"),
            std::string::npos);
}

TEST_F(OnnxHubCache, TheLinkDecidesAndNotItsTarget) {
  // beside the blob of the model lies a file of the right name that is not meant
  write_file(folder_ / "hub/models--o--n/blobs/model.onnx_data", "nope");
  link_data("../../../blobs/data");
  EXPECT_EQ(weight_bytes((snapshot_ / "model.onnx").string()), "0123");
}

}  // namespace
}  // namespace loadline
