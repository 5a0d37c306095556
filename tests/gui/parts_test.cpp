// What a document and the window are made of, each part alone.

#include "app/gui/state/base/coordinates.h"
#include "app/gui/state/base/services.h"
#include "app/gui/state/base/window_requests.h"
#include "app/gui/state/document.h"
#include "app/gui/state/load/load_work.h"
#include "app/gui/state/model/checks.h"
#include "app/gui/state/model/files.h"
#include "app/gui/state/model/tensor_table.h"
#include "app/gui/state/transfers.h"
#include "tests/gui/sample_graphs.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

TEST(WindowRequests, are_taken_once_by_kind) {
  WindowRequests requests;
  requests.add(OpenPalette{"first"});
  requests.add(FocusFilter{});
  requests.add(OpenPalette{"second"});
  EXPECT_FALSE(requests.take<OpenManual>());
  EXPECT_TRUE(requests.holds<OpenPalette>());
  const auto palette = requests.take<OpenPalette>();
  ASSERT_TRUE(palette);
  EXPECT_EQ(palette->text, "second") << "a newer one replaces the older";
  EXPECT_FALSE(requests.holds<OpenPalette>());
  EXPECT_FALSE(requests.take<OpenPalette>());
  EXPECT_TRUE(requests.take<FocusFilter>()) << "others wait on";
}

TEST(TimeCursor, stands_at_the_peak_until_it_is_moved) {
  TimeCursor time;
  EXPECT_EQ(time.step(), 0u);
  time.play(true);
  EXPECT_FALSE(time.playing()) << "there is no load";
  time.begin(10, 7);
  EXPECT_TRUE(time.at_peak());
  EXPECT_EQ(time.step(), 7u);
  time.set_step(99);
  EXPECT_FALSE(time.at_peak());
  EXPECT_EQ(time.step(), 10u) << "not past the end";
  time.begin(4, 2);
  EXPECT_EQ(time.step(), 2u);
}

TEST(TimeCursor, plays_a_load_in_eight_seconds) {
  TimeCursor time;
  time.begin(80, 7);
  time.play(true);
  EXPECT_EQ(time.step(), 0u) << "from the beginning";
  time.advance(1);
  EXPECT_EQ(time.step(), 10u);
  time.set_step(40);  // somebody drags it
  time.speed = 2;
  time.advance(1);
  EXPECT_EQ(time.step(), 60u);
  time.advance(1);
  EXPECT_EQ(time.step(), 80u);
  EXPECT_FALSE(time.playing());
  time.play(true);
  EXPECT_EQ(time.step(), 0u) << "from the end it begins again";
  time.begin(80, 7);
  EXPECT_FALSE(time.playing()) << "another load";
}

TEST(TimeCursor, a_play_halts_once_where_the_load_fails) {
  TimeCursor time;
  time.begin(80, 7);
  time.halt_at(33);
  time.set_step(0);
  time.play(true);
  time.advance(2);
  EXPECT_EQ(time.step(), 20u);
  EXPECT_TRUE(time.playing());
  time.advance(2);
  EXPECT_EQ(time.step(), 33u) << "not a step further";
  EXPECT_FALSE(time.playing());
  time.play(true);  // and on
  time.advance(2);
  EXPECT_EQ(time.step(), 53u);
  EXPECT_TRUE(time.playing());
  time.begin(80, 7);  // another load
  time.set_step(0);
  time.play(true);
  time.advance(4);
  EXPECT_EQ(time.step(), 40u);
}

TEST(TimeAxis, is_zoomed_around_a_place_and_ends_whole) {
  const PlotRange closer = zoomed({}, 0.25, 3);
  EXPECT_LT(closer.to - closer.from, 0.6);
  EXPECT_NEAR((0.25 - closer.from) / (closer.to - closer.from), 0.25, 1e-9) << "the place stays where it is";
  EXPECT_FALSE(closer.is_whole());
  EXPECT_TRUE(zoomed(closer, 0.25, -4).is_whole());
  EXPECT_GE(zoomed({0.99, 1}, 1, 100).from, 0.99);
}

TEST(Hover, is_seen_in_the_next_frame_alone) {
  Hover hover;
  hover.set(graph::NodeId{3});
  EXPECT_FALSE(hover.module());
  hover.begin_frame();
  EXPECT_EQ(hover.module(), graph::NodeId{3});
  hover.set_step(7);
  EXPECT_FALSE(hover.step);
  hover.begin_frame();
  EXPECT_FALSE(hover.module());
  EXPECT_EQ(hover.step, 7u);
}

// The services of a window, with nothing that uses them but the part under test.
class Parts : public ::testing::Test {
 protected:
  Parts() {
    services_.assets = forward::built_in_assets();
    services_.targets = std::make_shared<const std::vector<load::Target>>(load::built_in_targets().begin(),
                                                                          load::built_in_targets().end());
  }
  void settle() {
    while (!services_.jobs.idle())
      if (!services_.jobs.poll()) std::this_thread::yield();
  }

  Services services_;
};

TEST_F(Parts, a_table_lists_what_passes_in_the_order_chosen) {
  const ModelPtr model = make_model(many_tensors(50), "");
  TensorTable table(services_.jobs, model, "", SortColumn::name, false);
  ASSERT_EQ(table.view().rows.size(), 50u);
  EXPECT_TRUE(table.view().lit.empty());
  const graph::TensorId last = table.view().rows.back();
  table.set_sort(SortColumn::name, true);
  EXPECT_EQ(table.view().rows.front(), last);
  const std::string name = model->tensor(last).name.str();
  table.set_filter(name);
  EXPECT_LT(table.view().rows.size(), 50u);
  EXPECT_EQ(table.view().applied, name);
  EXPECT_FALSE(table.view().lit.empty());
  const std::vector<graph::TensorId> rows = table.view().rows;
  table.set_filter("size:>");
  EXPECT_NE(table.view().error, "");
  EXPECT_EQ(table.view().rows, rows) << "half typed: the rows stay";
}

TEST_F(Parts, a_table_of_no_model_is_empty) {
  TensorTable table(services_.jobs, nullptr, "", SortColumn::offset, true);
  table.set_filter("x");
  EXPECT_TRUE(table.view().rows.empty());
  EXPECT_EQ(table.view().applied, "x");
}

TEST_F(Parts, a_forward_pass_has_figures_for_the_sizes_of_a_request) {
  ForwardWork work(services_, make_model(operator_graph(3), ""));
  EXPECT_EQ(work.graph(), nullptr);
  bool arrived = false;
  work.work_out({}, [&] { arrived = true; });
  settle();
  EXPECT_TRUE(arrived);
  ASSERT_NE(work.graph(), nullptr);
  EXPECT_EQ(work.evaluated(), nullptr) << "not evaluated yet";
  work.evaluate({});
  const auto first = work.figures();
  ASSERT_TRUE(first);
  EXPECT_EQ(work.evaluated(), work.scene.value().get());
  work.evaluate({});
  EXPECT_EQ(work.figures(), first) << "they are there already";
  load::LoadRequest wrong;
  wrong.sizes = {{"no such size", 2}};
  work.evaluate(wrong);
  EXPECT_FALSE(work.figures());
  EXPECT_NE(work.error(), "");
}

TEST_F(Parts, a_load_tells_what_was_asked_and_projected) {
  const ModelPtr model = make_model(tiny_graph(), "");
  ForwardWork forward(services_, model);
  int asked = 0, projected = 0;
  LoadWork load(services_, model, 1, forward, {}, {[&] { ++asked; }, [&] { ++projected; }, [] {}});
  EXPECT_FALSE(load.projection.busy()) << "not begun";
  load.begin();
  settle();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(projected, 1);
  ASSERT_TRUE(load.projection.value());
  ASSERT_NE(load.judged_load(), nullptr);
  EXPECT_FALSE(load.comparison.value()->answer.rows.empty());
  load.set_option("method", "sequential");
  settle();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(projected, 2);
  EXPECT_EQ(load.projection.value()->method->id, "sequential");
  load.set_option("device_budget", "1MiB");
  settle();
  EXPECT_EQ(projected, 2) << "the timeline does not depend on budgets";
  EXPECT_EQ(load.memory().budget.device, 1u << 20);
}

TEST_F(Parts, advice_belongs_to_what_was_asked) {
  const ModelPtr model = make_model(tiny_graph(), "");
  ForwardWork forward(services_, model);
  LoadWork load(services_, model, 1, forward, {}, {[] {}, [] {}, [] {}});
  Advisor advice(services_, load);
  load.begin();
  settle();
  EXPECT_FALSE(advice.is_current());
  advice.search();
  EXPECT_TRUE(advice.is_current());
  settle();
  EXPECT_TRUE(advice.answer.value());
  load.set_option("order", "largest");
  EXPECT_FALSE(advice.is_current());
  EXPECT_FALSE(advice.can_take_back());
  settle();
}

TEST_F(Parts, an_order_is_arranged_and_chosen) {
  const ModelPtr model = make_model(many_tensors(1300), "");
  ForwardWork forward(services_, model);
  LoadWork load(services_, model, 1, forward, {}, {[] {}, [] {}, [] {}});
  OrderEditing order(services_, load, 1);
  load.begin();
  order.list_chosen();
  settle();
  ASSERT_GT(order.list.value()->items().size(), 1u);
  OrderList edited = *order.list.value();
  edited.move(0, edited.items().size() - 1);
  const load::StorageOrder arranged = edited.order();
  EXPECT_EQ(load.custom_order(), nullptr);
  order.arrange(std::move(edited));
  ASSERT_NE(load.custom_order(), nullptr);
  EXPECT_EQ(*load.custom_order(), arranged);
  EXPECT_EQ(shown_order(load.asked()), load::kOwnOrder);
  EXPECT_THROW(order.save("order.csv"), Error);
  settle();
}

TEST_F(Parts, checks_need_a_model) {
  Checks none(services_, nullptr);
  EXPECT_THROW(none.diagnose(), Error);
  none.weigh_convert(conversion("gguf", "out.gguf"));
  none.weigh_upload(nullptr);
  EXPECT_FALSE(none.convert_fit.busy());
  EXPECT_EQ(none.upload_misfit(), "");
  Checks checks(services_, make_model(many_tensors(10), ""));
  checks.weigh_convert(conversion("safetensors", "out.safetensors"));
  EXPECT_TRUE(checks.convert_fit.busy());
  settle();
  EXPECT_EQ(checks.convert_fit.error_text(), "");
  EXPECT_TRUE(checks.convert_fit.value());
}

TEST_F(Parts, transfers_need_a_model_and_the_document_that_they_were_of) {
  Transfers transfers(services_, [] {});
  const Document empty(services_, nullptr, {}), shown(services_, make_model(tiny_graph(), ""), {});
  EXPECT_THROW(transfers.convert(empty, conversion("gguf", "out.gguf")), Error);
  EXPECT_THROW(transfers.upload(empty), Error);
  EXPECT_THROW(transfers.upload(shown), Error) << "the load is still being projected";
  EXPECT_THROW(transfers.check_conversion(shown), Error);
  EXPECT_FALSE(transfers.busy());
  EXPECT_FALSE(transfers.converted(shown));
  EXPECT_FALSE(transfers.uploaded(shown));
  settle();
}

TEST_F(Parts, places_are_listed_in_the_background) {
  Places places(services_.jobs, "");
  places.browse("/");
  EXPECT_TRUE(places.folder().entries.empty());
  settle();
  EXPECT_EQ(places.folder().path, "/");
  places.browse("/no/such/folder");
  settle();
  EXPECT_NE(places.listing.error_text(), "");
  EXPECT_EQ(places.folder().path, "/") << "the last list stays";
}

}  // namespace
}  // namespace loadline::gui
