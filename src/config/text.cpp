// Quotes, wraps and compares words, and computes digests.
#include "config/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#define OPENSSL_SUPPRESS_DEPRECATED  // since 3.0, for EVP_Digest
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "error.hpp"

namespace scalemark {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const nlohmann::json value = std::string(text.substr(0, kLongest));
  // ASCII only, so that a byte sequence cut in two or not UTF-8 at all never reaches a terminal.
  return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
         (text.size() > kLongest ? "..." : "");
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::string canonical_name(std::string_view name) {
  std::string canonical(name);
  std::replace(canonical.begin(), canonical.end(), '-', '_');
  return canonical;
}

std::string wrapped(const std::string& text, std::size_t columns, std::size_t indent) {
  std::string lines, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > columns) {
      lines += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line + "\n";
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string nearest;
  std::size_t smallest = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    if (longer > 200) continue;  // no name of ours; keeps hostile input cheap
    const std::size_t distance = edit_distance(name, candidate);
    if (distance > std::max<std::size_t>(2, longer / 3) || distance >= longer) continue;
    if (nearest.empty() || distance < smallest) {
      nearest = candidate;
      smallest = distance;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view prefix) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean {}{}?", prefix, nearest);
}

// These functions are all that OpenSSL needs for it: a program that is linked with libcrypto.a
// grows by 35 KB, by EVP_DigestUpdate() and its providers 3.8 MB.
struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }

Sha256::~Sha256() = default;

void Sha256::add(std::string_view part) {
  SHA256_Update(&state_->context, part.data(), part.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), &state_->context);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256_hex(std::string_view text) {
  Sha256 digest;
  digest.add(text);
  return digest.hex();
}

}  // namespace scalemark
