// Finding a row of one of the const tables by its id.
#pragma once

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline {

// "file, name, forward": the ids of a table, for help and messages.
template <typename Row>
std::string id_list(std::span<const Row> table) {
  std::string ids;
  for (const Row& row : table) ids.append(ids.empty() ? "" : ", ").append(row.id);
  return ids;
}

// Throws Error{usage} that lists the ids and names the nearest. `kind` names the table's rows: "method".
template <typename Row>
const Row& find_row(std::span<const Row> table, std::string_view id, std::string_view kind) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.id == id; });
  if (row != table.end()) return *row;
  std::vector<std::string_view> ids;
  for (const Row& r : table) ids.emplace_back(r.id);
  const std::string meant(nearest_word(id, ids));
  throw Error(ErrorCode::usage, "no " + std::string(kind) + " is called '" + safe_display(id) + "'; " +
                                    (meant.empty() ? "" : "did you mean " + meant + "? ") +
                                    "there are: " + id_list(table));
}

}  // namespace loadline
