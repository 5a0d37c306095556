// Gives a source's disk space back while it is converted: a storage is punched out of its file once all that
// is made of it is durable and has been read back.
#pragma once

#include "core/graph/meta_graph.h"
#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::exporters {

// Bytes [begin, end) of a file of the source graph.
struct ConsumedRange {
  std::size_t file = 0;
  std::uint64_t begin = 0, end = 0;
};
// The log of a work folder.
struct ConsumedLog {
  std::vector<ConsumedRange> ranges;
  std::size_t bytes = 0;  // of whole lines: one behind them may have been cut off before its range was taken
  bool damaged = false;   // not every line is as it was written
};
ConsumedLog parse_consumed(std::string_view log);

// Of a source only the first `files` files are consumed. Throws Error{unsupported} for one that cannot be
// consumed: on a file system without holes, with other names (links), read-only, or without files.
void check_consumable(const graph::MetaGraph& source, std::size_t files);

// Those that hold weights, and their index, as absolute paths: they go once the output is in place.
std::vector<std::string> consumed_files(const graph::MetaGraph& source, std::size_t files);
// Throws unless the folders of these files are free of marks that are about them (core/io/unfinished.h) or,
// for a conversion that `consumes`, of any: a folder has one. The mark of the work folder `work`, and
// one that cannot be read, are no hindrance if that folder `holds` what was taken.
void check_marks(const graph::MetaGraph& source, std::size_t files, const std::string& work, bool holds,
                 bool consumes);
// Disk space that must be free to convert a consumed source.
std::uint64_t consumed_room(const Layout& layout, const graph::MetaGraph& source, std::size_t files);

// How often a written part is made durable while its source is consumed.
inline constexpr std::uint64_t kConsumedStep = 64 << 20;

class Consumption {
 public:
  // `log`: the path of the work folder's log of consumed ranges. Throws Error{malformed} if it is damaged.
  Consumption(const Layout& layout, const graph::MetaGraph& source, std::size_t files, std::string log);

  // The first `upto` bytes of file number `file` of the layout are durable and verified. Calls for one file
  // come with increasing numbers. The ranges are logged, and the source is marked, before they are punched.
  void written(std::size_t file, std::uint64_t upto);
  // The same without a change of files: the ranges that would be punched.
  std::vector<ConsumedRange> freed(std::size_t file, std::uint64_t upto);
  // Throws Error{io} naming `part`, which holds file number `file`, if what is to be written behind its first
  // `from` bytes was made of ranges that are gone.
  void require_source(std::size_t file, std::uint64_t from, const std::string& part) const;

  // Whether holes have been made, now or by an earlier run.
  bool has_begun() const { return !logged_.empty(); }

 private:
  void punch(const std::vector<ConsumedRange>& ranges);
  bool is_lost(const Slot& slot) const;
  void mark() const;

  const Layout& layout_;
  const graph::MetaGraph& source_;
  std::size_t files_;
  std::string log_;
  std::size_t log_bytes_ = 0;  // of whole lines
  bool marked_ = false;
  std::set<std::pair<std::size_t, std::uint64_t>> logged_;  // file and begin of each range
  std::vector<std::uint32_t> uses_;                         // by storage: slots that are not written yet
  std::vector<std::size_t> next_;  // by file of the layout: its first slot that is not written
};

}  // namespace loadline::exporters
