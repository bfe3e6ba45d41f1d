// Linked into a test program of CUDA kernels, it runs what nvcc made of them in place of the host layer:
//
//   TYPEFORMER_PTX=a.ptx:b.ptx     the kernels' PTX; without it this file does nothing
//   TYPEFORMER_PTX_MODE=both       the host layer first, then the PTX on the same memory, and how they differ
//   TYPEFORMER_PTX_MOST_ERROR=x    in that mode, a kernel whose results differ by more is a fault; see Agreement
//   TYPEFORMER_PTX_ULP=n           approximate instructions are off by up to n units in the last place
//   TYPEFORMER_PTX_RACES=0         no race check
//   TYPEFORMER_PTX_REPORT=file     what ran, in the end; see check.py
//   TYPEFORMER_PTX_VERBOSE=1       counts and seconds, in the end
//
// Order and copies are the host layer's options, TYPEFORMER_SIMT_SEED and TYPEFORMER_SIMT_COPIES.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "cuda/typed_arrays.hpp"
#include "module.hpp"
#include "symbols.hpp"
#include "typeformer/simt/simt.hpp"

namespace {

namespace simt = typeformer::simt;

// DeviceMemory shows its allocations to nobody; an explicit instantiation may name them.
template <auto member>
struct Reach {
  friend const auto& allocations_of(const simt::DeviceMemory& memory) { return memory.*member; }
};
template struct Reach<&simt::DeviceMemory::live_>;
const auto& allocations_of(const simt::DeviceMemory& memory);

}  // namespace

namespace ptx {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// What the host layer and the PTX made of the same memory, of all launches of a kernel.
struct Agreement {
  u64 words = 0, different = 0;  // words that either of them changed
  // The largest difference of two numbers over the largest of their array; where that is less than a thousandth of the
  // largest number of the test's arrays, it is what sums that cancel leave, and the difference is over the latter.
  double error = 0;
};

struct Piece {
  u8* first;
  std::size_t size;
};
using Contents = std::vector<std::vector<u8>>;

Contents copy_of(const std::vector<Piece>& pieces) {
  Contents contents;
  for (const Piece& piece : pieces) contents.emplace_back(piece.first, piece.first + piece.size);
  return contents;
}
void put_back(const std::vector<Piece>& pieces, const Contents& contents) {
  for (std::size_t i = 0; i < pieces.size(); ++i) std::memcpy(pieces[i].first, contents[i].data(), pieces[i].size);
}

class Launcher {
 public:
  explicit Launcher(const std::string& files) {
    std::stringstream list(files);
    for (std::string file; std::getline(list, file, ':');) {
      modules_.push_back(std::make_unique<Module>(read_file(file)));
      for (const std::string& entry : modules_.back()->entries())
        entries_[common_name(entry)] = {modules_.back().get(), entry};
    }
    const std::string ulp = environment("TYPEFORMER_PTX_ULP");
    for (const auto& module : modules_) {
      module->options.ulp = ulp.empty() ? 0 : std::stoi(ulp);
      module->options.check_races = environment("TYPEFORMER_PTX_RACES") != "0";
    }
  }

  void run(const simt::KernelCall& call) {
    const std::string symbol = symbols_.name_of(call.kernel);
    const auto found = entries_.find(common_name(symbol));
    if (found == entries_.end())
      throw simt::Fault("ptx", readable_name(symbol), "the kernel among the PTX's entries",
                        "no " + common_name(symbol));
    launched_.insert(found->first);
    ++launches_;
    const std::vector<Piece> pieces = pieces_of_memory();
    if (!both_) return run_entry(found->second, call, pieces);
    const Contents before = copy_of(pieces);
    const double inputs = largest_input();
    const double start = seconds();
    simt::run_kernel(call.shape, call.body, call.context);
    host_seconds_ += seconds() - start;
    const Contents host = copy_of(pieces);
    put_back(pieces, before);
    run_entry(found->second, call, pieces);
    const std::string name = readable_name(found->second.name);
    const double error = compare(pieces, before, host, inputs, agreements_[name]);
    if (!most_error_.empty() && !(error <= std::stod(most_error_)))
      throw simt::Fault("ptx", name, "results within " + most_error_ + " of the host layer's", std::to_string(error));
  }

  void report() const {
    if (const std::string file = environment("TYPEFORMER_PTX_REPORT"); !file.empty()) write_report(file);
    if (environment("TYPEFORMER_PTX_VERBOSE").empty()) return;
    u64 warp_instructions = 0, lane_instructions = 0;
    for (const auto& module : modules_) {
      warp_instructions += module->statistics.warp_instructions;
      lane_instructions += module->statistics.lane_instructions;
    }
    std::printf("ptx: %llu launches, %llu warp instructions, %llu lane instructions, %.2f s; host layer %.2f s\n",
                static_cast<unsigned long long>(launches_), static_cast<unsigned long long>(warp_instructions),
                static_cast<unsigned long long>(lane_instructions), seconds_, host_seconds_);
  }

 private:
  struct Place {
    Module* module = nullptr;
    std::string name;
  };

  static std::vector<Piece> pieces_of_memory() {
    std::vector<Piece> pieces;
    const simt::Runtime& device = simt::runtime();
    for (const auto& [first, piece] : allocations_of(device.memory))
      pieces.push_back({reinterpret_cast<u8*>(first), piece.bytes});
    for (const auto& [first, piece] : device.pinned) pieces.push_back({reinterpret_cast<u8*>(first), piece.bytes});
    return pieces;
  }

  void run_entry(const Place& place, const simt::KernelCall& call, const std::vector<Piece>& pieces) {
    Module& module = *place.module;
    module.options.seed = simt::options().seed;
    module.options.copies = static_cast<Arrival>(simt::options().copies);
    module.options.shared_limit = static_cast<u32>(simt::options().shared_limit);
    module.buffers.clear();
    for (std::size_t i = 0; i < pieces.size(); ++i)
      module.buffers.add(pieces[i].first, pieces[i].size, "allocation " + std::to_string(i));
    const auto dim = [](dim3 size) { return Dim3{size.x, size.y, size.z}; };
    const double start = seconds();
    try {
      module.run(place.name, dim(call.shape.grid), dim(call.shape.block), static_cast<u32>(call.shape.shared_bytes),
                 call.arguments);
    } catch (const Error& error) {
      throw simt::Fault("ptx", readable_name(place.name), "what the PTX ISA defines", error.what());
    }
    seconds_ += seconds() - start;
  }

  /// The largest error of this launch. Words of arrays of bf16 are two numbers, all others one float.
  static double compare(const std::vector<Piece>& pieces, const Contents& before, const Contents& host, double inputs,
                        Agreement& agreement) {
    double error = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      double largest = 1e-30, difference = 0;
      for (std::size_t j = 0; j < pieces[i].size / 4; ++j) {
        const u32 old = word_at(before[i].data(), j), a = word_at(host[i].data(), j), b = word_at(pieces[i].first, j);
        if (a == old && b == old) continue;
        ++agreement.words;
        agreement.different += a != b;
        const bool halves = are_halves(pieces[i].first + 4 * j);
        for (int part = 0; part <= halves; ++part) {
          const double x = number_in(a, halves, part), y = number_in(b, halves, part);
          if (std::isfinite(x)) largest = std::fmax(largest, std::fabs(x));
          if (x == y || (!std::isfinite(x) && !std::isfinite(y))) continue;  // overflows: contraction makes NaN of some
          difference = std::isnan(x - y) ? INFINITY : std::fmax(difference, std::fabs(x - y));
        }
      }
      if (largest < inputs / 1024) largest = inputs;
      if (!(difference / largest <= error)) error = difference / largest;
    }
    if (!(error <= agreement.error)) agreement.error = error;
    return error;
  }

  static u32 word_at(const u8* bytes, std::size_t index) {
    u32 word = 0;
    std::memcpy(&word, bytes + 4 * index, 4);
    return word;
  }
  static double number_in(u32 word, bool halves, int part) {
    return double{std::bit_cast<float>(!halves ? word : part ? word & 0xffff0000u : word << 16)};
  }
  static bool are_halves(const u8* address) {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    auto next = support::typed_arrays.upper_bound(place);
    if (next == support::typed_arrays.begin()) return false;
    --next;
    return next->second.halves && place < next->first + next->second.bytes;
  }
  /// The largest number in the test's arrays.
  static double largest_input() {
    double largest = 0;
    for (const auto& [address, array] : support::typed_arrays)
      for (std::size_t j = 0; j < array.bytes / 4; ++j)
        for (int part = 0; part <= array.halves; ++part) {
          const double x = number_in(word_at(reinterpret_cast<const u8*>(address), j), array.halves, part);
          if (std::isfinite(x)) largest = std::fmax(largest, std::fabs(x));
        }
    return largest;
  }

  void write_report(const std::string& path) const {
    std::ofstream file(path);
    for (const auto& [name, place] : entries_)
      file << "entry\t" << name << '\t' << readable_name(place.name) << '\t'
           << (launched_.count(name) ? "launched" : "never launched") << '\n';
    for (const auto& [name, agreement] : agreements_)
      file << "agreement\t" << name << '\t' << agreement.words << '\t' << agreement.different << '\t' << agreement.error
           << '\n';
    for (const auto& module : modules_)
      for (const Coverage& coverage : module->coverage()) {
        std::size_t ran = 0;
        for (const auto& [line, did] : coverage.lines) ran += did;
        file << "coverage\t" << readable_name(coverage.entry) << '\t' << ran << '\t' << coverage.lines.size() << '\t';
        for (const std::string& line : coverage.never_ran) file << line << ' ';
        file << "\nlines\t" << readable_name(coverage.entry) << '\t';
        for (const auto& [line, did] : coverage.lines)
          if (did) file << line << ' ';
        file << '\n';
      }
  }

  std::vector<std::unique_ptr<Module>> modules_;
  std::map<std::string, Place> entries_;  // by common name
  std::set<std::string> launched_;
  std::map<std::string, Agreement> agreements_;
  Symbols symbols_;
  bool both_ = environment("TYPEFORMER_PTX_MODE") == "both";
  std::string most_error_ = environment("TYPEFORMER_PTX_MOST_ERROR");
  u64 launches_ = 0;
  double seconds_ = 0, host_seconds_ = 0;
};

Launcher* launcher = nullptr;

/// Before main.
[[maybe_unused]] const bool installed = [] {
  const std::string files = environment("TYPEFORMER_PTX");
  if (files.empty()) return false;
  try {
    launcher = new Launcher(files);  // never destroyed: kernels may run at exit
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(1);
  }
  simt::run_instead = [](const simt::KernelCall& call) { launcher->run(call); };
  std::atexit([] { launcher->report(); });
  return true;
}();

}  // namespace
}  // namespace ptx
