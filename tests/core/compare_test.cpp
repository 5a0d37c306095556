// Rows of a comparison against projections one by one.
#include "core/load/answer/rows.h"
#include "core/load/order/optimal_order.h"

#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace loadline {
namespace {

MetaGraph graph_of(const std::vector<std::uint64_t>& sizes) {
  MetaGraph graph;
  graph.files.resize(1);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) {
    graph.storages.push_back(plain_storage(FileId{0}, offset, sizes[i]));
    graph.tensors.push_back({"t" + std::to_string(i), DType::u8, {sizes[i]}, {}, StorageId{i}, 0});
    offset += sizes[i];
  }
  return graph;
}

std::vector<const Method*> all_methods() {
  std::vector<const Method*> rows;
  for (const Method& method : methods()) rows.push_back(&method);
  return rows;
}

std::vector<OrderChoice> all_orders() {
  std::vector<OrderChoice> columns;
  for (const Order& order : orders()) columns.push_back({std::string(order.id), &order, {}});
  columns.push_back({"mine.txt", nullptr, {StorageId{2}, StorageId{0}, StorageId{1}, StorageId{3}}});
  return columns;
}

TEST(Compare, RowsAreProjectionsOneByOne) {
  const MetaGraph graph = graph_of({5000, 100, 90'000, 7});
  const auto rows = all_methods();
  const auto columns = all_orders();
  for (const std::size_t threads : {0u, 1u, 3u}) {
    std::vector<int> seen(rows.size() * columns.size(), 0);
    const RowTaker taker = {
        [&](std::size_t row, const Projection& projection) {
          ++seen[row];
          const Method& method = *rows[row / columns.size()];
          const OrderChoice& choice = columns[row % columns.size()];
          Progress progress;
          const Projection alone = project(graph, method, choice.name, make_order(graph, choice, method, {}),
                                           LoadInputs(), progress);
          EXPECT_EQ(projection.method, &method);
          EXPECT_EQ(projection.order, choice.name);
          EXPECT_EQ(projection.plan, alone.plan) << method.id << " " << choice.name;
          EXPECT_EQ(projection.reads, alone.reads);
          EXPECT_EQ(projection.order_proven.has_value(), choice.name == "optimal");
          if (choice.name == "optimal")
            EXPECT_EQ(projection.order_proven, optimal_order(graph, method, {}).proven);
          EXPECT_EQ(projection.seconds, alone.seconds);
        },
        [](std::size_t row, const Error& error) { ADD_FAILURE() << row << ": " << error.what(); }};
    Progress progress;
    compare(graph, rows, columns, {}, nullptr, taker, progress, threads);
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
}

TEST(Compare, WhatCannotBeDoneIsRefusedRowByRow) {
  const MetaGraph huge = graph_of({std::uint64_t{1} << 62, std::uint64_t{1} << 61, 0, 0});
  const auto rows = all_methods();
  const auto columns = all_orders();
  std::atomic<std::size_t> taken = 0, refused = 0;
  const RowTaker taker = {[&](std::size_t, const Projection&) { ++taken; },
                          [&](std::size_t, const Error& error) {
                            EXPECT_EQ(error.code(), ErrorCode::limit);
                            ++refused;
                          }};
  Progress progress;
  compare(huge, rows, columns, {}, nullptr, taker, progress, 2);
  EXPECT_EQ(taken + refused, rows.size() * columns.size());
  EXPECT_GT(refused, columns.size());
}

TEST(Compare, StopsWhenAskedOrWhenATakerThrows) {
  const MetaGraph graph = graph_of({5000, 100, 90'000, 7});
  std::stop_source source;
  source.request_stop();
  Progress stopped(source.get_token());
  const RowTaker fails = {[](std::size_t, const Projection&) { throw Error(ErrorCode::io, "full"); },
                          [](std::size_t, const Error&) {}};
  const auto code = [&](Progress& progress) {
    try {
      compare(graph, all_methods(), all_orders(), {}, nullptr, fails, progress, 2);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::no_fit;
  };
  EXPECT_EQ(code(stopped), ErrorCode::cancelled);
  Progress progress;
  EXPECT_EQ(code(progress), ErrorCode::io);
}

}  // namespace
}  // namespace loadline
