// Saved load requests: JSON files that every front end reads and writes.
//
//   {"schema_version": 2,
//    "model": "path/to/model",          may be left out; a relative path counts from the file's folder
//    "options": {"method": ["sequential"], "device_budget": 8589934592}}   ids of load_options()
//
// Relative paths of an order or of rates count from the file's folder too.
//
// Only options that differ from their default are written. Sizes and counts are numbers or texts such as
// "8GiB", flags are true or false, several names are a list.
#pragma once

#include "core/load/request/request.h"

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

struct AssetNode;

inline constexpr int kRequestVersion = 2;

struct SavedRequest {
  LoadRequest request = {};
  std::optional<std::string> model = {};  // path from the working folder; as written if no such file exists
};

// Throws Error{malformed | limit} naming `path`, line, column and key: an unknown id (with the nearest known
// one), a value that the option does not take, an unsupported version.
SavedRequest parse_request(std::string_view json, const std::string& path);
// Reads the same from a file of at most 1 MiB. Also throws Error{io}.
SavedRequest read_request(const std::string& path);

// Sets the options of an object {id: value}. Throws Error{malformed} with the place of the value.
void read_request_options(LoadRequest& request, const AssetNode& options);

// The text of a saved request in `file`: relative paths, the model's among them, are made relative to its
// folder.
std::string request_text_beside(LoadRequest request, const std::optional<std::string>& model,
                                const std::string& file);
// JSON that parse_request() reads back. `model` is written unchanged.
std::string request_text(const LoadRequest& request, const std::optional<std::string>& model = {});

}  // namespace loadline
