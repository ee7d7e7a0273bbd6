#include "learn/serve/stats.h"

#define NS_PER_S 1e9

static const int codes[STATS_STATUS_COUNT] = {
#define STATS_CODE(code) code,
    STATS_STATUSES(STATS_CODE)
#undef STATS_CODE
};

void stats_answer(struct stats *s, int status)
{
    for (size_t i = 0; i < STATS_STATUS_COUNT; i++)
        if (codes[i] == status)
            s->requests[i]++;
}

/* Values below STATS_SUB have a bucket each; above, each power of two has STATS_SUB of them. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < STATS_SUB)
        return (size_t)ns;
    unsigned shift = 59 - (unsigned)__builtin_clzll(ns); /* ns >> shift is in 16 .. 31 */
    return (size_t)shift * STATS_SUB + (size_t)(ns >> shift);
}

static uint64_t bucket_end(size_t bucket)
{
    if (bucket < 2 * STATS_SUB)
        return bucket;
    unsigned shift = (unsigned)(bucket / STATS_SUB) - 1;
    uint64_t start = (uint64_t)(bucket % STATS_SUB + STATS_SUB) << shift;
    return start + ((UINT64_C(1) << shift) - 1);
}

void stats_duration(struct stats *s, uint64_t ns)
{
    s->scored++;
    s->scored_ns += ns;
    s->window[s->now & 1].count[bucket_of(ns)]++;
}

void stats_rotate(struct stats *s)
{
    struct stats_window *next = &s->window[(s->now + 1) & 1];
    for (size_t i = 0; i < STATS_BUCKETS; i++)
        next->count[i] = 0;
    s->now++;
}

static uint64_t both(const struct stats *s, size_t bucket)
{
    return s->window[0].count[bucket] + s->window[1].count[bucket];
}

uint64_t stats_quantile(const struct stats *s, double q)
{
    uint64_t total = 0, seen = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++)
        total += both(s, i);
    uint64_t rank = (uint64_t)(q * (double)total);
    if (rank >= total)
        rank = total - (total > 0);
    for (size_t i = 0; total > 0 && i < STATS_BUCKETS; i++) {
        seen += both(s, i);
        if (seen > rank)
            return bucket_end(i);
    }
    return 0;
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    (void)fprintf(out, "# HELP paramo_serve_%s %s\n# TYPE paramo_serve_%s %s\n", name, help, name, type);
}

static void number(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    head(out, name, type, help);
    (void)fprintf(out, "paramo_serve_%s %llu\n", name, (unsigned long long)value);
}

void stats_write(const struct stats *s, const struct stats_gauges *gauges, FILE *out)
{
    uint64_t errors = 0;
    head(out, "requests_total", "counter", "Answered requests by status.");
    for (size_t i = 0; i < STATS_STATUS_COUNT; i++) {
        uint64_t n = s->requests[i];
        errors += codes[i] >= 400 ? n : 0;
        (void)fprintf(out, "paramo_serve_requests_total{status=\"%d\"} %llu\n", codes[i],
                      (unsigned long long)n);
    }
    number(out, "errors_total", "counter", "Requests answered with a status of 400 or more.", errors);
    number(out, "rows_total", "counter", "Rows scored.", s->rows);
    number(out, "request_bytes_total", "counter", "Bytes of request bodies.", s->bytes_in);
    number(out, "response_bytes_total", "counter", "Bytes of response bodies.", s->bytes_out);
    number(out, "unsent_bytes", "gauge", "Bytes of answers to scoring requests that wait for their clients.",
           s->unsent);
    number(out, "timeouts_total", "counter", "Connections closed because a request took too long.",
           s->timeouts);
    number(out, "connections_total", "counter", "Connections accepted.", s->connections);
    number(out, "connections_refused_total", "counter", "Connections above the limit.",
           s->connections_refused);
    number(out, "connections", "gauge", "Open connections.", s->connections_open);
    number(out, "reloads_total", "counter", "Models loaded after the first.", s->reloads);
    number(out, "reload_failures_total", "counter", "Models that could not be loaded.", s->reload_failures);
    head(out, "request_seconds", "summary",
         "Time from the header of a scoring request to its answer; quantiles of the last 30 to 60 seconds.");
    (void)fprintf(out, "paramo_serve_request_seconds{quantile=\"0.5\"} %.9g\n",
                  (double)stats_quantile(s, 0.5) / NS_PER_S);
    (void)fprintf(out, "paramo_serve_request_seconds{quantile=\"0.99\"} %.9g\n",
                  (double)stats_quantile(s, 0.99) / NS_PER_S);
    (void)fprintf(out, "paramo_serve_request_seconds_sum %.9g\n", (double)s->scored_ns / NS_PER_S);
    (void)fprintf(out, "paramo_serve_request_seconds_count %llu\n", (unsigned long long)s->scored);
    if (gauges->model) {
        head(out, "model_age_seconds", "gauge", "Time since the model was saved.");
        (void)fprintf(out, "paramo_serve_model_age_seconds{model=\"%s\"} %.3f\n", gauges->model,
                      gauges->model_age_s);
    }
    number(out, "ready", "gauge", "1 if /readyz answers 200.", (uint64_t)gauges->ready);
}
