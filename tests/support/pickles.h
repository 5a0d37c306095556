// Pickles of protocol 2, put together as text: each function gives the opcodes of one value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace loadline::testing::pickle {

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
