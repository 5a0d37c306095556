// What commands print, asked without a process: rows of JSON, and that Ctrl-C reaches long lists.
#include "app/cli/inspect/inspect_views.h"
#include "core/base/error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {
namespace {

MetaGraph three_tensors() {
  MetaGraph graph;
  graph.files = {{"m.safetensors", 100}};
  graph.storages = {plain_storage(FileId{0}, 10, 24)};
  graph.tensors = {{"a\n\"b\"", DType::f32, {2, 3}, {}, StorageId{0}, 0},
                   {"scalar", DType::u8, {}, {}, StorageId{0}, 3},
                   {"t", DType::f32, {3, 2}, {1, 3}, StorageId{0}, 0}};
  return graph;
}

TEST(JsonRows, AreTheArrayThatWouldBePrinted) {
  JsonRows rows("tensors");
  EXPECT_EQ(rows.text(), "");
  Json array = Json::array();
  for (const Json& row : {Json{{"name", "x\n  y"}, {"shape", Json::array()}, {"bytes", 3}},
                          Json{{"name", "\xC3\xA9"}, {"shape", {1, 2}}}, Json("text"), Json::object()}) {
    rows.add(row);
    array.push_back(row);
  }
  EXPECT_EQ("{\n  \"tensors\": [" + rows.text() + "\n  ]\n}", Json({{"tensors", array}}).dump(2, ' ', true));
}

TEST(TensorsJson, HoldsEveryTensorAndItsPlace) {
  const MetaGraph graph = three_tensors();
  const Selection all = {"", all_tensors(graph), 24};
  const Json json = Json::parse("[" + tensors_json({}, graph, all, 0).text() + "]");
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["name"], "a\n\"b\"");
  EXPECT_EQ(json[1]["shape"], Json::array());
  EXPECT_EQ(json[1]["offset"], 13);
  EXPECT_EQ(json[2]["strides"], Json({1, 3}));
  EXPECT_EQ(Json::parse("[" + tensors_json({}, graph, all, 1).text() + "]").size(), 1u);
}

TEST(TensorsJson, StopsWhenAsked) {
  const MetaGraph graph = three_tensors();
  const Selection all = {"", all_tensors(graph), 24};
  std::stop_source stop;
  Context context;
  context.stop = stop.get_token();
  EXPECT_NO_THROW(tensors_json(context, graph, all, 0));
  stop.request_stop();
  EXPECT_THROW(tensors_json(context, graph, all, 0), Error);
  EXPECT_THROW(print_tensors(context, graph, all, 0), Error);
}

}  // namespace
}  // namespace loadline::cli
