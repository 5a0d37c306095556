// Writes one file of a layout as a part in the work folder, from its beginning or from where a run stopped.
#pragma once

#include "core/base/tasks.h"
#include "core/io/output_file.h"
#include "core/io/tensor_reader.h"
#include "exporters/exporter.h"
#include "exporters/writer/checkpoints.h"
#include "exporters/writer/consume.h"
#include "exporters/writer/pipeline.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace loadline {

// What all parts of an output share; it must outlive the PartWriter.
struct PartContext {
  const Layout& layout;
  const MetaGraph& source;
  const ReadTensor& read;
  Progress& progress;
  Consumption* consumption = nullptr;  // null: the source stays as it is
  WritePolicy policy = WritePolicy::drop_behind;
  std::uint64_t step = 0;  // bytes between checkpoints
};

// A file of the layout that is being written; its members must outlive it.
struct OpenPart {
  std::size_t file = 0;  // its number in the layout
  OutputFile& out;
  const std::string& path;
  PartLog& log;
};

class PartWriter {
 public:
  PartWriter(const PartContext& context, const PipelineSizes& sizes)
      : context_(context), recipes_(sizes.recipes), pipeline_(sizes) {}

  // Writes all of a file that the log does not have yet, and makes it durable. Returns the last checkpoint:
  // size and hash of the whole.
  Checkpoint write(const OpenPart& part);

  std::uint64_t resumed_bytes() const { return resumed_; }  // that earlier runs had written
  std::uint64_t written_bytes() const { return written_; }
  std::uint64_t peak_anonymous() const { return peak_; }  // of this process, sampled at each window

 private:
  void put(const OpenPart& part, std::uint64_t offset, std::span<const std::byte> bytes,
           std::uint64_t digest);
  void make_durable(const OpenPart& part, const Checkpoint& checkpoint);

  const PartContext& context_;
  std::uint64_t recipes_;
  Pipeline pipeline_;
  std::uint64_t resumed_ = 0, written_ = 0, peak_ = 0;
  // of the file being written
  Checkpoint durable_;
  Xxh3 unverified_;  // of the bytes behind durable_.at, if the source is consumed
};

}  // namespace loadline
