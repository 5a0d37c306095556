// Replays what is there, then runs the pipeline with a checkpoint every few hundred MiB.
#include "exporters/writer/part_writer.h"

#include "core/base/error.h"
#include "core/io/process_memory.h"
#include "exporters/writer/read_back.h"

#include <algorithm>
#include <optional>

namespace loadline {
Checkpoint PartWriter::write(std::size_t file, OutputFile& part, const std::string& path, PartLog& log) {
  const LayoutFile& layout = context_.layout.files[file];
  std::optional<FileContent> content;
  Xxh3 hash;
  const auto restart = [&] {
    content.emplace(layout, context_.source, context_.read, recipes_);
    hash = Xxh3();
  };
  restart();
  std::vector<Checkpoint> known = log.read();
  const std::size_t logged = known.size();
  std::erase_if(known, [&](const Checkpoint& checkpoint) {
    return checkpoint.at > layout.bytes || !content->can_start_at(checkpoint.at);
  });
  while (!known.empty()) {
    const std::size_t good = matching_checkpoints(
        path, known, context_.progress, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
          hash.update(bytes);
          content->pass(offset, bytes);
        });
    if (good == known.size()) break;
    known.resize(good);
    restart();
  }
  if (known.size() != logged) {
    log.clear();
    for (const Checkpoint& checkpoint : known) log.append(checkpoint);
  }
  durable_ = known.empty() ? Checkpoint{} : known.back();
  resumed_ += durable_.at;
  if (context_.consumption != nullptr) context_.consumption->written(file, durable_.at);
  if (!known.empty() && durable_.at == layout.bytes) return durable_;

  part.set_policy(context_.policy);
  unverified_ = Xxh3();
  pipeline_.run(
      *content, durable_.at, layout.bytes, hash,
      [&](std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t digest) {
        put(file, part, path, log, offset, bytes, digest);
      },
      context_.progress);
  if (durable_.at < layout.bytes || layout.bytes == 0)
    make_durable(file, part, path, log, {layout.bytes, hash.digest()});
  return durable_;
}

void PartWriter::put(std::size_t file, OutputFile& part, const std::string& path, PartLog& log,
                     std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t digest) {
  part.write_at(offset, bytes);
  const std::uint64_t end = offset + bytes.size();
  written_ += bytes.size();
  context_.progress.add(bytes.size());
  peak_ = std::max(peak_, read_process_memory().rss_anon);
  if (context_.consumption != nullptr) unverified_.update(bytes);
  if (end - durable_.at >= context_.step) make_durable(file, part, path, log, {end, digest});
}

void PartWriter::make_durable(std::size_t file, OutputFile& part, const std::string& path, PartLog& log,
                              const Checkpoint& checkpoint) {
  part.sync();
  if (context_.consumption != nullptr) {
    // nothing is taken from the source before its copy has been seen on the disk
    check_range_read_back(path, part.path(), durable_.at, checkpoint.at, unverified_.digest());
    unverified_ = Xxh3();
  }
  log.append(checkpoint);
  durable_ = checkpoint;
  if (context_.consumption != nullptr) context_.consumption->written(file, checkpoint.at);
}

}  // namespace loadline
