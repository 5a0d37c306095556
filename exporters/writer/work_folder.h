// The folder in which the files of an output grow, and its record.
#pragma once

#include "core/io/file_system.h"
#include "exporters/exporter.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::exporters {

// --- What tells that an input file is still the one that was opened.

struct SourceState {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // since 1970
  std::uint64_t device = 0, inode = 0;
  std::uint64_t generation = 0;  // of the inode; 0 where the file system has none
  bool operator==(const SourceState&) const = default;
};

// Throws Error{io}.
SourceState source_state(const std::string& path);
SourceState source_state(int file, const std::string& path);
// Throws Error{io} that names what differs. `punched`: holes have been made in the file, which changes its
// time.
void check_unchanged(const SourceState& before, bool punched);

// --- What a conversion writes, and from which files, so that another run can tell whether it may go on.

struct WorkFile {
  std::string target;  // relative to the output folder
  std::uint64_t bytes = 0;
  bool operator==(const WorkFile&) const = default;
};

struct WorkRecord {
  std::uint64_t identity = 0;   // runs with the same number write the same bytes
  std::vector<WorkFile> files;  // in the order in which they must appear
  std::vector<std::string>
      superseded;  // files of another model, relative: they go once the new ones are there
  std::vector<SourceState> sources;
  bool replaces = false;             // existing targets
  std::vector<std::string> removes;  // sources that go once the output is in place; empty if they stay
};

// The folder of a layout's targets: its output folder, or that of its one file.
std::string output_folder(const Layout& layout);

// The files that a layout's bytes come from, as they are now. Throws Error{io}.
std::vector<SourceState> layout_sources(const Layout& layout, const graph::MetaGraph& source);
// Identifies the bytes that a layout writes.
WorkRecord work_record(const Layout& layout, std::vector<SourceState> sources);

std::string record_text(const WorkRecord& record);
// Throws Error{malformed}. `path` is used in messages.
WorkRecord parse_record(std::string_view text, const std::string& path);

// --- The folder `.loadline-...` in which the files of one output grow until all of them appear.
//
//   job.json     what is written, and from which files    lock       held by every process at work
//   00000.part   the first file of the layout              00000.log  how much of it is durable
//   00000.old    the file that it replaces                 consumed   what was taken from the sources
//   publish      exists while old files make way and parts are put in place (core/io/unfinished.h)
//   published    exists once all parts are in place

struct WorkPolicy {
  bool shared = false;  // other processes write parts at the same time, and go on with each other's remains
  bool resume = false;  // goes on with the remains of the same work
  bool force = false;   // removes other remains, unless they hold the only copy of something, or files that
                        // were to be put in place
};

// Move-only. Its destructor removes the folder, unless keep() was called or others are at work in it.
class WorkFolder {
 public:
  // Where a layout's work folder is; the folder in which it lies must exist when it is entered.
  static std::string path_of(const Layout& layout);

  // Creates the folder or goes on in it. Throws Error{usage} if another process is at work there, or if there
  // are remains that the policy does not allow to use or to remove.
  WorkFolder(std::string path, WorkRecord record, const WorkPolicy& policy);
  // Takes over work of which only the folder is known. Throws Error{usage} if a process is at work there, and
  // Error{malformed} if there is no record.
  explicit WorkFolder(std::string path);
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();

  const WorkRecord& record() const { return record_; }
  bool resumed() const { return resumed_; }
  // Whether an earlier run has begun to put the parts in place, or has ended that: all of them are complete.
  bool is_written() const;
  std::string part(std::size_t file) const;
  std::string log(std::size_t file) const;
  std::string consumed() const;
  std::string target(std::size_t file) const;

  void allow_replacing(bool allow) { record_.replaces |= allow; }
  // The part is complete: publish() throws Error{io} if its path has another state by then.
  void seal(std::size_t file, SourceState state);
  // Puts all parts in place, in order, then removes sources that were consumed. Several files replace others
  // as one: the old ones make way first, an index before all others, and stay until the new ones are there.
  // Each part must be complete and durable; one that is not there was put in place by an earlier run. Without
  // `record().replaces`, throws Error{usage} if a target exists. After an error all files are as they were;
  // if not even that succeeds, the folder is kept for another run.
  void publish();

  // Leaves everything for another run.
  void keep() { keep_ = true; }
  // Removes the folder and all that is in it.
  void remove();

 private:
  // A file that makes way, and where to.
  struct Aside {
    std::string from, to;
    std::size_t file = SIZE_MAX;  // its number, if a part replaces it
  };
  std::vector<Aside> asides() const;

  void lock(bool shared);
  void settle(const WorkPolicy& policy);
  bool is_in_place() const;
  void put_in_place();
  bool take_back() noexcept;
  void remove_sources();
  void write_record(bool shared);
  void remove_if_alone() noexcept;

  std::string path_;
  io::UniqueFd lock_;
  WorkRecord record_;
  std::vector<std::optional<SourceState>> sealed_;  // by file
  bool alone_ = true;
  bool ours_ = false;  // nothing of an earlier run is in it
  bool resumed_ = false;
  bool keep_ = false;
};

// Throws the Error{usage} that a WorkFolder would throw for this record and policy.
void check_remains(const std::string& path, const WorkRecord& record, const WorkPolicy& policy);

// The disk space that the files in a folder take; 0 if there is none.
std::uint64_t allocated_bytes(const std::string& folder);

// The list of what was taken from the sources: it may be damaged in part, or gone although a source is
// marked.
enum class ConsumedList : std::uint8_t { whole, damaged, lost };

// A work folder of any process, or a temporary file, as it lies on disk.
struct Remains {
  std::string path;
  bool alive = false;                     // a process is at work
  std::optional<WorkRecord> record = {};  // nothing if its process died before it wrote one,
                                          // its output was changed or removed since, or it is:
  bool damaged_record = false;            // not as it was written
  bool pending = false;                   // all parts are complete, and the last step has begun
  bool published = false;                 // all parts are in place: the rest is temporary
  std::uint64_t written = 0;              // durable bytes, of all files; all that is there if the record
                                          // is damaged
  std::uint64_t consumed = 0;             // bytes of which this is the only copy, as far as the list tells
  ConsumedList list = ConsumedList::whole;

  bool is_only_copy() const { return consumed > 0 || list != ConsumedList::whole; }
};
Remains examine_remains(const std::string& path);
// Of how much these remains are the only copy, in words.
std::string only_copy_text(const Remains& remains);
// All in a folder, by name.
std::vector<Remains> find_remains(const std::string& folder);
// Throws Error{usage} for remains that are alive, whose last step has begun, or that hold the only copy of
// something, unless `discard`. Then the sources stay marked: damaged_sources().
void remove_remains(const Remains& remains, bool discard);
// The files that were being consumed and are still there, with parts of their weights gone.
std::vector<std::string> damaged_sources(const Remains& remains);
// Removes the mark of consumed files from a folder once they are gone; with `only_look` says whether it
// would. False if there is none, or it stays.
bool remove_consumed_mark(const std::string& folder, bool only_look);
// Removes those of the output `out`, a path, if they are no use to anybody: where it is in place, or without
// a record.
void remove_finished(const std::string& out);

}  // namespace loadline::exporters
