// Conversions that tests interrupt, and what they leave.
#pragma once

#include "core/base/progress.h"
#include "core/io/graph_reader.h"
#include "exporters/exporter.h"
#include "exporters/writer/work_folder.h"
#include "exporters/writer/write_layout.h"
#include "tests/support/builders.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loadline::export_tests {

// Reads a model's bytes; `before` is called first.
inline io::ReadTensor reader_with(const graph::MetaGraphPtr& graph,
                                  std::function<void(graph::TensorId, std::uint64_t)> before = {}) {
  const auto storages = std::make_shared<io::StorageReader>(graph);
  return [storages, before](graph::TensorId id, std::uint64_t offset, std::span<std::byte> out) {
    if (before) before(id, offset);
    io::TensorReader(*storages).read(id, offset, out);
  };
}

inline exporters::WriteOptions small_steps() {
  exporters::WriteOptions options;
  options.memory_budget = 64 << 10;
  options.checkpoint_bytes = 32 << 10;
  options.threads = 2;
  return options;
}

// The names of all files below a folder and what they hold.
inline std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = testing::read_file(entry.path().string());
  return files;
}

// A model, and conversions of it that end early.
class Interrupted : public ::testing::Test {
 protected:
  exporters::Layout layout(const std::string& out, std::string_view exporter = "safetensors",
                           std::uint64_t shard = 0) {
    return exporters::find_exporter(exporter).layout(
        *graph_, {.outtype = {}, .alignment = 0, .max_shard_bytes = shard}, folder_ / out);
  }
  exporters::WriteReport write(const exporters::Layout& layout, const exporters::WriteOptions& options) {
    Progress progress;
    return exporters::write_layout(layout, *graph_, reader_with(graph_), options, progress);
  }
  // In a process of its own, which is killed when it reads tensor `id` at `offset` or later.
  void write_until(const exporters::Layout& layout, const exporters::WriteOptions& options, std::uint32_t id,
                   std::uint64_t offset) {
    const pid_t child = ::fork();
    if (child == 0) {
      Progress progress;
      const io::ReadTensor dying = reader_with(graph_, [&](graph::TensorId tensor, std::uint64_t at) {
        if (graph::index(tensor) == id && at >= offset) ::raise(SIGKILL);
      });
      exporters::write_layout(layout, *graph_, dying, options, progress);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  std::size_t remains(const std::string& folder) { return exporters::find_remains(folder_ / folder).size(); }

  static constexpr std::uint64_t kTensor = 300'000;

  const testing::TemporaryFolder folder_;
  graph::MetaGraphPtr graph_ = testing::byte_model(folder_, {kTensor, kTensor, kTensor});
};

}  // namespace loadline::export_tests
