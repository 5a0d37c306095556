// dump_graph PATH: the whole MetaGraph as JSON, operators and sizes included, for the interop tests.
#include "core/base/error.h"
#include "importers/resolve.h"
#include "tests/support/graph_json.h"

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: dump_graph PATH\n", stderr);
    return 2;
  }
  try {
    std::fputs(loadline::tests::graph_json(loadline::importers::open_model(argv[1], {})).c_str(), stdout);
    return 0;
  } catch (const loadline::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
