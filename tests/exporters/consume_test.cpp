// Conversions that consume their source: the space that they give back, and what is the only copy.

#include "exporters/writer/consume.h"

#include "core/base/error.h"
#include "core/io/unfinished.h"
#include "exporters/writer/work_folder.h"
#include "importers/resolve.h"
#include "tests/exporters/interrupted.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline::tests {
namespace {

namespace fs = std::filesystem;
using export_tests::contents;
using export_tests::reader_with;
using export_tests::small_steps;
using testing::read_file;
using testing::write_file;

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

// Whatever part of the remains is damaged: what has gone from the source is never read there again.
TEST_F(Consume, DamagedRemainsAreNotMadeAnewOfHoles) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out/o.safetensors");
  write(whole, {});
  write_until(out, consuming(), 2, kLarge / 2);
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  const std::string work = exporters::WorkFolder::path_of(out);
  const auto damaged = [](std::string bytes, std::size_t at) {
    bytes.at(at) ^= 1;
    return bytes;
  };
  const std::string part = read_file(work + "/00000.part"), log = read_file(work + "/00000.log"),
                    taken = read_file(work + "/consumed");
  struct Damage {
    const char* file;
    std::string before, after;
    const char* said;
  };
  const std::vector<Damage> damages = {
      {"00000.part", part, damaged(part, 200'000), "'t0', 't1'"},
      {"00000.part", part, damaged(part, 2 * kLarge - 1000), "gone: 't1'"},
      {"00000.part", part, part.substr(0, kLarge), "cannot be written again"},
      {"00000.part", part, "", "'t0', 't1'"},
      {"00000.log", log, damaged(log, 3), "'t0', 't1'"},
      {"00000.log", log, "", "'t0', 't1'"},
      {"consumed", taken, "", "has lost the list of what was taken"},
      {"consumed", taken, damaged(taken, 2), "is damaged"},
      {"consumed", taken, damaged(taken, taken.size() - 2), "is damaged"}};
  for (const Damage& damage : damages) {
    write_file(work + "/" + damage.file, damage.after);
    const auto before = contents(folder_.path());
    try {
      write(out, resume);
      ADD_FAILURE() << damage.file << " " << damage.after.size();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(damage.said), std::string::npos) << error.what();
      EXPECT_TRUE(error.code() == ErrorCode::io || error.code() == ErrorCode::malformed);
    }
    EXPECT_EQ(contents(folder_.path()), before) << damage.file;
    EXPECT_THROW(importers::open_model(graph_->files[0].path, {}), Error);
    EXPECT_GE(exporters::find_remains(folder_ / "out").at(0).consumed, damage.after.empty() ? 0u : 1u);
    write_file(work + "/" + damage.file, damage.before);
  }
  // a line that a full disk has cut was of a range that had not gone
  write_file(work + "/consumed", taken + "0 77");
  write(out, resume);
  EXPECT_EQ(read_file(folder_ / "out/o.safetensors"), read_file(folder_ / "whole.safetensors"));
}

// The mark of the source is all that says that something was taken.
TEST_F(Consume, RemainsThatHaveLostTheirListStay) {
  const exporters::Layout out = layout("out/o.safetensors");
  const std::string source = graph_->files[0].path;
  write_until(out, consuming(), 2, 0);
  const std::string list = exporters::WorkFolder::path_of(out) + "/consumed", taken = read_file(list);
  exporters::WriteOptions force = consuming();
  force.overwrite = true;
  for (const std::string& left : {std::string(), std::string("0 77"), std::string("gone")}) {
    write_file(list, left);
    if (left == "gone") fs::remove(list);
    const auto before = contents(folder_.path());
    const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
    EXPECT_EQ(remains.list, exporters::ConsumedList::lost);
    EXPECT_EQ(exporters::only_copy_text(remains), "an unknown number of bytes");
    EXPECT_THROW(exporters::remove_remains(remains, false), Error);
    EXPECT_THROW(write(out, force), Error);
    EXPECT_EQ(contents(folder_.path()), before) << left;
  }
  write_file(list, taken);
  EXPECT_EQ(exporters::find_remains(folder_ / "out").at(0).list, exporters::ConsumedList::whole);
  write_file(list, "no line\n");
  const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
  EXPECT_EQ(remains.list, exporters::ConsumedList::damaged);
  EXPECT_EQ(remains.consumed, 0u);
  EXPECT_EQ(exporters::only_copy_text(remains), "an unknown number of bytes");
  EXPECT_THROW(exporters::remove_remains(remains, false), Error);
  fs::remove(list);
  const exporters::Remains lost = exporters::find_remains(folder_ / "out").at(0);
  EXPECT_EQ(exporters::damaged_sources(lost), std::vector<std::string>{fs::absolute(source).string()});
  exporters::remove_remains(lost, true);
  EXPECT_EQ(this->remains("out"), 0u);
  EXPECT_THROW(importers::open_model(source, {}), Error);
}

TEST_F(Consume, AnEmptyTensorIsNotLostWithTheOneAtItsPlace) {
  testing::SafetensorsHeader header;
  for (const char* name : {"a", "b", "c"}) header.add(name, "U8", std::to_string(kLarge), kLarge);
  std::string text = header.text();
  text.insert(text.size() - 1, R"(,"z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  write_file(folder_ / "bytes.safetensors",
             testing::safetensors_bytes(text, 0) + std::string(header.data_bytes(), 'x'));
  graph_ = std::make_shared<const graph::MetaGraph>(importers::open_model(folder_ / "bytes.safetensors", {}));
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out.safetensors");
  write(whole, {});
  const auto place_of = [&](std::string_view name) {
    return std::ranges::find(out.files[0].slots, name, [](const auto& slot) { return slot.name.view(); });
  };
  ASSERT_LT(place_of("a"), place_of("z"));  // else it is written before
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < graph_->tensors.size(); ++i)
    if (graph_->tensors[i].name.view() == "c") last = static_cast<std::uint32_t>(i);
  write_until(out, consuming(), last, 0);
  EXPECT_GE(exporters::find_remains(folder_.path().string()).at(0).consumed, kLarge);
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  write(out, resume);
  EXPECT_EQ(read_file(folder_ / "out.safetensors"), read_file(folder_ / "whole.safetensors"));
}

TEST_F(Consume, AMarkThatCannotBeReadStopsAllButItsOwner) {
  const exporters::Layout whole = layout("whole.safetensors"), out = layout("out/o.safetensors");
  write(whole, {});
  write_until(out, consuming(), 2, 0);
  const std::string mark = folder_ / io::kConsumedMark;
  write_file(mark, "damaged");
  for (const bool consume : {false, true}) try {
      exporters::WriteOptions options = consuming();
      options.consume = consume;
      write(layout("else.safetensors"), options);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("cannot be read"), std::string::npos) << error.what();
    }
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  write(out, resume);
  EXPECT_EQ(read_file(folder_ / "out/o.safetensors"), read_file(folder_ / "whole.safetensors"));
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(Consume, RemainsWithoutTheirRecordStay) {
  const exporters::Layout out = layout("out/o.safetensors");
  write_until(out, consuming(), 2, 0);
  const std::string record = exporters::WorkFolder::path_of(out) + "/job.json", good = read_file(record);
  fs::remove(record);
  const auto before = contents(folder_.path());
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  exporters::WriteOptions force;
  force.overwrite = true;
  EXPECT_THROW(write(out, resume), Error);
  EXPECT_THROW(write(out, force), Error);
  EXPECT_THROW(exporters::WorkFolder(exporters::WorkFolder::path_of(out), {}, {}), Error);
  const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
  EXPECT_THROW(exporters::remove_remains(remains, false), Error);
  exporters::remove_finished(folder_ / "out/o.safetensors");
  EXPECT_EQ(contents(folder_.path()), before);
  write_file(record, good);
  EXPECT_NO_THROW(write(out, resume));
}

TEST_F(Consume, ALogGoesOnBehindItsLastWholeLine) {
  const exporters::Layout out = layout("out/o.safetensors");
  write_until(out, consuming(), 1, kLarge / 2);
  const std::string path = exporters::WorkFolder::path_of(out) + "/consumed", taken = read_file(path);
  write_file(path, taken + "0 77");
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  write_until(out, resume, 2, kLarge / 2);
  const exporters::ConsumedLog log = exporters::parse_consumed(read_file(path));
  EXPECT_FALSE(log.damaged);
  EXPECT_EQ(log.ranges.size(), 2u);
}

TEST_F(Consume, ADiscardedSourceStaysMarkedWhileItIsThere) {
  const exporters::Layout out = layout("out/o.safetensors");
  const std::string source = graph_->files[0].path, mark = folder_ / io::kConsumedMark;
  write_until(out, consuming(), 2, 0);
  const exporters::Remains remains = exporters::find_remains(folder_ / "out").at(0);
  EXPECT_EQ(exporters::damaged_sources(remains), std::vector<std::string>{fs::absolute(source).string()});
  exporters::remove_remains(remains, true);
  EXPECT_EQ(this->remains("out"), 0u);
  // nobody has the bytes any more
  for (const std::string& path : {source, folder_.path().string()}) try {
      importers::open_model(path, {});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("get the model again"), std::string::npos) << error.what();
    }
  EXPECT_THROW(write(layout("else.safetensors"), consuming()), Error);
  EXPECT_FALSE(exporters::remove_consumed_mark(folder_.path().string(), false));
  // another model in the folder is none of its files; once those are gone the mark says nothing
  fs::rename(source, folder_ / "kept");
  write_file(folder_ / "other.safetensors", read_file(folder_ / "kept"));
  EXPECT_NO_THROW(importers::open_model(folder_.path().string(), {}));
  EXPECT_TRUE(exporters::remove_consumed_mark(folder_.path().string(), true));
  EXPECT_TRUE(fs::exists(mark));
  EXPECT_TRUE(exporters::remove_consumed_mark(folder_.path().string(), false));
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(Consume, TheMarkGoesWithRemainsWhoseSourceIsGone) {
  write_until(layout("out/o.safetensors"), consuming(), 2, 0);
  fs::remove(graph_->files[0].path);
  exporters::remove_remains(exporters::find_remains(folder_ / "out").at(0), true);
  EXPECT_FALSE(fs::exists(folder_ / io::kConsumedMark));
}

TEST_F(Consume, ADamagedMarkGoesWithItsModel) {
  const exporters::Layout out = layout("out/o.safetensors");
  write_until(out, consuming(), 1, kLarge / 2);
  write_file(folder_ / io::kConsumedMark, "damaged");
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  EXPECT_GT(write(out, resume).bytes_resumed, kLarge);
  EXPECT_FALSE(fs::exists(graph_->files[0].path));
  EXPECT_FALSE(fs::exists(folder_ / io::kConsumedMark));
}

TEST_F(Consume, AMovedOutputGoesOn) {
  const exporters::Layout out = layout("out/o.safetensors"), moved = layout("moved/o.safetensors");
  write_until(out, consuming(), 1, kLarge / 2);
  fs::rename(folder_ / "out", folder_ / "moved");
  exporters::WriteOptions resume = consuming();
  resume.resume = true;
  EXPECT_GT(write(moved, resume).bytes_resumed, kLarge);
  EXPECT_FALSE(fs::exists(folder_ / io::kConsumedMark));
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
