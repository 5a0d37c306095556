// Finds a row of a const table by its id.
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
  for (const Row& row : table) ids.append(ids.empty() ? "" : ", ").append(safe_display(row.id, 60));
  return ids;
}

// The row with this id. Throws Error{usage} that lists all ids and suggests the nearest one. `kind` is the
// message's noun for a row: "method".
template <typename Row>
const Row& find_row(std::span<const Row> table, std::string_view id, std::string_view kind) {
  const auto row = std::ranges::find_if(table, [&](const Row& r) { return r.id == id; });
  if (row != table.end()) return *row;
  std::vector<std::string_view> ids;
  for (const Row& r : table) ids.emplace_back(r.id);
  const std::string meant = safe_display(nearest_word(id, ids), 60);
  throw Error(ErrorCode::usage, "no {} is called '{}'; {}{}there are: {}", kind, safe_display(id, 60),
              meant.empty() ? "" : "did you mean ", meant.empty() ? meant : meant + "? ", id_list(table));
}

}  // namespace loadline
