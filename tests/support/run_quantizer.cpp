// run_quantizer TYPE COLUMNS IN OUT [IMPORTANCE | MATRIX TENSOR]: quantizes rows of COLUMNS floats for the
// interop tests. IN and IMPORTANCE hold plain floats, IMPORTANCE one for each column; MATRIX is an importance
// matrix that lists TENSOR. OUT gets the blocks.
#include "core/base/error.h"
#include "core/convert/numbers/quantize.h"
#include "core/io/source_file.h"
#include "importers/gguf/gguf.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace {

using namespace loadline;

std::vector<float> floats_of(const char* path) {
  const io::SourceFile file = io::SourceFile::open(path);
  std::vector<float> floats(static_cast<std::size_t>(file.size()) / sizeof(float));
  file.read_at(0, std::as_writable_bytes(std::span(floats)));
  return floats;
}

std::vector<float> importance_of(int argc, char** argv, std::size_t columns) {
  if (argc < 6) return {};
  if (argc == 6) return floats_of(argv[5]);
  const graph::ImportanceMatrix matrix = importers::read_importance_matrix(io::SourceFile::open(argv[5]));
  const auto weights = graph::column_importance(matrix, argv[6], columns, 0, 1);
  return {weights.begin(), weights.end()};
}

void run(int argc, char** argv) {
  const auto dtype = graph::dtype_named(argv[1]);
  if (!dtype || !convert::can_quantize(*dtype))
    throw Error(ErrorCode::usage, "no quantizer for '{}'", argv[1]);
  const std::size_t columns = std::strtoull(argv[2], nullptr, 10);
  const std::vector<float> rows = floats_of(argv[3]), importance = importance_of(argc, argv, columns);
  const auto bytes =
      columns == 0 || rows.size() % columns != 0 ? std::nullopt : graph::byte_size(*dtype, columns);
  if (!bytes || (argc > 5 && importance.size() != columns))
    throw Error(ErrorCode::usage, "{} numbers in rows of {}, {} weights", rows.size(), columns,
                importance.size());
  std::vector<std::byte> blocks(rows.size() / columns * static_cast<std::size_t>(*bytes));
  convert::quantize_rows(*dtype, rows, importance, blocks);
  std::ofstream out(argv[4], std::ios::binary);
  out.write(reinterpret_cast<const char*>(blocks.data()), static_cast<std::streamsize>(blocks.size()));
  if (!out.flush()) throw Error(ErrorCode::io, "{}: not written", argv[4]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7) {
    std::fputs("usage: run_quantizer TYPE COLUMNS IN OUT [IMPORTANCE | MATRIX TENSOR]\n", stderr);
    return 2;
  }
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
