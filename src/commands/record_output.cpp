// See record_output.hpp.
#include "commands/record_output.hpp"

#include <memory>

#include "error.hpp"
#include "streams.hpp"

namespace scalemark {

std::vector<FlagHelp> record_flags() {
  return {{.name = "output",
           .value_name = "FILE",
           .text = "where the record is written",
           .often_used = true},
          {.name = "json", .text = "the record on stdout, nothing else", .often_used = true},
          {.name = "markdown", .text = "tables in Markdown", .often_used = true}};
}

RecordOutput read_record_output(const FlagReader& flags) {
  const RecordOutput output{flags.has("json"), flags.has("markdown"), flags.text("output")};
  if (output.json && output.markdown)
    throw ConfigError("--json and --markdown: stdout has place for one of them; leave one out");
  return output;
}

void put_out(const Json& record, const RecordOutput& output, std::string (*table)(const Json&),
             std::string (*markdown)(const Json&)) {
  refuse_numberless(record);
  std::unique_ptr<ResultFile> file;
  if (output.file) file = std::make_unique<ResultFile>(*output.file);
  deliver(record, file.get(), output.json);
  if (!output.json) put((output.markdown ? markdown : table)(record));
}

}  // namespace scalemark
