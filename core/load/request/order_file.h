// Load orders in a text file: one tensor name per line.
#pragma once

#include "core/base/tasks.h"
#include "core/load/request/method.h"

#include <string>
#include <string_view>

namespace loadline {

// Lines end with \n or \r\n. Blank lines, lines that begin with '#' and a leading byte order mark are
// ignored. Every other line is exactly one tensor name of the model, blanks included. A storage takes the
// position of its first listed name; further names of it (ties) change nothing. Storages that are not listed
// follow in file order. Throws Error that names `file` and the line: malformed for an unknown name, a name
// listed twice, a NUL byte or a text without names; limit for a line over 64 KiB.
StorageOrder parse_order(const MetaGraph& graph, std::string_view text, const std::string& file);
// Reads the same from a file. Also throws Error{limit} for a file over 256 MiB, Error{unsupported} for a
// folder or a pipe, Error{io}.
StorageOrder read_order(const MetaGraph& graph, const std::string& path);

// A text from which parse_order() restores `order`: the first name of each storage. `order` holds storages of
// this graph that a tensor uses, as make_order() returns them. Throws Error{unsupported} for names that a
// line cannot hold.
std::string order_text(const MetaGraph& graph, const StorageOrder& order);

// A requested order: a row of the table, or the storages that a file lists.
struct OrderChoice {
  std::string name;            // as written in the request
  const Order* row = nullptr;  // null: use `listed`
  StorageOrder listed = {};
};
// Throws Error{usage} unless `name` is the id of an order or the path of an existing file.
void check_order_choice(const std::string& name);
// The order with this id, else the order in the file at this path. Throws as check_order_choice() and
// read_order().
OrderChoice choose_order(const MetaGraph& graph, const std::string& name);
// The sequence of storages that the choice gives for this method.
StorageOrder make_order(const MetaGraph& graph, const OrderChoice& choice, const Method& method,
                        const LoadInputs& inputs, const Progress& progress = Progress());

}  // namespace loadline
