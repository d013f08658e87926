// threads.cpp - an application in C++: a schedule from a string, and threads that each have a
// context of their own and share one kernel.
//
//   c++ -std=c++17 examples/threads.cpp $(pkg-config --cflags --libs schedc) -pthread -o threads
//   ./threads
#include <schedc.h>

#include <cstdio>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::string_view text = R"(kernel twice {
  in  X : f32[M, 64]
  out Y : f32[M, 64]
  spec { Y[i,j] = 2 * X[i,j] }
  grid (x : cdiv(M, 64))
  role math : 1 warpgroup, 128 regs {
    reg v : f32[64, 64]
    v[i,j] = X[x*64 + i, j]
    Y[x*64 + i, j] = 2 * v[i,j]
  }
}
)";

using Context = std::unique_ptr<schedc_context, decltype(&schedc_close)>;
using Kernel = std::unique_ptr<schedc_kernel, decltype(&schedc_kernel_free)>;

void print(void *, const schedc_diagnostic *report) { std::fputs(report->rendered, stderr); }

Context open_context() {
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context = nullptr;
  options.sink = print;
  schedc_open(&context, &options);
  return Context(context, schedc_close);
}

Kernel make_kernel(schedc_context *context) {
  schedc_source *source = nullptr;
  schedc_kernel *kernel = nullptr;
  if (!schedc_parse(&source, context, "twice.sched", text.data(), text.size()))
    schedc_instantiate(&kernel, context, source, nullptr, nullptr, nullptr, 0);
  schedc_source_free(source);
  return Kernel(kernel, schedc_kernel_free);
}

bool doubles(const schedc_kernel *kernel, int seed) {
  constexpr int rows = 100, columns = 64;
  std::vector<float> x(rows * columns), y(rows * columns);
  for (std::size_t i = 0; i < x.size(); i++)
    x[i] = static_cast<float>(i % 17) + static_cast<float>(seed);
  const schedc_tensor tensors[] = {{"X", x.data(), SCHEDC_F32, 2, {rows, columns}, {columns, 1}},
                                   {"Y", y.data(), SCHEDC_F32, 2, {rows, columns}, {columns, 1}}};
  Context context = open_context();
  if (!context || schedc_run_cpu(context.get(), kernel, tensors, 2, nullptr, 0, nullptr))
    return false;
  for (std::size_t i = 0; i < x.size(); i++)
    if (y[i] != 2 * x[i]) return false;
  return true;
}

}  // namespace

int main() {
  constexpr int threads = 4;
  Context context = open_context();
  Kernel kernel = make_kernel(context.get());
  bool right[threads] = {};
  std::vector<std::thread> running;
  for (int i = 0; i < threads && kernel; i++)
    running.emplace_back([&, i] { right[i] = doubles(kernel.get(), i); });
  bool all = kernel != nullptr;
  for (auto &thread : running) thread.join();
  for (bool one : right) all = all && one;
  std::puts(all ? "PASS" : "FAIL");
  return all ? 0 : 1;
}
