// Replays what is there, then runs the pipeline with a checkpoint every few hundred MiB.
#include "exporters/writer/part_writer.h"

#include "core/base/error.h"
#include "core/io/system_memory.h"
#include "exporters/writer/read_back.h"

#include <algorithm>
#include <optional>

namespace loadline {
Checkpoint PartWriter::write(const OpenPart& part) {
  const LayoutFile& layout = context_.layout.files[part.file];
  std::optional<FileContent> content;
  Xxh3 hash;
  const auto restart = [&] {
    content.emplace(layout, context_.source, context_.read, recipes_);
    hash = Xxh3();
  };
  restart();
  std::vector<Checkpoint> known = part.log.read();
  const std::size_t logged = known.size();
  std::erase_if(known, [&](const Checkpoint& checkpoint) {
    return checkpoint.at > layout.bytes || !content->can_start_at(checkpoint.at);
  });
  while (!known.empty()) {
    const std::size_t good = matching_checkpoints(
        part.path, known, context_.progress, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
          hash.update(bytes);
          content->pass(offset, bytes);
        });
    if (good == known.size()) break;
    known.resize(good);
    restart();
  }
  if (known.size() != logged) {
    part.log.clear();
    for (const Checkpoint& checkpoint : known) part.log.append(checkpoint);
  }
  durable_ = known.empty() ? Checkpoint{} : known.back();
  resumed_ += durable_.at;
  if (context_.consumption != nullptr) context_.consumption->written(part.file, durable_.at);
  if (!known.empty() && durable_.at == layout.bytes) return durable_;

  part.out.set_policy(context_.policy);
  unverified_ = Xxh3();
  pipeline_.run(
      *content, durable_.at, layout.bytes, hash,
      [&](std::uint64_t offset, std::span<const std::byte> bytes, std::uint64_t digest) {
        put(part, offset, bytes, digest);
      },
      context_.progress);
  if (durable_.at < layout.bytes || layout.bytes == 0) make_durable(part, {layout.bytes, hash.digest()});
  return durable_;
}

void PartWriter::put(const OpenPart& part, std::uint64_t offset, std::span<const std::byte> bytes,
                     std::uint64_t digest) {
  part.out.write_at(offset, bytes);
  const std::uint64_t end = offset + bytes.size();
  written_ += bytes.size();
  context_.progress.add(bytes.size());
  peak_ = std::max(peak_, read_process_memory().rss_anon);
  if (context_.consumption != nullptr) unverified_.update(bytes);
  if (end - durable_.at >= context_.step) make_durable(part, {end, digest});
}

void PartWriter::make_durable(const OpenPart& part, const Checkpoint& checkpoint) {
  part.out.sync();
  if (context_.consumption != nullptr) {
    // nothing is taken from the source before its copy has been seen on the disk
    check_range_read_back(part.path, part.out.path(), durable_.at, checkpoint.at, unverified_.digest());
    unverified_ = Xxh3();
  }
  part.log.append(checkpoint);
  durable_ = checkpoint;
  if (context_.consumption != nullptr) context_.consumption->written(part.file, checkpoint.at);
}

}  // namespace loadline
