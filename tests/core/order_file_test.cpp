// Orders as text: round trip, ties, and what a hostile list says.
#include "core/base/error.h"
#include "core/load/request/bind_request.h"
#include "tests/support/builders.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace loadline {
namespace {

// Tensors a, b, c and d on storages 0, 1, 2 and 0.
MetaGraph tied_graph() {
  MetaGraph graph;
  for (std::uint32_t i = 0; i < 3; ++i) graph.storages.push_back(shapes_only_storage(4));
  for (const auto& [name, storage] : {std::pair{"a", 0u}, {"b", 1u}, {"c", 2u}, {"d", 0u}})
    graph.tensors.push_back({name, DType::u8, {4}, {}, StorageId{storage}, 0});
  return graph;
}

StorageOrder ids(const std::vector<std::uint32_t>& numbers) {
  StorageOrder order;
  for (const std::uint32_t number : numbers) order.push_back(StorageId{number});
  return order;
}

TEST(OrderFile, ListsNamesAndTheRestFollows) {
  const MetaGraph graph = tied_graph();
  const auto parsed = [&](std::string_view text) { return parse_order(graph, text, "list"); };
  EXPECT_EQ(parsed("\xef\xbb\xbf"
                   "c\r\n"),
            ids({2, 0, 1}));
  EXPECT_EQ(parse_order(MetaGraph(), "# nothing\n", "list"), StorageOrder());
  EXPECT_EQ(parsed("c"), ids({2, 0, 1}));
  EXPECT_EQ(parsed("# heads first\n\n  \nc\r\nb\n"), ids({2, 1, 0}));
  EXPECT_EQ(parsed("b\nd\na\nc"), ids({1, 0, 2}));  // d and a are one storage
}

TEST(OrderFile, WhatItWritesItReads) {
  MetaGraph graph = tied_graph();
  graph.tensors[1].name = Name(" spaces # and sharps ");
  graph.tensors[2].name = Name("\xff\x1b[31m");
  for (const StorageOrder& order : {ids({0, 1, 2}), ids({2, 0, 1}), ids({1, 2, 0})})
    EXPECT_EQ(parse_order(graph, order_text(graph, order), "list"), order);
  for (const std::string& name :
       {std::string("#x"), std::string("a\nb"), std::string(" \t"), std::string("x\r"),
        std::string("a\0b", 3), std::string((64 << 10) + 1, 'x')}) {
    graph.tensors[1].name = Name(name);
    EXPECT_THROW(order_text(graph, ids({0, 1, 2})), Error);
  }
}

TEST(OrderFile, FaultsNameFileAndLine) {
  const MetaGraph graph = tied_graph();
  const std::pair<std::string, std::string> rows[] = {
      {"a\nx\x1b", "list: tensor 'x\\x1b': line 2: not one of the model's 4 tensors"},
      {"a\n# one\na\n", "list: tensor 'a': line 3: listed on line 1 already"},
      {"e \n", "list: tensor 'e ': line 1: not one of the model's 4 tensors"},
      {"b\na \t\r\n",
       "list: tensor 'a \\x09': line 2: not one of the model's 4 tensors, but it is without the blanks "
       "around it"},
      {" a\n",
       "list: tensor ' a': line 1: not one of the model's 4 tensors, but it is without the blanks around it"},
      {"", "list: names no tensor in its 0 lines: an order lists tensors, one a line"},
      {"# one\n", "list: names no tensor in its 1 line: an order lists tensors, one a line"},
      {std::string("\n\0a", 3), "list: line 2: a NUL byte: this is no list of names"},
      {std::string(65537, 'a'), "list: line 1: 65537 bytes, the limit of a line is 65536"},
      {std::string(65536, '#') + "\na", ""}};
  for (const auto& [text, message] : rows) {
    std::string told;
    try {
      parse_order(graph, text, "list");
    } catch (const Error& error) {
      told = error.what();
    }
    EXPECT_EQ(told, message);
  }
}

TEST(OrderFile, IsChosenByItsPathUnlessAnOrderIsCalledSo) {
  const testing::TemporaryFolder folder;
  const MetaGraph graph = tied_graph();
  testing::write_file(folder / "list", "c\n");
  EXPECT_EQ(choose_order(graph, folder / "list").listed, ids({2, 0, 1}));
  EXPECT_EQ(choose_order(graph, "offset").row, &find_order("file"));
  EXPECT_THROW(choose_order(graph, folder / "none"), Error);
  std::filesystem::create_directory(folder / "folder");
  EXPECT_THROW(choose_order(graph, folder / "folder"), Error);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(choose_order(graph, folder / "pipe"), Error);  // and does not wait for a writer
  testing::write_file(folder / "large", "");
  std::filesystem::resize_file(folder / "large", (256 << 20) + 1);
  EXPECT_THROW(choose_order(graph, folder / "large"), Error);
}

}  // namespace
}  // namespace loadline
