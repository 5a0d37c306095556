// Lays out a zip archive whose members are stored, aligned and streamed (PKWARE APPNOTE 6.3).
#pragma once

#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

// Members follow each other in the order in which they are added. Each has a data descriptor, because its
// checksum is known only after its bytes; large archives use ZIP64. Padding is an extra field of the local
// header, as torch writes it.
class ZipLayout {
 public:
  // `alignment` of the members' data: a power of two up to kMostAlignment.
  explicit ZipLayout(std::uint64_t alignment) : alignment_(alignment) {}
  static constexpr std::uint64_t kMostAlignment = 32 << 10;

  void add(std::string_view name, std::vector<std::byte> content);
  // A member of `prefix` and the bytes of a slot, which gets its offset. The slot's bytes are aligned.
  void add(std::string_view name, std::vector<std::byte> prefix, Slot slot);

  // The whole archive as the only file of an output; `format` is the importer's id.
  Layout layout(const MetaGraph& source, std::string format, const std::string& out);

 private:
  struct Member {
    std::string name;
    std::uint64_t header = 0;  // offset of its local header
    std::uint64_t bytes = 0;
    bool large = false;  // ZIP64
  };

  // Begins a member of so many bytes whose byte `aligned` is aligned; returns the offset of its first byte.
  std::uint64_t begin(std::string_view name, std::uint64_t bytes, std::uint64_t aligned);
  void end();
  void add_directory();
  void append(std::vector<std::byte> bytes);

  std::uint64_t alignment_;
  std::uint64_t at_ = 0;
  LayoutFile file_;
  std::vector<Member> members_;
};

}  // namespace loadline
