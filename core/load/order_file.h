// Orders in a text file: one tensor's name per line, as somebody wants them loaded.
#pragma once

#include "core/base/progress.h"
#include "core/load/methods.h"

#include <string>
#include <string_view>

namespace loadline {

// Lines end with \n or \r\n; a byte order mark before the first does not count. Blank ones and those that
// begin with '#' do not count; any other is a name of the model, from the line's first byte to its last.
// Storages come as their first name does; what is not named follows in file order, and a further name of a
// storage (a tie) changes nothing. Throws Error that names `file` and the line: malformed for a name that the
// model has not, one listed twice, a NUL byte or no name at all, limit for a line over 64 KiB.
StorageOrder parse_order(const MetaGraph& graph, std::string_view text, const std::string& file);
// The same from a file. Throws Error{limit} for one over 256 MiB, Error{unsupported} for a folder or a pipe,
// Error{io}.
StorageOrder read_order(const MetaGraph& graph, const std::string& path);

// What parse_order() gives `order` back from: the first name of each storage. `order` holds storages of this
// graph that a tensor uses, as make_order() gives them. Throws Error{unsupported} for
// names that a line cannot hold.
std::string order_text(const MetaGraph& graph, const StorageOrder& order);

// An order that somebody asked for: a row of the table, or what a file lists.
struct OrderChoice {
  std::string name;            // as it was asked for
  const Order* row = nullptr;  // null: `listed` is it
  StorageOrder listed = {};
};
// Throws Error{usage} unless `name` is the id of an order or the path of an existing file.
void check_order_choice(const std::string& name);
// An id beats a path. Throws as check_order_choice() and read_order().
OrderChoice choose_order(const MetaGraph& graph, const std::string& name);
// What the choice means for this method.
StorageOrder make_order(const MetaGraph& graph, const OrderChoice& choice, const Method& method,
                        const LoadInputs& inputs, const Progress& progress = Progress());

}  // namespace loadline
