/// The tables of tests/golden/formulas.json.
#pragma once
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

/// One table of the file, which PyTorch and transformers computed in f64.
inline nlohmann::json golden_formulas(const std::string& table) {
  const char* folder = std::getenv("TYPEFORMER_GOLDEN");
  if (folder == nullptr) throw std::runtime_error("TYPEFORMER_GOLDEN is not set");
  std::ifstream file(std::string(folder) + "/formulas.json");
  if (!file) throw std::runtime_error(std::string("no file ") + folder + "/formulas.json");
  return nlohmann::json::parse(file).at(table);
}
