// The table of load options, and requests as files.
#include "core/base/error.h"
#include "core/load/request/load_options.h"
#include "tests/support/builders.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace loadline {
namespace {

// A value that is not the default, for each row.
const std::vector<std::pair<std::string_view, std::string>>& other_values() {
  static const std::vector<std::pair<std::string_view, std::string>> values = {
      {"method", "direct,runai"},
      {"order", "largest,all"},
      {"target", "t4-16gb"},
      {"memory", "unified"},
      {"device_budget", "6GiB"},
      {"host_budget", "7GiB"},
      {"reserve", "10%"},
      {"page_cache_budget", "1GiB"},
      {"require_peak", "5GiB"},
      {"mapped_pages", "anonymous"},
      {"gpu_layers", "3"},
      {"auto_map", "1GiB,2GiB"},
      {"place", "name:a, b=host; layer:0-3=disk"},
      {"cast", "q4_k"},
      {"prepack", "four_rows_f16"},
      {"staging", "1MiB"},
      {"slots", "8"},
      {"runai_buffer", "1GiB"},
      {"workers", "2"},
      {"repack", "x86"},
      {"shard_size", "2GiB"},
      {"flush", "3MiB"},
      {"doubled_ties", "on"},
      {"readers", "3"},
      {"reading", "cold"},
      {"activations", "4MiB"},
      {"seq", "16"},
      {"batch", "2"},
      {"past", "5"},
      {"context", "max"},
      {"dim", "height=224; width=3"},
      {"profile", "fused"},
      {"activation_dtype", "bf16"},
      {"cache_dtype", "f8_e4m3"},
      {"logits", "all"},
      {"allocator", "torch"},
      {"rates", "assumed"}};
  return values;
}

TEST(LoadOptions, EachRowReadsWhatItPrints) {
  std::set<std::string_view> ids;
  for (const LoadOption& option : load_options()) {
    EXPECT_TRUE(ids.insert(option.id).second) << option.id;
    EXPECT_FALSE(option.help.empty()) << option.id;
    EXPECT_TRUE(option.help.ends_with('.') || option.help.ends_with(')')) << option.id;
    EXPECT_LE(option.brief.size(), 48u) << option.id;
    EXPECT_NE(option.users, 0u) << option.id;
  }
  for (const auto& [id, text] : other_values()) {
    const LoadOption* const option = find_load_option(id);
    ASSERT_NE(option, nullptr) << id;
    ids.erase(id);
    LoadRequest request;
    set_load_option(request, id, text);
    EXPECT_FALSE(same_option(*option, request, LoadRequest())) << id;
    LoadRequest again;
    set_load_option(again, id, load_option_text(request, *option));
    EXPECT_EQ(again, request) << id << " " << load_option_text(request, *option);
    // it is the only thing that changed
    const auto changed = changed_options(request);
    ASSERT_EQ(changed.size(), 1u) << id;
    EXPECT_EQ(changed[0].first, id);
    if (!option->can_be_unset()) continue;
    set_load_option(request, id, "none");
    EXPECT_EQ(request, LoadRequest()) << id;
  }
  EXPECT_TRUE(ids.empty()) << *ids.begin() << " has no value here";
}

TEST(LoadOptions, WaysToPlaceWeightsTakeEachOthersPlace) {
  LoadRequest request;
  set_load_option(request, "gpu_layers", "3");
  set_load_option(request, "auto_map", "1GiB");
  EXPECT_FALSE(request.gpu_layers);
  set_load_option(request, "place", "a=host");
  EXPECT_FALSE(request.auto_map);
  set_load_option(request, "gpu_layers", "none");
  EXPECT_EQ(request.place.size(), 1u);
}

TEST(LoadOptions, TellTheNearestName) {
  LoadRequest request;
  try {
    set_load_option(request, "stagin", "1MiB");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no option of a load is called 'stagin'; did you mean staging?");
  }
}

TEST(SavedRequests, GiveBackEveryOption) {
  LoadRequest request;
  for (const auto& [id, text] : other_values())
    if (id != "gpu_layers" && id != "auto_map") set_load_option(request, id, text);
  const SavedRequest saved = parse_request(request_text(request, "some/model"), "folder/r.json");
  EXPECT_EQ(saved.request, request);
  EXPECT_EQ(saved.model, "some/model");
  EXPECT_EQ(parse_request(request_text(LoadRequest()), "r.json").request, LoadRequest());
  EXPECT_EQ(request_text(LoadRequest()), "{\n  \"schema_version\": 2,\n  \"options\": {}\n}\n");
}

TEST(SavedRequests, RefuseTextThatJsonCannotHold) {
  LoadRequest request;
  request.orders = {"a\xAC.txt"};
  try {
    request_text(request);
    FAIL() << "it was written";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the request cannot be saved: one of its options is not UTF-8");
  }
}

TEST(SavedRequests, NameAModelBesideThem) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "m.npy", "x");
  const std::string text = R"({"schema_version": 2, "model": "m.npy", "options": {}})";
  EXPECT_EQ(parse_request(text, folder / "r.json").model, folder / "m.npy");
}

TEST(SavedRequests, SayWhereAFaultIs) {
  const auto fault = [](const std::string& text) -> std::string {
    try {
      (void)parse_request(text, "r.json");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const auto with = [](const std::string& options) {
    return "{\"schema_version\": 2,\n \"options\": {" + options + "}}";
  };
  EXPECT_NE(fault("{").find("r.json"), std::string::npos);
  EXPECT_NE(fault("{}").find("'schema_version' is missing"), std::string::npos);
  EXPECT_NE(fault(R"({"schema_version": 1})").find("this program reads 2"), std::string::npos);
  EXPECT_NE(fault(R"({"schema_version": 2, "extra": 1})").find("extra"), std::string::npos);
  EXPECT_NE(fault(with("\"slotz\": 4")).find("line 2"), std::string::npos);
  EXPECT_NE(fault(with("\"slotz\": 4")).find("did you mean slots?"), std::string::npos);
  EXPECT_NE(fault(with("\"slots\": 0")).find("'slots': 0 is less than 1"), std::string::npos);
  EXPECT_NE(fault(with("\"slots\": [4, 5]")).find("'slots' takes one value"), std::string::npos);
  EXPECT_NE(fault(with("\"method\": [\"nope\"]")).find("'nope' is none of"), std::string::npos);
  EXPECT_NE(fault(with("\"place\": [[\"a\"]]")), "");
  EXPECT_EQ(fault(with("\"method\": [\"direct\"], \"staging\": \"64MiB\", \"doubled_ties\": true")), "");
}

}  // namespace
}  // namespace loadline
