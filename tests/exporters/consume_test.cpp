// Conversions that consume their source: the space that they give back, and what is the only copy.

#include "exporters/writer/consume.h"

#include "core/base/error.h"
#include "core/io/unfinished.h"
#include "exporters/writer/work_folder.h"
#include "importers/resolve.h"
#include "tests/exporters/interrupted.h"

#include <atomic>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline::tests {
namespace {

namespace fs = std::filesystem;
using export_tests::contents;
using export_tests::reader_with;
using export_tests::small_steps;
using testing::read_file;

class Consume : public export_tests::Interrupted {
 protected:
  static constexpr std::uint64_t kLarge = 3 << 20;
  Consume() { graph_ = testing::byte_model(folder_, {kLarge, kLarge, kLarge}); }
  exporters::WriteOptions consuming() {
    exporters::WriteOptions options = small_steps();
    options.checkpoint_bytes = 1 << 20;
    options.consume = true;
    return options;
  }
  std::uint64_t source_blocks() {
    struct stat state = {};
    return ::stat(graph_->files[0].path.c_str(), &state) == 0
               ? static_cast<std::uint64_t>(state.st_blocks) * 512
               : 0;
  }
};

TEST_F(Consume, GivesSpaceBackAndRemovesTheSource) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out.safetensors");
  write(whole, {});
  std::atomic<std::uint64_t> least = UINT64_MAX;
  Progress progress;
  exporters::write_layout(
      out, *graph_,
      reader_with(graph_,
                  [&](graph::TensorId, std::uint64_t) { least = std::min(least.load(), source_blocks()); }),
      consuming(), progress);
  EXPECT_LT(least, 2 * kLarge);
  EXPECT_EQ(read_file(folder_ / "out.safetensors"), read_file(folder_ / "whole.safetensors"));
  EXPECT_FALSE(fs::exists(graph_->files[0].path));
  EXPECT_EQ(exporters::find_remains(folder_.path().string()).size(), 0u);
}

TEST_F(Consume, RemainsHoldTheOnlyCopyAndStay) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out/o.safetensors");
  write(whole, {});
  write_until(out, consuming(), 2, 0);
  EXPECT_LT(source_blocks(), 3 * kLarge);
  const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
  EXPECT_GE(remains.consumed, kLarge);
  EXPECT_THROW(exporters::remove_remains(remains, false), Error);
  // the source has holes now, wherever it is
  const std::string source = graph_->files[0].path, mark = folder_ / io::kConsumedMark;
  EXPECT_THROW(importers::open_model(source, {}), Error);
  EXPECT_THROW(write(layout("else.safetensors"), {}), Error);
  fs::create_directory(folder_ / "moved");
  fs::copy(source, folder_ / "moved");
  EXPECT_NO_THROW(importers::open_model(folder_ / "moved", {}));
  fs::copy(mark, folder_ / "moved");
  EXPECT_THROW(importers::open_model(folder_ / "moved", {}), Error);
  EXPECT_NO_THROW(importers::open_consumed(source, {}));
  exporters::WriteOptions force = consuming();
  force.overwrite = true;
  EXPECT_THROW(write(out, force), Error);
  // canceling does not remove them either
  std::stop_source stop;
  stop.request_stop();
  Progress canceled(stop.get_token());
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  EXPECT_THROW(exporters::write_layout(out, *graph_, reader_with(graph_), resume, canceled), Error);
  EXPECT_EQ(exporters::find_remains(folder_ / "out").size(), 1u);
  write(out, resume);
  EXPECT_EQ(read_file(folder_ / "out/o.safetensors"), read_file(folder_ / "whole.safetensors"));
  EXPECT_FALSE(fs::exists(graph_->files[0].path));
  EXPECT_FALSE(fs::exists(mark));
  EXPECT_EQ(contents(folder_ / "out").size(), 1u);
}

TEST_F(Consume, OnlyTheFilesThatAreNamedGo) {
  const std::string path = graph_->files[0].path, before = read_file(path);
  exporters::WriteOptions options = consuming();
  options.consumable_files = 0;
  write(layout("out.safetensors"), options);
  EXPECT_EQ(read_file(path), before);
  EXPECT_FALSE(fs::exists(folder_ / io::kConsumedMark));
  EXPECT_TRUE(exporters::consumed_files(*graph_, 0).empty());
  EXPECT_EQ(exporters::consumed_files(*graph_, 1), std::vector<std::string>{fs::absolute(path).string()});
}

TEST_F(Consume, CancelingKeepsWhatIsTheOnlyCopy) {
  const exporters::Layout out = layout("out/o.safetensors");
  std::stop_source stop;
  Progress progress(stop.get_token());
  const io::ReadTensor stopping = reader_with(graph_, [&](graph::TensorId id, std::uint64_t) {
    if (graph::index(id) == 2) stop.request_stop();
  });
  EXPECT_THROW(exporters::write_layout(out, *graph_, stopping, consuming(), progress), Error);
  EXPECT_GE(exporters::find_remains(folder_ / "out").at(0).consumed, kLarge);
}

TEST_F(Consume, ASourceWithOtherNamesIsRefused) {
  const std::string path = graph_->files[0].path;
  fs::create_hard_link(path, path + ".other");
  EXPECT_THROW(write(layout("out.safetensors"), consuming()), Error);
  EXPECT_EQ(read_file(path), read_file(path + ".other"));
}

}  // namespace
}  // namespace loadline::tests
