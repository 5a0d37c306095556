// What lessons do for real on the machine at hand: small loads, mappings, limits, packings and casts.
#pragma once

#include "app/lesson/figures.h"
#include "core/io/file_system.h"
#include "core/io/source_file.h"
#include "core/load/request/bind_request.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::lesson {

struct RunResult {
  RunFigures figures = {};              // what run(KEY) gives
  std::vector<std::string> lines = {};  // a small table for display; escaped
};

// A run and its settings, as a step gives them.
struct RunCall {
  const Run& run;
  const load::LoadEnvironment& environment;
  Progress& progress;

  // The setting with this key, or `otherwise`.
  std::string text(std::string_view key, std::string_view otherwise) const;
  // The same, separated by commas.
  std::vector<std::string> list(std::string_view key, std::string_view otherwise) const;
  // A whole number. Throws Error at the run's place for anything else.
  std::uint64_t number(std::string_view key, std::uint64_t otherwise, std::uint64_t most) const;
};

// Throws Error at the run's place for an unknown kind or setting.
void check_run(const Run& run);
// Does it. Takes seconds and some hundred MiB of disk and memory; leaves nothing behind. Throws Error for
// what this machine refuses, besides Error{canceled}.
RunResult do_run(const Run& run, const load::LoadEnvironment& environment, Progress& progress);

// A preset written with seeded random weights, or sparse, for as long as this object lives.
class WrittenModel {
 public:
  WrittenModel(const std::string& preset, bool sparse, const RunCall& call);
  const graph::MetaGraphPtr& graph() const { return graph_; }

 private:
  io::TemporaryFolder folder_;
  graph::MetaGraphPtr graph_;
};

// A file of the model, open.
struct OpenFile {
  io::SourceFile file;
  std::uint64_t bytes = 0;
};
OpenFile largest_file(const graph::MetaGraph& graph);
// The numbers of the model's largest tensor of two dimensions, at most 2^24 of them.
std::vector<float> largest_matrix(const graph::MetaGraphPtr& graph);

assets::Datum run_bytes(std::uint64_t bytes);

// A line "label   value   remark", aligned with its neighbors.
std::string run_line(std::string_view label, std::string_view value, std::string_view remark = {});

// The kinds.
RunResult run_rehearse(const RunCall& call);
RunResult run_open(const RunCall& call);
RunResult run_mapped(const RunCall& call);
RunResult run_commit(const RunCall& call);
RunResult run_pack(const RunCall& call);
RunResult run_quantize(const RunCall& call);
RunResult run_sparsity(const RunCall& call);
RunResult run_context(const RunCall& call);
RunResult run_experts(const RunCall& call);

}  // namespace loadline::lesson
