// Saved requests: what is asked of a load, as a JSON file that every front end reads and writes.
//
//   {"schema_version": 2,
//    "model": "path/to/model",          may be left out; a relative path counts from the file's folder
//    "options": {"method": ["sequential"], "device_budget": 8589934592}}   ids of load_options()
//
// Only what is not the default is written. Sizes and counts are numbers or texts such as "8GiB", flags are
// true or false, several names are a list.
#pragma once

#include "core/load/request.h"

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

inline constexpr int kRequestVersion = 2;

struct SavedRequest {
  LoadRequest request = {};
  std::optional<std::string> model = {};  // as a path from the working folder
};

// Throws Error{malformed | limit} naming `path`, line, column and key: an id that there is not (with the
// nearest one), a value that the option does not take, another version.
SavedRequest parse_request(std::string_view json, const std::string& path);
// The same from a file of at most 1 MiB. Throws Error{io}, too.
SavedRequest read_request(const std::string& path);

// What parse_request() gives back. `model` is written as it is.
std::string request_text(const LoadRequest& request, const std::optional<std::string>& model = {});

}  // namespace loadline
