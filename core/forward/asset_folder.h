// A folder of a user's own assets, read over rows that are built in.
#pragma once

#include "core/base/error.h"

#include <iterator>
#include <string>
#include <vector>

namespace loadline {

// The .json files of a folder, sorted; none if it is not there.
std::vector<std::string> json_files(const std::string& folder);
// What a file holds, up to one byte more than an asset may have. Throws Error{io}.
std::string asset_text(const std::string& path);

// The rows of embedded files.
template <typename Row, typename Files>
std::vector<Row> parse_all(const Files& files, Row (*parse)(std::string_view json, const std::string& path)) {
  std::vector<Row> rows;
  for (const auto& file : files) rows.push_back(parse(file.bytes, std::string(file.name)));
  return rows;
}

// Each file of a folder, in place of the row with the same key, in front of the others. A file that is no
// asset is left out and told in `faults`. How many there are.
template <typename Row, typename Parse>
std::size_t add_folder(const std::string& folder, std::vector<Row>& rows, std::string Row::*key, Parse parse,
                       std::vector<std::string>& faults) {
  std::vector<Row> own;
  for (const std::string& path : json_files(folder)) {
    try {
      own.push_back(parse(asset_text(path), path));
    } catch (const Error& error) {
      faults.emplace_back(error.what());
    }
  }
  for (const Row& row : own) std::erase_if(rows, [&](const Row& other) { return other.*key == row.*key; });
  rows.insert(rows.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  return own.size();
}

}  // namespace loadline
