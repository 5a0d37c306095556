// Writes pickles for tests.
#include "tests/support/pickles.h"

#include "tests/support/zips.h"

#include <algorithm>
#include <bit>

namespace loadline::testing::pickle {
namespace {

std::string numbers(std::initializer_list<std::int64_t> values) {
  std::string items = "(";
  for (const std::int64_t value : values) items += number(value);
  return items + "t";
}

std::string hooks() { return global("collections", "OrderedDict") + ")R"; }

}  // namespace

std::string text(std::string_view text) { return "X" + little_endian(text.size(), 4) + std::string(text); }

std::string number(std::int64_t value) {
  if (value >= 0 && value < 256) return "K" + little_endian(static_cast<std::uint64_t>(value), 1);
  return "\x8A\x08" + little_endian(static_cast<std::uint64_t>(value), 8);
}

std::string real(double value) {
  std::string bytes = little_endian(std::bit_cast<std::uint64_t>(value), 8);
  std::reverse(bytes.begin(), bytes.end());
  return "G" + bytes;
}

std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

std::string tuple(std::initializer_list<std::string> items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}

std::string list(std::initializer_list<std::string> items) {
  std::string all = "](";
  for (const std::string& item : items) all += item;
  return all + "e";
}

std::string dict(std::initializer_list<std::pair<std::string, std::string>> items) {
  std::string all = "}(";
  for (const auto& [key, value] : items) all += text(key) + value;
  return all + "u";
}

std::string call(const std::string& global, std::initializer_list<std::string> arguments) {
  return global + tuple(arguments) + "R";
}

std::string stream(const std::string& value) { return "\x80\x02" + value + "."; }

std::string storage(std::string_view key, std::string_view type, std::int64_t numel) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(numel)}) + "Q";
}

std::string legacy_storage(std::string_view key, std::string_view type, std::int64_t numel,
                           const std::string& view) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), number(numel), view}) + "Q";
}

std::string tensor(const std::string& storage, std::int64_t offset, std::initializer_list<std::int64_t> size,
                   std::initializer_list<std::int64_t> stride) {
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              {storage, number(offset), numbers(size), numbers(stride), "\x89", hooks()});
}

std::string tensor_v3(const std::string& storage, std::int64_t offset,
                      std::initializer_list<std::int64_t> size, std::initializer_list<std::int64_t> stride,
                      std::string_view dtype) {
  return call(
      global("torch._utils", "_rebuild_tensor_v3"),
      {storage, number(offset), numbers(size), numbers(stride), "\x89", hooks(), global("torch", dtype)});
}

}  // namespace loadline::testing::pickle
