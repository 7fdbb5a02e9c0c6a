// The corpus through a target without libFuzzer: every seed as it is, every beginning of it, and changed in a
// seeded, repeatable way.
//   fuzz_NAME FOLDER [CHANGES_PER_SEED]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.hpp"

namespace {

constexpr size_t kBeginningsMax = 512;

std::vector<std::string> read_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

std::string changed(const std::string& seed, const std::vector<std::string>& all, std::mt19937& random) {
  std::string text = seed;
  const auto below = [&](size_t n) { return n == 0 ? size_t{0} : random() % n; };
  for (size_t i = 0, changes = 1 + below(4); i < changes; ++i) {
    const size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), below(32)));
        break;
      default: {
        const std::string& other = all[below(all.size())];
        text.replace(at, below(16), other.substr(below(other.size() + 1), below(64)));
      }
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::vector<std::string> seeds = read_folder(argv[1]);
  const int changes = argc > 2 ? std::atoi(argv[2]) : 200;
  if (seeds.empty()) {
    std::fprintf(stderr, "%s has no seeds\n", argv[1]);
    return 1;
  }
  std::mt19937 random(7);  // NOLINT: the same every time, so that a failure can be repeated
  size_t inputs = 0;
  for (const std::string& seed : seeds) {
    fuzz_one(seed);
    for (size_t size = 0; size < std::min(seed.size(), kBeginningsMax); ++size, ++inputs)
      fuzz_one(std::string_view(seed).substr(0, size));
    for (int i = 0; i < changes; ++i, ++inputs) fuzz_one(changed(seed, seeds, random));
  }
  std::printf("%zu seeds, %zu inputs made from them\n", seeds.size(), inputs);
  return 0;
}
