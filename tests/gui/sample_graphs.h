// Models for the window to show, without files behind them, and how tests wait for the window's jobs.
#pragma once

#include "app/gui/state/document.h"
#include "app/gui/state/workspace.h"
#include "core/graph/meta_graph.h"

#include <cstddef>
#include <string>
#include <thread>

namespace loadline::gui {

// --- Models for the window to show, without files behind them.

// Two tensors in one file, one of them with a name that needs escaping, and a tied third.
graph::MetaGraphPtr tiny_graph();
// The shapes of Llama 3.1 70B, as 30 shards would hold them: 723 tensors, 141,107,412,992 bytes.
graph::MetaGraphPtr llama_70b_graph();
// `count` small tensors of several types in numbered layers over a few files.
graph::MetaGraphPtr many_tensors(std::size_t count);
// tiny_graph() with notes of every severity and a missing name: it can be shown, not used.
graph::MetaGraphPtr unsound_graph();
// tiny_graph() with 60,000 notes and 5,000 entries of metadata, some of them long.
graph::MetaGraphPtr talkative_graph();

// No file holds its weights.
graph::MetaGraphPtr shapes_graph();
// Weights that are deflated, big-endian and unreadable, views, a tie, a part of a storage.
graph::MetaGraphPtr encoded_graph();
// An embedding and `layers` layers of four operators each, with sizes in B and S, several outputs and
// inputs, a value of unknown shape and odd names.
graph::MetaGraphPtr operator_graph(std::size_t layers);
// What a preset's configuration implies, without files: its forward pass is known.
graph::MetaGraphPtr preset_graph(const char* id);
// llama_70b_graph() without a tensor that its settings ask for: no note says so.
graph::MetaGraphPtr lacking_graph();
// The shapes of a configuration with a setting that no reader knows.
graph::MetaGraphPtr unread_setting_graph();
// With a configuration for which there is no architecture.
graph::MetaGraphPtr unknown_family_graph();
// `entries` of metadata of every type beside a one-line JSON, without arrays.
graph::MetaGraphPtr annotated_graph(std::size_t entries);

ConvertTask conversion(std::string to, std::string out, const exporters::WriteOptions& write = {});

// --- Waits for the window's background jobs.

// Until no job is left, and every result has arrived.
// What a load to the device of the open model is compared with.
inline std::vector<const load::Method*> compared_methods(const Workspace& workspace) {
  std::vector<const load::Method*> methods = load::methods_for(*workspace.document().model->graph);
  load::leave_out_unasked(methods, {});
  return methods;
}

inline void settle(Workspace& workspace) {
  while (workspace.busy())
    if (!workspace.poll()) std::this_thread::yield();
  workspace.poll();
}

}  // namespace loadline::gui
