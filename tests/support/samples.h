// Zip archives, pickles, and a small valid file of each format that is read through them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::testing {

// --- Zip archives byte by byte, honest by default, with every field open to a lie.

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

namespace loadline::testing::pickle {

// --- Pickles of protocol 2, put together as text: each function gives the opcodes of one value.

std::string text(std::string_view text);
std::string number(std::int64_t value);
std::string real(double value);
std::string global(std::string_view module, std::string_view name);
std::string tuple(std::initializer_list<std::string> items);
std::string list(std::initializer_list<std::string> items);
std::string dict(std::initializer_list<std::pair<std::string, std::string>> items);  // keys are texts
std::string call(const std::string& global, std::initializer_list<std::string> arguments);
// PROTO 2, the value, STOP.
std::string stream(const std::string& value);

// A storage of a zip file, and of a legacy one.
std::string storage(std::string_view key, std::string_view type, std::int64_t numel);
std::string legacy_storage(std::string_view key, std::string_view type, std::int64_t numel,
                           const std::string& view = "N");
// torch._utils._rebuild_tensor_v2 on it.
std::string tensor(const std::string& storage, std::int64_t offset, std::initializer_list<std::int64_t> size,
                   std::initializer_list<std::int64_t> stride);
// torch._utils._rebuild_tensor_v3: a dtype of its own.
std::string tensor_v3(const std::string& storage, std::int64_t offset,
                      std::initializer_list<std::int64_t> size, std::initializer_list<std::int64_t> stride,
                      std::string_view dtype);

}  // namespace loadline::testing::pickle

namespace loadline::testing {

// --- A small valid file of each format that is read through pickles, zips or numpy headers.

using Records = std::vector<std::pair<std::string, std::string>>;

// An archive as torch.save lays it out: ROOT/data.pkl with `pickle`, then ROOT/KEY for each record.
std::vector<ZipSpec> torch_members(std::string pickle, const Records& records);
std::string torch_zip(std::string pickle, const Records& records);
// `count` bytes that differ from their neighbors.
std::string pattern(std::size_t count);

// Ties, views, nested dicts, parameters, every kind of tensor that is shown as parts, scalars and lists.
std::string sample_torch();
std::string sample_torch_legacy();
// The magic number and what else stands before the object of a legacy file.
std::string legacy_preamble();

// `header` with its magic, version 1.0, and `data` bytes of pattern().
std::string npy_bytes(std::string_view header, std::size_t data);
std::string npy_header(std::string_view descr, std::string_view shape, std::string_view fortran = "False");
std::string sample_npy();
std::string sample_npz();

// The entry of one tensor in a config of a pt2 archive.
std::string pt2_entry(std::string_view name, std::string_view path, std::string_view sizes,
                      std::string_view strides, int offset = 0, int dtype = 7);
std::string pt2_zip(const std::string& weights_config, const Records& records);
std::string sample_pt2();

}  // namespace loadline::testing
