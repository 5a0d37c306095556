// What every block holds after each step of a plan, in plain vectors: the oracle of the machine tests.
#pragma once

#include "core/convert/numbers/elements.h"
#include "core/io/graph_reader.h"
#include "core/plan/plan.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace loadline::testing {

class Simulation {
 public:
  Simulation(const plan::Plan& plan, const io::StorageReader& reader)
      : plan_(plan), reader_(reader), blocks_(plan.blocks.size()) {
    for (const plan::Step& step : plan.steps) execute(step);
  }

  // Bytes of a block that is alive at the end; those never written do not count.
  struct Content {
    bool alive = false;
    std::vector<std::byte> bytes;
    std::vector<char> defined;  // parallel
  };
  const Content& content(plan::BlockId id) const { return blocks_[graph::index(id)]; }

  // How many defined bytes of `actual` are not what the plan says.
  std::size_t differences(plan::BlockId id, std::span<const std::byte> actual) const {
    const Content& expected = content(id);
    if (actual.size() != expected.bytes.size()) return expected.bytes.size() + 1;
    if (std::equal(actual.begin(), actual.end(), expected.bytes.begin())) return 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < actual.size(); ++i)
      count += expected.defined[i] != 0 && actual[i] != expected.bytes[i] ? 1 : 0;
    return count;
  }

 private:
  std::vector<std::byte> read(graph::StorageId storage) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(reader_.graph().storage(storage).bytes));
    reader_.read(storage, 0, bytes);
    return bytes;
  }

  void execute(const plan::Step& step) {
    Content& block = blocks_[graph::index(step.block)];
    const plan::Block& info = plan_.block(step.block);
    const auto size = static_cast<std::size_t>(info.bytes);
    if (step.verb == plan::Verb::free) {
      block = {};
    } else if (step.verb == plan::Verb::alloc) {
      block = {true, std::vector<std::byte>(size), std::vector<char>(size, 0)};
      if (info.space != plan::Space::page_cache) return;
      block.bytes = read(*info.storage);
      block.bytes.resize(size);
      block.defined.assign(size, 1);
    } else if (const auto* storage = std::get_if<graph::StorageId>(&step.from)) {
      const std::vector<std::byte> bytes = read(*storage);
      put(block, step, bytes, std::vector<char>(bytes.size(), 1));
    } else {
      const Content& from = blocks_[graph::index(std::get<plan::BlockId>(step.from))];
      put(block, step, from.bytes, from.defined);
    }
  }

  static void put(Content& to, const plan::Step& step, const std::vector<std::byte>& from,
                  const std::vector<char>& known) {
    const auto source = static_cast<std::ptrdiff_t>(step.from_offset),
               target = static_cast<std::ptrdiff_t>(step.offset);
    if (step.cast) return put_cast(to, step, from, known);
    const auto count = static_cast<std::ptrdiff_t>(step.bytes);
    std::copy_n(from.begin() + source, count, to.bytes.begin() + target);
    std::copy_n(known.begin() + source, count, to.defined.begin() + target);
  }

  // A number made of bytes of which one was never written is none.
  static void put_cast(Content& to, const plan::Step& step, const std::vector<std::byte>& from,
                       const std::vector<char>& known) {
    const std::size_t wide = graph::dtype_info(step.cast->from).block_bytes;
    const std::size_t narrow = graph::dtype_info(step.cast->to).block_bytes;
    for (std::size_t i = 0; i < step.bytes / wide; ++i) {
      const std::size_t source = static_cast<std::size_t>(step.from_offset) + i * wide;
      const std::size_t target = static_cast<std::size_t>(step.offset) + i * narrow;
      convert::cast(step.cast->from, std::span(from).subspan(source, wide), step.cast->to,
                    std::span(to.bytes).subspan(target, narrow));
      const auto first = known.begin() + static_cast<std::ptrdiff_t>(source);
      const bool whole = std::count(first, first + static_cast<std::ptrdiff_t>(wide), 1) ==
                         static_cast<std::ptrdiff_t>(wide);
      std::fill_n(to.defined.begin() + static_cast<std::ptrdiff_t>(target), narrow, whole ? 1 : 0);
    }
  }

  const plan::Plan& plan_;
  const io::StorageReader& reader_;
  std::vector<Content> blocks_;
};

}  // namespace loadline::testing
