// Zip archives byte by byte, honest by default, with every field open to a lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::testing {

// `bytes` little-endian bytes of `value`.
std::string little_endian(std::uint64_t value, int bytes);

struct ZipSpec {
  std::string name;
  std::string content;
  bool deflate = false;
  bool sizes_follow = false;  // flag 3, zeros in the local header and a descriptor, as torch writes
  std::uint16_t alignment = 0;
  // what the headers say instead of the truth
  std::uint16_t flags = 0;
  std::optional<std::string> local_name = {};
  std::optional<std::uint16_t> method = {};
  std::optional<std::uint16_t> local_method = {};
  std::optional<std::uint32_t> crc = {};
  std::optional<std::uint32_t> local_crc = {};
  std::optional<std::uint32_t> bytes = {};
  std::optional<std::uint32_t> stored_bytes = {};
  std::optional<std::uint32_t> local_bytes = {};
  std::optional<std::uint32_t> header = {};
  std::uint16_t disk = 0;
  std::string extra = {};
  std::string local_extra = {};
  std::optional<std::string> descriptor = {};  // with sizes_follow
  std::string after = {};                      // bytes that belong to no member
};

struct ZipEnd {
  bool zip64 = false;
  std::string prefix = {};      // before the first member
  std::string before_end = {};  // between the directory and its end records
  std::string extension = {};   // of the zip64 end record
  std::string after_end = {};
  std::uint16_t comment_bytes = 0;
  std::uint16_t disk = 0;
  std::optional<std::uint16_t> members = {};
  std::optional<std::uint32_t> directory_bytes = {};
  std::optional<std::uint32_t> directory = {};
  std::optional<std::uint64_t> members64 = {};
  std::optional<std::uint64_t> directory64 = {};
  std::optional<std::uint64_t> end64 = {};
};

std::string zip_bytes(const std::vector<ZipSpec>& members, const ZipEnd& end = {});

}  // namespace loadline::testing
