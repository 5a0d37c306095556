// torch.save before 1.6 (torch 2.13: torch/serialization.py _legacy_save, _legacy_load).
//
//   pickle   0x1950a86a20f9469cfc6c
//   pickle   1001
//   pickle   {"protocol_version": 1001, "little_endian": ..., "type_sizes": {...}}
//   pickle   the object; persistent ids ('storage', class, key, location, numel, view)
//   pickle   [key, ...]
//   per key  i64 little-endian numel, then its elements, little-endian on every machine
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/file_graph.h"
#include "importers/formats.h"
#include "importers/torch/values.h"

#include <optional>

#include <fmt/format.h>

namespace loadline {
namespace {

constexpr std::string_view kMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kProtocol = 1001;

// Whether the file is a tar archive: its magic stands in the middle of the first header.
bool is_tar(std::string_view head) { return head.size() >= 262 && head.substr(257, 5) == "ustar"; }

class TorchLegacy : GraphReader {
 public:
  explicit TorchLegacy(const SourceFile& file) : GraphReader(file, "torch_legacy"), cursor_(file) {}

  MetaGraph read() {
    read_preamble();
    read_values();
    sort_by_place(graph_);  // after the pickle is freed, which is as large as the graph
    return std::move(graph_);
  }

 private:
  void read_preamble() {
    const std::string magic = cursor_.read_text(kMagic.size(), kMagic.size(), "the magic number");
    if (magic != kMagic)
      throw cursor_.malformed(0, "does not begin with the magic number of torch.save before 1.6");
    if (cursor_.read<std::uint8_t>("the magic number") != '.')
      throw cursor_.malformed(kMagic.size(), "the magic number is not all of its pickle");
    const std::uint64_t at = cursor_.at();
    const Pickle version(cursor_);
    if (!version.root().is(PickleValue::Kind::integer) || version.integer(version.root()) != kProtocol)
      throw Error(ErrorCode::unsupported, {.file = file_.path(), .byte = at},
                  "a protocol version other than {}", kProtocol);
    // describes the machine that wrote the file; nothing in the file depends on it
    const Pickle machine(cursor_);
    if (!machine.root().is(PickleValue::Kind::dict))
      throw cursor_.malformed(at, "the third pickle is no dict");
  }

  void read_values() {
    const Pickle pickle(cursor_);
    TorchStorages storages = torch_storages(pickle, file_.path(), TorchIds::legacy);
    const std::vector<StorageId> placed = place(storages, Pickle(cursor_));
    storages.forget_keys();
    add_torch_values(pickle, storages, placed, graph_);
  }

  // The storages follow in the order of `keys`, each after its number of elements.
  std::vector<StorageId> place(const TorchStorages& storages, const Pickle& keys) {
    at_ = cursor_.at();
    if (!keys.root().is(PickleValue::Kind::list)) throw malformed("the list of storages is no list");
    std::vector<std::optional<StorageId>> found(storages.storages().size());
    graph_.storages.reserve(found.size());
    for (const PickleValue& key : keys.items(keys.root())) {
      const std::string name = key.is(PickleValue::Kind::integer) ? std::to_string(keys.integer(key))
                                                                  : std::string(keys.text(key));
      const auto known = storages.find(name);
      // only the pickle gives the size of its elements
      if (!known)
        throw malformed("lists a storage '{}' that the pickle does not use", safe_display(name, 60));
      if (found[*known]) throw malformed("lists storage '{}' twice", safe_display(name, 60));
      found[*known] = place_one(storages.storages()[*known], name);
    }
    if (at_ != file_.size())
      graph_.note(Severity::error, {}, "{}: {} bytes after the last storage (byte {})",
                  safe_display(file_.path()), file_.size() - at_, at_);
    std::vector<StorageId> placed;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i])
        throw malformed("does not list storage '{}', which the pickle uses",
                        safe_display(storages.key(storages.storages()[i]), 60));
      placed.push_back(*found[i]);
    }
    return placed;
  }

  StorageId place_one(const TorchStorage& storage, std::string_view key) {
    // a separate cursor, so that no weights are read ahead
    Cursor count(file_, at_, at_ + 8);
    const auto numel = count.read<std::int64_t>("a storage's number of elements");
    if (numel < 0 || static_cast<std::uint64_t>(numel) != storage.numel)
      throw malformed("storage '{}' has {} elements here, the pickle says {}", safe_display(key, 60), numel,
                      storage.numel);
    at_ = count.at();
    if (!range_fits(at_, storage.bytes(), file_.size()))
      throw malformed("storage '{}' takes {} bytes, {} follow", safe_display(key, 60), storage.bytes(),
                      file_.size() - at_);
    const StorageId id = graph_.add_storage(plain_storage(FileId{0}, at_, storage.bytes()));
    at_ += storage.bytes();
    return id;
  }

  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return cursor_.malformed(at_, detail, values...);
  }

  Cursor cursor_;         // over the pickles
  std::uint64_t at_ = 0;  // among the storages
};

}  // namespace

MetaGraph read_torch_legacy_file(const SourceFile& file) {
  if (is_tar(file.head(512)))
    throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = 0},
                "a tar archive, as torch wrote before 0.1.10: load it with torch and save it again");
  return TorchLegacy(file).read();
}

Match sniff_torch_legacy(std::string_view head, std::string_view path) {
  if (head.starts_with(kMagic)) return Match::yes;
  // other pickles and tar archives match too, so that they are refused with a clear message
  for (const std::string_view extension : {".pt", ".pth", ".bin", ".ckpt", ".tar"})
    if (path.ends_with(extension) && (head.starts_with("\x80") || is_tar(head))) return Match::maybe;
  return Match::no;
}

MetaGraph read_torch_legacy(const Source& source) {
  MetaGraph graph = read_torch_legacy_file(*source.file);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline
