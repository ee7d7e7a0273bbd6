#include "data.h"

#include <cstdlib>
#include <fstream>

namespace lr
{
static Row ParseRow(const std::string &line, const std::string &path, int number)
{
    Row row;
    const char *at = line.c_str();
    char *end;
    row.label = std::strtof(at, &end) > 0.5f ? 1.0f : 0.0f;
    CHECK(end != at) << path << ":" << number << ": no label";
    for (at = end;; at = end) {
        while (*at == ' ' || *at == '\t' || *at == '\r')
            ++at;
        if (*at == '\0')
            return row;
        uint64_t id = std::strtoull(at, &end, 10);
        CHECK(end != at && *end == ':') << path << ":" << number << ": not feature:value: " << at;
        at = end + 1;
        float value = std::strtof(at, &end);
        CHECK(end != at) << path << ":" << number << ": feature " << id << " has no value";
        row.features.emplace_back(Spread(id), value);
    }
}

std::vector<Row> ReadRows(const std::string &path, int first, int count)
{
    std::ifstream file(path);
    CHECK(file) << "cannot read " << path;
    std::vector<Row> rows;
    std::string line;
    for (int number = 0; std::getline(file, line); ++number)
        if (number % count == first && !line.empty())
            rows.push_back(ParseRow(line, path, number + 1));
    return rows;
}
} // namespace lr
