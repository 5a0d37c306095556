// Reads a folder of a user's own assets, which replace built-in ones of the same name.
#pragma once

#include "core/base/error.h"

#include <iterator>
#include <string>
#include <vector>

namespace loadline {

// The paths of a folder's .json files, sorted; none if the folder does not exist.
std::vector<std::string> json_files(const std::string& folder);
// The content of a file, up to one byte more than the size limit of an asset. Throws Error{io}.
std::string asset_text(const std::string& path);

// Parses every embedded file into a row.
template <typename Row, typename Files>
std::vector<Row> parse_all(const Files& files, Row (*parse)(std::string_view json, const std::string& path)) {
  std::vector<Row> rows;
  for (const auto& file : files) rows.push_back(parse(file.bytes, std::string(file.name)));
  return rows;
}

// Parses each file of a folder into a row. A new row replaces a row with the same key; the new rows come
// first. A file that does not parse is left out, and its error is added to `faults`. Returns the number of
// new rows.
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
