#include "testbench/network/text_similarity.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include "model/float/float_text.h"
#include "testbench/network/text_reference.h"

namespace systole::testbench {
namespace {

using Embedding = std::vector<double>;

/// The mean of rows of `width` values, of length 1. Where all values are 0 it is 0.
template <typename Value>
Embedding mean_of_rows(const std::vector<Value>& rows, std::size_t width) {
  Embedding mean(width, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) mean[i % width] += static_cast<double>(rows[i]);
  const double length = std::sqrt(std::inner_product(mean.begin(), mean.end(), mean.begin(), 0.0));
  for (double& x : mean) x /= length > 0 ? length : 1.0;
  return mean;
}

double cosine(const Embedding& a, const Embedding& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The texts nearest to text `index`, in order of their numbers.
std::vector<std::size_t> nearest(const std::vector<Embedding>& all, std::size_t index) {
  std::vector<double> cosines;
  cosines.reserve(all.size());
  for (const Embedding& other : all) cosines.push_back(cosine(all[index], other));
  std::vector<std::size_t> others(all.size());
  std::iota(others.begin(), others.end(), std::size_t{0});
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
  const auto end = others.begin() + TextSimilarity::kNeighbours;
  std::partial_sort(others.begin(), end, others.end(), [&](std::size_t a, std::size_t b) {
    return cosines[a] != cosines[b] ? cosines[a] > cosines[b] : a < b;
  });
  others.erase(end, others.end());
  std::sort(others.begin(), others.end());
  return others;
}

/// Share of the neighbours by real numbers that are those by integers.
double neighbours_kept(const std::vector<Embedding>& real, const std::vector<Embedding>& integer) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < real.size(); ++i) {
    const std::vector<std::size_t> a = nearest(real, i), b = nearest(integer, i);
    std::vector<std::size_t> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    kept += both.size();
  }
  return static_cast<double>(kept) / static_cast<double>(TextSimilarity::kNeighbours * real.size());
}

}  // namespace

TextSimilarity measure_similarity(const model::IntegerText& text,
                                  const std::string& checkpoint_path,
                                  const model::TokenIds& texts) {
  const model::FloatText network = load_real_text(text, checkpoint_path);
  const std::size_t width = text.shape.encoder.width;
  std::vector<Embedding> real, integer(texts.count);
  for (std::size_t i = 0; i < texts.count; ++i) {
    const model::TokenText tokens = texts.text(i).trimmed();
    real.push_back(mean_of_rows(network.hidden(tokens.ids, nullptr, tokens.types), width));
  }
  compute_texts(text, texts, [&](std::size_t i, const std::vector<std::int32_t>& states) {
    integer[i] = mean_of_rows(states, width);
  });
  TextSimilarity found;
  found.texts = texts.count;
  for (std::size_t i = 0; i < texts.count; ++i) {
    const double same = cosine(real[i], integer[i]);
    found.mean += same / static_cast<double>(texts.count);
    found.least = std::min(found.least, same);
  }
  if (texts.count > TextSimilarity::kNeighbours) found.neighbours = neighbours_kept(real, integer);
  return found;
}

}  // namespace systole::testbench
