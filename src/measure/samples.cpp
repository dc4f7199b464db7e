// Samples as JSON: the form in which ranks send them to rank 0.
#include "measure/samples.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "config/names.hpp"
#include "error.hpp"

namespace scalemark {
namespace {

constexpr std::array<std::pair<StopReason, const char*>, 6> kStopReasons{{
    {StopReason::num_batches, "num_batches"},
    {StopReason::target_ci, "target_ci"},
    {StopReason::max_seconds, "max_seconds"},
    {StopReason::target_loss, "target_loss"},
    {StopReason::signal, "signal"},
    {StopReason::non_finite, "non_finite"},
}};

/// JSON has no NaN; the library would write null without a word.
nlohmann::json finite_or_null(const std::vector<double>& values) {
  auto list = nlohmann::json::array();
  for (const double value : values) {
    if (std::isfinite(value))
      list.push_back(value);
    else
      list.push_back(nullptr);
  }
  return list;
}

std::vector<double> numbers(const nlohmann::json& list) {
  std::vector<double> values;
  for (const auto& value : list)
    values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                     : value.get<double>());
  return values;
}

StopReason stop_reason_from(const std::string& name) {
  for (const auto& [reason, text] : kStopReasons)
    if (name == text) return reason;
  throw RunError(fmt::format("samples of a rank: stop_reason \"{}\" is unknown", name));
}

/// The numbers of EmbeddingSamples by their keys.
constexpr std::array<std::pair<const char*, double EmbeddingSamples::*>, 6> kEmbeddingNumbers{{
    {"gathered_bytes", &EmbeddingSamples::gathered_bytes},
    {"payload_bytes", &EmbeddingSamples::payload_bytes},
    {"wire_bytes", &EmbeddingSamples::wire_bytes},
    {"messages", &EmbeddingSamples::messages},
    {"exchange_seconds", &EmbeddingSamples::exchange_seconds},
    {"densify_seconds", &EmbeddingSamples::densify_seconds},
}};

nlohmann::json embedding_to_json(const EmbeddingSamples& embedding) {
  nlohmann::json json = {{"rows", embedding.rows}};
  for (const auto& [key, number] : kEmbeddingNumbers) json[key] = embedding.*number;
  return json;
}

EmbeddingSamples embedding_from_json(const nlohmann::json& json) {
  EmbeddingSamples embedding;
  embedding.rows = json.at("rows").get<std::vector<double>>();
  for (const auto& [key, number] : kEmbeddingNumbers) embedding.*number = json.at(key);
  return embedding;
}

nlohmann::json server_to_json(const std::optional<ServerSamples>& server) {
  if (!server) return nullptr;
  return {{"arrival_rate", server->arrival_rate},
          {"offered", server->offered},
          {"queue_seconds", server->queue_seconds},
          {"timer_lateness", server->timer_lateness},
          {"batches", server->batches},
          {"queue_length_max", server->queue_length_max},
          {"ended_by", to_string(server->ended_by)}};
}

std::optional<ServerSamples> server_from_json(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  return ServerSamples{json.at("arrival_rate"),
                       json.at("offered"),
                       json.at("queue_seconds").get<std::vector<double>>(),
                       json.at("timer_lateness").get<std::vector<double>>(),
                       json.at("batches"),
                       json.at("queue_length_max"),
                       from_string<ServerEnd>(json.at("ended_by").get<std::string>()).value()};
}

}  // namespace

std::string to_string(StopReason reason) {
  for (const auto& [value, text] : kStopReasons)
    if (value == reason) return text;
  return "unknown";
}

nlohmann::json to_json(const Samples& samples) {
  nlohmann::json scaling;
  if (samples.loss_scaling)
    scaling = {{"initial", samples.loss_scaling->initial},
               {"last", samples.loss_scaling->last},
               {"dynamic", samples.loss_scaling->dynamic},
               {"skipped_steps", samples.loss_scaling->skipped_steps}};
  return {{"step_seconds", samples.step_seconds},
          {"wait_seconds", finite_or_null(samples.wait_seconds)},
          {"phase_seconds", samples.phase_seconds},
          {"loss", finite_or_null(samples.loss)},
          {"units", samples.units},
          {"padded_units", samples.padded_units},
          {"wall_seconds", samples.wall_seconds},
          {"turns", samples.turns},
          {"paused_seconds", samples.paused_seconds},
          {"warm_up_seconds", samples.warm_up_seconds},
          {"communication_seconds", samples.communication_seconds},
          {"loss_scaling", scaling},
          {"stop_reason", to_string(samples.stop_reason)},
          {"embedding", embedding_to_json(samples.embedding)},
          {"checkpoints",
           {{"every", samples.checkpoints.every},
            {"bytes", samples.checkpoints.bytes},
            {"write_seconds", samples.checkpoints.write_seconds}}},
          {"input",
           {{"place", to_string(samples.input.place)},
            {"bytes_per_step", samples.input.bytes_per_step},
            {"copy_seconds", samples.input.copy_seconds},
            {"wait_seconds", samples.input.wait_seconds}}},
          {"server", server_to_json(samples.server)}};
}

Samples samples_from_json(const nlohmann::json& json) {
  try {
    Samples samples;
    samples.step_seconds = json.at("step_seconds").get<std::vector<double>>();
    samples.wait_seconds = numbers(json.at("wait_seconds"));
    samples.phase_seconds = json.at("phase_seconds").get<PhaseSeconds>();
    samples.loss = numbers(json.at("loss"));
    samples.units = json.at("units").get<std::vector<double>>();
    samples.padded_units = json.at("padded_units");
    samples.wall_seconds = json.at("wall_seconds");
    samples.turns = json.at("turns");
    samples.paused_seconds = json.at("paused_seconds");
    samples.warm_up_seconds = json.at("warm_up_seconds");
    samples.communication_seconds = json.at("communication_seconds");
    if (const auto& scaling = json.at("loss_scaling"); !scaling.is_null())
      samples.loss_scaling = LossScaling{scaling.at("initial"), scaling.at("last"),
                                         scaling.at("dynamic"), scaling.at("skipped_steps")};
    samples.stop_reason = stop_reason_from(json.at("stop_reason"));
    samples.embedding = embedding_from_json(json.at("embedding"));
    const auto& checkpoints = json.at("checkpoints");
    samples.checkpoints = {checkpoints.at("every"), checkpoints.at("bytes"),
                           checkpoints.at("write_seconds").get<std::vector<double>>()};
    const auto& input = json.at("input");
    samples.input = {from_string<InputPlace>(input.at("place").get<std::string>()).value(),
                     input.at("bytes_per_step"), input.at("copy_seconds"),
                     input.at("wait_seconds")};
    samples.server = server_from_json(json.at("server"));
    return samples;
  } catch (const nlohmann::json::exception& error) {
    throw RunError(fmt::format("samples of a rank: {}", error.what()));
  }
}

}  // namespace scalemark
