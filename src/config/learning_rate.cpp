// Parses and prints schedules, and computes the rate of a step.
#include "config/learning_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "config/text.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

using Shape = LearningRateSchedule::Shape;

constexpr std::array<std::pair<std::string_view, Shape>, 3> kWords{
    {{"constant", Shape::constant},
     {"polynomial", Shape::polynomial},
     {"vaswani", Shape::vaswani}}};
constexpr double kLargestRate = 1e6;
constexpr std::int64_t kMostEpochs = 1'000'000, kMostSteps = 1'000'000'000;

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t semicolon = 0; semicolon != text.npos;) {
    semicolon = text.find(';');
    parts.push_back(text.substr(0, semicolon));
    if (semicolon != text.npos) text.remove_prefix(semicolon + 1);
  }
  return parts;
}

double rate_of(std::string_view part) {
  const auto rate = parse_real(part);
  if (!rate || *rate < 0 || *rate > kLargestRate)
    throw ConfigError(
        fmt::format("{} is no learning rate from 0 to {}", quote(part), kLargestRate));
  return *rate;
}

/// Adds the boundary, and remembers its unit.
void add_boundary(LearningRateSchedule& schedule, std::string_view part) {
  const bool in_steps = part.ends_with('s');
  const auto number = parse_integer(in_steps ? part.substr(0, part.size() - 1) : part);
  const std::int64_t most = in_steps ? kMostSteps : kMostEpochs;
  if (!number || *number < 1 || *number > most)
    throw ConfigError(fmt::format("{} is no epoch from 1 to {}, nor a step from 1s to {}s",
                                  quote(part), kMostEpochs, kMostSteps));
  if (!schedule.boundaries.empty() && in_steps != schedule.in_steps)
    throw ConfigError(fmt::format(
        "{} mixes epochs and steps: write all boundaries as E or all as Ns", quote(part)));
  if (!schedule.boundaries.empty() && *number <= schedule.boundaries.back())
    throw ConfigError(fmt::format("{} does not come after {}: boundaries must ascend", quote(part),
                                  schedule.boundaries.back()));
  schedule.in_steps = in_steps;
  schedule.boundaries.push_back(*number);
}

LearningRateSchedule parse_piecewise(std::string_view text) {
  const auto parts = parts_of(text);
  if (parts.size() < 3 || parts.size() % 2 == 0)
    throw ConfigError(
        fmt::format("{} is not LR0;E1;LR1;...: a rate, then boundary and rate in turn, such as "
                    "\"0.1;30;0.01\" (quote it in a shell)",
                    quote(text)));
  LearningRateSchedule schedule{Shape::piecewise};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i % 2 == 0)
      schedule.rates.push_back(rate_of(parts[i]));
    else
      add_boundary(schedule, parts[i]);
  }
  return schedule;
}

}  // namespace

const std::vector<std::string>& lr_schedule_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> made;
    for (const auto& [word, shape] : kWords) made.emplace_back(word);
    return made;
  }();
  return words;
}

LearningRateSchedule parse_lr_schedule(std::string_view text) {
  for (const auto& [word, shape] : kWords)
    if (text == word) return {shape};
  if (text.find(';') != text.npos || parse_real(text)) return parse_piecewise(text);
  throw ConfigError(fmt::format("unknown schedule {}{}; legal: {}, or LR0;E1;LR1;...", quote(text),
                                did_you_mean(std::string(text), lr_schedule_words()),
                                join(lr_schedule_words(), ", ")));
}

std::string to_string(const LearningRateSchedule& schedule) {
  for (const auto& [word, shape] : kWords)
    if (schedule.shape == shape) return std::string(word);
  std::string text = fmt::format("{}", schedule.rates.front());
  for (std::size_t i = 0; i < schedule.boundaries.size(); ++i)
    text += fmt::format(";{}{};{}", schedule.boundaries[i], schedule.in_steps ? "s" : "",
                        schedule.rates[i + 1]);
  return text;
}

LearningRate::LearningRate(const ResolvedConfig& config, std::int64_t global_batch_size)
    : schedule_(config.lr_schedule),
      initial_(*config.init_learning_rate),
      end_(config.lr_end),
      power_(config.lr_power),
      warm_up_(static_cast<double>(*config.lr_warmup_steps)),
      decay_(static_cast<double>(config.lr_decay_steps.value_or(0))) {
  if (schedule_.in_steps) return;
  for (std::int64_t& boundary : schedule_.boundaries)
    boundary = boundary * kImagesPerEpoch / global_batch_size;
}

double LearningRate::at(std::int64_t step) const {
  const double done = static_cast<double>(step) + 1;  // updates when this step is over
  const double ramp = done < warm_up_ ? done / warm_up_ : 1;
  switch (schedule_.shape) {
    case Shape::constant:
      return ramp * initial_;
    case Shape::piecewise:
      return ramp * piecewise(step);
    case Shape::polynomial:
      return done <= warm_up_ ? ramp * initial_ : polynomial(step);
    case Shape::vaswani:
      break;
  }
  return done < warm_up_ ? ramp * initial_ : std::sqrt(warm_up_ / done) * initial_;
}

double LearningRate::piecewise(std::int64_t step) const {
  const auto& boundaries = schedule_.boundaries;
  const auto next = std::upper_bound(boundaries.begin(), boundaries.end(), step);
  return schedule_.rates[static_cast<std::size_t>(next - boundaries.begin())];
}

double LearningRate::polynomial(std::int64_t step) const {
  const double done = (static_cast<double>(step) - warm_up_) / (decay_ - warm_up_);
  return end_ + (initial_ - end_) * std::pow(1 - std::min(1., done), power_);
}

}  // namespace scalemark
